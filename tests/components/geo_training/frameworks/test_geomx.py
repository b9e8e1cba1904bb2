"""What GeoMX's variables, stores and compressions become, and which are refused."""

import re
from pathlib import Path

import geokfp.components.geo_training
import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import variables
from geokfp.components.geo_training.frameworks.geomx import (
    GLOBAL_SERVERS,
    GREED,
    INTER_TS,
    INTRA_TS,
    K1,
    K2,
    LOWER_BOUND,
    P3,
    USE_HFA,
    VARIABLES,
    check_compression,
    choices,
)
from geokfp.components.geo_training.tree_job import TreeJob
from support.geo_tree import topology

HFA = {USE_HFA: "1", K1: "20", K2: "10"}
BOUND = {LOWER_BOUND: "1000"}
BSC = {"type": "bsc", "threshold": 0.01}


@pytest.mark.parametrize(
    ("given", "store", "params", "synchronization", "compression"),
    [
        ({}, "dist_sync", None, "fsa", "none"),
        ({}, "dist_device_sync", None, "fsa", "none"),
        ({}, "dist_async", None, "mixed", "none"),
        ({**HFA, "ENABLE_P3": "0"}, "dist_sync", None, "hfa(k1=20, k2=10)", "none"),
        ({**HFA, USE_HFA: "True"}, "dist_sync", BSC, "hfa(k1=20, k2=10)", "bi_sparse(ratio=0.01)"),
        ({USE_HFA: "1"}, "dist_sync", None, "hfa(k1=1, k2=1)", "none"),
        ({**HFA, USE_HFA: "0"}, "dist_sync", None, "fsa", "none"),
        (BOUND, "dist_sync", None, "fsa", "none"),
        (BOUND, "dist_sync", BSC, "fsa", "bi_sparse(ratio=0.01) + by_size(bound=1000)"),
        ({}, "dist_sync", {"type": "2bit"}, "fsa", "two_bit(threshold=0.5)"),
        ({}, "dist_async", {"type": "2bit", "threshold": 2}, "mixed", "two_bit(threshold=2)"),
    ],
)  # fmt: skip
def test_a_tree_can_be_made_of_them(given, store, params, synchronization, compression):
    made = choices(given, store, params)
    chosen = {"synchronization": synchronization, "compression": compression, "transmission": "fifo"}
    assert made == chosen
    TreeJob(run_id="run", workers={"site-0": 1}, topology=topology(1, 1), **made)


@pytest.mark.parametrize(
    ("given", "transmission"),
    [
        ({P3: "1"}, "p3"),
        ({P3: "0", GLOBAL_SERVERS: "1"}, "fifo"),
        ({GLOBAL_SERVERS: "3"}, "fifo + multigps(shards=3, at=root)"),
        ({P3: "true", GLOBAL_SERVERS: "2"}, "p3 + multigps(shards=2, at=root)"),
    ],
)
def test_priorities_and_global_servers_are_a_transmission(given, transmission):
    made = choices(given)
    assert made["transmission"] == transmission
    TreeJob(run_id="run", workers={"site-0": 1}, topology=topology(1, 1), **made)


def test_dgt_is_made_of_its_variables():
    assert choices({"ENABLE_DGT": "1"})["transmission"] == (
        "fifo + dgt(fraction=0.5, channels=3, alpha=0.3, min_fraction=0.2, block_bytes=1024, adaptive=false)"
    )
    given = {"ENABLE_DGT": "1", "DMLC_K": "0.8", "ADAPTIVE_K_FLAG": "1", "DGT_BLOCK_SIZE": "512"}
    assert choices({**given, "DMLC_UDP_CHANNEL_NUM": "1"})["transmission"] == (
        "fifo + dgt(fraction=0.8, channels=1, alpha=0.3, min_fraction=0.2, block_bytes=512, adaptive=true)"
    )


@pytest.mark.parametrize(
    ("given", "transmission"),
    [
        ({INTER_TS: "1"}, "fifo + tsengine(explore=0.1)"),
        ({INTER_TS: "1", GREED: "0.75"}, "fifo + tsengine(explore=0.25)"),
        ({INTER_TS: "0", GREED: "0.75"}, "fifo"),
        ({INTRA_TS: "1"}, "fifo + tsengine(explore=0.1)"),
        ({INTRA_TS: "true", INTER_TS: "1"}, "fifo + tsengine(explore=0.1)"),
    ],
)
def test_sites_relay_as_tsengine_between_data_centres_has_it(given, transmission):
    made = choices(given)
    assert made["transmission"] == transmission
    TreeJob(run_id="run", workers={"site-0": 1}, topology=topology(1, 1, accepting=1), **made)


def test_they_are_read_from_the_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert choices(variables(*VARIABLES))["synchronization"] == "fsa"
    for name, value in HFA.items():
        monkeypatch.setenv(name, value)
    assert choices(variables(*VARIABLES))["synchronization"] == "hfa(k1=20, k2=10)"


