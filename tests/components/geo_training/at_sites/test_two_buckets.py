"""Two sites with a bucket each, which only the keys in the site's own secret open."""

import io
import json
import uuid
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest
from botocore.exceptions import ClientError
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components.geo_training.at_sites.run import run as partition_at_sites
from geokfp.components.geo_training.at_sites.shard_run import run as shard_at_sites
from geokfp.components.geo_training.config import GeoTrainingConfig, SitePartitionConfig, SiteShardConfig
from geokfp.components.geo_training.run import Outputs, run
from geokfp.components.partition.partitions import read_partitions
from geokfp.components.shard.shards import read_shards
from geokfp.components.table_training import run as table_training
from geokfp.components.table_training.config import GeoTableConfig
from support.owned_buckets import KEYS, REGION, OwnedBuckets, PodsWithSecrets, from_secret, owned_buckets
from support.real_graphs import communities

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),  # a quarter of a minute of CPU, more where others share the machine
    pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning"),
]
SITES = {"oslo": ("apple", "pear"), "paris": ("pear", "plum")}
SECRET = b"node-of-"
"""Begins every id."""
FEATURE = np.float32(0.0123456789)
"""The last two features of every node: as no weights have them side by side, they show where rows went."""
STEP = "step"
ROWS = 60
"""Of each site."""


@pytest.fixture
def names() -> dict[str, str]:
    """Bucket of each site, and of the hand-over; the service's memory outlives a test."""
    mark = uuid.uuid4().hex[:8]
    return {name: f"{name}-{mark}" for name in (*SITES, "hand-over")}


