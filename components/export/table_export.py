"""Exports a model trained over rows, checked on real rows of the first site: `TableExporter`.

Where all rows stay at their sites it is checked on rows drawn at random, and says so.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._files import InputError
from .._files.user_code import copy_user_code
from .._launch import progress
from ..ingest.graph import Array
from ..shard.shards import Shards, read_shards
from ..table_training.rows import entering
from ..table_training.source import MXNET
from ..table_training.trained_model import CLASSIFICATION, TrainedModel, read_trained_model
from .config import FORMATS, ExportConfig
from .drawn_rows import drawn_batches
from .exported_model import FILES, SYMBOL, USER_CODE
from .exporter import DRAWN, Words
from .real_rows import real_batches
from .row_card import num_outputs, output_name, row_card
from .row_instructions import row_instructions
from .verify import Agreement, Run, compare, run_alone

Outputs = list[npt.NDArray[np.float32]]
_CASES = ("all rows", "half of them", "one row")
_NO_TORCHSCRIPT = "TorchScript is a format of torch, the model is of MXNet"


class TableExporter:
    """See `Exporter`.

    Args:
        config: what to write and how to check it.
        model: a trained model.
        data: shards with rows to check on.

    Raises:
        InputError: an input that is wrong, a format that the model's framework does not have, or model and
            shards that do not belong together.
    """

    def __init__(self, config: ExportConfig, model: Path, data: Path) -> None:
        self._config = config
        self._trained = read_trained_model(model)
        self._formats = config.formats_of(self._trained.framework)
        self._shards = read_shards(data, elsewhere=True)
        _check_fit(self._trained, self._shards)
        if self._shards.stay_at_sites:
            progress("compares on rows drawn at random: the real ones stay at their sites")
        self._batches = self._made_batches()

    def _made_batches(self) -> list[Array]:
        shards, config = self._shards, self._config
        if shards.stay_at_sites:
            return drawn_batches(shards.feature_type, num_rows=config.verify_nodes, seed=config.seed)
        return real_batches(shards.sites[0], num_rows=config.verify_nodes, seed=config.seed)

    @property
    def _whose(self) -> str:
        """What rows are compared, in words."""
        return "drawn rows" if self._shards.stay_at_sites else "real rows"

    @property
    def formats(self) -> Sequence[str]:
        """See `Exporter`."""
        return self._formats

    def write(self, folder: Path, work: Path) -> dict[str, str]:
        """See `Exporter`."""
        trained = self._trained
        for path in trained.weights:
            shutil.copyfile(path, folder / path.name)
        copy_user_code(trained.source.user_code, folder / USER_CODE)
        not_exported = {}
        if trained.framework == MXNET and tuple(self._config.formats) == FORMATS:
            not_exported["torchscript"] = _NO_TORCHSCRIPT
        for name in self._formats:
            reason = self._write_format(name, folder / FILES[name], work)
            progress(f"no {FILES[name]}: {reason}" if reason else f"wrote {FILES[name]}")
            not_exported |= {name: reason} if reason else {}
        return not_exported

    def _write_format(self, name: str, path: Path, work: Path) -> str:
        trained = self._trained
        metadata = {"label_names": list(trained.label_names), "fingerprint": trained.fingerprint}
        if trained.framework == MXNET:
            from .gluon_onnx import Order, write_gluon_onnx

            symbol, parameters = trained.weights
            order = Order(
                symbol=str(symbol),
                parameters=str(parameters),
                feature_shape=list(trained.source.feature_shape),
                feature_dtype=trained.feature_dtype,
                output=output_name(trained),
                num_outputs=num_outputs(trained),
                metadata=metadata,
                file=str(path),
            )
            return write_gluon_onnx(order, work=work, timeout_s=float(self._config.timeout_s))
        from .torch_rows import write_torch_rows

        return write_torch_rows(name, trained, self._batches[1], path, metadata=metadata)

    def verify(self, folder: Path, formats: Sequence[str], work: Path) -> dict[str, Agreement]:
        """See `Exporter`."""
        config, trained = self._config, self._trained
        raw = [{"x": batch} for batch in self._batches]
        runs = {name: Run(kind=name, file=folder / FILES[name], batches=raw) for name in formats}
        if trained.framework == MXNET:
            scaled = [{"data": entering(batch)} for batch in self._batches]
            runs["trained"] = Run(kind="symbol", file=trained.weights[0], batches=scaled)
            runs["symbol"] = Run(kind="symbol", file=folder / SYMBOL, batches=scaled)
        found = run_alone(runs, work=work, timeout_s=float(config.timeout_s))
        if trained.framework == MXNET:
            wanted = found.pop("trained")
            found["parameters"] = found["symbol"]
        else:
            from .torch_rows import outputs_of

            wanted = outputs_of(trained, trained.weights[0], self._batches)
            found["safetensors"] = outputs_of(trained, folder / FILES["safetensors"], self._batches)
        return {name: self._compared(name, found[name], wanted) for name in FILES if name in found}

    def _compared(self, name: str, found: Outputs, wanted: Outputs) -> Agreement:
        shape = (-1, num_outputs(self._trained))
        if name in ("symbol", "parameters"):
            # As training wrote them: one number a row may come without its column.
            found = [outputs.reshape(shape) for outputs in found]
        return compare(
            FILES[name],
            found,
            [outputs.reshape(shape) for outputs in wanted],
            tolerance=self._config.tolerance,
            units=self._whose,
            labelled=self._trained.task == CLASSIFICATION,
        )

    def card(
        self, files: Mapping[str, tuple[Path, Agreement]], not_exported: Mapping[str, str]
    ) -> dict[str, Any]:
        """See `Exporter`."""
        shards = self._shards
        batches = [len(batch) for batch in self._batches]
        site = "" if shards.stay_at_sites else shards.sites[0].name
        checked = {"rows": self._whose, "site": site, "fingerprint": shards.fingerprint, "batches": batches}
        return row_card(self._trained, self._config, files, not_exported, checked)

    def words(self, card: Mapping[str, Any]) -> Words:
        """See `Exporter`."""
        warnings = [f"No {name}: {reason}." for name, reason in card["not_exported"].items()]
        if self._trained.fingerprint != self._shards.fingerprint:
            warnings.append("The rows compared are of other shards than those that the model was trained on.")
        batches, site = card["verification"]["batches"], card["verification"]["site"]
        if not site:
            warnings.append(DRAWN.format(units="rows"))
        return Words(
            readme=row_instructions(card),
            units="rows",
            how="Each file was loaded again, ONNX in a process that can import neither torch nor MXNet. Its "
            f"outputs on {self._whose}{f' of {site}' if site else ''} are compared with those of the trained "
            "model.",
            head=("Batch", "Rows compared"),
            cases=list(zip(_CASES, batches, strict=True)),
            use="Give rows as they lie; batches may have any size.",
            warnings=warnings,
        )


def _check_fit(trained: TrainedModel, shards: Shards) -> None:
    takes = f"{trained.feature_dtype} {list(trained.source.feature_shape)}"
    have = f"{shards.feature_type.dtype} {list(shards.feature_type.shape)}"
    if takes != have:
        raise InputError(f"model: takes rows of {takes}, the shards have {have}; they must be equal")
    if trained.task != shards.task:
        raise InputError(
            f"model: is for {trained.task}, the shards are for {shards.task}; they must be equal"
        )
    if trained.label_names != shards.label_names:
        raise InputError("model: its classes are not those of the shards; they must be equal")
