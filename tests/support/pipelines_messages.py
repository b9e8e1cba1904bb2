"""Holds what is sent to a Kubeflow Pipelines API against KFP's own types, as strictly as its server does."""

import re
from datetime import datetime
from typing import Any

import kfp_server_api.models as models
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

_INT64 = {"max_concurrency", "interval_second"}  # JSON may have them as numbers
_SIX_FIELDS = re.compile(r"(?:[0-9A-Za-z*?,/-]+ ){5}[0-6A-Za-z*?,/-]+")
_PLAIN: dict[str, Any] = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}


class Wrong(Exception):
    """A message that the API refuses."""


def check_message(value: Any, kind: str, where: str) -> None:
    """Checks JSON against a type of KFP's, named as its client's models name types."""
    if kind.startswith("list["):
        if not isinstance(value, list):
            raise Wrong(f"{where}: {value!r} is no list")
        for index, item in enumerate(value):
            check_message(item, kind[5:-1], f"{where}[{index}]")
    elif kind.startswith("dict("):
        if not isinstance(value, dict):
            raise Wrong(f"{where}: {value!r} is no object")
        for key, item in value.items():
            check_message(item, kind[10:-1], f"{where}.{key}")
    elif kind == "datetime":
        datetime.fromisoformat(value)
    elif kind in _PLAIN:
        number = where.rsplit(".", 1)[-1] in _INT64 and isinstance(value, int)
        if not number and not isinstance(value, _PLAIN[kind]):
            raise Wrong(f"{where}: {value!r} is no {kind}")
    else:
        _check_model(value, getattr(models, kind), where)


def _check_model(value: Any, model: Any, where: str) -> None:
    if not model.openapi_types:
        if value not in model.allowable_values:
            raise Wrong(f"{where}: {value!r} is none of {model.allowable_values}")
        return
    if not isinstance(value, dict):
        raise Wrong(f"{where}: {value!r} is no object")
    attributes = {key: name for name, key in model.attribute_map.items()}
    for key, item in value.items():
        if key not in attributes:
            raise Wrong(f"{where}: unknown field {key!r}")
        check_message(item, model.openapi_types[attributes[key]], f"{where}.{key}")


def check_work(body: dict[str, Any], where: str) -> None:
    """Checks what runs and recurring runs have alike: a name, a pipeline, values of its parameters."""
    if not body.get("display_name"):
        raise Wrong(f"{where}: no display_name")
    if ("pipeline_spec" in body) == ("pipeline_version_reference" in body):
        raise Wrong(f"{where}: one of pipeline_spec and pipeline_version_reference is needed")
    whole = body["pipeline_spec"]
    spec = whole.get("pipeline_spec", whole)
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(whole.get("platform_spec", {}), pipeline_spec_pb2.PlatformSpec())
    declared = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    given = body.get("runtime_config", {}).get("parameters", {})
    types = {"NUMBER_INTEGER": int, "NUMBER_DOUBLE": (int, float), "STRING": str, "BOOLEAN": bool}
    types |= {"LIST": list, "STRUCT": dict}
    for name, value in given.items():
        if name not in declared or not isinstance(value, types[declared[name]["parameterType"]]):
            raise Wrong(f"{where}: parameter {name}={value!r}")
    for name, about in declared.items():
        if name not in given and "defaultValue" not in about and not about.get("isOptional"):
            raise Wrong(f"{where}: no parameter {name}")


def check_recurring(body: dict[str, Any], where: str) -> None:
    """Checks when a recurring run starts runs."""
    trigger = body.get("trigger", {})
    if len(trigger) != 1:
        raise Wrong(f"{where}: one trigger is needed")
    if "cron_schedule" in trigger and not _SIX_FIELDS.fullmatch(trigger["cron_schedule"].get("cron", "")):
        raise Wrong(f"{where}: cron {trigger['cron_schedule']}")
    if "periodic_schedule" in trigger and int(trigger["periodic_schedule"].get("interval_second", 0)) < 1:
        raise Wrong(f"{where}: interval {trigger['periodic_schedule']}")
    if not 1 <= int(body.get("max_concurrency", 0)) <= 10:
        raise Wrong(f"{where}: max_concurrency {body.get('max_concurrency')}")
    if body.get("mode") not in ("ENABLE", "DISABLE"):
        raise Wrong(f"{where}: mode {body.get('mode')}")


def check_filter(text: str) -> str:
    """Returns the display name that a filter asks for."""
    (predicate,) = __import__("json").loads(text)["predicates"]
    if set(predicate) != {"operation", "key", "stringValue"} or predicate["operation"] not in (1, "EQUALS"):
        raise Wrong(f"filter {text}")
    if predicate["key"] != "display_name":
        raise Wrong(f"filter {text}")
    return str(predicate["stringValue"])
