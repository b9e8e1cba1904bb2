"""What a process of a tree measures of itself: rounds, bytes, seconds, steps; where it is shown and kept.

Every process has a `Recorder`, which clients, aggregators and workers tell what happens (`Observer`). A
`Reporter` shows it: as a page for Prometheus, as a table in the root's log, and as a file in the work folder,
of which the step's report is drawn. Knows nothing of models.

A folder of records, for one site of one worker::

    metrics/
      root.json  node-0.json  worker-0.json     what each process measured (`record`)
      targets/
        root.json ...                           where each can be scraped: Prometheus reads these (`endpoint`)
"""

from .observer import COMPUTE, RECEIVE, SEND, TRAINING, UNOBSERVED, WAIT, Observer, Span
from .recorder import Recorder

__all__ = [
    "COMPUTE",
    "RECEIVE",
    "SEND",
    "TRAINING",
    "UNOBSERVED",
    "WAIT",
    "Observer",
    "Recorder",
    "Span",
]
