"""A page for Prometheus of what one process measures, over HTTP, with a registry of its own.

Beside it a file names its address, in the form that Prometheus' `file_sd_configs` read::

    [{"targets": ["127.0.0.1:9401"], "labels": {"process": "site-0"}}]
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..._files import InputError, new_file
from .record import DOWN, UP, LinkRecord, Record

_PREFIX = "geokfp"


class Endpoint:
    """Serves the page in a thread of its own until it is closed.

    Args:
        host: name or address where it listens.
        port: where it listens.
        record: gives what was measured until now; called for each request.

    Raises:
        InputError: the port cannot be had, or prometheus-client is not installed.
    """

    def __init__(self, host: str, port: int, record: Callable[[], Record]) -> None:
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError as error:
            raise InputError(
                f"metrics_port {port}: prometheus-client is not installed; geokfp[engine] brings it"
            ) from error
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(record))
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as error:
            raise InputError(
                f"metrics_port: {host}:{port} cannot be listened at ({error.strerror or error}), "
                "allowed: the first of as many free ports as there are processes"
            ) from error
        self.address = f"{host}:{self._server.server_port}"

    def write_target(self, path: Path, process: str) -> None:
        """Writes the file that names the address."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = [{"targets": [self.address], "labels": {"process": process}}]
        with new_file(path) as temporary:
            temporary.write_text(json.dumps(document), encoding="utf-8")

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Collector:
    """What the registry asks for families of samples."""

    def __init__(self, record: Callable[[], Record]) -> None:
        self._record = record

    def collect(self) -> Iterator[Any]:
        """Yields every family."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        record = self._record()
        for name, what, labels, of_process in _OF_PROCESS:
            family = CounterMetricFamily(f"{_PREFIX}_{name}", what, labels=["process", *labels])
            for values, number in of_process(record):
                family.add_metric([record.process, *values], number)
            yield family
        for name, what, labels, of_link, is_gauge in _OF_LINKS:
            kind = GaugeMetricFamily if is_gauge else CounterMetricFamily
            samples: Any = kind(f"{_PREFIX}_{name}", what, labels=["process", "link", *labels])
            for link in record.links:
                for values, number in of_link(link):
                    samples.add_metric([record.process, link.name, *values], number)
            yield samples


_Samples = list[tuple[list[str], float]]


def _seconds(record: Record) -> _Samples:
    return [([activity], sum(values)) for activity, values in record.series.items() if " " not in activity]


def _values(link: LinkRecord) -> _Samples:
    return [
        ([UP, "dense"], link.up_dense_bytes),
        ([UP, "wire"], link.up_wire_bytes),
        ([DOWN, "dense"], link.down_dense_bytes),
        ([DOWN, "wire"], link.down_wire_bytes),
    ]


_OF_PROCESS: tuple[tuple[str, str, list[str], Callable[[Record], _Samples]], ...] = (
    ("steps", "Steps that the process took", [], lambda record: [([], record.steps)]),
    ("seconds", "Seconds by what they were spent with", ["activity"], _seconds),
)
_OF_LINKS: tuple[tuple[str, str, list[str], Callable[[LinkRecord], _Samples], bool], ...] = (
    ("rounds", "Rounds that were answered", [], lambda link: [([], link.rounds)], False),
    ("staleness_rounds", "Rounds behind the farthest link", [], lambda link: [([], link.staleness)], True),
    (
        "link_bytes",
        "Bytes of whole frames",
        ["direction"],
        lambda link: [([way], count) for way, count in link.bytes.items()],
        False,
    ),
    ("value_bytes", "Bytes of gradients and changes", ["direction", "form"], _values, False),
    (
        "compression_ratio",
        "Dense bytes by those that travelled",
        ["direction"],
        lambda link: [([way], ratio) for way, ratio in link.ratios.items()],
        True,
    ),
    (
        "arrived_bytes",
        "Bytes of the frames of 4096 bytes or more that came in",
        ["direction"],
        lambda link: [([link.arrives], link.arrived_bytes)],
        False,
    ),
    (
        "arriving_seconds",
        "Seconds in which these frames came in",
        ["direction"],
        lambda link: [([link.arrives], link.arriving_s)],
        False,
    ),
    (
        "outstanding_seconds",
        "Seconds in which the lower end waited for an answer",
        [],
        lambda link: [([], link.outstanding_s)],
        False,
    ),
)
