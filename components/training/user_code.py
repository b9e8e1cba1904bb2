"""The user's own model: where its code comes from and how its `build` is called.

The code is trusted and executed with all rights of the process that trains.
"""

import importlib
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from torch import nn

from .._files import InputError, local_file


def fetch_user_code(uri: str, directory: Path) -> None:
    """Copies the user's code into a folder that can be put on `sys.path`.

    Args:
        uri: a local folder, or a local or remote `.py` file.
        directory: the folder to make; a file lies in it, a folder's content is copied into it.

    Raises:
        InputError: there is nothing there, or it is not a `.py` file.
    """
    parts = urlsplit(uri)
    path = Path(parts.path if parts.scheme == "file" else uri)
    if parts.scheme in ("", "file") and path.is_dir():
        shutil.copytree(path, directory, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        return
    name = Path(parts.path).name
    if not name.endswith(".py"):
        raise InputError(f"user_code {uri!r}: allowed are a folder and a .py file")
    with local_file(uri) as file:
        directory.mkdir(parents=True)
        shutil.copyfile(file, directory / name)


def load_builder(entry_point: str, directory: Path | None) -> Callable[..., nn.Module]:
    """Imports the user's `build`.

    Args:
        entry_point: `module:function`.
        directory: folder with the user's code, put first on `sys.path`; None when the module is installed.

    Returns:
        The function, called as `build(num_features, num_classes, **options)`.

    Raises:
        InputError: no such module or function.
    """
    module_name, separator, function = entry_point.partition(":")
    if not separator or not module_name or not function:
        raise InputError(f"entry_point {entry_point!r}: must be module:function")
    if directory is not None and str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(f"entry_point {entry_point!r}: {error}") from error
    builder = getattr(module, function, None)
    if not callable(builder):
        raise InputError(f"entry_point {entry_point!r}: {module_name} has no function {function!r}")
    return builder  # type: ignore[no-any-return]


def build_user_model(
    entry_point: str, directory: Path | None, num_features: int, num_classes: int, options: Mapping[str, Any]
) -> nn.Module:
    """Calls the user's `build` and checks what comes back.

    Raises:
        InputError: the options do not fit the function, or the result is not an `nn.Module`.
    """
    builder = load_builder(entry_point, directory)
    model = builder(num_features, num_classes, **options)
    if not isinstance(model, nn.Module):
        raise InputError(
            f"entry_point {entry_point!r}: returned {type(model).__name__}, an nn.Module is needed"
        )
    return model
