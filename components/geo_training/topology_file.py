"""The `topology` parameter as a file: YAML, or JSON where its name says so. Knows nothing of its content."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from .._files import InputError, open_uri, suffix
from .._files.unique_keys import KeyTwice, load


def written_out(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a `topology` parameter in full: the content of a file where it is `{"file": path or URI}`.

    Raises:
        InputError: the file cannot be read, or is no mapping in YAML or JSON; the line is named.
    """
    if not isinstance(options, Mapping) or set(options) != {"file"}:
        return options
    uri = options["file"]
    if not isinstance(uri, str):
        raise InputError(f"topology['file'] is {uri!r}, allowed: path or URI of a file")
    try:
        with open_uri(uri) as file:
            content = file.read()
        found = _in_json(uri, content) if suffix(uri) == ".json" else _in_yaml(uri, content)
    except InputError as error:
        raise InputError(f"topology['file']: {error}") from error
    if not isinstance(found, Mapping) or "file" in found:
        raise InputError(f"topology['file']: {uri} holds no mapping, allowed: one with root, sites")
    return found


def _in_json(uri: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise InputError(f"{uri}: line {error.lineno}: not JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{uri}: not JSON ({error})") from error


def _in_yaml(uri: str, content: bytes) -> Any:
    try:
        return load(content.decode())
    except KeyTwice as error:
        raise InputError(f"{uri}: line {error.line}: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"{uri}: {line}not YAML ({error.problem or error.context})") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{uri}: not YAML ({' '.join(str(error).split())})") from error
