"""What is secured, what is refused without security, and which sockets a tree's processes listen at."""

from pathlib import Path

import numpy as np
import psutil
import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.security import check_certificates, transport
from geokfp.components.geo_training.server import dial
from geokfp.components.geo_training.topology import read
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.transport.tls import TlsTransport
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.messages import Heartbeat, encode
from geokfp.components.geo_training.workers.place import Place
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.pipelines._command_line.authority import Authority
from support.certificates import issue_each
from support.geo_scripts import run_script
from support.geo_tree import topology
from support.node_processes import nodes

WORKERS = {"oslo": 1, "paris": 2}
AUTHORITY = Authority(days=2)
OPEN = {"root": "hub.example:7000"}


def job(options: dict, **choices) -> TreeJob:
    return TreeJob(run_id="run", workers=WORKERS, topology=read(options, WORKERS, free_ports(3)), **choices)


@pytest.mark.parametrize(
    "options",
    [
        OPEN,
        {"root": "0.0.0.0:7000"},
        {"root": "10.0.0.1:7000"},
        {"root": "[::]:7000"},
        {"sites": {"oslo": {"listens": "oslo.example:7001"}}},
        {"sites": {"oslo": {"accepts": "oslo.example:7001"}}},
        {"root": "127.0.0.1:1", "binds": {"127.0.0.1:1": "0.0.0.0:7001"}},
    ],
)
def test_an_address_beyond_this_machine_needs_certificates_or_plain_text_by_name(options):
    wrong = (
        r"certificates '': must be a folder where an address of the topology is not loopback \(.*:700[01]\)"
    )
    for make in (
        lambda **choices: job(options, **choices),
        lambda **choices: GeoTrainingConfig(topology=options, **choices),
        lambda **choices: GeoTableConfig(topology=options, algorithm="mlp", **choices),
    ):
        with pytest.raises(InputError, match=wrong):
            make()
        make(plain_text=True)
        make(certificates="/certificates")
        with pytest.raises(InputError, match="plain_text True: must be False with certificates '/cert"):
            make(certificates="/certificates", plain_text=True)
        with pytest.raises(InputError, match="certificates 's3://a/b': must be the path of a folder"):
            make(certificates="s3://a/b")


@pytest.mark.parametrize("root", ["127.0.0.1:7000", "127.8.8.8:7000", "localhost:7000", "[::1]:7000"])
def test_loopback_needs_nothing(root):
    made = job({"root": root})
    assert str(made.topology.root) == root
    assert TreeJob.from_dict(made.to_dict()) == made


def test_links_between_sites_are_secured_and_inside_a_site_only_beyond_loopback():
    options = {"sites": {"oslo": {"listens": "oslo.example:1", "accepts": "oslo.example:2"}}}
    shape = read(options, WORKERS, free_ports(3))
    oslo, paris = shape.sites
    secured = {
        address: isinstance(transport("/certificates", shape, "paris", address), TlsTransport)
        for address in (shape.root, oslo.listens, oslo.accepts, paris.listens)
    }
    assert secured == {shape.root: True, oslo.listens: True, oslo.accepts: True, paris.listens: False}
    assert isinstance(transport("", shape, "paris", shape.root), TcpTransport)


def test_inside_a_site_plain_text_needs_that_what_is_bound_is_loopback_too():
    options = {"sites": {"oslo": {"listens": "127.0.0.1:1"}}, "binds": {"127.0.0.1:1": "0.0.0.0:1"}}
    shape = read(options, WORKERS, free_ports(3))
    assert isinstance(transport("/certificates", shape, "oslo", shape.site("oslo").listens), TlsTransport)


def test_nodes_bind_other_addresses_than_others_dial(tmp_path):
    root, site = free_ports(2)
    options = {
        "root": f"127.0.0.1:{root}",
        "sites": {"site-0": {"listens": f"127.0.0.1:{site}"}},
        "binds": {f"127.0.0.1:{port}": f"0.0.0.0:{port}" for port in (root, site)},
    }
    shape = read(options, {"site-0": 1}, ())
    made = TreeJob(run_id="run", workers={"site-0": 1}, topology=shape, plain_text=True)
    with nodes(made, tmp_path) as processes:
        client = dial(made, "site-0/trainer-0", "site-0")
        assert listening(processes["root"]) == {f"0.0.0.0:{root}"}
        assert listening(processes["site-0"]) == {f"0.0.0.0:{site}"}
        client.close()


