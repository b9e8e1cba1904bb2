"""What the component `evaluate_challenger` does: both models on the test nodes of one graph."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._files import InputError
from .._launch import progress
from ..ingest.graph import TEST, Array, Graph, read_graph
from ..training.trained_gnn import TrainedGnn, read_trained_gnn
from ..training.warm_start import fetch_trained_gnn
from .comparison import Comparison, Verdict, in_classes, judge
from .config import EvaluationConfig
from .inference import predictions
from .report import write_comparison

PROMOTE, KEEP = "promote", "keep"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of an evaluation, for the component to log and return."""

    metrics: dict[str, float]
    """Finite values by name."""
    decision: str
    """`promote` or `keep`."""


def run(config: EvaluationConfig, graph: Path, challenger: Path, report: Path) -> Result:
    """Compares a challenger with the champion and says who wins.

    Args:
        config: the champion, and when a challenger wins.
        graph: a graph artifact with test nodes.
        challenger: a trained GNN.
        report: where the HTML report goes.

    Raises:
        InputError: an input is wrong, or a model does not fit the graph.
    """
    comparison = compare(read_graph(graph), read_trained_gnn(challenger), config.champion)
    verdict = judge(comparison, config)
    decision = PROMOTE if verdict.wins else KEEP
    progress(f"{decision}: {verdict.why}")
    write_comparison(report, comparison, verdict, config)
    return Result(metrics=_metrics(comparison, verdict), decision=decision)


def compare(graph: Graph, challenger: TrainedGnn, champion: str) -> Comparison:
    """Runs both models on the graph's test nodes.

    Args:
        graph: the graph.
        challenger: the trained GNN.
        champion: path or URI of the champion's trained GNN; empty for none.

    Raises:
        InputError: there is no test node, or a model does not fit the graph.
    """
    nodes = np.flatnonzero((np.asarray(graph.split) == TEST) & (np.asarray(graph.labels) >= 0))
    if not len(nodes):
        raise InputError("graph: no test node; models are compared on some that none of them has seen")
    found = predictions(challenger, graph, nodes, "challenger")
    return Comparison(
        label_names=graph.label_names,
        truth=np.asarray(graph.labels)[nodes],
        challenger=in_classes(found, challenger.label_names, graph.label_names),
        champion=_of_champion(graph, nodes, champion) if champion else None,
    )


def _of_champion(graph: Graph, nodes: Array, uri: str) -> Array:
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
        champion = fetch_trained_gnn(uri, Path(folder) / "champion")
        found = predictions(champion, graph, nodes, f"champion {uri!r}")
    return in_classes(found, champion.label_names, graph.label_names)


def _metrics(comparison: Comparison, verdict: Verdict) -> dict[str, float]:
    challenger, champion = comparison.scores()
    found = {
        "challenger_accuracy": challenger.accuracy,
        "challenger_macro_f1": challenger.macro_f1,
        "num_judged": float(len(comparison.truth)),
        "challenger_wins": float(verdict.wins),
    }
    if champion is not None:
        found |= {
            "champion_accuracy": champion.accuracy,
            "champion_macro_f1": champion.macro_f1,
            "accuracy_gain": challenger.accuracy - champion.accuracy,
            "macro_f1_gain": challenger.macro_f1 - champion.macro_f1,
            "sign_test_p": comparison.sign_test(),
        }
    return found
