"""What the two reports say."""

import re
from pathlib import Path

import numpy as np
from geokfp.components.promotion.champions import Record
from geokfp.components.promotion.comparison import Comparison, judge
from geokfp.components.promotion.config import EvaluationConfig
from geokfp.components.promotion.report import write_comparison, write_promotion

NAMES = ("ash & elm", "birch", "cedar")


def page(comparison: Comparison, folder: Path, **options: float) -> str:
    config = EvaluationConfig(**options)
    write_comparison(folder / "report.html", comparison, judge(comparison, config), config)
    return (folder / "report.html").read_text(encoding="utf-8")


def comparison(champion: np.ndarray | None) -> Comparison:
    truth = np.arange(90) % 3
    challenger = np.where(np.arange(90) < 60, truth, (truth + 1) % 3)
    return Comparison(label_names=NAMES, truth=truth, challenger=challenger, champion=champion)


def test_both_models_stand_side_by_side(tmp_path: Path) -> None:
    truth = np.arange(90) % 3
    text = page(comparison(np.where(np.arange(90) < 50, truth, -1)), tmp_path, margin=0.05)
    assert "<dd>challenger</dd>" in text
    assert "The challenger&#x27;s accuracy 0.6667 is +0.1111 to the champion&#x27;s 0.5556." in text
    assert text.count("<svg") == 3
    assert "ash &amp; elm" in text
    assert "The champion takes 40 nodes for classes that this window does not have." in text
    assert "may be chance" not in text
    assert not re.search(r"(src|href)=\"https?:", text)


def test_a_gain_that_may_be_chance_is_told(tmp_path: Path) -> None:
    truth = np.arange(90) % 3
    text = page(comparison(np.where(np.arange(90) < 59, truth, (truth + 1) % 3)), tmp_path)
    assert "The gain may be chance: models that are equally good differ as much in 100% of such" in text


def test_without_a_champion_the_challenger_stands_alone(tmp_path: Path) -> None:
    text = page(comparison(None), tmp_path)
    assert "There is no champion yet; the challenger&#x27;s accuracy is 0.6667." in text
    assert "<dd>challenger</dd>" in text
    assert "<dd>none</dd>" in page(comparison(None), tmp_path, least_score=0.9)


def test_the_champions_so_far_are_drawn(tmp_path: Path) -> None:
    records = [
        Record(
            generation=number,
            version=f"v{number}",
            window=f"2026-11-0{number}T00:00:00Z",
            metric="macro_f1",
            score=number / 10,
            promoted="2026-11-30T00:00:00+00:00",
        )
        for number in (3, 2, 1)
    ]
    write_promotion(tmp_path / "p.html", "late", "the champion is of a later window", records)
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<dd>late</dd>" in text
    assert "<dd>2026-11-03 00:00</dd>" in text
    assert text.index(">v3<") < text.index(">v1<")
    assert text.count("<svg") == 1
    write_promotion(tmp_path / "p.html", "beaten", "nobody won", [])
    assert "<dd>none</dd>" in (tmp_path / "p.html").read_text(encoding="utf-8")
