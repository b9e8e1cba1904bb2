"""The folder that `geokfp run --output` names: what lies there always belongs to the latest run.

::

    DIR/
      run.json       the pipeline, its parameters, status, steps with their seconds
                     (a run that was interrupted stays `running`)
      log.txt        everything that kfp and the steps printed
      metrics.json   scalar metrics of all steps          (only of a run that is done)
      report.html    the steps' reports on one page       (only of a run that is done)
      model/         the exported model                   (only of a run that is done)
      steps/         <step>/<artifact>
      previous/      results of the last run that was done, while the newest is not

When a run starts, finished results move to `previous/`, so nothing old can be taken for new, however it ends.
`previous/` goes when the new results are complete. Knows nothing of kfp.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .errors import RunFailed, UsageError

RESULTS = ("metrics.json", "run.json", "report.html", "model", "log.txt", "steps")
"""In the order in which they are taken away: metrics.json first, as it is what scripts read."""
PREVIOUS = "previous"
WORK = ".work"


@contextmanager
def output_folder(directory: Path) -> Iterator[Path]:
    """Prepares `directory` for a run and holds it against other runs.

    Args:
        directory: made when missing; may hold an earlier run's results, and nothing else.

    Yields:
        A folder inside `directory` for what is not finished; removed at the end.

    Raises:
        UsageError: the folder holds other files, is in use by another run, or cannot be written.
        RunFailed: the system refused something while the run was going, such as space on the disk.
    """
    work = directory / WORK
    with ExitStack() as stack:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _refuse_other_files(directory)
            stack.enter_context(_held(directory))
            _set_aside(directory)
            work.mkdir()
        except OSError as error:
            raise UsageError(f"--output {directory}: {error.strerror or error}") from error
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        try:
            yield work
        except OSError as error:
            at = f" ({error.filename})" if error.filename else ""
            raise RunFailed(f"the run ended early: {error.strerror or error}{at}") from error


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(f"--output {directory}: another run is writing there") from error
    finally:
        os.close(handle)


def _refuse_other_files(directory: Path) -> None:
    others = sorted({entry.name for entry in directory.iterdir()} - {*RESULTS, PREVIOUS, WORK})
    if others:
        raise UsageError(
            f"--output {directory}: holds other files ({others[0]}); give a new or an empty folder"
        )


def _set_aside(directory: Path) -> None:
    """Moves the results of a run that was done to `previous/`, and removes those of one that was not."""
    shutil.rmtree(directory / WORK, ignore_errors=True)
    previous = directory / PREVIOUS
    if (directory / "metrics.json").exists():
        shutil.rmtree(previous, ignore_errors=True)
        previous.mkdir()
        for name in RESULTS:
            if (directory / name).exists():
                os.replace(directory / name, previous / name)
        return
    for name in RESULTS:
        _remove(directory / name)


def publish(staged: Path, directory: Path, *, done: bool) -> None:
    """Moves finished results to their place, metrics.json last, each by one rename.

    Args:
        staged: the folder that holds them, on the same file system.
        directory: the run's output folder.
        done: the run succeeded, so the results of the run before go.
    """
    for name in reversed(RESULTS):
        if (staged / name).exists():
            _remove(directory / name)
            os.replace(staged / name, directory / name)
    if done:
        shutil.rmtree(directory / PREVIOUS, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a JSON document for people and scripts alike."""
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
