"""Window after window over one folder of champions: replaced, kept, overlapping, done again, cut short."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from geokfp.components._files import Folder, InputError
from geokfp.components.promotion import evaluate, open_window, promote
from geokfp.components.promotion.champions import Champions, Record
from geokfp.components.promotion.config import EvaluationConfig, PromotionConfig, WindowConfig
from support.challengers import CODE, challenger, exported, object_store, window_graph

# The client of the object store closes its sockets when it is collected.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::DeprecationWarning:boto.*"
)
NOW = datetime(2026, 11, 30, tzinfo=UTC)
MARGIN = 0.1


EVERYWHERE = pytest.mark.parametrize("kept", ["volume", "store"], indirect=True)


@pytest.fixture
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if getattr(request, "param", "volume") == "store":
        with object_store(monkeypatch) as bucket:
            yield f"{bucket}/champions"
    else:
        yield str(tmp_path / "champions")


@dataclass
class Run:
    """The steps of one run of the pipeline, but for training and export."""

    kept: str
    folder: Path
    day: int
    known: int
    margin: float = MARGIN
    champion: str = ""

    def open(self) -> "Run":
        outputs = open_window.Outputs(
            **{
                name: self.folder / name
                for name in ("window", "nodes", "edges", "features", "champion", "start")
            }
        )
        config = WindowConfig(
            champions=self.kept, time=f"2026-11-{self.day:02}T00:00Z", nodes="%Y/%m/%d.csv", edges="e.csv"
        )
        open_window.run(config, outputs, NOW)
        self.champion = outputs.champion.read_text()
        assert outputs.start.read_text() == self.champion
        assert outputs.nodes.read_text() == f"2026/11/{self.day - 1:02}.csv"
        self.graph, self.trained = window_graph(self.folder), challenger(self.folder, self.known)
        self.exported = exported(self.folder)
        return self

    def evaluate(self) -> str:
        config = EvaluationConfig(champion=self.champion, margin=self.margin)
        result = evaluate.run(config, self.graph, self.trained, self.folder / "report.html")
        assert result.metrics["challenger_accuracy"] == self.known / 4
        return result.decision

    def promote(self) -> str:
        config = PromotionConfig(
            champions=self.kept, window=(self.folder / "window").read_text(), margin=self.margin
        )
        inputs = promote.Inputs(graph=self.graph, trained=self.trained, exported=self.exported)
        outputs = promote.Outputs(report=self.folder / "p.html", outcome=self.folder / "outcome")
        metrics = promote.run(config, inputs, outputs, NOW)
        outcome = outputs.outcome.read_text()
        assert metrics["promoted"] == (outcome == "promoted")
        return outcome


@pytest.fixture
def begin(kept: str, tmp_path: Path) -> Callable[..., Run]:
    """Opens the window of a run whose challenger knows so many of four classes."""

    def start(day: int, known: int, name: str = "", **more: float) -> Run:
        folder = tmp_path / f"run-{day}{name}"
        folder.mkdir()
        return Run(kept, folder, day, known, **more).open()

    return start


def champions(kept: str) -> list[tuple[int, str]]:
    """Generation and day of the window of all champions, oldest first."""
    found = [(record.generation, record.window[8:10]) for record in Champions(kept).records()]
    pointer = json.loads(Folder(kept).read("champion.json") or b"{}")
    assert pointer.get("generation", 0) == (found[0][0] if found else 0)
    return found[::-1]


@EVERYWHERE
def test_the_champion_is_replaced_kept_and_right_after_an_overlap(
    begin: Callable[..., Run], kept: str
) -> None:
    first = begin(2, 1)
    assert first.champion == ""
    assert (first.evaluate(), first.promote()) == ("promote", "promoted")
    second = begin(3, 2)
    assert second.champion
    assert (second.evaluate(), second.promote()) == ("promote", "promoted")
    equal = begin(4, 2)
    assert equal.champion != second.champion
    assert equal.evaluate() == "keep"
    assert champions(kept) == [(1, "01"), (2, "02")]

    older = begin(5, 4)
    newer = begin(6, 3)
    assert older.champion == newer.champion == equal.champion
    assert older.evaluate() == "promote"
    assert (newer.evaluate(), newer.promote()) == ("promote", "promoted")
    assert older.promote() == "late"  # better, but of an older window
    assert champions(kept) == [(1, "01"), (2, "02"), (3, "05")]


def test_who_was_compared_with_an_old_champion_is_compared_with_the_new_one(
    begin: Callable[..., Run], kept: str
) -> None:
    begin(2, 1).promote()
    older, newer = begin(3, 3), begin(4, 2)
    assert newer.evaluate() == "promote"
    assert (older.evaluate(), older.promote()) == ("promote", "promoted")
    assert newer.promote() == "beaten"
    assert champions(kept) == [(1, "01"), (2, "02")]
    best = begin(5, 4)
    assert (best.evaluate(), best.promote()) == ("promote", "promoted")


def test_a_step_that_is_done_again_changes_nothing_also_after_others(
    begin: Callable[..., Run], kept: str
) -> None:
    first = begin(2, 1)
    assert [first.promote(), first.promote()] == ["promoted", "promoted"]
    assert begin(3, 2).promote() == "promoted"
    assert first.promote() == "promoted"  # it was, whoever followed
    assert champions(kept) == [(1, "01"), (2, "02")]


def test_a_run_that_ended_before_its_record_or_before_the_pointer_is_made_good(
    begin: Callable[..., Run], kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(2, 1)

    class Ended(Exception):
        pass

    def end(*_: object) -> None:
        raise Ended

    for step in ("claim", "point"):
        with monkeypatch.context() as patched:
            patched.setattr(Champions, step, end)
            with pytest.raises(Ended):
                run.promote()
        assert Folder(kept).read("champion.json") is None
    assert run.promote() == "promoted"
    assert champions(kept) == [(1, "01")]


@EVERYWHERE
@pytest.mark.parametrize(
    ("rival_day", "rival_knows", "outcome"), [(4, 3, "late"), (2, 1, "promoted"), (2, 3, "beaten")]
)
def test_a_rival_between_look_and_claim_is_seen(
    begin: Callable[..., Run],
    kept: str,
    monkeypatch: pytest.MonkeyPatch,
    rival_day: int,
    rival_knows: int,
    outcome: str,
) -> None:
    run, rival = begin(3, 2), begin(rival_day, rival_knows, "rival")
    claim, calls = Champions.claim, []

    def claim_after_rival(self: Champions, record: Record) -> bool:
        calls.append(record.generation)
        if len(calls) == 1:
            assert rival.promote() == "promoted"
        return claim(self, record)

    monkeypatch.setattr(Champions, "claim", claim_after_rival)
    assert run.promote() == outcome
    days = ["02"] if outcome == "promoted" else []
    assert [day for _, day in champions(kept)] == [f"{rival_day - 1:02}", *days]


def test_two_runs_of_one_window_leave_the_better(begin: Callable[..., Run], kept: str) -> None:
    assert begin(2, 2).promote() == "promoted"
    assert begin(2, 1, "worse").promote() == "beaten"
    assert begin(2, 3, "better").promote() == "promoted"
    assert champions(kept) == [(1, "01"), (2, "01")]


def test_what_cannot_be_compared_is_named(begin: Callable[..., Run], tmp_path: Path) -> None:
    begin(2, 1).promote()
    run = begin(3, 2)
    window_graph(run.folder, test=False)
    with pytest.raises(InputError, match="graph: no test node"):
        run.evaluate()
    window_graph(run.folder)
    challenger(run.folder, 2, feature_names=("ash", "cedar", "birch", "elm"))
    with pytest.raises(InputError, match="challenger: the model's feature 'cedar' is 'birch' in the graph"):
        run.evaluate()
    run.champion = str(tmp_path / "none")
    challenger(run.folder, 2)
    with pytest.raises(InputError, match=r"none/manifest.json: no such file"):
        run.evaluate()


def test_each_model_runs_its_own_code(begin: Callable[..., Run]) -> None:
    begin(2, 4).promote()
    run = begin(3, 4)
    challenger(run.folder, 4, code=CODE.replace("* self.known", "* -self.known"))
    result = evaluate.run(
        EvaluationConfig(champion=run.champion), run.graph, run.trained, run.folder / "report.html"
    )
    assert result.metrics["champion_accuracy"] == 1
    assert result.metrics["challenger_accuracy"] < 1
    assert result.decision == "keep"