@pytest.mark.parametrize(
    ("given", "store", "params", "says"),
    [
        ({}, "local", None, "kv.create 'local': allowed is one of dist_sync, "),
        ({USE_HFA: "yes"}, "dist_sync", None, "MXNET_KVSTORE_USE_HFA is 'yes', allowed: 0, 1, "),
        ({P3: "on"}, "dist_sync", None, "ENABLE_P3 is 'on', allowed: 0, 1, "),
        ({GLOBAL_SERVERS: "0"}, "dist_sync", None, "DMLC_NUM_GLOBAL_SERVER is 0, allowed: a whole"),
        (HFA, "dist_async", None, "MXNET_KVSTORE_USE_HFA is '1' with kv.create 'dist_async', allowed: "),
        ({**HFA, K2: "0"}, "dist_sync", None, "MXNET_KVSTORE_HFA_K2 is 0, allowed: a whole"),
        ({**HFA, K1: "x"}, "dist_sync", None, "MXNET_KVSTORE_HFA_K1 is 'x', allowed: a whole"),
        ({LOWER_BOUND: "-1"}, "dist_sync", BSC, "MXNET_KVSTORE_SIZE_LOWER_BOUND is -1, "),
        ({}, "dist_sync", {"type": "fp8"}, "compression_params {'type': 'fp8'}, allowed: type bsc"),
        ({}, "dist_sync", {**BSC, "bits": 2}, "compression_params {'type': 'bsc', "),
        ({}, "dist_sync", {"type": "bsc", "threshold": "0.1) + zstd"}, "compression_params {'type': 'bsc', "),
        ({}, "dist_sync", {"type": "bsc", "threshold": 3}, "compression 'bi_sparse(ratio=3)': ratio is "),
        ({"ENABLE_DGT": "2"}, "dist_sync", None, "ENABLE_DGT is '2', allowed: 0, or 1"),
        ({"ENABLE_DGT": "1", "DMLC_K": "2"}, "dist_sync", None, "transmission 'fifo + dgt(fraction=2"),
        ({"ENABLE_DGT": "1", "ADAPTIVE_K_FLAG": "x"}, "dist_sync", None, "ADAPTIVE_K_FLAG is 'x', allowed: "),
        ({"ENABLE_DGT": "1", "DGT_BLOCK_SIZE": "0"}, "dist_sync", None, "DGT_BLOCK_SIZE is 0, allowed: "),
        ({INTER_TS: "2"}, "dist_sync", None, "ENABLE_INTER_TS is '2', allowed: 0, 1, false"),
        ({INTER_TS: "1", GREED: "1"}, "dist_sync", None, "MAX_GREED_RATE_TS is 1, allowed: a number at "),
        ({INTER_TS: "1", GREED: "much"}, "dist_sync", None, "MAX_GREED_RATE_TS is 'much', allowed: a "),
        ({INTRA_TS: "2"}, "dist_sync", None, "ENABLE_INTRA_TS is '2', allowed: 0, 1, false"),
    ],
)  # fmt: skip
def test_what_means_nothing_here_is_refused_by_name(given, store, params, says):
    with pytest.raises(InputError) as caught:
        choices(given, store, params)
    assert str(caught.value).startswith(says)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("params", "compression"),
    [
        (BSC, "bi_sparse(ratio=0.01)"),
        (BSC, "bi_sparse(ratio=0.01, bits=4) + by_size(bound=5) + zstd"),
        (BSC, "mpq"),
        ({"type": "2bit"}, "two_bit"),
    ],
)
def test_a_script_may_ask_for_what_its_tree_has(params, compression):
    check_compression(params, compression)


@pytest.mark.parametrize(
    ("params", "compression"),
    [
        (BSC, "none"),
        (BSC, "bi_sparse(ratio=0.1)"),
        (BSC, "two_bit"),
        ({"type": "2bit", "threshold": 1}, "two_bit"),
    ],
)
def test_what_a_script_asks_for_otherwise_is_refused_with_both(params, compression):
    with pytest.raises(
        InputError, match=r"^compression_params \{.*\}: the tree's compression is .*, allowed: "
    ):
        check_compression(params, compression)


OF_GEOMX = """
    DMLC_ROLE DMLC_PS_ROOT_URI DMLC_PS_ROOT_PORT DMLC_NUM_SERVER DMLC_NUM_WORKER DMLC_ROLE_GLOBAL
    DMLC_PS_GLOBAL_ROOT_URI DMLC_PS_GLOBAL_ROOT_PORT DMLC_NUM_GLOBAL_SERVER DMLC_NUM_GLOBAL_WORKER
    DMLC_ROLE_MASTER_WORKER DMLC_ENABLE_CENTRAL_WORKER DMLC_NUM_ALL_WORKER DMLC_INTERFACE DMLC_NODE_HOST PORT
    DMLC_LOCAL DMLC_USE_KUBERNETES DMLC_RANK DMLC_GLOBAL_RANK PS_VERBOSE PS_HEARTBEAT_INTERVAL
    PS_HEARTBEAT_TIMEOUT PS_RESEND PS_RESEND_TIMEOUT PS_DROP_MSG MXNET_KVSTORE_BIGARRAY_BOUND
    MXNET_KVSTORE_SIZE_LOWER_BOUND MXNET_KVSTORE_USE_HFA MXNET_KVSTORE_HFA_K1 MXNET_KVSTORE_HFA_K2 ENABLE_DGT
    DMLC_UDP_CHANNEL_NUM DMLC_K DMLC_K_MIN ADAPTIVE_K_FLAG DGT_CONTRIBUTION_ALPHA DGT_BLOCK_SIZE DGT_INFO
    ENABLE_INTER_TS ENABLE_INTRA_TS MAX_GREED_RATE_TS ENABLE_P3
"""


def test_the_readme_says_of_every_variable_of_geomx_what_becomes_of_it():
    readme = Path(geokfp.components.geo_training.__file__).with_name("README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*) \| .+ \|$", readme.partition("## GeoMX's variables")[2], flags=re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]*\*?)(?:=1)?`", row)}
    for name in {*OF_GEOMX.split(), *VARIABLES}:
        assert name in listed or f"{name.partition('_')[0]}_*" in listed, name
