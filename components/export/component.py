"""The KFP declaration of `export_model`."""

from kfp import dsl

from .._images import image


@dsl.component(base_image=image("export"), install_kfp_package=False)
def export_model(
    model: dsl.Input[dsl.Model],
    partitions: dsl.Input[dsl.Dataset],
    exported: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    formats: list[str] = ["torchscript", "onnx"],
    tolerance: float = 0.0001,
    verify_nodes: int = 256,
    seed: int = 0,
    model_name: str = "gnn",
    timeout_s: int = 1800,
) -> None:
    """Exports a trained GNN to formats that run without DGL, and proves that they give the same logits.

    What was written is loaded again, in processes that cannot import DGL, and run on real nodes of the
    first site; a logit that differs by more than the tolerance fails the step, which then leaves nothing.

    Args:
        model: The trained GNN, written by train_gnn or geo_train_gnn.
        partitions: Partitions with nodes to check on, written by partition_graph.
        exported: TorchScript, ONNX, weights, model card, instructions and files for model servers.
        metrics: Largest difference of a logit and sizes.
        report: The formats, the differences and how to use the model.
        formats: Formats to write, "torchscript" and "onnx"; weights and model card are always written.
        tolerance: Largest difference of a logit, between exported and trained model, that passes.
        verify_nodes: Real nodes, test nodes first, on which the two are compared.
        seed: Seed of the choice of those nodes.
        model_name: Name that model servers know the model by.
        timeout_s: Seconds after which running what was written is ended as failed.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("export_model", beside=Path(exported.path)):
        from geokfp.components.export.config import ExportConfig
        from geokfp.components.export.run import Inputs, Outputs, run

        config = ExportConfig(
            formats=formats,
            tolerance=tolerance,
            verify_nodes=verify_nodes,
            seed=seed,
            model_name=model_name,
            timeout_s=timeout_s,
        )
        inputs = Inputs(model=Path(model.path), partitions=Path(partitions.path))
        result = run(config, inputs, Outputs(exported=Path(exported.path), report=Path(report.path)))
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
