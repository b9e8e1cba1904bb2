"""The folder that a training works in, beside its model. Knows nothing of what lies there."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._files import InputError


@contextmanager
def work_folder(model: Path) -> Iterator[Path]:
    """Yields an empty folder, `<model>-work`, for what processes hand to each other.

    It goes when the training is done, and also when an input was wrong, as nothing has started then. It stays
    when a process failed, since the logs in it say why.

    Args:
        model: where the training's model goes.
    """
    work = model.with_name(f"{model.name}-work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield work
    except InputError:
        shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work)
