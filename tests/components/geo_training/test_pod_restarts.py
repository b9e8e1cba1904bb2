"""How the pods of one site agree on their restarts, by the hand-over; no process is started."""

import dataclasses

import pytest
from geokfp.components._files import InputError
from geokfp.components._files.checkpoints import new_checkpoint
from geokfp.components._launch.hand_over import HandOver
from geokfp.components._launch.pod import PodPlace
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.job import GeoJob
from geokfp.components.geo_training.pod_restarts import PodRestarts, SitePod, forget_restarts
from geokfp.components.geo_training.topology import read
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.partition.partitions import SitePartitions
from geokfp.components.training.trained_gnn import ModelSource
from support.clock import FakeClock

WORKERS = {"oslo": 2, "paris": 1}
ADDRESSES = {
    "root": "127.0.0.1:7000",
    "sites": {"oslo": {"listens": "127.0.0.1:7300"}, "paris": {"listens": "127.0.0.2:7300"}},
}


class Pod:
    """One pod of the site `oslo`, whose pauses let a minute of its clock pass."""

    def __init__(self, folder, index):
        self.clock = FakeClock()
        self.hand_over = HandOver(str(folder / "hand-over"))
        hosts = {"oslo": ("oslo-0", "oslo-1"), "paris": ("paris-0",), "root": ("root-0",)}
        addresses = {name: tuple("127.0.0.1" for _ in pods) for name, pods in hosts.items()}
        place = PodPlace(group="oslo", index=index, hosts=hosts, addresses=addresses)
        site = SitePartitions(
            name="oslo",
            directory=folder / "oslo",
            num_parts=2,
            num_nodes=4,
            num_edges=4,
            num_train=2,
            num_validation=1,
            num_test=1,
        )
        members = frozenset((f"oslo/trainer-{index}", *(("oslo",) if index == 0 else ())))
        work = folder / f"pod-{index}"
        work.mkdir()
        tree = TreeJob(
            run_id="run",
            workers=WORKERS,
            topology=read(ADDRESSES, WORKERS, free_ports=()),
            checkpoint_folder=str(folder / "kept"),
            keeps_answers=True,
        )
        job = GeoJob(
            config=GeoTrainingConfig(),
            source=ModelSource(architecture="sage", num_features=3, num_classes=2, num_layers=2),
            start=None,
            work=work,
            folders={"oslo": "oslo", "paris": "paris"},
            tree=tree,
        )
        pod = SitePod(place=place, members=members, site=site)
        self.work = work
        self.restarts = PodRestarts(job, pod, self.hand_over, self.clock, lambda _s: self.clock.advance(60))
        (self.unit,) = self.restarts.units

    def wanted(self):
        self.clock.advance(1)
        return self.restarts.wanted(self.unit)

    def tree(self):
        return TreeJob.read(self.work / "tree.json")


@pytest.fixture
def pods(tmp_path):
    return [Pod(tmp_path, index) for index in (0, 1)]


def keep(folder, epoch, *members):
    for member in members:
        with new_checkpoint(folder / "kept", epoch, member):
            pass


def test_all_pods_of_a_site_go_on_from_the_checkpoint_that_its_first_says(tmp_path, pods):
    first, second = pods
    assert first.unit.replicas == {"oslo/aggregator", "oslo/server-0", "oslo/trainer-0"}
    assert second.unit.replicas == {"oslo/server-1", "oslo/trainer-1"}
    assert [pod.wanted() for pod in pods] == [0, 0]
    keep(tmp_path, 3, "node-0", "worker-0", "worker-1")
    second.restarts.ending(second.unit, 1, "oslo/trainer-1: killed by SIGKILL")
    assert first.restarts.wanted(first.unit) == 0  # it does not look all the time
    assert first.wanted() == 1
    first.restarts.ending(first.unit, 1, "oslo: killed by the restart of its site")
    started = {role.name for role in first.restarts.again(first.unit, 1)}
    keep(tmp_path, 4, "node-0", "worker-0", "worker-1")  # by what was still alive elsewhere
    assert started == {"aggregator", "oslo/server", "oslo/trainer"}
    second.restarts.again(second.unit, 1)
    assert [pod.wanted() for pod in pods] == [1, 1]
    for pod in pods:
        tree = pod.tree()
        assert (tree.resume, tree.comes_back) == (3, "site")
        assert str(tree.topology.site("oslo").listens) == "127.0.0.1:7301"
        assert str(tree.topology.site("paris").listens) == "127.0.0.2:7300"
        assert "127.0.0.1 30051" in (pod.work / "oslo/oslo.addresses").read_text("ascii")
    said = HandOver(str(tmp_path / "hand-over")).get_text("restarts/oslo/1-wanted")
    assert said == "oslo-1: oslo/trainer-1: killed by SIGKILL"


def test_a_first_pod_that_says_nothing_is_not_waited_for_for_ever(pods):
    with pytest.raises(InputError, match="the first pod of oslo has not said within 60 s where"):
        pods[1].restarts.again(pods[1].unit, 1)


def test_what_was_said_in_an_earlier_try_is_forgotten(pods):
    first, second = pods
    first.restarts.ending(first.unit, 1, "killed")
    forget_restarts(second.hand_over)
    assert second.wanted() == 0


@pytest.mark.parametrize(
    ("transmission", "why"),
    [
        ("p3(slice_ms=20)", ""),
        ("fifo + dgt", "which blocks came is not repeated, with dgt"),
        ("fifo + multigps(shards=2, at=root)", "a site's root would be lost with it, with multigps"),
    ],
)
def test_where_no_site_can_come_back_a_job_says_why(pods, transmission, why):
    assert dataclasses.replace(pods[0].tree(), transmission=transmission).why_no_site_comes_back == why
