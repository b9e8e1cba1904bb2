"""The user's own code, as artifacts hold it."""

import shutil
from pathlib import Path


def copy_user_code(code: Path | None, folder: Path) -> None:
    """Copies the user's code into an artifact, without what Python compiled of it.

    Args:
        code: folder of the code; None where the user has given none.
        folder: the folder to make.
    """
    if code is not None:
        shutil.copytree(code, folder, ignore=shutil.ignore_patterns("__pycache__"))
