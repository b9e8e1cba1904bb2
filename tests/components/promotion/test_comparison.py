"""Scores against scikit-learn, and the rule by which a challenger wins."""

import numpy as np
import pytest
from geokfp.components.promotion.comparison import Comparison, in_classes, judge
from geokfp.components.promotion.config import EvaluationConfig
from sklearn.metrics import accuracy_score, f1_score

NAMES = ("a", "b", "c")


def comparison(right_of_challenger: int, right_of_champion: int | None, count: int = 100) -> Comparison:
    """Both are right on the first so many nodes."""
    truth = np.arange(count) % 3

    def found(right: int) -> np.ndarray:
        return np.where(np.arange(count) < right, truth, (truth + 1) % 3)

    champion = None if right_of_champion is None else found(right_of_champion)
    return Comparison(
        label_names=NAMES, truth=truth, challenger=found(right_of_challenger), champion=champion
    )


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_scikit_learns(seed: int) -> None:
    generator = np.random.default_rng(seed)
    truth, found = generator.integers(0, 3, (2, 50))
    got, _ = Comparison(label_names=NAMES, truth=truth, challenger=found, champion=None).scores()
    assert got.of("accuracy") == pytest.approx(accuracy_score(truth, found))
    assert got.of("macro_f1") == pytest.approx(f1_score(truth, found, average="macro"))
    assert got.f1 == pytest.approx(f1_score(truth, found, average=None))


def test_a_class_that_no_node_has_counts_in_no_mean() -> None:
    truth, found = np.array([0, 0, 1]), np.array([0, 2, 1])
    got, _ = Comparison(label_names=NAMES, truth=truth, challenger=found, champion=None).scores()
    assert np.isnan(got.f1[2])
    assert got.macro_f1 == pytest.approx((2 / 3 + 1) / 2)


@pytest.mark.parametrize(
    ("challenger", "champion", "margin", "least", "wins"),
    [
        (90, 80, 0.0, 0.0, True),
        (80, 80, 0.0, 0.0, False),
        (79, 80, 0.0, 0.0, False),
        (83, 80, 0.03, 0.0, True),
        (82, 80, 0.03, 0.0, False),
        (10, None, 0.5, 0.0, True),
        (10, None, 0.0, 0.2, False),
        (60, 50, 0.0, 0.7, False),
        (70, 50, 0.1, 0.7, True),
    ],
)
def test_the_challenger_wins_by_the_margin(
    challenger: int, champion: int | None, margin: float, least: float, wins: bool
) -> None:
    verdict = judge(comparison(challenger, champion), EvaluationConfig(margin=margin, least_score=least))
    assert verdict.wins == wins
    assert f"{challenger / 100:.4f}" in verdict.why


def test_the_metric_decides() -> None:
    truth = np.array([0] * 90 + [1] * 10)
    only_first, both = np.zeros(100, dtype=int), np.where(np.arange(100) < 85, 0, 1)
    given = Comparison(label_names=("a", "b"), truth=truth, challenger=both, champion=only_first)
    assert judge(given, EvaluationConfig(metric="macro_f1")).wins
    reverse = Comparison(label_names=("a", "b"), truth=truth, challenger=only_first, champion=both)
    assert not judge(reverse, EvaluationConfig(metric="macro_f1")).wins


def test_who_is_right_where_and_how_likely_that_is() -> None:
    truth = np.zeros(10, dtype=int)
    challenger = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1])
    champion = np.array([0, 1, 1, 1, 1, 1, 1, 0, 1, 1])
    given = Comparison(label_names=NAMES, truth=truth, challenger=challenger, champion=champion)
    assert given.right().tolist() == [[1, 1], [6, 2]]
    assert given.sign_test() == pytest.approx(2 * (1 + 7) / 2**7)
    assert comparison(50, 50).sign_test() == 1.0


def test_classes_are_compared_by_name() -> None:
    found = in_classes(np.array([0, 1, 2, 2]), ("c", "new", "a"), NAMES)
    assert found.tolist() == [2, -1, 0, 0]