def test_certificates_are_checked_only_where_some_are_given(tmp_path):
    check_certificates("", ["root"])
    issue_each(tmp_path, ["root"], AUTHORITY)
    check_certificates(str(tmp_path), ["root"])
    with pytest.raises(InputError, match=r"tls\.crt of node 'oslo' is missing"):
        check_certificates(str(tmp_path), ["root", "oslo"])


def listening(process: psutil.Popen) -> set[str]:
    found = process.net_connections(kind="inet")
    return {str(Address(*one.laddr)) for one in found if one.status == psutil.CONN_LISTEN}


@pytest.mark.parametrize("is_secured", [False, True])
def test_a_site_listens_on_loopback_only_and_dials_one_port(tmp_path, is_secured):
    shape = topology(2, 1, free_ports(3))
    names = ["site-0", "site-1"]
    folder = issue_each(tmp_path / "certificates", ["root", *names], AUTHORITY) if is_secured else ""
    made = TreeJob(run_id="run", workers=dict.fromkeys(names, 1), topology=shape, certificates=str(folder))
    with nodes(made, tmp_path) as processes:
        clients = [dial(made, f"{name}/trainer-0", name) for name in names]
        assert listening(processes["root"]) == {str(shape.root)}
        for site in shape.sites:
            assert listening(processes[site.name]) == {str(site.listens)}
            assert site.listens.is_loopback
            remote = {
                one.raddr.port
                for one in processes[site.name].net_connections(kind="inet")
                if one.status == psutil.CONN_ESTABLISHED and one.laddr.port != site.listens.port
            }
            assert remote == {shape.root.port}
        for client in clients:
            client.close()


SCRIPT = """
import os
import numpy as np
from geokfp.components.geo_training.workers.place import Place
from geokfp.components.geo_training.workers.plane import Layout

place = Place.from_environment()
values = np.random.default_rng(int(os.environ["INDEX"])).normal(size=300_000).astype(np.float32)
layout = Layout.of([("w", values.size)])
means = [place.plane.mean("gradient", layout, values * k, 1.0).wait() for k in range(3)]
np.savez(os.environ["RESULT"], means=np.stack(means), sent=place.plane.client.traffic.sent_bytes)
place.finish()
"""


def test_a_tree_over_tls_gives_what_it_gives_over_plain_text(tmp_path):
    folder = issue_each(tmp_path / "certificates", ["root", "site-0", "site-1"], AUTHORITY)
    results = {}
    for name, certificates in (("plain", ""), ("secured", str(folder))):
        (tmp_path / name).mkdir()
        results[name] = run_script(SCRIPT, tmp_path / name, certificates=certificates)
    heartbeat_bytes = sum(len(piece) for piece in encode(Heartbeat()))
    for worker, plain in results["plain"].items():
        secured = results["secured"][worker]
        np.testing.assert_array_equal(plain["means"], secured["means"])
        assert (int(plain["sent"]) - int(secured["sent"])) % heartbeat_bytes == 0


def test_a_node_with_a_wrong_certificate_does_not_begin(tmp_path: Path):
    shape = topology(1, 1, free_ports(2))
    folder = issue_each(tmp_path / "certificates", ["site-0"], AUTHORITY)
    made = TreeJob(run_id="run", workers={"site-0": 1}, topology=shape, certificates=str(folder))
    with nodes(made, tmp_path) as processes:
        assert processes["root"].wait(30.0) != 0
    (line,) = (tmp_path / "root.txt").read_text().splitlines()
    assert line.startswith("geokfp: certificates ")
    assert "tls.crt of node 'root' is missing, needed" in line


def test_a_worker_beyond_its_sites_machine_needs_its_certificate(tmp_path: Path, monkeypatch):
    made = job({"sites": {"paris": {"listens": "paris.example:7001"}}}, certificates=str(tmp_path / "none"))
    monkeypatch.setenv("GEOKFP_TREE", str(made.write(tmp_path / "tree.json")))
    monkeypatch.setenv("GEOKFP_WORKER", "paris/trainer-0")
    with pytest.raises(InputError, match=r"certificates '.*/none': is no folder, needed: tls\.crt"):
        Place.from_environment()
