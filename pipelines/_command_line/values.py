"""Parameter values: from the command line and a YAML file to the pipeline's own types.

Knows nothing of what a parameter means.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from .errors import UsageError
from .package import Package, Parameter

_ALLOWED = {
    "int": "a whole number such as 10",
    "float": "a number such as 0.01",
    "str": "text",
    "bool": "true or false",
    "list": "a list such as [10, 5]",
    "dict": "a mapping of names such as {heads: 4}",
}
_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def collect(package: Package, assignments: Iterable[str], file: Path | None) -> dict[str, Any]:
    """Returns the arguments of a run, each in its parameter's type.

    Args:
        package: the pipeline.
        assignments: `NAME=VALUE` as typed; they win over the file.
        file: a YAML mapping of names to values.

    Raises:
        UsageError: an unknown name, a name or key given twice, a value of another type, or a parameter that
            needs a value has none.
    """
    values: dict[str, Any] = {}
    if file is not None:
        for name, value in read_mapping(file, "--params-file").items():
            parameter = _parameter(package, str(name), f"{file}: ")
            values[parameter.name] = _check(parameter, value, f"{file}: ")
    typed: dict[str, str] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"--param {assignment}: NAME=VALUE is needed")
        parameter = _parameter(package, name, "--param ")
        if name in typed:
            raise UsageError(f"--param {assignment}: given before, as {name}={typed[name]}; allowed: once")
        typed[name] = text
        values[parameter.name] = _parse(parameter, text)
    missing = [p.name for p in package.parameters.values() if p.required and p.name not in values]
    if missing:
        raise UsageError(f"{package.path.name}: no value for {', '.join(missing)}; give --param NAME=VALUE")
    return values


def read_mapping(file: Path, option: str) -> Mapping[Any, Any]:
    """Returns the mapping that a YAML file holds.

    Args:
        file: the file.
        option: what named it, such as `--params-file`.

    Raises:
        UsageError: it cannot be read, or holds something else, or a key twice.
    """
    from geokfp.components._files.unique_keys import KeyTwice, load  # late: listing loads no component

    try:
        document = load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from error
    except KeyTwice as error:
        raise UsageError(f"{option} {file}:{error.line}: {error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{option} {file}: not YAML: {' '.join(str(error).split())}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise UsageError(f"{option} {file}: holds a {type(document).__name__}, a mapping is needed")
    return document


def _parameter(package: Package, name: str, where: str) -> Parameter:
    if name in package.parameters:
        return package.parameters[name]
    nearest = get_close_matches(name, package.parameters, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"it has {', '.join(package.parameters) or 'none'}"
    raise UsageError(f"{where}{name}: {package.name} has no such parameter; {hint}")


def _wrong(parameter: Parameter, shown: str, where: str) -> UsageError:
    return UsageError(f"{where}{parameter.name}={shown}: {_ALLOWED[parameter.type]} is needed")


def _parse(parameter: Parameter, text: str) -> Any:
    """Reads what was typed; text stays as it is, lists and mappings are YAML (and so JSON)."""
    from geokfp.components._files.unique_keys import KeyTwice, load  # late: listing loads no component

    try:
        match parameter.type:
            case "str":
                return text
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "bool":
                return _BOOLEANS[text.strip().lower()]
            case _:
                return _check(parameter, load(text), "--param ")
    except KeyTwice as error:
        raise UsageError(f"--param {parameter.name}={text}: {error}") from error
    except (ValueError, KeyError, yaml.YAMLError) as error:
        raise _wrong(parameter, text, "--param ") from error


def _is_plain(value: Any) -> bool:
    """Tells whether a step can be handed the value: YAML knows dates and sets, a pipeline does not."""
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, str | int | float)


def _check(parameter: Parameter, value: Any, where: str) -> Any:
    """Holds a YAML value against the parameter's type; a whole number passes as a float."""
    types: dict[str, Any] = {
        "int": int,
        "float": (int, float),
        "str": str,
        "bool": bool,
        "list": list,
        "dict": dict,
    }
    if parameter.type == "float" and isinstance(value, str) and _EXPONENT.fullmatch(value):
        value = float(value)  # PyYAML follows YAML 1.1, where 1e-3 is text
    is_flag = isinstance(value, bool) and parameter.type != "bool"  # bool is an int to isinstance
    if is_flag or not isinstance(value, types[parameter.type]) or not _is_plain(value):
        raise _wrong(parameter, repr(value), where)
    return float(value) if parameter.type == "float" else value
