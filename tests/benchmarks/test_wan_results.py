"""What `wan.py` tells: records, curves, the best learning rate, speed-ups and when there are none."""

import os

import numpy as np
import pytest
from benchmarks.wan_rig import comparison, curve, results, watch
from benchmarks.wan_rig.cores import Cores
from benchmarks.wan_rig.counters import Crossed
from benchmarks.wan_rig.curve import Point
from benchmarks.wan_rig.errors import TrialFailed
from benchmarks.wan_rig.records import Follower, Recorder, Row
from benchmarks.wan_rig.systems import CONTROL
from benchmarks.wan_rig.trial import Measured


def test_the_clock_stands_still_while_a_snapshot_is_saved(tmp_path):
    moments = iter([100.0, 100.0, 103.0, 110.0, 112.0, 120.0, 120.5])
    recorder = Recorder(tmp_path / "site-0", clock=lambda: next(moments))
    recorder.start(lambda: (np.zeros(3), None))  # taking and saving it takes 3 s
    recorder.save(5, lambda: (np.ones(3), 7))  # and 2 s
    recorder.save(10, lambda: (np.ones(3), None))
    follower = Follower(tmp_path / "site-0")
    rows = follower.new_rows()
    assert [(row.step, row.seconds, row.moment) for row in rows] == [(0, 0, 100), (5, 7, 110), (10, 15, 120)]
    assert [row.engine_bytes for row in rows] == [None, 7, None]
    assert list(np.load(follower.path(rows[1]))) == [1, 1, 1]
    assert follower.new_rows() == []


def test_a_row_that_is_half_written_is_read_when_it_is_whole(tmp_path):
    Recorder(tmp_path).start(lambda: (np.zeros(1), None))
    follower = Follower(tmp_path)
    assert len(follower.new_rows()) == 1
    whole = (tmp_path / "rows.jsonl").read_text()
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write(whole[:20])
        file.flush()
        assert follower.new_rows() == []
        file.write(whole[20:])
    assert len(follower.new_rows()) == 1


def row(site: str, step: int, seconds: float, **others) -> Row:
    values = {"moment": seconds, "engine_bytes": None, "file": f"{step:06}.npy", **others}
    return Row(site=site, step=step, seconds=seconds, **values)


def test_a_target_is_reached_when_the_last_site_has_it():
    judged = [
        (row("site-0", 0, 0.0), 0.1),
        (row("site-1", 0, 0.1), 0.1),
        (row("site-0", 5, 1.0), 0.96),
        (row("site-1", 5, 1.2), 0.94),
        (row("site-1", 10, 2.5), 0.97),
    ]
    points = curve.curve(judged, 2)
    assert [(p.seconds, p.accuracy) for p in points] == [(0.1, 0.1), (1.0, 0.1), (1.2, 0.94), (2.5, 0.96)]
    found = curve.reached(points, 0.95)
    assert (found.seconds, found.step) == (2.5, 10)
    assert curve.reached(points, 0.97) is None
    best = curve.reached(curve.curve(judged, 2, max), 0.95)
    assert best.seconds == 1.0


def measured(seconds: float = 10.0, accuracy: float = 0.96, **others) -> Measured:
    values = {
        "reached": accuracy >= 0.95,
        "seconds": seconds,
        "steps": 40,
        "seconds_per_step": seconds / 40,
        "final_accuracy": accuracy,
        "wan_bytes": 1_000_000,
        "wan_bytes_with_headers": 1_050_000,
        "wan_bytes_from_root": 500_000,
        "wan_bytes_counted_by_engine": None,
        "initial_bytes": 1000,
        "cores_busy": 0.5,
        "curve": (Point(0.0, 0, 0.1, 0.0), Point(seconds, 40, accuracy, seconds)),
        **others,
    }
    return Measured(**values)


def outcome(*gave: Measured | str, rate: float = 1e-3) -> comparison.Outcome:
    return comparison.outcome(
        [
            comparison.Run(rate, n, None, one) if isinstance(one, str) else comparison.Run(rate, n, one)
            for n, one in enumerate(gave)
        ]
    )


