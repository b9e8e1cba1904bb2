"""A real link between two sites' machines that is cut for a minute, in namespaces."""

import time

import numpy as np
import pytest
from benchmarks.wan_rig.execute import execute
from benchmarks.wan_rig.links import Links, endpoints, uniform
from benchmarks.wan_rig.network import network
from benchmarks.wan_rig.requirements import missing
from geokfp.components.geo_training.topology import ROOT, Site, Topology
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.tree_job import TreeJob
from support.faults import wait_until
from support.tree_processes import TreeProcesses

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

CUT_S, CUT_SILENCE_S = 60.0, 5.0


def test_a_link_that_is_cut_for_a_minute_costs_that_a_silence_and_a_round(tmp_path):
    ends = endpoints(2)
    links = Links(endpoints=ends, schedule=uniform(ends, None))
    if lacking := missing(links):
        pytest.skip(f"this machine lacks {', '.join(lacking)}")
    with network(links) as net:
        places = net.addresses
        shape = Topology(
            Address(places[ROOT], 7000),
            tuple(Site(name, 1, Address(places[name], 7001)) for name in ends[1:]),
        )
        job = TreeJob(
            run_id="cut",
            workers=dict.fromkeys(ends[1:], 1),
            topology=shape,
            silence_s=CUT_SILENCE_S,
            plain_text=True,
            synchronization="fsa(optimizer=sgd(rate=0.5))",
        )

        def within(name, command):
            return net.within(name.partition("/")[0], command)

        steps = 60
        with TreeProcesses(tmp_path, lambda _name: job, steps=steps, step_s=0.2, within=within) as tree:
            tree.start(*tree.nodes, *shape.workers)
            wait_until(lambda: tree.furthest() >= 10, "training to begin", 60.0)
            rules = [["from", places["site-0"]], ["to", places["site-0"]]]
            for rule in rules:
                execute(["ip", "-n", net.hub, "rule", "add", *rule, "pref", "10", "blackhole"])
            cut_at = time.monotonic()
            time.sleep(CUT_S)
            for rule in rules:
                execute(["ip", "-n", net.hub, "rule", "del", *rule, "pref", "10", "blackhole"])
            mended_at = time.monotonic()
            wait_until(lambda: all(p.poll() is not None for p in tree.running.values()), "the end", 90.0)
            assert not any(process.returncode for process in tree.running.values()), tree.said()
            began = [at for _, at in tree.progress("site-1/trainer-0")]
    gaps = np.diff(began)
    stood_still = gaps.max()
    assert began[int(gaps.argmax())] < cut_at + 1.0
    a_round = np.median(gaps)
    print(f"cut {mended_at - cut_at:.1f} s, stood still {stood_still:.1f} s, a round {a_round:.2f} s")
    assert CUT_S <= stood_still < (mended_at - cut_at) + CUT_SILENCE_S + 3 * a_round + 1.0
