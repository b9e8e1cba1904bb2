import numpy as np
import pandas as pd
import pytest
from geokfp.components.training.outcome import (
    ROC_POINTS,
    TEST,
    TRAIN,
    Outcome,
    accuracies,
    confusion,
    judged_split,
    probabilities,
    read_outcome,
    roc,
    write_predictions,
)
from geokfp.components.training.summary import per_class
from hypothesis import given
from hypothesis import strategies as st


def outcome(count, seed=0, num_classes=3, site="a"):
    generator = np.random.default_rng(seed)
    return Outcome(
        site,
        np.arange(count),
        generator.normal(size=(count, num_classes)).astype(np.float32),
        generator.integers(-1, num_classes, count),
        generator.integers(0, 4, count).astype(np.int8),
    )


@given(st.integers(1, 60), st.integers(0, 50), st.integers(1, 4))
def test_confusion_counts_every_judged_node_and_agrees_with_accuracy(count, seed, num_classes):
    one, other = outcome(count, seed, num_classes), outcome(count + 3, seed + 1, num_classes)
    matrix = confusion([one, other], num_classes, TEST)
    judged = sum(int(((each.split == TEST) & (each.labels >= 0)).sum()) for each in (one, other))
    assert matrix.sum() == judged
    found = accuracies([one, other])
    assert ("test_accuracy" in found) == (judged > 0)
    if judged:
        assert found["test_accuracy"] == pytest.approx(matrix.trace() / judged)


def test_roc_is_finite_thin_and_has_scikit_learns_area():
    from sklearn.metrics import roc_auc_score

    many = outcome(3000)
    curve = roc([many], 3, TEST)
    assert curve is not None
    values = np.array([curve.false_positive_rate, curve.true_positive_rate, curve.threshold])
    assert np.isfinite(values).all()
    assert values.shape[1] <= ROC_POINTS
    assert (np.diff(values[0]) >= 0).all()
    assert (np.diff(values[2]) <= 0).all()
    chosen = (many.split == TEST) & (many.labels >= 0)
    truth = (many.labels[chosen][:, None] == np.arange(3)).ravel()
    assert curve.area == pytest.approx(roc_auc_score(truth, probabilities(many.logits[chosen]).ravel()))


def test_without_test_nodes_the_validation_nodes_are_judged():
    few = outcome(20)
    few.split[:] = TRAIN
    assert judged_split([few]) == TRAIN
    few.split[3] = 2
    assert judged_split([few]) == 2
    assert roc([few], 3, TEST) is None


def test_predictions_have_names_ids_and_no_label_where_there_is_none(tmp_path):
    site, other = outcome(10), outcome(4, site="b")
    site.labels[2] = -1
    write_predictions(tmp_path / "out", [site, other], ["red", "green", "blue"])
    table = pd.read_parquet(tmp_path / "out" / "predictions.parquet")
    assert list(table.columns) == ["id", "site", "split", "label", "predicted", "probability"]
    assert list(table["site"]) == ["a"] * 10 + ["b"] * 4
    assert table["label"][2] is None
    assert table["predicted"][0] == ["red", "green", "blue"][site.logits[0].argmax()]
    assert table["probability"].between(1 / 3, 1).all()


def test_parts_are_joined_in_the_order_of_ids(tmp_path):
    for part, rows in enumerate((3, 2)):
        np.savez(
            tmp_path / f"outcome-{part}.npz",
            logits=np.full((rows, 2), part, np.float32),
            labels=np.full(rows, part),
            split=np.zeros(rows, np.int8),
        )
    joined = read_outcome(tmp_path, site="a", num_parts=2, node_ids=np.arange(5))
    assert joined.labels.tolist() == [0, 0, 0, 1, 1]


def test_table_of_classes():
    rows = per_class(np.array([[3, 1], [0, 0]]), ["yes", "no"])
    assert rows == [["yes", "4", "1.000", "0.750", "0.857"], ["no", "0", "0.000", "-", "0.000"]]