@pytest.fixture
def buckets(names: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    opens = {f"{site}-{names[site]}": [names[site], names["hand-over"]] for site in SITES}
    step = f"{STEP}-{names['oslo']}"
    with owned_buckets(monkeypatch, {**opens, step: [names["hand-over"]]}) as found:
        for name in ("SESSION_TOKEN", "PROFILE"):
            monkeypatch.delenv(f"AWS_{name}", raising=False)
        for name, value in {"ENDPOINT_URL": found.url, "DEFAULT_REGION": REGION}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        for name, value in found.keys[step].items():
            monkeypatch.setenv(name, value)
        fsspec.filesystem("s3").clear_instance_cache()
        yield found
        fsspec.filesystem("s3").clear_instance_cache()


def put_tables(buckets: OwnedBuckets, site: str, user: str, bucket: str) -> dict[str, str]:
    """Writes a site's tables to its bucket, with ids that nobody else has."""
    graph = communities(80, num_train=32)
    ids = np.array([f"{SECRET.decode()}{site}-{index}" for index in range(graph.num_nodes)])
    features = np.asarray(graph.dense_features())
    features[:, -2:] = FEATURE
    columns = {f"f{index}": features[:, index] for index in range(features.shape[1])}
    split = np.array(["none", "train", "validation", "test"])[graph.split]
    labels = np.array(SITES[site])[np.asarray(graph.labels) % 2]
    tables = {
        "nodes": pd.DataFrame({"id": ids, "label": labels, "split": split, **columns}),
        "edges": pd.DataFrame({"src": ids[graph.edges[0]], "dst": ids[graph.edges[1]]}),
    }
    for name, table in tables.items():
        buckets.client(user).put_object(Bucket=bucket, Key=f"{name}.csv", Body=table.to_csv(index=False))
    return {name: f"s3://{bucket}/{name}.csv" for name in tables}


def in_pods(
    names: dict[str, str], buckets: OwnedBuckets, users: dict[str, str]
) -> tuple[dict[str, Any], Surroundings]:
    """Returns options of steps whose pods have the keys of their site by its secret, and what runs them."""
    secrets = {f"keys-of-{site}": buckets.keys[users[site]] for site in SITES}
    where = {
        site: {"storage": f"s3://{names[site]}/kept", "env": from_secret(f"keys-of-{site}")} for site in SITES
    }
    common = {"topology": {"sites": where}, "launcher": "job", "run_id": "run", "namespace": "geo"}
    common["hand_over"] = f"s3://{names['hand-over']}/runs"
    return common, Surroundings(run=PodsWithSecrets(secrets))


def refused(buckets: OwnedBuckets, user: str, bucket: str, key: str) -> str:
    """Reads an object with somebody's keys, and returns why the service refuses it."""
    with pytest.raises(ClientError) as caught:
        buckets.client(user).get_object(Bucket=bucket, Key=key)
    return str(caught.value.response["Error"]["Code"])


def test_only_a_sites_own_keys_open_its_bucket(
    names: dict[str, str], buckets: OwnedBuckets, tmp_path: Path
) -> None:
    users = {site: f"{site}-{names[site]}" for site in SITES}
    step = f"{STEP}-{names['oslo']}"
    tables = {site: put_tables(buckets, site, users[site], names[site]) for site in SITES}
    check_that_others_are_refused(names, buckets, users, step)

    common, around = in_pods(names, buckets, users)
    config = SitePartitionConfig(tables=tables, num_parts=1, **common)
    made = tmp_path / "partitions"
    counts = partition_at_sites(config, partitions=made, report=tmp_path / "r.html", surroundings=around)
    assert (counts["num_nodes"], counts["num_classes"]) == (160.0, 3.0)
    parts = read_partitions(made, elsewhere=True)
    assert parts.label_names == ("apple", "pear", "plum")
    assert [site.uri.split("/")[2] for site in parts.sites] == [names[site] for site in SITES]

    folders = {name: tmp_path / name for name in ("model", "predictions")}
    outputs = Outputs(**folders, report=tmp_path / "trained.html")
    training = GeoTrainingConfig(epochs=3, hidden_size=4, batch_size=16, plain_text=True, **common)
    result = run(training, made, None, outputs, around)
    assert result.metrics["epochs_run"] == 3
    assert int(result.confusion.sum()) > 0

    kept = json.loads((outputs.predictions / "sites.json").read_text())
    for site, user in users.items():
        key = f"{kept[site].split('/', 3)[3]}/part-0/predictions.parquet"
        body = buckets.client(user).get_object(Bucket=names[site], Key=key)["Body"].read()
        table = pd.read_parquet(io.BytesIO(body))
        assert set(table["id"]) == {f"{SECRET.decode()}{site}-{index}" for index in range(80)}
    check_who_asked_for_what(names, buckets, users)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or not has_rows(path.read_bytes()), path


def has_rows(content: bytes) -> bool:
    """Tells whether ids or features are in a file."""
    return SECRET in content or FEATURE.tobytes() * 2 in content


def put_rows(buckets: OwnedBuckets, user: str, bucket: str, labels: tuple[str, ...]) -> dict[str, str]:
    """Writes a table of a site's rows to its bucket."""
    generator = np.random.default_rng(len(labels))
    numbers = np.arange(ROWS) % len(labels)
    features = {f"f{index}": generator.normal(size=ROWS) + numbers for index in range(4)}
    marks = {"f4": np.full(ROWS, FEATURE), "f5": np.full(ROWS, FEATURE)}
    table = pd.DataFrame({**features, **marks, "label": np.array(labels)[numbers]})
    buckets.client(user).put_object(Bucket=bucket, Key="nodes.csv", Body=table.to_csv(index=False))
    return {"table": f"s3://{bucket}/nodes.csv"}


def test_rows_stay_in_their_sites_bucket(
    names: dict[str, str], buckets: OwnedBuckets, tmp_path: Path
) -> None:
    users = {site: f"{site}-{names[site]}" for site in SITES}
    labels = {"oslo": ("apple", "pear"), "paris": ("plum",)}
    tables = {site: put_rows(buckets, users[site], names[site], labels[site]) for site in SITES}
    for site in SITES:
        assert refused(buckets, f"{STEP}-{names['oslo']}", names[site], "nodes.csv") == "AccessDenied"
    buckets.requests.clear()

    common, around = in_pods(names, buckets, users)
    made = tmp_path / "shards"
    config = SiteShardConfig(tables=tables, **common)
    counts = shard_at_sites(config, shards=made, report=tmp_path / "r.html", surroundings=around)
    assert (counts["num_rows"], counts["num_classes"], counts["num_sites"]) == (2 * ROWS, 3, 2)
    assert [path.name for path in made.iterdir()] == ["manifest.json"]
    assert [site.class_counts for site in read_shards(made, elsewhere=True).sites] == [
        (ROWS // 2, ROWS // 2, 0),
        (0, 0, ROWS),
    ]

    folders = {name: tmp_path / name for name in ("model", "predictions")}
    outputs = table_training.Outputs(**folders, report=tmp_path / "trained.html")
    training = GeoTableConfig(algorithm="mlp", epochs=3, num_workers=2, plain_text=True, **common)
    result = table_training.run(training, made, outputs, around)
    assert result.classes is not None
    assert int(result.classes.matrix.sum()) == counts["num_test"]
    kept = json.loads((outputs.predictions / "sites.json").read_text())
    for site, user in users.items():
        rows: set[int] = set()
        for worker in range(2):
            key = f"{kept[site].split('/', 3)[3]}/worker-{worker}/predictions.parquet"
            body = buckets.client(user).get_object(Bucket=names[site], Key=key)["Body"].read()
            table = pd.read_parquet(io.BytesIO(body))
            assert set(table["label"]) <= set(labels[site])
            rows |= set(table["row"])
        assert rows == set(range(ROWS))
    check_who_asked_for_what(names, buckets, users)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or not has_rows(path.read_bytes()), path


def check_that_others_are_refused(
    names: dict[str, str], buckets: OwnedBuckets, users: dict[str, str], step: str
) -> None:
    """The control: the keys of the step, of the root and of the other site open nothing of a site."""
    for site, other in (("oslo", "paris"), ("paris", "oslo")):
        own = buckets.client(users[site]).get_object(Bucket=names[site], Key="nodes.csv")["Body"].read()
        assert SECRET in own
        for user in (users[other], step):
            assert refused(buckets, user, names[site], "nodes.csv") == "AccessDenied"
    with pytest.raises(PermissionError):
        fsspec.open(f"s3://{names['oslo']}/nodes.csv").open()
    forged = {KEYS[0]: buckets.keys[users["oslo"]][KEYS[0]], KEYS[1]: buckets.keys[step][KEYS[1]]}
    thief = OwnedBuckets(buckets.url, {"thief": forged})
    assert refused(thief, "thief", names["oslo"], "nodes.csv") == "SignatureDoesNotMatch"
    buckets.requests.clear()


def check_who_asked_for_what(names: dict[str, str], buckets: OwnedBuckets, users: dict[str, str]) -> None:
    """Nobody else ever asked for anything in a site's bucket, and no row went through the hand-over."""
    for site, user in users.items():
        asked = [request for request in buckets.requests if request.bucket == names[site]]
        assert len(asked) > 10
        assert {request.user for request in asked} == {user}
        assert any(FEATURE.tobytes() * 2 in request.body for request in asked)
    handed = [request for request in buckets.requests if request.bucket == names["hand-over"]]
    assert {request.user for request in handed} >= set(users.values())
    assert sum(request.method == "PUT" for request in handed) > 10
    assert not [request for request in handed if has_rows(request.body)]
    assert not [request for request in buckets.requests if request.status in (401, 403)]
