"""Names: the same for the same step, other for any other, and names that Kubernetes takes."""

import re

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.manifests import label_value, launch_name
from geokfp.components._launch.pods import PodLaunch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pod_launches import pod_launch

GIVEN = {"run_id": "run", "task": "train-gnn", "inputs": {"epochs": 3, "partitions": "s3://b/p"}}
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


def test_a_name_is_the_same_in_every_process() -> None:
    assert launch_name("train_gnn", **GIVEN) == "train-gnn-12b88e5c81"


def test_a_name_does_not_depend_on_the_order_of_the_inputs() -> None:
    turned = dict(reversed(GIVEN["inputs"].items()))
    assert launch_name("train_gnn", **{**GIVEN, "inputs": turned}) == launch_name("train_gnn", **GIVEN)


@pytest.mark.parametrize("other", [{"run_id": "run-2"}, {"task": "train-gnn-2"}, {"inputs": {"epochs": 4}}])
def test_another_run_step_or_input_has_another_name(other: dict) -> None:
    assert launch_name("train_gnn", **{**GIVEN, **other}) != launch_name("train_gnn", **GIVEN)


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z].{0,80}", fullmatch=True), st.text(), st.text())
def test_a_launch_takes_every_name(prefix: str, run_id: str, task: str) -> None:
    name = launch_name(prefix, run_id=run_id, task=task, inputs={})
    assert isinstance(pod_launch(name=name), PodLaunch)


@pytest.mark.parametrize("prefix", ["", "_", "9lives"])
def test_a_prefix_that_begins_no_name_is_refused(prefix: str) -> None:
    with pytest.raises(InputError, match="must begin with a letter"):
        launch_name(prefix, **GIVEN)


@settings(deadline=None)
@given(st.text(max_size=80), st.text(max_size=80))
def test_a_label_takes_every_text_and_tells_texts_apart(one: str, other: str) -> None:
    assert LABEL_VALUE.fullmatch(label_value(one))
    assert len(label_value(one)) <= 63
    assert (label_value(one) == label_value(other)) == (one == other)
