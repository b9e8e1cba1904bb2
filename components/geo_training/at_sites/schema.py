"""What sites tell each other of their tables, and what they agree on: no row and no feature is in it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

import numpy as np

from ..._files import InputError
from ...ingest.graph import Graph
from ...shard.rows import Rows

Labelled = TypeVar("Labelled", Graph, Rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteSchema:
    """What a site tells of its tables."""

    num_features: int
    """Values of a node's or row's features."""
    feature_names: tuple[str, ...]
    """Name of each feature column; may be empty."""
    label_names: tuple[str, ...]
    """Name of each class that the site has."""
    row: str = "float32"
    """Type and shape of a row's features."""

    @classmethod
    def of(cls, graph: Graph) -> "SiteSchema":
        """Returns what is told of a graph."""
        return cls(
            num_features=graph.num_features,
            feature_names=graph.feature_names,
            label_names=graph.label_names,
        )

    @classmethod
    def of_rows(cls, rows: Rows) -> "SiteSchema":
        """Returns what is told of rows."""
        shape = rows.features.shape[1:]
        return cls(
            num_features=int(np.prod(shape)),
            feature_names=rows.feature_names,
            label_names=rows.label_names,
            row=f"{rows.features.dtype} {list(shape)}",
        )

    def to_json(self) -> str:
        """Returns the form that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "SiteSchema":
        """Reads what `to_json` wrote."""
        found = json.loads(text)
        names = {key: tuple(found[key]) for key in ("feature_names", "label_names")}
        return cls(**{**found, **names})


def joined(schemas: Mapping[str, SiteSchema]) -> SiteSchema:
    """Returns what all sites agree on: the same features, and all labels that any of them has.

    Args:
        schemas: by site.

    Raises:
        InputError: sites have unlike features.
    """
    (first, wanted), *others = schemas.items()
    for site, schema in others:
        for option in ("num_features", "row", "feature_names"):
            told, expected = getattr(schema, option), getattr(wanted, option)
            if told != expected:
                raise InputError(
                    f"site {site!r}: {option} is {_some(told)}, allowed: {_some(expected)} as at {first!r}"
                )
    names = {name for schema in schemas.values() for name in schema.label_names}
    return replace(wanted, label_names=tuple(sorted(names, key=_order)))


def with_labels(labelled: Labelled, label_names: tuple[str, ...]) -> Labelled:
    """Returns a graph or rows whose labels are counted as all sites count them; numbers stay as they are."""
    if not label_names:
        return labelled
    of_own = np.array([*map(label_names.index, labelled.label_names), -1], dtype=np.int64)
    return replace(labelled, labels=of_own[labelled.labels], label_names=label_names)


def _order(name: str) -> tuple[bool, int, str]:
    """Whole numbers first, by value, as a single site orders them."""
    is_number = name.lstrip("-").isdigit()
    return (not is_number, int(name) if is_number else 0, name)


def _some(value: object) -> str:
    return f"{list(value[:5])} ..." if isinstance(value, tuple) else str(value)
