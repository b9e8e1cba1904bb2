"""Exports a trained GNN, checked on real nodes of the first site: `GnnExporter`.

Where all rows stay at their sites it is checked on nodes drawn at random, and says so.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .._files import InputError
from .._files.user_code import copy_user_code
from .._launch import progress
from ..partition.partitions import Partitions, read_partitions
from ..training.trained_gnn import TrainedGnn, load_weights, read_trained_gnn
from . import onnx, torchscript
from .config import ExportConfig
from .drawn_nodes import drawn_cases
from .exported_model import FILES, USER_CODE, WEIGHTS
from .exporter import DRAWN, Words
from .instructions import instructions
from .model_card import model_card
from .plain_form import plain_form
from .real_nodes import Case, block_logits, real_cases
from .verify import Agreement, Run, compare, run_alone

SIGNATURE = onnx.Signature(
    inputs=("x", "edge_index"),
    output="logits",
    free={"x": {0: "num_nodes"}, "edge_index": {1: "num_edges"}, "logits": {0: "num_nodes"}},
)
_CASES = ("seeds and their neighbourhood", "half of those nodes", "one node, no edge")


class GnnExporter:
    """See `Exporter`.

    Args:
        config: what to write and how to check it.
        model: a trained GNN.
        data: partitions with nodes to check on.

    Raises:
        InputError: an input that is wrong, or model and partitions that do not belong together.
    """

    def __init__(self, config: ExportConfig, model: Path, data: Path) -> None:
        self._config = config
        self._trained = read_trained_gnn(model)
        self._parts = read_partitions(data, elsewhere=True)
        _check_fit(self._trained, self._parts)
        self._model = self._trained.build()
        self._cases = self._made_cases()
        if self._parts.stay_at_sites:
            progress("compares on nodes drawn at random: the real ones stay at their sites")

    def _made_cases(self) -> list[Case]:
        parts, config = self._parts, self._config
        width, num_seeds = parts.num_features, config.verify_nodes
        if parts.stay_at_sites:
            return drawn_cases(num_features=width, num_seeds=num_seeds, seed=config.seed)
        num_layers = self._trained.source.num_layers
        return real_cases(
            parts.sites[0], num_features=width, num_seeds=num_seeds, num_layers=num_layers, seed=config.seed
        )

    @property
    def _whose(self) -> str:
        """What nodes are compared, in words."""
        return "drawn nodes" if self._parts.stay_at_sites else "real nodes"

    @property
    def formats(self) -> Sequence[str]:
        """See `Exporter`."""
        return self._config.formats

    def write(self, folder: Path, work: Path) -> dict[str, str]:  # noqa: ARG002
        """See `Exporter`."""
        source = self._trained.source
        shutil.copyfile(self._trained.weights, folder / WEIGHTS)
        copy_user_code(source.user_code, folder / USER_CODE)
        example = self._cases[1]
        is_users = bool(source.entry_point)
        form = plain_form(self._model, is_users=is_users, num_layers=source.num_layers, case=example)
        if form.module is None:
            progress(f"only weights and card: {form.reason}")
            return dict.fromkeys(self.formats, form.reason)
        for name in self.formats:
            self._write_format(name, form.module, form.scripts, folder / FILES[name])
            progress(f"wrote {FILES[name]}")
        return {}

    def _write_format(self, name: str, module: torch.nn.Module, scripts: bool, path: Path) -> None:
        example = (self._cases[1].x, self._cases[1].edge_index)
        if name == "torchscript":
            torchscript.write_torchscript(module, example, path, scripts=scripts)
        else:
            trained = self._trained
            metadata = {"label_names": list(trained.label_names), "fingerprint": trained.fingerprint}
            onnx.write_onnx(module, example, path, signature=SIGNATURE, metadata=metadata)

    def verify(self, folder: Path, formats: Sequence[str], work: Path) -> dict[str, Agreement]:
        """See `Exporter`."""
        source, config, cases = self._trained.source, self._config, self._cases
        wanted = [block_logits(self._model, case, source.num_layers).numpy() for case in cases]
        again = source.build()
        load_weights(again, folder / WEIGHTS)
        again.eval()
        found = {"safetensors": [block_logits(again, case, source.num_layers).numpy() for case in cases]}
        batches = [{"x": case.x.numpy(), "edge_index": case.edge_index.numpy()} for case in cases]
        runs = {name: Run(kind=name, file=folder / FILES[name], batches=batches) for name in formats}
        for name, outputs in run_alone(runs, work=work, timeout_s=float(config.timeout_s)).items():
            found[name] = [logits[case.seeds.numpy()] for logits, case in zip(outputs, cases, strict=True)]
        return {
            name: compare(FILES[name], logits, wanted, tolerance=config.tolerance, units=self._whose)
            for name, logits in found.items()
        }

    def card(
        self, files: Mapping[str, tuple[Path, Agreement]], not_exported: Mapping[str, str]
    ) -> dict[str, Any]:
        """See `Exporter`."""
        graphs = [
            {
                "num_nodes": len(case.x),
                "num_edges": case.edge_index.shape[1],
                "num_compared": len(case.seeds),
            }
            for case in self._cases
        ]
        parts = self._parts
        site = "" if parts.stay_at_sites else parts.sites[0].name
        checked = {"nodes": self._whose, "site": site, "fingerprint": parts.fingerprint, "graphs": graphs}
        return model_card(self._trained, self._config, files, not_exported, checked)

    def words(self, card: Mapping[str, Any]) -> Words:
        """See `Exporter`."""
        warnings = [f"No {name}: {reason}." for name, reason in card["not_exported"].items()]
        if self._trained.fingerprint != self._parts.fingerprint:
            warnings.append(
                "The nodes compared are of another graph than the one that the model was trained on."
            )
        graphs, site = card["verification"]["graphs"], card["verification"]["site"]
        if not site:
            warnings.append(DRAWN.format(units="nodes"))
        return Words(
            readme=instructions(card),
            units="nodes",
            how="Each file was loaded again, TorchScript and ONNX in processes that cannot import DGL. Its "
            f"logits on {self._whose}{f' of {site}' if site else ''} are compared with those of the trained "
            "model over DGL blocks.",
            head=("Graph", "Nodes", "Edges", "Nodes compared"),
            cases=[[name, *graph.values()] for name, graph in zip(_CASES, graphs, strict=True)],
            use=f"Give the whole graph, or {card['neighbourhood_hops']} hops of in-neighbours.",
            warnings=warnings,
        )


def _check_fit(trained: TrainedGnn, parts: Partitions) -> None:
    if trained.source.num_features != parts.num_features:
        raise InputError(
            f"model: takes {trained.source.num_features} features, the partitions have {parts.num_features}; "
            "they must be equal"
        )
    if trained.label_names != parts.label_names:
        raise InputError("model: its classes are not those of the partitions; they must be equal")
