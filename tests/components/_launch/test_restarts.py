"""Which processes are started again: the state machine alone, then with processes that really are killed."""

import os
from pathlib import Path

import psutil
import pytest
from geokfp.components._launch import Job, ProcessFailed, Replica, Role, run_job
from geokfp.components._launch.restarts import Restarts, Unit
from geokfp.components._launch.verdict import BadEnd
from support.process_ends import gone

UNITS = tuple(
    Unit(site, frozenset(f"{site}/{name}" for name in ("aggregator", "server", "trainer")), others_s=1.0)
    for site in ("a", "b")
)
FINISHING = frozenset(("a/trainer", "a/aggregator", "b/trainer", "b/aggregator"))
KILLED, LOST, WRONG = "killed by SIGKILL", "ConnectionError: broken pipe", "ValueError: no such layer"


def restarts():
    return Restarts(UNITS, FINISHING)


def shown(steps):
    return [(step.what, step.unit.name, step.number, [end.name for end in step.ends]) for step in steps]


def bad(name, cause):
    return BadEnd(name, cause)


def kill_all(state, unit, now=0.0):
    for name in sorted(unit.replicas):
        assert state.ended(name, bad(name, KILLED), now)


def test_a_unit_begins_again_when_all_of_it_have_ended():
    state = restarts()
    assert state.ended("a/trainer", bad("a/trainer", KILLED), 0.0)
    assert shown(state.steps(0.0)) == [("end", "a", 1, ["a/trainer"])]
    assert state.steps(0.0) == []
    state.ended("a/server", bad("a/server", KILLED), 0.1)
    assert state.steps(0.1) == []
    state.ended("a/aggregator", None, 0.1)
    assert shown(state.steps(0.1)) == [("start", "a", 1, ["a/trainer"])]
    assert state.steps(9.0) == []


def test_each_unit_begins_again_twice_and_no_more():
    state = restarts()
    for number in (1, 2):
        kill_all(state, UNITS[0])
        assert [step.what for step in state.steps(0.0)] == ["end"]
        assert [(step.what, step.number) for step in state.steps(0.0)] == [("start", number)]
    kill_all(state, UNITS[1])
    assert shown(state.steps(0.0))[0][:3] == ("end", "b", 1)
    state.ended("a/server", bad("a/server", KILLED), 0.0)
    (failed,) = [step for step in state.steps(0.0) if step.what == "fail"]
    assert failed.cause == bad("a/server", f"{KILLED}; a had been started again 2 of at most 2 times")


@pytest.mark.parametrize(
    ("ends", "at", "what"),
    [
        ([("a/trainer", LOST)], 0.9, []),
        ([("a/trainer", LOST)], 1.0, ["fail"]),
        ([("a/trainer", LOST), ("a/server", KILLED)], 0.1, ["end"]),
        ([("a/trainer", "killed by SIGABRT")], 0.9, []),
        ([("a/trainer", "killed by SIGABRT")], 1.0, ["end"]),
        ([("a/trainer", WRONG)], 0.0, ["fail"]),
    ],
)
def test_what_is_no_kill_waits_for_its_cause_or_fails(ends, at, what):
    state = restarts()
    for name, cause in ends:
        state.ended(name, bad(name, cause), 0.0)
    assert [step.what for step in state.steps(at)] == what


def test_who_has_done_its_part_cannot_begin_again():
    state = restarts()
    state.ended("a/trainer", None, 0.0)
    state.ended("a/server", bad("a/server", KILLED), 0.0)
    assert [step.what for step in state.steps(0.0)] == ["fail"]


def test_others_of_a_larger_unit_may_ask_for_it():
    state = restarts()
    state.want(UNITS[0], 0)
    assert state.steps(0.0) == []
    state.ended("a/trainer", bad("a/trainer", LOST), 0.0)
    state.want(UNITS[0], 1)
    (step,) = state.steps(0.0)
    assert (step.what, step.number) == ("end", 1)
    state.want(UNITS[0], 1)
    kill_all(state, UNITS[0])
    assert [(step.what, step.number) for step in state.steps(0.0)] == [("start", 1)]
    state.want(UNITS[0], 1)
    assert state.steps(0.0) == []


TRAINERS = tuple(Unit(f"a/{name}", frozenset((f"a/{name}",))) for name in ("trainer", "server"))


