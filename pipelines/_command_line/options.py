"""Holds the values of a run against the options of its steps, before any step has started.

A component of this package builds a config of its options first of all, which checks what can be checked
without the data. Here the same configs are built of what the pipeline will hand over, so that a wrong value
is wrong usage and not a run that fails half-way. What comes from other steps, steps inside loops and under
conditions on parameters, and components of others are left to the steps.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from .errors import UsageError
from .package import Package
from .step_inputs import StepInputs


def check_options(package: Package, arguments: Mapping[str, Any]) -> Mapping[str, str]:
    """Checks the values that the steps will get.

    Args:
        package: the pipeline.
        arguments: values by parameter, of the right types; None for one that is not known yet; the others
            have their defaults.

    Returns:
        The library that is not installed here, by the step whose values cannot be checked without it.

    Raises:
        UsageError: a value that a step does not allow; names the pipeline's parameter, value and what is.
    """
    values = {name: parameter.default for name, parameter in package.parameters.items()} | dict(arguments)
    unchecked = {}
    for step in package.steps:
        if step.inputs.config is not None and not step.depends_on_parameters:
            try:
                _check(step.inputs, *step.inputs.config, values)
            except ModuleNotFoundError as error:  # a config of ours that is there, and what it imports is not
                unchecked[step.name] = str(error.name)
    return unchecked


def in_pipeline_words(text: str, renamed: Mapping[str, str]) -> str:
    """Returns a message with the pipeline's parameters in place of a component's options.

    A name without an underscore may be a word of the sentence: it is an option only where it begins the
    message.

    Args:
        text: the message, as the component's code says it.
        renamed: parameter by option.
    """
    if not renamed:
        return text
    patterns = [rf"\b{option}\b" if "_" in option else rf"\A{option}\b" for option in renamed]
    return re.sub("|".join(patterns), lambda found: renamed[found[0]], text)


def _check(inputs: StepInputs, stage: str, name: str, values: Mapping[str, Any]) -> None:
    from geokfp.components._files import InputError

    config = _config(stage, name)
    options = dict(inputs.fixed)
    others = set(inputs.others)
    for option, parameter in inputs.parameters.items():
        if values.get(parameter) is None:
            others.add(option)
        else:
            options[option] = values[parameter]
    if config is None or not set(options) <= {field.name for field in fields(config)}:
        return  # compiled by another version; its step will say so
    try:
        config(**options)
    except InputError as error:
        text = str(error)
        if not any(re.search(rf"\b{option}\b", text) for option in others):
            raise UsageError(in_pipeline_words(text, inputs.renamed)) from error


def _config(stage: str, name: str) -> Any:
    try:
        return getattr(import_module(f"geokfp.components.{stage}.config"), name, None)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("geokfp."):
            raise
        return None
