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

NAMES = "bi_sparse, demo, fp16, mpq, none, quantized, top_k, two_bit"
GRAMMAR = "allowed: name(option=value, ...), then + and a rule (by_size, zstd)"


def test_a_name_alone_has_the_defaults():
    assert parse("none").technique == NoCompression()
    for name, kind in TECHNIQUES.items():
        spec = parse(name)
        assert (spec.technique, spec.by_size, spec.zstd) == (kind(), None, None)


@pytest.mark.parametrize(
    "text", ["top_k(ratio=1e-2, bits=2)", " top_k ( bits = 2 ,ratio=.01 ) ", "top_k(ratio=0.01,bits=2,)"]
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
        ("topk", f"compression is 'topk', allowed: {NAMES} (nearest: top_k)"),
        ("zip", f"compression is 'zip', allowed: {NAMES}"),
        ("zstd", f"compression is 'zstd', allowed: {NAMES}"),
        ("top_k(ratoi=1)", "compression top_k has the option 'ratoi', allowed: bits, down, feedback, ratio"),
        ("none(bits=2)", "compression none has the option 'bits', allowed: no option"),
        ("top_k(ratio=2)", "compression top_k(ratio=2.0): allowed is a number above 0 to 1"),
        ("top_k(ratio=0)", "compression top_k(ratio=0.0): allowed is a number above 0 to 1"),
        ("top_k(ratio=nan)", "compression top_k(ratio=nan): allowed is a number above 0 to 1"),
        ("top_k(ratio=much)", "compression top_k(ratio=much): allowed is a number above 0 to 1"),
        ("top_k(bits=3)", "compression top_k(bits=3): allowed is one of 32, 16, 8, 4, 2"),
        ("quantized(bits=2.0)", "compression quantized(bits=2.0): allowed is one of 8, 4, 2"),
        ("quantized(chunk=7)", "compression quantized(chunk=7): allowed is a whole number from 8 to 65535"),
        ("bi_sparse(down=up)", "compression bi_sparse(down=up): allowed is one of lossy, union, none"),
        ("two_bit(threshold=-1)", "compression two_bit(threshold=-1.0): allowed is a number above 0"),
        ("top_k(feedback=1.5)", "compression top_k(feedback=1.5): allowed is a number from 0 to 1"),
        ("top_k(0.1)", "compression top_k(0.1): allowed is option=value"),
        ("top_k(ratio=)", "compression top_k(ratio=): allowed is option=value"),
        ("top_k(ratio=0.1, ratio=0.2)", "compression top_k has the option 'ratio' twice, allowed: once"),
        ("top_k(ratio=0.1", f"compression is 'top_k(ratio=0.1', {GRAMMAR}"),
        ("top_k zstd", f"compression is 'top_k zstd', {GRAMMAR}"),
        (3, "compression is 3, allowed: text such as"),
        ("", f"compression is '', {GRAMMAR}"),
        ("top_k +", f"compression is 'top_k +', {GRAMMAR}"),
        ("none+ztd", "compression 'none+ztd' has the rule 'ztd', allowed: by_size, zstd (nearest: zstd)"),
        ("none+zstd+zstd", "compression 'none+zstd+zstd' has the rule 'zstd' twice, allowed: once"),
        ("none + zstd(level=0)", "compression zstd(level=0): allowed is a whole number from 1 to 19"),
        ("none + by_size(bound=-1)", "compression by_size(bound=-1): allowed is a whole number from 0"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_in_one_line_with_option_value_and_what_is_allowed(text, reason):
    with pytest.raises(InputError, match=f"^{re.escape(reason)}") as caught:
        GeoTrainingConfig(compression=text)
    assert "\n" not in str(caught.value)


def test_a_missing_library_names_the_extra_before_anything_starts(monkeypatch):
    monkeypatch.setattr("geokfp.components.geo_training.compression.zstd.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"compression zstd: needs pyarrow, .*geokfp\[engine\]"):
        GeoTrainingConfig(compression="none + zstd")


def test_the_readme_lists_every_technique_and_rule_with_its_options_and_defaults():
    text = Path(geokfp.components.geo_training.__file__).with_name("README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)(?:\(([^)`]*)\))?` \| .* \| .* \|$", text, flags=re.MULTILINE)
    written = {name: options for name, options in listed if name in {*TECHNIQUES, "by_size", "zstd"}}
    for name, kind in {**TECHNIQUES, "by_size": BySize, "zstd": ZstdOptions}.items():
        defaults = [f"{each.name}={each.default}" for each in fields(kind)]
        assert written[name] == ", ".join(defaults)
