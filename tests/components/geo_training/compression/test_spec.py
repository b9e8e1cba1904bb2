"""What a user may write as `compression`, and what a mistake is answered with."""

import re
from dataclasses import fields
from pathlib import Path

import geokfp.components.geo_training
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.compression import TECHNIQUES
from geokfp.components.geo_training.compression.by_size import BySize
from geokfp.components.geo_training.compression.spec import parse
from geokfp.components.geo_training.compression.techniques import BiSparseOptions, NoCompression, TopK
from geokfp.components.geo_training.compression.zstd import ZstdOptions
from geokfp.components.geo_training.config import GeoTrainingConfig

NAMES = "auto, bi_sparse, demo, fp16, mpq, none, quantized, top_k, two_bit"
EXPECTED = "as in name(option=value, ...)"


def test_a_name_alone_has_the_defaults():
    assert parse("none").technique == NoCompression()
    for name, kind in TECHNIQUES.items():
        spec = parse(name)
        assert (spec.technique, spec.by_size, spec.zstd) == (kind(), None, None)


@pytest.mark.parametrize(
    "text", ["top_k(ratio=1e-2, bits=2)", " top_k ( bits = 2 ,ratio=.01 ) ", "top_k(ratio=+1e-2,bits=2)"]
)
def test_options_come_in_any_order_and_with_any_space(text):
    assert parse(text).technique == TopK(ratio=0.01, bits=2)


def test_rules_follow_the_technique_in_any_order():
    spec = parse("bi_sparse(ratio=0.02) + zstd(level=9) + by_size(bound=5, small=fp16)")
    assert spec.technique == BiSparseOptions(ratio=0.02)
    assert (spec.by_size, spec.zstd) == (BySize(bound=5, small="fp16"), ZstdOptions(level=9))
    assert parse("bi_sparse(ratio=0.02) + by_size(bound=5,small=fp16)+zstd(level=9)") == spec


@pytest.mark.parametrize("name", TECHNIQUES)
def test_the_default_of_the_size_rule_is_a_thousand_values_but_where_it_makes_no_sense(name):
    bounds = {"none": 0, "fp16": 0, "mpq": 200_000}
    assert TECHNIQUES[name]().size_rule().bound == bounds.get(name, 1000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("topk", f"name is 'topk', allowed: {NAMES}; nearest: top_k"),
        ("zip", f"name is 'zip', allowed: {NAMES}"),
        ("zstd", "rule zstd follows a name, as in none + zstd"),
        ("top_k(ratoi=1)", "option of top_k is 'ratoi', allowed: bits, down, feedback, ratio; nearest: "),
        ("none(bits=2)", "option of none is 'bits', allowed: none"),
        ("top_k(ratio=2)", "ratio is 2.0, allowed: a number above 0 and at most 1"),
        ("top_k(ratio=0)", "ratio is 0.0, allowed: a number above 0 and at most 1"),
        ("top_k(ratio=nan)", "ratio is nan, allowed: a number above 0 and at most 1"),
        ("top_k(ratio=much)", "ratio is 'much', allowed: a number above 0 and at most 1"),
        ("top_k(bits=3)", "bits is 3, allowed: one of 32, 16, 8, 4, 2"),
        ("quantized(bits=2.0)", "bits is '2.0', allowed: one of 8, 4, 2"),
        ("quantized(chunk=7)", "chunk is 7, allowed: a whole number at least 8 and at most 65535"),
        ("bi_sparse(down=up)", "down is 'up', allowed: one of lossy, union, none"),
        ("two_bit(threshold=-1)", "threshold is -1.0, allowed: a number above 0"),
        ("top_k(feedback=1.5)", "feedback is 1.5, allowed: a number at least 0 and at most 1"),
        ("top_k(0.1)", f"'=' is expected at column 10, {EXPECTED}"),
        ("top_k(ratio=)", f"a name or value is expected at column 13, {EXPECTED}"),
        ("top_k(ratio=0.1, ratio=0.2)", "ratio is given twice, allowed: once"),
        ("top_k(ratio=0.1", f"',' or ')' is expected at column 16, {EXPECTED}"),
        ("top_k zstd", f"'+' or the end is expected at column 7, {EXPECTED}"),
        ("", f"a name is expected at column 1, {EXPECTED}"),
        ("top_k +", f"a name is expected at column 8, {EXPECTED}"),
        ("none+ztd", "rule is 'ztd', allowed: by_size, zstd; nearest: zstd"),
        ("none+zstd+zstd", "rule zstd is given twice, allowed: once"),
        ("none + zstd(level=0)", "level is 0, allowed: a whole number at least 1 and at most 19"),
        ("none + by_size(bound=-1)", "bound is -1, allowed: a whole number at least 0"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_in_one_line_with_option_value_and_what_is_allowed(text, reason):
    with pytest.raises(InputError, match=f"^{re.escape(f'compression {text!r}: {reason}')}") as caught:
        GeoTrainingConfig(compression=text)
    assert "\n" not in str(caught.value)


def test_what_is_no_text_is_refused_by_name():
    with pytest.raises(InputError, match=r"^compression is 3, allowed: text, as in name\(option=value"):
        GeoTrainingConfig(compression=3)


def test_a_missing_library_names_the_extra_before_anything_starts(monkeypatch):
    monkeypatch.setattr("geokfp.components.geo_training.compression.zstd.find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"compression 'none \+ zstd': zstd needs pyarrow, .*geokfp\[engine\]"
    ):
        GeoTrainingConfig(compression="none + zstd")


def test_the_readme_lists_every_technique_and_rule_with_its_options_and_defaults():
    text = Path(geokfp.components.geo_training.__file__).with_name("README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)(?:\(([^)`]*)\))?` \| .* \| .* \|$", text, flags=re.MULTILINE)
    written = {name: options for name, options in listed if name in {*TECHNIQUES, "by_size", "zstd"}}
    for name, kind in {**TECHNIQUES, "by_size": BySize, "zstd": ZstdOptions}.items():
        defaults = [f"{each.name}={each.default}" for each in fields(kind)]
        assert written[name] == ", ".join(defaults)
