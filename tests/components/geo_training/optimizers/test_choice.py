"""Optimizers as a user writes them."""

import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.optimizers import OPTIMIZERS, parse_optimizer, render_optimizer
from support.optimizer_oracles import EVERY_OPTION


@pytest.mark.parametrize("text", [*EVERY_OPTION, *sorted(OPTIMIZERS)])
def test_every_optimizer_comes_back_from_its_text(text):
    spec = parse_optimizer(text)
    assert type(spec) is OPTIMIZERS[text.split("(")[0]]
    assert parse_optimizer(render_optimizer(spec)) == spec
    assert render_optimizer(parse_optimizer(render_optimizer(spec))) == render_optimizer(spec)


def test_an_optimizers_text_is_canonical():
    assert render_optimizer(parse_optimizer("adam(epsilon=0.00000001,rate=1e-3)")) == (
        "adam(rate=0.001, weight_decay=0.0, clip=inf, beta1=0.9, beta2=0.999, epsilon=1e-08)"
    )
    assert render_optimizer(parse_optimizer("dcasgd(adaptive=True, lambda=2)")) == (
        "dcasgd(rate=0.01, weight_decay=0.0, clip=inf, momentum=0.0, lambda=2.0, adaptive=true, decay=0.95, "
        "epsilon=1e-07)"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adm", "optimizer 'adm': name is 'adm', allowed: adadelta, adagrad, adam, .*; nearest: adam"),
        ("SGD(rate=1)", "name is 'SGD', .*; nearest: sgd"),
        (
            "sgd(learning_rate=1)",
            "option of sgd is 'learning_rate', allowed: clip, rate, weight_decay; nearest: rate",
        ),
        ("dcasgd(lamda=1)", "option of dcasgd is 'lamda', .*; nearest: lambda"),
        ("sgd(rate=0)", r"optimizer 'sgd\(rate=0\)': rate is 0.0, allowed: a number above 0 and below inf"),
        ("sgd(rate=inf)", "rate is inf, allowed: a number above 0 and below inf"),
        ("adam(beta1=1)", "beta1 is 1.0, allowed: a number at least 0 and below 1"),
        ("adam(clip=-1)", "clip is -1.0, allowed: a number above 0"),
        ("adam(epsilon=0)", "epsilon is 0.0, allowed: a number at least 1e-30 and below inf"),
        ("sgd(weight_decay=-1)", "weight_decay is -1.0, allowed: a number at least 0 and below inf"),
        ("dcasgd(adaptive=2)", "adaptive is '2', allowed: true or false"),
    ],
)
def test_a_wrong_optimizer_is_refused_in_one_line(text, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_optimizer(text)
    assert len(str(caught.value).splitlines()) == 1
