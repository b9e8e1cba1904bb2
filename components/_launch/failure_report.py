"""What a cluster's components said about an object, one line an event; pure but for the request itself."""

from collections.abc import Iterable, Mapping
from typing import Any

from .api_errors import ApiError
from .cluster import Document
from .creation import Api
from .object_paths import kind_path

MAX_EVENTS = 8
"""Lines kept for one object, the latest."""


def events_of(api: Api, namespace: str, names: Iterable[str]) -> list[str]:
    """Returns what the cluster's components said about objects, or why that cannot be had.

    Args:
        api: the server; asked once for each object.
        namespace: of the objects.
        names: of the objects.
    """
    lines: list[str] = []
    for name in names:
        try:
            answer = api.request(
                "GET",
                kind_path("v1", "Event", namespace),
                query={"fieldSelector": f"involvedObject.name={name}"},
            )
        except ApiError as error:
            return [*lines, f"events of {name}: {error}"]
        lines += event_lines(answer.get("items") or [])
    return lines


def event_lines(events: Iterable[Document]) -> list[str]:
    """Returns one line for each of the latest events, in their order."""
    ordered = sorted(events, key=_time)[-MAX_EVENTS:]
    return [_line(event) for event in ordered]


def _time(event: Document) -> str:
    metadata: Mapping[str, Any] = event.get("metadata") or {}
    return str(
        event.get("lastTimestamp") or event.get("eventTime") or metadata.get("creationTimestamp") or ""
    )


def _line(event: Document) -> str:
    count = int(event.get("count") or 1)
    times = f" ({count} times)" if count > 1 else ""
    words = " ".join(str(event.get("message", "")).split())[:500]
    return f"event {event.get('type', '')} {event.get('reason', '')}: {words}{times}"
