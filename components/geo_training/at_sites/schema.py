"""What sites tell each other of their graphs, and what they agree on: no row and no feature is in it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..._files import InputError
from ...ingest.graph import Graph


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteSchema:
    """What a site tells of its graph."""

    num_features: int
    """Width of a node's feature row."""
    feature_names: tuple[str, ...]
    """Name of each feature column; may be empty."""
    label_names: tuple[str, ...]
    """Name of each class that the site has."""

    @classmethod
    def of(cls, graph: Graph) -> "SiteSchema":
        """Returns what is told of a graph."""
        return cls(
            num_features=graph.num_features,
            feature_names=graph.feature_names,
            label_names=graph.label_names,
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
        for option in ("num_features", "feature_names"):
            told, expected = getattr(schema, option), getattr(wanted, option)
            if told != expected:
                raise InputError(
                    f"site {site!r}: {option} is {_some(told)}, allowed: {_some(expected)} as at {first!r}"
                )
    names = {name for schema in schemas.values() for name in schema.label_names}
    return replace(wanted, label_names=tuple(sorted(names, key=_order)))


def with_labels(graph: Graph, label_names: tuple[str, ...]) -> Graph:
    """Returns a graph whose labels are counted as all sites count them."""
    at = {name: index for index, name in enumerate(label_names)}
    of_own = np.array([*(at[name] for name in graph.label_names), -1], dtype=np.int64)
    return replace(graph, labels=of_own[graph.labels], label_names=label_names)


def _order(name: str) -> tuple[bool, int, str]:
    """Whole numbers first, by value, as a single site orders them."""
    is_number = name.lstrip("-").isdigit()
    return (not is_number, int(name) if is_number else 0, name)


def _some(value: object) -> str:
    return f"{list(value[:5])} ..." if isinstance(value, tuple) else str(value)
