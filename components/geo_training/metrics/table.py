"""The lines that the root's log has of its sites, every few seconds. Pure."""

from .record import LinkRecord, Record

_MEGABYTE = 1e6


def table(record: Record, upper: str) -> list[str]:
    """Returns one line a link that comes in at the process.

    Args:
        record: of the process.
        upper: the process, as the lines name it.
    """
    links = [link for link in record.links if link.name != record.process]
    width = max((len(link.name) for link in links), default=0)
    return [f"{link.name:<{width}} to {upper}: {_line(link, record.elapsed_s)}" for link in links]


def _line(link: LinkRecord, elapsed_s: float) -> str:
    rate = "" if link.rate is None else f"  {link.rate / _MEGABYTE:.3g} MB/s up"
    return (
        f"{link.rounds} rounds  {link.staleness} behind  "
        f"{link.up_bytes / _MEGABYTE:.2f} MB up  {link.down_bytes / _MEGABYTE:.2f} MB down  "
        f"ratio {link.ratio:.1f}  waited {100 * link.outstanding_s / max(elapsed_s, 1e-9):.0f} %{rate}"
    )
