"""A tree that is watched: what its processes leave, what their pages say, and that a port is refused."""

import contextlib
import json
import random
import re
import socket
import urllib.request

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components._report import Report
from geokfp.components.geo_training.metrics.ports import check_pages
from geokfp.components.geo_training.metrics.report import Measured, add_records
from geokfp.components.geo_training.metrics.watch import measured_of, recorder_of, watch
from geokfp.components.geo_training.transport.base import Traffic
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.relay_messages import Trees
from support.geo_scripts import run_script
from support.geo_tree import topology

STAR, CHAIN = {"site-0": "root", "site-1": "root"}, {"site-0": "root", "site-1": "site-0"}
SCRIPT = """
import os

import numpy as np
import torch
from geokfp.components.geo_training.frameworks.torch_worker import join

torch.set_num_threads(1)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
geo = join(model, optimizer)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    geo.step(8)
geo.finish()
np.savez(os.environ["RESULT"], steps=5)
"""


def first_of_free_ports(count: int) -> int:
    """Returns a port from which so many are free, below those that `free_ports` returns."""
    for first in random.sample(range(5000, 9900), 100):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no ports")


def job_of(folder: str, port: int = 0) -> TreeJob:
    return TreeJob(
        run_id="run",
        workers={"site-0": 2, "site-1": 1},
        topology=topology(2, 1),
        metrics_folder=folder,
        metrics_port=port,
    )


def test_every_process_leaves_what_it_measured_and_where_it_listened(tmp_path):
    folder = tmp_path / "metrics"
    port = first_of_free_ports(5)
    run_script(SCRIPT, tmp_path, metrics_folder=str(folder), metrics_port=port, compression="fp16")
    job = TreeJob.read(tmp_path / "tree.json")
    measured = measured_of(job, {name: (1_000_000, 2_000_000) for name in ("site-0", "site-1")})
    assert set(measured.records) == {"root", "site-0", "site-1", *job.topology.workers}
    for index, member in enumerate(job.members):
        (target,) = json.loads((folder / "targets" / f"{member}.json").read_text())
        assert target["targets"] == [f"127.0.0.1:{port + index}"]
    root, worker = measured.records["root"], measured.records["site-1/trainer-0"]
    assert [link.name for link in root.links] == ["site-0", "site-1"]
    for link in root.links:
        assert (link.rounds, link.staleness) == (
            6,
            0,
        )  # five steps, and the round that says that all are done
        dense = 5 * 4 * (64 * 64 + 64)
        assert (link.up_dense_bytes, link.down_dense_bytes) == (dense, dense)
        assert link.ratio == pytest.approx(2, rel=0.01)
    assert worker.steps == 5
    assert {"send", "wait", "training"} <= set(worker.series)
    report = Report("A page")
    add_records(report, measured)
    page = report.to_html()
    assert page.count("<svg") == 2
    for text in ("site-0/trainer-0", "compute", "up 1.00 MB", "down 2.00 MB"):
        assert text in page


def test_a_page_says_what_was_measured(tmp_path):
    job = job_of(str(tmp_path / "metrics"), first_of_free_ports(6))
    recorder = recorder_of(job)
    watched = watch(job, "root", recorder, lambda: {"site-0": Traffic(5, 7)})
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{job.metrics_port}/metrics", timeout=10) as answer:
            page = answer.read().decode()
        assert 'geokfp_link_bytes_total{direction="up",link="site-0",process="root"} 7.0' in page
        assert 'geokfp_staleness_rounds{link="site-0",process="root"} 0.0' in page
        with pytest.raises(InputError, match=rf"metrics_port: 127.0.0.1:{job.metrics_port} .*allowed"):
            watch(job, "root", recorder_of(job), dict)
    finally:
        watched.close()
        watched.close()


def test_nothing_is_watched_where_nobody_looks():
    job = job_of("")
    assert recorder_of(job) is None
    assert watch(job, "root", None, dict) is None


def test_a_report_without_records_says_nothing(tmp_path):
    report = Report("A page")
    add_records(report, measured_of(job_of(str(tmp_path)), {}))
    assert "<svg" not in report.to_html()


def test_a_site_that_never_stepped_has_no_lane_but_its_link(tmp_path):
    job = job_of(str(tmp_path))
    watch(job, "root", recorder_of(job), lambda: {"site-0": Traffic(5, 7)}).close()
    measured = measured_of(job, {})
    assert set(measured.records) == {"root"}
    report = Report("A page")
    add_records(report, Measured(measured.records, job.topology, {}))
    assert report.to_html().count("<svg") == 1


def test_the_links_show_the_trees_that_the_root_planned(tmp_path):
    job, pages = job_of(str(tmp_path)), []
    for rounds in ([], [Trees(STAR, STAR)] * 3 + [Trees(CHAIN, STAR)] * 2):
        recorder = recorder_of(job)
        for trees in rounds:
            recorder.relayed(trees)
        watch(job, "root", recorder, dict).close()
        report = Report("A page")
        add_records(report, measured_of(job, {}))
        pages.append(report.to_html())
    plain, relayed = pages
    for kind in ("aggregation", "distribution", "Arrows", "→"):
        assert kind not in plain
    assert relayed.count("<svg") == 1
    edges = re.findall(r'id="f[0-9a-f]{8}-((?:aggregation|distribution)-[^"]*)"', relayed)
    assert sorted(set(edges)) == [
        "aggregation-site-0-to-root",
        "aggregation-site-1-to-site-0",
        "distribution-root-to-site-0",
        "distribution-root-to-site-1",
    ]
    rows = re.findall(r"<td>(\w+)</td><td>([^<]*)</td><td class=\"number\">(\d+)</td>", relayed)
    assert rows == [
        ("aggregation", "site-0 → root, site-1 → site-0", "2"),
        ("aggregation", "site-0 → root, site-1 → root", "3"),
        ("distribution", "root → site-0, root → site-1", "5"),
    ]


@pytest.mark.parametrize("port", [-1, 65536, 65531, True, "80"])
def test_a_port_that_cannot_be_is_refused(port):
    with pytest.raises(InputError, match=r"metrics_port is .*, allowed: 0 for none, or 1 to 65530"):
        check_pages("127.0.0.1", port, 6)


@pytest.mark.parametrize("host", ["", "127.0.0.1:80", "http://here", "256.1.1.1", "a b", "-a", None, 7])
def test_a_host_that_cannot_be_is_refused(host):
    with pytest.raises(InputError, match=r"metrics_host is .*, allowed: a name or address of this machine"):
        check_pages(host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "pod-0.sites.example.", "node_1"])
def test_names_and_addresses_are_hosts(host):
    check_pages(host, 80)


def test_ports_are_numbered_from_the_first():
    check_pages("0.0.0.0", 0, 6)
    check_pages("::", 65530, 6)
    np.testing.assert_equal(job_of("", 65529).metrics_port, 65529)
