"""Self-contained HTML pages, built piece by piece, and several of them joined into one."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._files import InputError, new_file
from .style import CSS

_BEGIN, _END = "<!-- report -->", "<!-- /report -->"


class Report:
    """One page. Every method adds a piece and returns the report; all text is escaped.

    Args:
        title: the page's heading.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._pieces: list[str] = [f"<h1>{html.escape(title)}</h1>"]

    def facts(self, values: Mapping[str, Any]) -> "Report":
        """Adds tiles of a name and a value each."""
        self._pieces.append(_facts(values))
        return self

    def section(self, title: str) -> "Report":
        """Adds a heading."""
        self._pieces.append(f"<h2>{html.escape(title)}</h2>")
        return self

    def paragraph(self, text: str) -> "Report":
        """Adds a paragraph."""
        self._pieces.append(f"<p>{html.escape(text)}</p>")
        return self

    def warnings(self, lines: Iterable[str]) -> "Report":
        """Adds a box of warnings; nothing when there are none."""
        items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        if items:
            self._pieces.append(f'<ul class="warnings">{items}</ul>')
        return self

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Report":
        """Adds a table; columns that hold only numbers are set to the right."""
        texts = [[_text(cell) for cell in row] for row in rows]
        numeric = [bool(texts) and all(_is_number(row[i]) for row in texts) for i in range(len(header))]
        head = "".join(_cell("th", name, numeric[i]) for i, name in enumerate(header))
        body = "".join(
            f"<tr>{''.join(_cell('td', cell, numeric[i]) for i, cell in enumerate(row))}</tr>"
            for row in texts
        )
        self._pieces.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )
        return self

    def figure(self, svg: str, caption: str) -> "Report":
        """Adds an inline SVG with a caption."""
        self._pieces.append(f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>")
        return self

    def to_html(self) -> str:
        """Returns the page."""
        body = "\n".join(self._pieces)
        return _page(self._title, f"<main>\n{_BEGIN}\n{body}\n{_END}\n</main>")

    def write(self, path: Path | str) -> None:
        """Writes the page as a whole or not at all."""
        with new_file(path) as temporary:
            temporary.write_text(self.to_html(), encoding="utf-8")


def combine(title: str, reports: Sequence[tuple[str, Path]], facts: Mapping[str, Any] | None = None) -> str:
    """Returns one page of several reports, in order, with links to each.

    Args:
        title: the page's heading.
        reports: the name of each step and the path of its report.
        facts: shown first.

    Raises:
        InputError: a file is not a report of this package.
    """
    links = "".join(f'<a href="#part-{i}">{html.escape(name)}</a>' for i, (name, _) in enumerate(reports))
    first = f"<main><h1>{html.escape(title)}</h1>{_facts(facts or {})}</main>"
    parts = []
    for index, (_, path) in enumerate(reports):
        _, found, rest = Path(path).read_text(encoding="utf-8").partition(_BEGIN)
        content, ended, _ = rest.partition(_END)
        if not (found and ended):
            raise InputError(f"{path}: not a report of this package")
        parts.append(f'<main id="part-{index}">{content}</main>')
    return _page(title, f"<nav>{links}</nav>\n{first}\n" + "\n".join(parts))


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{CSS}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _facts(values: Mapping[str, Any]) -> str:
    tiles = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(_text(value))}</dd></div>"
        for name, value in values.items()
    )
    return f'<dl class="facts">{tiles}</dl>' if tiles else ""


def _cell(tag: str, text: str, numeric: bool) -> str:
    kind = ' class="number"' if numeric else ""
    return f"<{tag}{kind}>{html.escape(text)}</{tag}>"


def _is_number(text: str) -> bool:
    return (
        text in ("", "-")
        or re.fullmatch(r"[-+]?[\d,]*\.?\d+(e[-+]?\d+)?( ?[%a-zA-Z]{1,3})?", text) is not None
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return str(value)
