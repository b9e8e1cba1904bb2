"""The KFP declaration of `export_model`."""

from kfp import dsl

from .._images import image


@dsl.component(base_image=image("export"), install_kfp_package=False)
def export_model(
    model: dsl.Input[dsl.Model],
    data: dsl.Input[dsl.Dataset],
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
    """Exports a trained model to formats that run without what trained it, and proves that they agree.

    What was written is loaded again, in processes that cannot import DGL, and run on real nodes or rows of
    the first site; an output that differs by more than the tolerance fails the step, which leaves nothing.

    Args:
        model: The trained GNN, or the model that geo_train trained over rows.
        data: Partitions, or shards, with nodes or rows to check on - the model's manifest says which.
        exported: TorchScript, ONNX, weights (of MXNet - symbol and parameters), model card, instructions and
            files for model servers.
        metrics: Largest difference of an output and sizes.
        report: The formats, the differences and how to use the model.
        formats: Formats to write, "torchscript" and "onnx"; weights and model card are always written. The
            default is all that the model's framework has; MXNet has no TorchScript.
        tolerance: Largest difference of an output, between exported and trained model, that passes.
        verify_nodes: Real nodes or rows, those of the test split first, on which the two are compared.
        seed: Seed of their choice.
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
        inputs = Inputs(model=Path(model.path), data=Path(data.path))
        result = run(config, inputs, Outputs(exported=Path(exported.path), report=Path(report.path)))
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