def compared(alone: float, **others: comparison.Outcome) -> dict[str, comparison.Outcome]:
    return {
        CONTROL: outcome(measured(accuracy=alone)),
        "mxnet": outcome(measured(100.0)),
        "ours": outcome(measured(10.0)),
        **others,
    }


def test_speed_ups_are_told_where_a_site_alone_does_not_get_there():
    gains = comparison.speed_ups(compared(alone=0.6), "by_class", 0.95)
    assert gains.ratios == {"ours": 10}
    assert gains.note == ""


def test_a_speed_up_is_told_over_the_baseline_of_the_same_framework():
    others = {"torch_ddp": outcome(measured(60.0)), "torch_hfa": outcome(measured(20.0))}
    others |= {
        name: outcome(measured(1.0)) for name in ("mxnet_lan", "torch_ddp_lan", "joined", "torch_joined")
    }
    outcomes = compared(alone=0.6, **others)
    gains = comparison.speed_ups(outcomes, "by_class", 0.95)
    assert gains.ratios == {"ours": 10, "torch_hfa": 3}
    assert gains.baselines == {"ours": "mxnet", "torch_hfa": "torch_ddp"}
    result = results.document({"target": 0.95}, outcomes, gains)
    assert result["speed_up_baselines"] == gains.baselines
    lines = {line.split()[0]: line.split() for line in results.table(result).splitlines()}
    assert lines["torch_hfa"][-2:] == ["3.00", "torch_ddp"]
    assert lines["ours"][-2:] == ["10.00", "mxnet"]
    assert lines["torch_ddp"][-2:] == ["-", "-"]


def test_a_framework_without_its_baseline_has_no_speed_ups_and_the_other_has():
    outcomes = compared(alone=0.6, torch_hfa=outcome(measured(20.0)))
    gains = comparison.speed_ups(outcomes, "by_class", 0.95)
    assert gains.ratios == {"ours": 10}
    assert gains.note == "no speed-ups over torch_ddp, which did not run, or did not reach 0.95"


@pytest.mark.parametrize(("split", "target"), [("iid", 0.96), ("by_class", 0.95)])
def test_no_speed_up_is_told_where_a_site_alone_gets_there(split, target):
    gains = comparison.speed_ups(compared(alone=0.97), split, target)
    assert gains.ratios == {}
    assert f"no speed-ups: a site alone reaches {target}" in gains.note
    shown = results.table(results.document({"target": target}, compared(alone=0.97), gains))
    assert "no speed-ups" in shown
    assert "10.00" not in shown


def test_the_published_case_is_told_and_marked():
    gains = comparison.speed_ups(compared(alone=0.97), "iid", 0.95)
    assert gains.ratios == {"ours": 10}
    assert "a site alone reaches 0.95 too" in gains.note


@pytest.mark.parametrize("left_out", ["mxnet", CONTROL])
def test_no_speed_up_is_told_without_baseline_or_control(left_out):
    outcomes = compared(alone=0.6)
    del outcomes[left_out]
    gains = comparison.speed_ups(outcomes, "iid", 0.95)
    assert gains.ratios == {}
    assert left_out in gains.note


def test_a_failed_run_spoils_the_speed_up_of_its_system():
    outcomes = compared(alone=0.6, ours=outcome(measured(10.0), "hung"))
    assert outcomes["ours"].seconds_to_target is None
    assert comparison.speed_ups(outcomes, "iid", 0.95).ratios == {}


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_best_rate_is_the_soonest_and_is_trained_again(at_once):
    trainings = {
        (0.1, 0): measured(5.0, accuracy=0.5),
        (0.2, 0): measured(30.0),
        (0.2, 1): measured(70.0),
        (0.3, 0): measured(40.0),
    }
    found = comparison.repeat([0.1, 0.2, 0.3], 2, lambda rate, number: trainings[rate, number], at_once)
    assert [(run.learning_rate, run.number) for run in found.runs] == [(0.1, 0), (0.2, 0), (0.3, 0), (0.2, 1)]
    # The median of two is 50, which a single training of another rate does not beat.
    assert (found.learning_rate, found.seconds_to_target) == (0.2, 50)
    assert found.typical.seconds == 70


