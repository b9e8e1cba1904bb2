"""Pages are self-contained, escape what they show, and join into one."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components._report import Report, combine, plots

FIGURES = {
    "lines": lambda: plots.lines({"a": ([0, 1], [1.0, 2.0]), "b": ([0], [3.0])}, x_label="x", y_label="y"),
    "log lines": lambda: plots.lines({"a": ([0, 1], [1.0, 200.0])}, x_label="x", y_label="y", log_y=True),
    "bars": lambda: plots.bars(["a", "b"], [1, 2], y_label="y"),
    "grouped bars": lambda: plots.grouped_bars(["a", "b"], {"p": [1, 2], "q": [2, 1]}, y_label="y"),
    "histogram": lambda: plots.histogram([1, 2, 2, 3], x_label="x"),
    "log histogram": lambda: plots.histogram([1, 2, 200], x_label="x", log=True),
    "log histogram of one value": lambda: plots.histogram([1, 1], x_label="x", log=True),
    "empty log histogram": lambda: plots.histogram([0, 0], x_label="x", log=True),
    "confusion": lambda: plots.confusion_matrix(np.array([[3, 1], [0, 0]]), ["a", "b"]),
    "large confusion": lambda: plots.confusion_matrix(
        np.eye(60), [f"a long class name {i}" for i in range(60)]
    ),
}


@pytest.mark.parametrize("epochs", [[1], [1, 2], [1, 2, 3]])
def test_whole_numbers_have_no_ticks_between_them(epochs: list[int]) -> None:
    figure = plots.lines({"loss": (epochs, [0.5] * len(epochs))}, x_label="epoch", y_label="loss")
    assert len(re.findall(r'id="\w+-xtick_\d+"', figure)) == len(epochs)


class _Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("src", "href", "xlink:href"):
                assert str(value).startswith("#"), f"{tag} {name}={value} lies outside the page"


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_one_svg(name: str) -> None:
    svg = FIGURES[name]()
    assert svg.startswith("<svg")
    assert svg.count("<svg") == 1
    assert "NaN" not in svg


def test_a_page_is_self_contained_and_escapes(tmp_path: Path) -> None:
    figure = FIGURES["lines"]()
    report = Report("A <title>").facts({"a & b": 1234, "share": 0.5, "yes": True}).warnings(["<script>"])
    report.section("Two figures").figure(figure, "first").figure(FIGURES["bars"](), "second")
    report.table(["name", "count"], [["<b>", 1], ["c", 2000]]).paragraph("1 < 2")
    report.write(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    checker = _Checker()
    checker.feed(page)
    assert len(checker.ids) == len(set(checker.ids))
    assert "script" not in checker.tags
    assert "<b>" not in page
    assert "1,234" in page
    assert re.search(r'<td class="number">2,000</td>', page)


def test_names_of_any_script_stay_text() -> None:
    svg = plots.bars(["東京", "São Paulo"], [1, 2], y_label="nodes")
    assert "東京" in svg
    assert "São Paulo" in svg


def test_no_warnings_make_no_box() -> None:
    assert "<ul" not in Report("x").warnings([]).to_html()


def test_reports_join_in_order(tmp_path: Path) -> None:
    for name in ("one", "two"):
        Report(name).figure(FIGURES["histogram"](), name).write(tmp_path / f"{name}.html")
    page = combine("All", [(name, tmp_path / f"{name}.html") for name in ("one", "two")], {"accuracy": 0.9})
    assert page.index("<h1>All") < page.index("0.9") < page.index("<h1>one") < page.index("<h1>two")
    assert page.count("<html") == page.count("</html>") == 1


def test_what_is_not_a_report_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("<html></html>")
    with pytest.raises(InputError, match="not a report of this package"):
        combine("All", [("x", tmp_path / "x.html")])
