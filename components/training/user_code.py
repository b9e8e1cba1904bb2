"""The user's own model: where its code comes from and how its `build` is called.

The code is trusted and executed with all rights of the process that trains.
"""

import importlib
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from torch import nn

from .._files import InputError, local_file, local_path


def fetch_user_code(uri: str, directory: Path) -> None:
    """Copies the user's code into a folder that can be put on `sys.path`.

    Args:
        uri: a local folder, or a local or remote `.py` file.
        directory: the folder to make; a file lies in it, a folder's content is copied into it.

    Raises:
        InputError: there is nothing there, or it is not a `.py` file.
    """
    path = local_path(uri)
    if path is not None and path.is_dir():
        shutil.copytree(path, directory, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        return
    name = Path(urlsplit(uri).path).name if path is None else path.name
    if not name.endswith(".py"):
        raise InputError(f"user_code {uri!r}: allowed are a folder that exists and a .py file")
    with local_file(uri) as file:
        directory.mkdir(parents=True)
        shutil.copyfile(file, directory / name)


def load_builder(entry_point: str, directory: Path | None) -> Callable[..., Any]:
    """Imports the user's `build`.

    Args:
        entry_point: `module:function`.
        directory: folder with the user's code, put first on `sys.path`; None when the module is installed.

    Returns:
        The function, called as `build(num_features, num_classes, **options)`.

    Raises:
        InputError: no such module or function, or the module raises while it is imported.
    """
    module_name, separator, function = entry_point.partition(":")
    if not separator or not module_name or not function:
        raise InputError(f"entry_point {entry_point!r}: must be module:function")
    if directory is not None and str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    with raising_input_error(entry_point, directory):
        module = importlib.import_module(module_name)
    if not hasattr(module, function):
        raise InputError(f"entry_point {entry_point!r}: {module_name} has no function {function!r}")
    builder = getattr(module, function)
    if not callable(builder):
        raise InputError(
            f"entry_point {entry_point!r}: {function!r} of {module_name} is of type "
            f"{type(builder).__name__}, a function is needed"
        )
    return builder  # type: ignore[no-any-return]


def build_user_model(
    entry_point: str, directory: Path | None, num_features: int, num_classes: int, options: Mapping[str, Any]
) -> nn.Module:
    """Calls the user's `build` and checks what comes back.

    Raises:
        InputError: the code cannot be imported, `build` raises, or its result is not an `nn.Module`.
    """
    builder = load_builder(entry_point, directory)
    with raising_input_error(entry_point, directory):
        model = builder(num_features, num_classes, **options)
    if not isinstance(model, nn.Module):
        raise InputError(
            f"entry_point {entry_point!r}: returned {type(model).__name__}, an nn.Module is needed"
        )
    return model


@contextmanager
def raising_input_error(entry_point: str, directory: Path | None) -> Iterator[None]:
    """Makes one line, with file and line of the user's code, of whatever that code raises."""
    try:
        yield
    except (Exception, SystemExit) as error:  # the code is not ours and may raise anything
        raise InputError(f"entry_point {entry_point!r}: {_place(error, directory)}{_told(error)}") from error


def _place(error: BaseException, directory: Path | None) -> str:
    """Returns `file:line: ` of the last of the user's own lines that the error came through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}: "
    frames = traceback.extract_tb(error.__traceback__) if directory is not None else []
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(directory or "")]
    return f"{Path(own[-1].filename).relative_to(directory or '')}:{own[-1].lineno}: " if own else ""


def _told(error: BaseException) -> str:
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
