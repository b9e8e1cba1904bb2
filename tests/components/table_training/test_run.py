"""The whole step with real processes over two sites: algorithms, regression, refusals, what it leaves."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from geokfp.components._files import InputError
from geokfp.components.shard.shards import read_shards
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.run import run
from geokfp.components.table_training.trained_model import read_trained_model
from sklearn.datasets import load_digits
from support.site_shards import arrays, outputs_in, sharded


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Sites with unlike classes and unequal numbers of rows."""
    return sharded(tmp_path_factory.mktemp("digits"), num_sites=2, method="dirichlet", alpha=1.0, seed=3)


@pytest.fixture(scope="module")
def trained(digits, tmp_path_factory):
    outputs = outputs_in(tmp_path_factory.mktemp("trained"))
    config = GeoTableConfig(
        algorithm="mlp",
        hyperparameters={"num_layers": 3.0},
        synchronization="fsa",
        epochs=12,
        num_workers=2,
        eval_every=5,
    )
    return run(config, digits, outputs), outputs


def test_a_perceptron_learns_from_uneven_sites(trained, digits):
    sizes = [site.num_train for site in read_shards(digits).sites]
    assert max(sizes) > 1.1 * min(sizes)
    metrics = trained[0].metrics
    assert set(metrics) == {
        "train_accuracy", "val_accuracy", "test_accuracy", "wan_bytes_sent", "wan_bytes_received", "seconds"
    }  # fmt: skip
    assert metrics["test_accuracy"] > 0.9
    assert all(np.isfinite(value) for value in metrics.values())


def test_predictions_agree_with_metrics_model_and_shards(trained, digits):
    result, outputs = trained
    table = pd.read_parquet(outputs.predictions / "predictions.parquet")
    assert list(table) == ["site", "row", "split", "label", "predicted", "probability"]
    assert sorted(table["row"]) == list(range(1797))
    for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
        chosen = table[table["split"] == split]
        assert (chosen["label"] == chosen["predicted"]).mean() == pytest.approx(
            result.metrics[f"{name}_accuracy"]
        )
    model, shards = read_trained_model(outputs.model).build(), read_shards(digits)
    for site in shards.sites:
        mine = table[table["site"] == site.name]
        assert mine["row"].tolist() == site.rows().tolist()
        with torch.no_grad():
            share = torch.softmax(model(torch.from_numpy(np.array(site.features()))), dim=1)
        names = [shards.label_names[index] for index in share.argmax(dim=1)]
        assert (mine["predicted"] == names).mean() > 0.999  # ties may fall otherwise in other batches
        np.testing.assert_allclose(mine["probability"], share.amax(dim=1), atol=1e-5)
    assert int(result.classes.matrix.sum()) == (table["split"] == "test").sum()


def test_the_model_and_its_history_say_how_it_came_about(trained, digits):
    result, outputs = trained
    model = read_trained_model(outputs.model)
    assert model.source.algorithm == "mlp"
    assert model.source.hyperparameters == {"num_layers": 3}
    assert (model.task, model.source.num_classes, model.source.feature_shape) == (
        "classification",
        10,
        (64,),
    )
    assert model.fingerprint == read_shards(digits).fingerprint
    assert model.metrics == result.metrics
    judged = [(row["site"], row["epoch"]) for row in model.history]
    assert judged == [(site, epoch) for site in ("site-0", "site-1") for epoch in (5, 10, 12)]
    assert all({"seconds", "train_loss", "val_loss", "val_accuracy"} < set(row) for row in model.history)


