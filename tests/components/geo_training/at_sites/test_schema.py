"""What sites tell each other before they partition, and what they agree on."""

from dataclasses import replace

import numpy as np
import pytest
from geokfp.components._files import ArtifactError, InputError
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components.geo_training.at_sites.here import on_this_machine
from geokfp.components.geo_training.at_sites.schema import SiteSchema, joined, with_labels
from geokfp.components.geo_training.config import GeoTrainingConfig, SitePartitionConfig, SiteShardConfig
from geokfp.components.shard.own_shard import fetch_shard
from geokfp.components.shard.rows import Rows
from support.real_graphs import communities
from support.site_shards import sharded


def schema(*labels: str, width: int = 4, names: tuple[str, ...] = ()) -> SiteSchema:
    return SiteSchema(num_features=width, feature_names=names, label_names=labels)


def test_labels_are_those_of_all_sites_in_one_order():
    assert joined({"oslo": schema("b", "c"), "paris": schema("a", "b")}).label_names == ("a", "b", "c")
    assert joined({"oslo": schema("10", "9"), "paris": schema("x", "2")}).label_names == ("2", "9", "10", "x")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"width": 5}, "site 'paris': num_features is 5, allowed: 4 as at 'oslo'"),
        ({"names": ("a",)}, r"site 'paris': feature_names is \['a'\] ..., allowed: \[\] ... as at 'oslo'"),
    ],
)
def test_sites_of_unlike_features_are_refused_by_name(other, reason):
    with pytest.raises(InputError, match=reason):
        joined({"oslo": schema("a"), "paris": schema("a", **other)})


def test_a_graph_is_counted_as_all_sites_count():
    graph = communities(24, num_train=8)
    names = ("another", *reversed(graph.label_names))
    moved = with_labels(graph, names)
    old, new = np.array([*graph.label_names, "none"]), np.array([*names, "none"])
    assert (old[graph.labels] == new[moved.labels]).all()
    assert SiteSchema.from_json(SiteSchema.of(moved).to_json()) == SiteSchema.of(moved)


GIVEN = {
    "tables": {"oslo": {"nodes": "s3://oslo/n.csv", "edges": "s3://oslo/e.csv"}},
    "topology": {"sites": {"oslo": {"storage": "s3://oslo/parts"}}},
    "launcher": "job",
    "run_id": "run",
}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tables": {}}, "tables is {}, allowed: a mapping of one or more sites"),
        ({"tables": {"oslo": {}}}, r"tables\['oslo'\] is {}, allowed: URIs of edges, features, nodes"),
        ({"tables": {"oslo": {"rows": "a"}}}, r"tables\['oslo'\] has \['rows'\], allowed: edges, features"),
        ({"tables": {"oslo": {"nodes": "a.csv"}}}, r"tables\['oslo'\]: edges is empty"),
        ({"ingest": {"nodes": "a"}}, r"ingest has \['nodes'\], allowed: destination_column"),
        ({"topology": {}}, r"\['oslo'\]\['storage'\] is '', allowed: an s3://, gs:// or minio:// URI"),
        ({"partition_method": "attribute"}, "partition_method is 'attribute'; allowed: metis, random"),
        ({"num_parts": 0}, "num_parts is 0; allowed: 1 or more"),
        ({"timeout_s": 0}, "timeout_s 0: must be at least 1"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_starts(options, reason):
    assert SitePartitionConfig(**GIVEN).partition.num_parts == 2
    with pytest.raises(InputError, match=reason):
        SitePartitionConfig(**{**GIVEN, **options})


def test_rows_are_counted_as_all_sites_count_and_numbers_stay():
    rows = Rows(source="here", features=np.zeros((3, 2)), labels=np.array([0, 1, 1]), label_names=("b", "c"))
    assert with_labels(rows, ("a", "b", "c")).labels.tolist() == [1, 2, 2]
    numbers = replace(rows, labels=np.array([0.5, 1.5, 2.5]), label_names=())
    assert with_labels(numbers, ()) is numbers
    told = SiteSchema.of_rows(rows)
    assert told.row == "float64 [2]"
    with pytest.raises(InputError, match=r"site 'paris': row is uint8 \[2\], allowed: float64 \[2\] as at"):
        joined({"oslo": told, "paris": replace(told, row="uint8 [2]")})


AT_OSLO = {**GIVEN, "tables": {"oslo": {"table": "s3://oslo/rows.csv"}}}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tables": {"oslo": {"nodes": "a"}}}, r"\['oslo'\] has \['nodes'\], allowed: images, labels, table"),
        ({"tables": {"oslo": {"images": "a"}}}, r"tables\['oslo'\]: labels is empty but images is given"),
        ({"shard": {"method": "by_class"}}, r"shard has \['method'\], allowed: feature_columns"),
        ({"shard": {"task": "sorting"}}, r"tables\['oslo'\]: task is 'sorting'; allowed: classification"),
        ({"seed": -1}, "seed is -1; allowed: 0 to"),
        ({"topology": {}}, r"\['oslo'\]\['storage'\] is '', allowed: an s3://, gs:// or minio:// URI"),
    ],
)
def test_what_cannot_be_done_with_rows_is_refused_before_anything_starts(options, reason):
    assert SiteShardConfig(**AT_OSLO).orders("oslo")["shard"]["site_names"] == ["oslo"]
    with pytest.raises(InputError, match=reason):
        SiteShardConfig(**{**AT_OSLO, **options})


def test_a_sites_shard_is_fetched_whole_or_refused(tmp_path):
    made = sharded(tmp_path / "made", num_sites=1)
    fetch_shard(str(made), tmp_path / "own" / "site-1")
    for file in (made / "site-0").iterdir():
        assert (tmp_path / "own" / "site-1" / file.name).read_bytes() == file.read_bytes()
    np.save(made / "site-0" / "split.npy", np.zeros(3))
    with pytest.raises(ArtifactError, match=r"site-0/split.npy: checksum differs from manifest.json"):
        fetch_shard(str(made), tmp_path / "again")


def test_processes_stand_in_for_pods_but_not_in_a_pipelines_pod(monkeypatch):
    topology = {"sites": {"oslo": {"storage": "/kept", "cluster": {"kubeconfig": "a"}}}}
    config = GeoTrainingConfig(topology=topology)
    with on_this_machine(config, Surroundings()) as (options, around):
        assert options.launches_pods
        assert options.plain_text
        assert options.topology == {"sites": {"oslo": {"storage": "/kept"}}}
        assert around.run is run_as_processes
    monkeypatch.setenv("KFP_POD_NAME", "step")
    monkeypatch.setenv("KFP_POD_UID", "uid")
    with (
        pytest.raises(InputError, match="launcher 'local': must be job, jobset, trainjob, dgljob in a pipe"),
        on_this_machine(config, Surroundings()),
    ):
        pass
