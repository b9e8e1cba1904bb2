"""What is started on one cluster and on two, whole; and that it is planned by options and data alone."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from geokfp.components._files import InputError
from geokfp.components._launch.cluster import Cluster
from geokfp.components._launch.manifests import MANIFESTS
from geokfp.components._launch.pods import PodSettings
from geokfp.components.geo_training.clusters.launching import placed_launches
from geokfp.components.shard.shards import read_shards
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.pod_plan import planned, planned_launch, planned_tree
from support.kubernetes_schemas import check_object
from support.site_shards import arrays, sharded

GOLDENS = Path(__file__).parent / "goldens"
SETTINGS = PodSettings(resources={"limits": {"cpu": "2", "memory": "4Gi"}})
COMMON = {
    "algorithm": "mlp",
    "num_workers": 2,
    "run_id": "run-1",
    "namespace": "geo",
    "hand_over": "s3://bucket/hand-over",
}
TWO_CLUSTERS = {
    "root": "hub.example:30700",
    "root_pod": {"service": "NodePort", "certificates_secret": "geokfp-root"},
    "sites": {
        "oslo": {
            "cluster": {"kubeconfig": "/secrets/oslo/config", "context": "oslo"},
            "namespace": "learning",
            "service_account": "trainer",
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
            "certificates_secret": "geokfp-oslo",
        },
        "paris": {"certificates_secret": "geokfp-paris"},
    },
}
CONFIGS = {
    "one_cluster": {"launcher": "job", "plain_text": True},
    "two_clusters": {"launcher": "jobset", "topology": TWO_CLUSTERS},
}


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    return sharded(folder, table=arrays(folder, x, y), num_sites=2, site_names=["oslo", "paris"])


@pytest.mark.parametrize("name", CONFIGS)
def test_the_objects_are_those_of_the_golden_file(shards, name, update_goldens):
    config = GeoTableConfig(**COMMON, **CONFIGS[name])
    launches = planned(config, {"shards": str(shards)}, SETTINGS)
    objects = [obj for launch in launches for obj in MANIFESTS[config.launcher].objects(launch)]
    for obj in objects:
        check_object(obj)
    # A hash of all options and rows, also of those that are added one day.
    fresh = yaml.safe_dump_all(objects, sort_keys=False).replace(launches[0].name, "geo-train-0123456789")
    golden = GOLDENS / f"{name}.yaml"
    if update_goldens:
        golden.write_text(fresh, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == fresh, "run with --update-goldens and look at the difference"


def test_each_cluster_has_a_launch_of_its_own_and_the_root_comes_first(shards):
    config = GeoTableConfig(**COMMON, **CONFIGS["two_clusters"])
    read = read_shards(shards)
    tree = planned_tree(config, read, Path(), SETTINGS)
    here, oslo = placed_launches(planned_launch(config, read, tree, {}), tree)
    assert (here.cluster.kubeconfig, here.launch.namespace) == ("", "geo")
    assert [group.name for group in here.launch.groups] == ["root", "site-1"]
    assert oslo.cluster == Cluster(name="site-0", kubeconfig="/secrets/oslo/config", context="oslo")
    assert (oslo.launch.namespace, oslo.launch.step_pod) == ("learning", None)
    (group,) = oslo.launch.groups
    assert (group.name, group.num_pods, group.settings.service_account) == ("site-0", 2, "trainer")


def test_a_second_attempt_has_objects_and_a_hand_over_of_its_own(shards):
    config = GeoTableConfig(**COMMON, **CONFIGS["one_cluster"])
    read = read_shards(shards)
    tree = planned_tree(config, read, Path(), SETTINGS)
    launch = planned_launch(config, read, tree, {})
    first, second = placed_launches(launch, tree, 0)[0], placed_launches(launch, tree, 1)[0]
    assert second.launch.name == f"{first.launch.name}-1"
    assert launch.attempt(1).uri == f"s3://bucket/hand-over/{launch.name}/attempt-1"


def test_other_rows_or_another_run_make_other_objects(shards):
    def name(**options):
        config = GeoTableConfig(**{**COMMON, **CONFIGS["one_cluster"], **options})
        return planned(config, {"shards": str(shards)}, SETTINGS)[0].name

    assert name() == name()
    assert len({name(), name(run_id="run-2"), name(epochs=3)}) == 3


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"plain_text": False}, r"certificates '': must be a folder in every pod with launcher 'job'"),
        ({"hand_over": ""}, "hand_over '': must be given, as pods do not see"),
        (
            {
                "synchronization": "fsa",
                "transmission": "fifo + multigps(at=root)",
                "topology": TWO_CLUSTERS,
                "plain_text": False,
            },
            "must have one root with a service of topology.*, which opens one port",
        ),
        (
            {"hand_over": "/mnt/shared", "topology": TWO_CLUSTERS, "plain_text": False},
            "must be an s3://, .* with pods in other clusters, as 'site-0' is",
        ),
        (
            {"topology": {"sites": {"rome": {}}}},
            r"topology\['sites'\] names \['rome'\], allowed: \['oslo', 'paris'\]",
        ),
        (
            {"topology": {"sites": {"oslo": {"namespace": "a"}}}},
            r"topology\['root'\] is missing; site 'oslo'",
        ),
        (
            {"topology": {"sites": {"oslo": {"cluster": 1}}}},
            r"\['cluster'\] is 1, allowed: a mapping with kub",
        ),
        (
            {"topology": {"sites": {"oslo": {"listens": "a:1"}}}},
            r"\['oslo'\] has \['listens'\], allowed: accept",
        ),
        (
            {"certificates": "/a", "topology": TWO_CLUSTERS, "plain_text": False},
            "certificates is '/a'; allowed",
        ),
    ],
)
def test_what_cannot_be_started_is_refused_before_anything_is(shards, options, reason):
    with pytest.raises(InputError, match=reason):
        config = GeoTableConfig(**{**COMMON, **CONFIGS["one_cluster"], **options})
        planned(config, {"shards": str(shards)}, SETTINGS)


def test_predictions_go_to_their_artifact_where_the_pods_of_all_sites_reach_it(shards):
    def given(hand_over, output):
        config = GeoTableConfig(**{**COMMON, **CONFIGS["one_cluster"], "hand_over": hand_over})
        read = read_shards(shards)
        tree = planned_tree(config, read, Path(), SETTINGS)
        return dict(planned_launch(config, read, tree, {"predictions": output}).body)

    body = given("s3://b/h", "s3://b/predictions")
    assert body["predictions"] == "s3://b/predictions"
    assert list(body["label_names"]) == list(read_shards(shards).label_names)
    assert given("/data", "s3://b/predictions") == given("s3://b/h", "/tmp/predictions") == {}
