"""What every ONNX file here gets, whoever exported it: properties, and a check of the whole. No framework."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx


def seal_onnx(model: Any, path: Path, *, metadata: Mapping[str, Any]) -> None:
    """Adds the properties, checks the model and writes it.

    Args:
        model: an `onnx.ModelProto`.
        path: the file to write.
        metadata: properties stored in the file, as JSON where they are no strings.
    """
    onnx.helper.set_model_props(
        model,
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()},
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(path))
