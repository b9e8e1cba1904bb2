"""Sites whose clusters cannot be reached are named, or left out by the quorum's rule."""

import pytest
from geokfp.components._launch import ProcessFailed
from geokfp.components._launch.pods import PodSettings
from geokfp.components.geo_training.clusters.reach import sites_within_reach
from geokfp.components.geo_training.clusters.site_pods import places

WORKERS = {"oslo": 2, "paris": 3, "here": 1}
APART = {
    "root": "hub.example:7000",
    "sites": {name: {"cluster": {"context": name}} for name in ("oslo", "paris")},
}


def within_reach(*, down: str, chosen: str = "fsa", options: dict | None = None) -> tuple[str, ...]:
    asked = []

    def unreachable(cluster, namespace, timeout_s):
        asked.append((cluster.context, namespace))
        return f"context {cluster.context!r}: no answer" if cluster.context == down else ""

    where = places(options or APART, tuple(WORKERS), PodSettings(), "")
    try:
        return sites_within_reach(where, WORKERS, chosen, "geo", unreachable)
    finally:
        # The step's own cluster is not asked, others once.
        assert sorted(asked) == sorted({(context, "geo") for context, _ in asked} - {("", "geo")})


def test_all_sites_train_when_all_clusters_answer():
    assert within_reach(down="") == ("oslo", "paris", "here")


def test_a_site_out_of_reach_is_named():
    with pytest.raises(ProcessFailed, match="paris: cannot be reached: context 'paris': no answer"):
        within_reach(down="paris")


def test_a_quorum_leaves_it_out_where_the_others_suffice():
    assert within_reach(down="paris", chosen="fsa + quorum(workers=3)") == ("oslo", "here")
    with pytest.raises(
        ProcessFailed, match="paris: cannot be reached, and 3 workers are left of the quorum's 4"
    ):
        within_reach(down="paris", chosen="fsa + quorum(workers=4)")


def test_nothing_goes_on_without_the_root():
    options = {"root": "hub.example:7000", "root_pod": {"cluster": {"context": "hub"}}}
    with pytest.raises(ProcessFailed, match="root: cannot be reached: context 'hub'"):
        within_reach(down="hub", chosen="fsa + quorum(workers=1)", options=options)


def test_one_cluster_is_not_asked():
    assert within_reach(down="", options={"sites": {}}) == tuple(WORKERS)