def test_else_the_best_rate_is_the_most_accurate():
    missed = {0.1: measured(accuracy=0.6), 0.2: measured(accuracy=0.8)}
    found = comparison.repeat([0.1, 0.2], 1, lambda rate, number: missed[rate])
    assert (found.learning_rate, found.seconds_to_target) == (0.2, None)


def test_a_training_that_fails_is_told_with_the_others():
    def train(rate: float, number: int) -> Measured:
        raise TrialFailed("site-0-worker-0 ended with exit status 1: no memory")

    outcomes = {"mxnet": comparison.repeat([0.1], 1, train), "mxnet_lan": outcome(measured())}
    gains = comparison.speed_ups(outcomes, "iid", 0.95)
    result = results.document({"target": 0.95}, outcomes, gains)
    assert result["systems"]["mxnet"]["runs"][0]["error"].endswith("no memory")
    assert result["systems"]["mxnet"]["seconds_to_target"] is None
    assert "failed at 0.1: site-0-worker-0 ended" in results.table(result)


@pytest.mark.parametrize(
    ("counted", "agrees"), [(None, True), (98_500_000, True), (101_900_000, True), (103_000_000, False)]
)
def test_counts_of_bytes_must_agree_within_two_percent(counted, agrees):
    ours = outcome(measured(wan_bytes=100_000_000, wan_bytes_counted_by_engine=counted))
    assert (not comparison.disagreements({"ours": ours})) == agrees


def test_what_waits_in_a_socket_is_no_disagreement():
    few = outcome(measured(wan_bytes=0, wan_bytes_counted_by_engine=50_000))
    assert comparison.disagreements({"ours": few}) == []


def test_headers_are_no_payload():
    assert Crossed(10 * 1514 + 10 * 66, 20).payload_bytes == 10 * 1448


def test_the_plot_has_a_line_a_system():
    outcomes = compared(alone=0.6)
    drawn = results.plot(results.document({}, outcomes, comparison.SpeedUps({}, {}, "")))
    assert drawn.startswith("<svg")
    for name in outcomes:
        assert f">{name}<" in drawn


def test_the_control_comes_first_and_once():
    assert comparison.with_control(["mxnet", CONTROL]) == [CONTROL, "mxnet"]


def test_trainings_side_by_side_that_kept_the_cores_busy_are_told():
    outcomes = {
        "mxnet": outcome(measured(cores_busy=0.3), measured(cores_busy=0.7)),
        "ours": outcome(measured(cores_busy=0.9)),
    }
    assert comparison.too_busy(outcomes, {}) == []
    (line,) = comparison.too_busy(outcomes, {"mxnet": 2})
    assert line == "mxnet ran 2 trainings at once, with cores 70% busy"
    result = results.document(
        {"target": 0.95, "at_once": (("mxnet", 2),)}, outcomes, comparison.speed_ups(outcomes, "iid", 0.95)
    )
    assert f"({line})" in results.table(result)


def test_a_process_that_dies_beside_others_is_a_failed_run():
    def train(rate: float, number: int) -> Measured:
        if rate == 0.1:
            os._exit(7)
        return measured()

    found = comparison.repeat([0.1, 0.2], 1, train, 2)
    assert [run.error for run in found.runs] == ["its process ended with status 7", ""]
    assert found.learning_rate == 0.2


def test_the_share_of_busy_cores_is_told_by_the_kernels_ticks(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 50 0 0 0 9 9\ncpu0 1 2 3\n")
    cores = Cores(stat)
    assert cores.busy() == 0
    stat.write_text("cpu  130 0 60 850 60 0 0 0 9 9\ncpu0 1 2 3\n")
    assert cores.busy() == pytest.approx(0.4)


def test_snapshots_are_judged_in_bursts_with_pauses_between():
    bursts = watch.Bursts()
    assert bursts.released(now=100.0, judged=0, taken=2) == 0
    assert bursts.released(now=104.9, judged=0, taken=8) == 0
    assert bursts.released(now=105.0, judged=0, taken=8) == 8
    assert bursts.released(now=109.0, judged=7, taken=20) == 8  # it lasts until these are judged
    assert bursts.released(now=111.0, judged=8, taken=20) == 8
    assert bursts.released(now=115.9, judged=8, taken=30) == 8
    assert bursts.released(now=116.0, judged=8, taken=30) == 30