def test_bytes_between_sites_are_what_the_rounds_need(trained, digits):
    result, outputs = trained
    num_parameters = sum(each.numel() for each in read_trained_model(outputs.model).build().parameters())
    num_steps = 12 * max(-(-(site.num_train // 2) // 64) for site in read_shards(digits).sites)
    for name in ("wan_bytes_sent", "wan_bytes_received"):
        assert result.metrics[name] > num_steps * num_parameters * 4


def test_the_report_shows_sites_links_and_classes_and_nothing_else_is_left(trained):
    _, outputs = trained
    page = outputs.report.read_text(encoding="utf-8")
    for text in ("Sites over time", "site-0 to root", "site-1/trainer-1 to site-1", "the test rows", "ROC"):
        assert text in page
    left = sorted(path.name for path in outputs.model.parent.iterdir())
    assert left == ["model", "predictions", "report.html"]


def test_a_convolutional_network_learns_images_of_bytes(tmp_path):
    data = load_digits()
    images = (data.images * (255 / 16)).astype(np.uint8)
    shards = sharded(
        tmp_path / "in", table=arrays(tmp_path, images, data.target), site_names=["New York", "東京"]
    )
    config = GeoTableConfig(algorithm="cnn", epochs=8, synchronization="hfa(k1=2)", compression="fp16")
    result = run(config, shards, outputs_in(tmp_path / "out"))
    assert result.metrics["test_accuracy"] > 0.9
    model = read_trained_model(tmp_path / "out" / "model")
    assert (model.feature_dtype, model.source.feature_shape) == ("uint8", (8, 8))
    assert {row["site"] for row in model.history} == {"New York", "東京"}


def test_first_layers_first_and_by_two_roots_it_learns_the_same(digits, tmp_path):
    weights = []
    for transmission in ("fifo", "p3(rate_mbit=5) + multigps(shards=2, at=root)"):
        folder = tmp_path / transmission[:2]
        config = GeoTableConfig(algorithm="mlp", epochs=3, synchronization="fsa", transmission=transmission)
        run(config, digits, outputs_in(folder))
        model = read_trained_model(folder / "model").build()
        weights.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    assert torch.equal(*weights)


def test_softmax_regression_learns_digits(digits, tmp_path):
    config = GeoTableConfig(algorithm="softmax_regression", epochs=12)
    result = run(config, digits, outputs_in(tmp_path))
    assert result.metrics["test_accuracy"] > 0.9


def test_regression_is_judged_by_rmse_and_r2(tmp_path):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(600, 5)).astype(np.float32)
    y = (x @ np.array([1, -2, 0.5, 0, 3]) + 0.1 * generator.normal(size=600)).astype(np.float32)
    shards = sharded(tmp_path / "in", table=arrays(tmp_path, x, y), task="regression")
    outputs = outputs_in(tmp_path / "out")
    config = GeoTableConfig(
        algorithm="mlp", epochs=20, batch_size=30, hyperparameters={"learning_rate": 0.01}
    )
    result = run(config, shards, outputs)
    assert result.classes is None
    assert result.metrics["test_r2"] > 0.9
    table = pd.read_parquet(outputs.predictions / "predictions.parquet")
    assert list(table) == ["site", "row", "split", "label", "predicted"]
    test = table[table["split"] == "test"]
    assert ((test["label"] - test["predicted"]) ** 2).mean() ** 0.5 == pytest.approx(
        result.metrics["test_rmse"], rel=1e-4
    )
    model = read_trained_model(outputs.model)
    assert (model.task, model.label_names) == ("regression", ())
    assert all("val_rmse" in row for row in model.history)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"algorithm": "mlp", "num_workers": 5000}, r"num_workers 5000: must be at most \d+"),
        ({"algorithm": "mlp", "topology": {"sites": {"site-7": {}}}}, r"names \['site-7'\]"),
        ({"entry_point": "gone:build", "user_code": "gone.py"}, "gone.py"),
        ({"entry_point": "no_such_module_of_test:build"}, "ModuleNotFoundError"),
        (
            {"algorithm": "mlp", "synchronization": "hfa + quorum(workers=3)"},
            "workers of quorum is 3, allowed: at most the 2 of all sites",
        ),
        ({"algorithm": "cnn"}, r"rows of shape \[64\]"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_one_line_before_any_worker_starts(digits, tmp_path, capsys, options, said):
    with pytest.raises(InputError, match=said) as caught:
        run(GeoTableConfig(**options), digits, outputs_in(tmp_path))
    assert "\n" not in str(caught.value)
    assert not re.search("trainer|aggregator", capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == []
