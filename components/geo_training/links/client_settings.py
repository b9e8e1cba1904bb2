"""Who the end of a link that dials is, and how long it waits."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientSettings:
    """Who the client is and how long it waits."""

    name: str
    """Node that the client speaks for."""

    peer: str
    """Node that it dials."""

    run: str
    """The run; a node of another run refuses it."""

    round_timeout_s: float = 300.0
    """Seconds that a node may wait for the other contributions to a round of ours, unless the push says more.

    We ourselves wait a little longer, so that the node's reason comes first.
    """

    retry_s: float = 15.0
    """Seconds until a result is asked for again."""

    reconnect_s: float = 30.0
    """Seconds for which a connection is tried, at the start and when it was lost."""

    silence_s: float | None = None
    """Seconds without a byte after which a connection is made anew; None for never, and no heartbeats."""

    has_begun: bool = False
    """Whether an earlier process of this name has begun what this one goes on with."""
