from pathlib import Path

import pytest
from geokfp.pipelines._command_line.errors import UsageError
from geokfp.pipelines._command_line.package import Package, Parameter
from geokfp.pipelines._command_line.values import collect
from hypothesis import given
from hypothesis import strategies as st

TYPES = {
    "epochs": "int",
    "rate": "float",
    "nodes": "str",
    "undirected": "bool",
    "fan_outs": "list",
    "options": "dict",
}


def package(required: bool = False) -> Package:
    parameters = {
        name: Parameter(name=name, type=kind, default=None, required=required, description="")
        for name, kind in TYPES.items()
    }
    return Package(
        path=Path("p.yaml"), name="p", display_name="P", description="", parameters=parameters, steps=()
    )


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("epochs=3", 3),
        ("epochs=-1", -1),
        ("rate=3", 3.0),
        ("rate=1e-3", 0.001),
        ("nodes=a=b.csv", "a=b.csv"),
        ("nodes=", ""),
        ("nodes=7", "7"),
        ("undirected=False", False),
        ("undirected=yes", True),
        ("fan_outs=[10, 5]", [10, 5]),
        ('options={"heads": 4}', {"heads": 4}),
        ("options={}", {}),
    ],
)
def test_a_typed_value_takes_the_parameters_type(assignment: str, value: object) -> None:
    (got,) = collect(package(), [assignment], None).values()
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("written", ["1e-3", "1.e-3", "+1E-3", "0.001"])
def test_a_number_of_a_file_may_have_an_exponent(tmp_path: Path, written: str) -> None:
    (tmp_path / "p.yaml").write_text(f"rate: {written}\n")
    assert collect(package(), [], tmp_path / "p.yaml") == {"rate": 0.001}


@pytest.mark.parametrize(
    ("assignment", "named"),
    [
        ("epochs=3.5", "epochs=3.5: a whole number"),
        ("epochs=", "epochs=: a whole number"),
        ("rate=fast", "rate=fast: a number"),
        ("undirected=maybe", "undirected=maybe: true or false"),
        ("fan_outs=10", "fan_outs=10: a list"),
        ("fan_outs=[10", "fan_outs=[10: a list"),
        ("options=[1]", "options=[1]: a mapping"),
        ("epoch=3", "did you mean 'epochs'"),
        ("zzz=3", "it has epochs, rate"),
        ("epochs", "NAME=VALUE is needed"),
    ],
)
def test_a_wrong_assignment_is_named_with_what_is_allowed(assignment: str, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        collect(package(), [assignment], None)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("epochs: '3'", "epochs='3': a whole number"),
        ("epochs: true", "epochs=True: a whole number"),
        ("nodes: 3", "nodes=3: text"),
        ("undirected: 1", "undirected=1: true or false"),
        ("fan_outs: 10", "fan_outs=10: a list"),
        ("fan_outs: [2020-01-01]", "fan_outs=[datetime.date(2020, 1, 1)]: a list"),
        ("options: {1: a}", "options={1: 'a'}: a mapping of names"),
        ("epoch: 3", "did you mean 'epochs'"),
        ("[1, 2]", "holds a list"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "params.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        collect(package(), [], file)
    assert named in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        collect(package(), [], tmp_path / "absent.yaml")


def test_what_is_typed_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    file.write_text("epochs: 3\nrate: 1\nfan_outs: [5]\n")
    assert collect(package(), ["epochs=4"], file) == {"epochs": 4, "rate": 1.0, "fan_outs": [5]}


def test_an_empty_file_gives_nothing(tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    file.write_text("# nothing\n")
    assert collect(package(), [], file) == {}


def test_values_that_are_needed_are_named() -> None:
    with pytest.raises(UsageError, match="no value for rate, nodes"):
        collect(package(required=True), ["epochs=1"], None)


@given(st.text())
def test_text_arrives_as_it_was_typed(text: str) -> None:
    assert collect(package(), [f"nodes={text}"], None) == {"nodes": text}


@given(st.integers(), st.floats(allow_nan=False))
def test_numbers_round_trip(whole: int, number: float) -> None:
    assert collect(package(), [f"epochs={whole}", f"rate={number!r}"], None) == {
        "epochs": whole,
        "rate": number,
    }


def test_keys_are_told_apart_by_mapping_and_merged_ones_may_be_replaced(tmp_path: Path) -> None:
    text = "options:\n  a: &a {k: 1, l: 1}\n  b: {<<: *a, k: 2}\n  c: {k: {k: 3}}\n"
    (tmp_path / "p.yaml").write_text(text)
    options = {"a": {"k": 1, "l": 1}, "b": {"k": 2, "l": 1}, "c": {"k": {"k": 3}}}
    assert collect(package(), [], tmp_path / "p.yaml") == {"options": options}