def test_who_is_killed_takes_the_smallest_unit_with_it():
    state = Restarts((*TRAINERS, *UNITS), FINISHING)
    state.ended("a/trainer", bad("a/trainer", KILLED), 0.0)
    assert shown(state.steps(0.0)) == [("end", "a/trainer", 1, ["a/trainer"])]
    assert shown(state.steps(0.0)) == [("start", "a/trainer", 1, ["a/trainer"])]
    state.ended("a/aggregator", bad("a/aggregator", KILLED), 0.1)
    assert shown(state.steps(0.1)) == [("end", "a", 1, ["a/aggregator"])]
    state.ended("a/server", bad("a/server", KILLED), 0.2)
    assert state.steps(0.2) == []  # the trainer that was started again is to end, too
    state.ended("a/trainer", bad("a/trainer", KILLED), 0.2)
    assert shown(state.steps(0.2)) == [("start", "a", 1, ["a/aggregator"])]
    state.ended("a/server", bad("a/server", KILLED), 0.3)
    assert [step.what for step in state.steps(0.3) + state.steps(0.3)] == ["end", "start"]


@pytest.mark.parametrize("known", [False, True], ids=["at-once", "already-ending"])
def test_a_unit_that_ends_has_in_it_what_was_to_start_again(known):
    state = Restarts((*TRAINERS, *UNITS), FINISHING)
    state.ended("a/trainer", bad("a/trainer", KILLED), 0.0)
    if known:
        assert shown(state.steps(0.0)) == [("end", "a/trainer", 1, ["a/trainer"])]
    state.ended("a/aggregator", bad("a/aggregator", KILLED), 0.0)
    assert shown(state.steps(0.0)) == [("end", "a", 1, ["a/aggregator"])]
    assert state.failing == []
    state.ended("a/server", bad("a/server", KILLED), 0.1)
    assert shown(state.steps(0.1)) == [("start", "a", 1, ["a/aggregator"])]


def test_what_is_of_no_unit_is_not_taken():
    assert not restarts().ended("root/aggregator", bad("root/aggregator", KILLED), 0.0)


class Again:
    """Plans a unit of a process that serves and one that finishes when it may; see `Restarting`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[tuple[int, str]] = []
        self.units = (Unit("site", frozenset(("site/server-0", "site/finisher-0")), (self.segment,)),)

    @property
    def segment(self) -> str:
        return f"geokfp-restarts-{os.getpid()}-"

    def wanted(self, unit: Unit) -> int:
        return 0

    def ending(self, unit: Unit, number: int, cause: str) -> None:
        self.said.append((number, cause))

    def again(self, unit: Unit, number: int) -> tuple[Role, ...]:
        for process in psutil.process_iter(["cmdline"]):
            assert str(self.folder) not in (process.info["cmdline"] or ())
        assert not list(Path("/dev/shm").glob(f"{self.segment}*"))
        return self.roles(number)

    def roles(self, number: int) -> tuple[Role, ...]:
        targets = {"server": "serve_with_memory", "finisher": "finish_in_time"}
        return tuple(
            Role(
                name=name,
                target=f"support.restart_targets:{target}",
                replicas=(
                    Replica(
                        name=f"site/{name}-0",
                        arguments=(str(self.folder), str(number), f"{self.segment}{number}"),
                    ),
                ),
                finishes=name == "finisher",
            )
            for name, target in targets.items()
        )


@pytest.mark.parametrize(
    ("kills", "outcome"), [(1, ""), (3, "killed by SIGKILL; site had been started again 2 of")]
)
def test_killed_processes_are_started_again_and_the_others_live_on(tmp_path, kills, outcome):
    (tmp_path / "kills").write_text(str(kills))
    again = Again(tmp_path)
    other = Role(
        name="other",
        target="support.restart_targets:await_file",
        replicas=(Replica(name="other-0", arguments=(str(tmp_path / "done"),)),),
    )
    job = Job(name="test", roles=(*again.roles(0), other), deadline_s=50)
    if outcome:
        with pytest.raises(ProcessFailed, match=outcome):
            run_job(job, log_folder=tmp_path / "logs", restarting=again)
    else:
        run_job(job, log_folder=tmp_path / "logs", restarting=again)
    assert again.said == [
        (number, "site/server-0: killed by SIGKILL") for number in range(1, min(kills, 2) + 1)
    ]
    begun = [int(path.name.partition("-")[2]) for path in tmp_path.glob("begun-*")]
    assert sorted(begun) == list(range(min(kills, 2) + 1))
    assert all(gone(int(path.read_text())) for path in tmp_path.glob("begun-*"))
    assert len((tmp_path / "logs/site.finisher-0.log").read_text().splitlines()) == len(begun)


def test_a_unit_that_fails_by_itself_ends_the_job(tmp_path):
    (tmp_path / "kills").write_text("0")
    again = Again(tmp_path)
    wrong = Role(
        name="finisher",
        target="support.launch_targets:fail",
        replicas=(Replica(name="site/finisher-0"),),
    )
    job = Job(name="test", roles=(again.roles(0)[0], wrong), deadline_s=50)
    with pytest.raises(ProcessFailed, match=r"^site/finisher-0: ValueError: the sky fell$"):
        run_job(job, log_folder=tmp_path / "logs", restarting=again)
    assert again.said == []
