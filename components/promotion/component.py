"""The KFP declarations of the stage: a window is opened, a challenger evaluated, a model promoted."""

from kfp import dsl

from .._images import image


@dsl.component(base_image=image("training"), install_kfp_package=False)
def open_window(
    metrics: dsl.Output[dsl.Metrics],
    window: dsl.OutputPath(str),  # type: ignore[valid-type]
    window_nodes: dsl.OutputPath(str),  # type: ignore[valid-type]
    window_edges: dsl.OutputPath(str),  # type: ignore[valid-type]
    window_features: dsl.OutputPath(str),  # type: ignore[valid-type]
    champion: dsl.OutputPath(str),  # type: ignore[valid-type]
    start: dsl.OutputPath(str),  # type: ignore[valid-type]
    champions: str = "",
    nodes: str = "",
    edges: str = "",
    features: str = "",
    time: str = "",
    scheduled_time: str = "",
    window_s: int = 86400,
    warm_start: bool = True,
):
    """Says which tables a run reads, and which model it is held against.

    Args:
        metrics: Start of the window in seconds since 1970, and the champion's generation (0 for none).
        window: Start of the window, in UTC.
        window_nodes: URI of the window's nodes.
        window_edges: URI of the window's edges.
        window_features: URI of the window's features.
        champion: URI of the champion's trained GNN; empty where there is none yet.
        start: The same where the training is to go on from it, else empty.
        champions: Folder of the champions (path on a volume that stays, or URI).
        nodes: URI of the nodes, with fields of the window's start - %Y %m %d %H %M %S %j %G %V.
        edges: URI of the edges, with the same fields.
        features: URI of the features, with the same fields; empty for none.
        time: Moment that the run is for, as 2026-11-30T06:00Z or seconds since 1970; empty takes
            scheduled_time.
        scheduled_time: Moment that the scheduler gave; empty, or a placeholder that nothing has filled in,
            takes the present.
        window_s: Length of the window in seconds; it ends at the moment that the run is for.
        warm_start: Whether the training goes on from the champion, where there is one.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("open_window", beside=Path(window)):
        from datetime import UTC, datetime

        from geokfp.components.promotion.config import WindowConfig
        from geokfp.components.promotion.open_window import Outputs, run

        config = WindowConfig(
            champions=champions,
            nodes=nodes,
            edges=edges,
            features=features,
            time=time,
            scheduled_time=scheduled_time,
            window_s=window_s,
            warm_start=warm_start,
        )
        outputs = Outputs(
            window=Path(window),
            nodes=Path(window_nodes),
            edges=Path(window_edges),
            features=Path(window_features),
            champion=Path(champion),
            start=Path(start),
        )
        for name, value in run(config, outputs, datetime.now(UTC)).items():
            metrics.log_metric(name, value)


@dsl.component(base_image=image("training"), install_kfp_package=False)
def evaluate_challenger(
    graph: dsl.Input[dsl.Dataset],
    challenger: dsl.Input[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    champion: str = "",
    metric: str = "accuracy",
    margin: float = 0.0,
    least_score: float = 0.0,
) -> str:
    """Compares a newly trained GNN with the champion, on the same test nodes.

    Args:
        graph: Graph with test nodes, written by ingest_graph.
        challenger: The newly trained GNN.
        metrics: Accuracy and macro F1 of both, the gains, and the chance that equal models differ so.
        report: Both side by side, in all and by class.
        champion: Champion to compare with, the path or URI of its trained GNN; empty where there is none yet.
        metric: What decides - "accuracy", or "macro_f1", the mean of the classes' F1.
        margin: By how much the challenger's score must be above the champion's; equal scores keep the
            champion.
        least_score: Score below which no challenger wins, not even the first.

    Returns:
        "promote" where the challenger wins, else "keep".
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("evaluate_challenger", beside=Path(report.path)):
        from geokfp.components.promotion.config import EvaluationConfig
        from geokfp.components.promotion.evaluate import run

        config = EvaluationConfig(champion=champion, metric=metric, margin=margin, least_score=least_score)
        result = run(config, Path(graph.path), Path(challenger.path), Path(report.path))
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
        return result.decision


@dsl.component(base_image=image("training"), install_kfp_package=False)
def promote_model(
    graph: dsl.Input[dsl.Dataset],
    trained: dsl.Input[dsl.Model],
    exported: dsl.Input[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    outcome: dsl.OutputPath(str),  # type: ignore[valid-type]
    champions: str = "",
    window: str = "",
    metric: str = "accuracy",
    margin: float = 0.0,
    least_score: float = 0.0,
):
    """Makes a GNN that has won the champion, safely where runs overlap or a step is done again.

    It must win against the champion of the moment, and a champion of a later window stays.

    Args:
        graph: Graph with test nodes, written by ingest_graph.
        trained: The trained GNN.
        exported: The same, written by export_model.
        metrics: Whether it was promoted, and the generation of the champion.
        report: The outcome, and the champions so far.
        outcome: "promoted", "late" (a champion of a later window is there) or "beaten".
        champions: Folder of the champions (path on a volume that stays, or URI).
        window: Start of the window that the model was trained on, as open_window gives it.
        metric: What decides - "accuracy", or "macro_f1", the mean of the classes' F1.
        margin: By how much its score must be above the champion's; equal scores keep the champion.
        least_score: Score below which no model wins, not even the first.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("promote_model", beside=Path(report.path)):
        from datetime import UTC, datetime

        from geokfp.components.promotion.config import PromotionConfig
        from geokfp.components.promotion.promote import Inputs, Outputs, run

        config = PromotionConfig(
            champions=champions, window=window, metric=metric, margin=margin, least_score=least_score
        )
        inputs = Inputs(graph=Path(graph.path), trained=Path(trained.path), exported=Path(exported.path))
        outputs = Outputs(report=Path(report.path), outcome=Path(outcome))
        for name, value in run(config, inputs, outputs, datetime.now(UTC)).items():
            metrics.log_metric(name, value)
