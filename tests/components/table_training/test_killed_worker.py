"""geo_train in which a worker or a site's aggregator is killed: it is started again while the others wait."""

import pytest
from geokfp.components._launch import ProcessFailed
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.launch_step import Surroundings
from support.killed_worker import GLUON, TORCH
from support.site_shards import sharded
from support.table_trainings import Trainings

pytestmark = [
    # MXNet names what NumPy has deprecated when it is imported.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.long,
    pytest.mark.timeout(240),
]
SUPERVISOR = "geokfp.components._launch.local"
TOP_K = "top_k(ratio=0.05)"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return sharded(tmp_path_factory.mktemp("digits"))


@pytest.fixture
def lines(monkeypatch):
    """What the supervisor says."""
    found = []
    monkeypatch.setattr(f"{SUPERVISOR}.progress", found.append)
    return found


class Killing(Trainings):
    """Trainings of two workers a site, of which some have a process killed."""

    def __init__(self, shards, folder, killed, at=(13,), killer="", code=TORCH, **options):
        self._mark, self._num = folder / "mark", len(at)
        names = [killed] * len(at) if isinstance(killed, str) else list(killed)
        told = {"mark": str(self._mark), "killer": killer or names[0], "killed": names, "at": list(at)}
        super().__init__(
            shards,
            folder,
            code,
            "killing",
            told,
            **{"synchronization": "fsa", "epochs": 5, "num_workers": 2, **options},
        )

    def run(self, name, *surroundings, killed):
        self._mark.write_text(str(self._num if killed else 0))
        metrics = self.train(name, *surroundings)
        assert self._mark.read_text() == "0"
        return metrics


def said(killed, again, number=1):
    return f"{killed}: killed by SIGKILL: starts {again} again, {number} of at most 2 times"


@pytest.mark.parametrize(
    ("killed", "at", "options"),
    [
        ("site-1/trainer-1", 13, {"compression": TOP_K}),
        ("site-0/trainer-0", 13, {"synchronization": "fsa(optimizer=adam(rate=0.01))"}),
        ("site-1/trainer-0", 2, {"synchronization": "hfa(k1=2, k2=2)", "compression": "quantized(bits=4)"}),
        ("site-1/trainer-1", 13, {"synchronization": "hfa(k1=2) + outer"}),
        (
            "site-0/trainer-1",
            13,
            {"transmission": "p3(slice_ms=1) + multigps(at=root)"},
        ),
        ("site-1/trainer-0", 13, {"code": GLUON}),
    ],
    ids=["top_k", "root_adam", "hfa-before-the-first-checkpoint", "outer", "p3", "gluon"],
)
def test_with_one_worker_killed_it_gives_what_one_run_gives(shards, tmp_path, lines, killed, at, options):
    training = Killing(shards, tmp_path, killed, (at,), **options)
    straight = training.run("straight", killed=False)
    again = training.run("killed", killed=True)
    assert lines == [said(killed, killed)]
    training.assert_same("straight", "killed", straight, again)
    sent = [metrics[f"wan_bytes_{way}"] for metrics in (straight, again) for way in ("sent", "received")]
    assert sent[2:] == pytest.approx(sent[:2], rel=0.05)  # heartbeats of some seconds more
    assert not list(tmp_path.rglob("answers"))


def test_with_an_aggregator_killed_its_site_comes_back_and_one_of_its_workers_again(shards, tmp_path, lines):
    site, worker = killed = ("site-1/aggregator", "site-1/trainer-1")
    training = Killing(shards, tmp_path, killed, (8, 20), killer="site-0/trainer-0", compression=TOP_K)
    straight = training.run("straight", killed=False)
    again = training.run("killed", killed=True)
    assert lines == [said(site, "site-1"), said(worker, worker)]
    training.assert_same("straight", "killed", straight, again)


def test_a_worker_that_is_killed_again_and_again_ends_the_step(shards, tmp_path, lines):
    worker = "site-1/trainer-1"
    training = Killing(shards, tmp_path, worker, (5, 8, 11))
    told = r"killed by SIGKILL; site-1/trainer-1 had been started again 2 of at most 2 times"
    with pytest.raises(ProcessFailed, match=f"^{worker}: {told}$"):
        training.run("killed", killed=True)
    assert lines == [said(worker, worker, number) for number in (1, 2)]


@pytest.mark.parametrize(
    ("synchronization", "transmission"),
    [
        ("fsa + quorum(workers=3, grace_s=0.2)", "fifo"),
        ("auto", "fifo"),
        ("hfa(k1=3) + quorum(workers=2)", "fifo + dgt"),
    ],
)
def test_digits_are_learnt_with_a_worker_killed_twice(shards, tmp_path, lines, synchronization, transmission):
    training = Killing(
        shards,
        tmp_path,
        "site-1/trainer-1",
        (6, 12),
        synchronization=synchronization,
        epochs=12,
        transmission=transmission,
    )
    assert training.run("killed", killed=True)["test_accuracy"] > 0.85
    assert len(lines) == 2


def test_in_pods_a_killed_worker_comes_back_too(shards, tmp_path, capfd):
    worker = "site-1/trainer-1"
    training = Killing(
        shards,
        tmp_path,
        worker,
        launcher="job",
        run_id="run",
        namespace="geo",
        plain_text=True,
        hand_over=str(tmp_path / "hand-over"),
        checkpoint_folder=str(tmp_path / "kept"),
    )
    pods = Surroundings(run=run_as_processes)
    straight = training.run("straight", pods, killed=False)
    capfd.readouterr()
    again = training.run("killed", pods, killed=True)
    assert said(worker, worker) in capfd.readouterr().out
    training.assert_same("straight", "killed", straight, again)
