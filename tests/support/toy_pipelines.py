"""Pipelines of seconds that need no engine, to try the command line on."""

from pathlib import Path

from kfp import dsl
from kfp.compiler import Compiler

IMAGE = "python:3.11"


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def make(made: dsl.Output[dsl.Dataset], metrics: dsl.Output[dsl.Metrics], size: int = 3, mode: str = "work"):
    """Makes rows, or fails, or waits."""
    import json
    import pathlib
    import sys
    import time

    folder = pathlib.Path(made.path)
    print("[geokfp     0.1 s] making rows", flush=True)
    print("chatter", flush=True)
    if mode == "wait":
        time.sleep(300)
    if mode == "record":
        record = {
            "step": "make",
            "replica": "site-0/trainer-1",
            "cause": "killed by signal 9",
            "last_lines": ["a", "no memory"],
        }
        (folder.parent / "error.json").write_text(json.dumps(record))
        sys.exit(1)
    if mode == "raise":
        raise ValueError("rows.csv line 3: 'x' is not a number")
    folder.mkdir()
    (folder / "rows.txt").write_text("row\n" * size)
    metrics.log_metric("rows", size)
    metrics.log_metric("score", 0.25)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def fit(
    made: dsl.Input[dsl.Dataset],
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    shape: list[int] = [2, 3],  # noqa: B006
    rate: float = 0.5,
    loud: bool = False,
    extra: dict[str, int] = {},  # noqa: B006
):
    """Fits."""
    import pathlib

    print(f"received {shape} {rate} {loud} {extra}", flush=True)
    rows = (pathlib.Path(made.path) / "rows.txt").read_text().count("row")
    pathlib.Path(model.path).mkdir()
    (pathlib.Path(model.path) / "weights").write_text(str(rows))
    pathlib.Path(report.path).write_text(
        "<!doctype html><html><head></head><body><p>fitted</p></body></html>"
    )
    metrics.log_metric("score", 0.75)


@dsl.pipeline(name="toy", display_name="Toy", description="Makes rows and fits.")
def toy(
    size: int = 3,
    mode: str = "work",
    shape: list[int] = [2, 3],  # noqa: B006
    rate: float = 0.5,
    loud: bool = False,
    extra: dict[str, int] = {},  # noqa: B006
):
    """Makes rows and fits.

    Args:
        size: Rows to make.
        mode: work, raise, record or wait.
    """
    made = make(size=size, mode=mode).set_retry(3, backoff_duration="60s").set_display_name("Make rows")
    fit(made=made.outputs["made"], shape=shape, rate=rate, loud=loud, extra=extra)


@dsl.pipeline(name="needy")
def needy(size: int):
    """Has a parameter without a default."""
    make(size=size)


def compile_to(folder: Path) -> Path:
    """Compiles the pipelines into `folder`, and returns the path of the first."""
    for pipeline in (needy, toy):
        path = folder / f"{pipeline.name}.yaml"
        Compiler().compile(pipeline, str(path))
    return path
