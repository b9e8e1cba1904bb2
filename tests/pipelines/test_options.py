"""Values that no step would take are refused before the first one starts."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from geokfp.components import partition_graph, train_gnn
from geokfp.pipelines import PIPELINES, compiled_package
from geokfp.pipelines._command_line.errors import UsageError
from geokfp.pipelines._command_line.options import check_options, in_pipeline_words
from geokfp.pipelines._command_line.package import Package, read_package
from kfp import dsl
from kfp.compiler import Compiler
from support import toy_pipelines

AT_OSLO = {"oslo": {"nodes": "n.csv", "edges": "e.csv"}}


def built_in(name: str) -> Package:
    return read_package(compiled_package(name))


def own(pipeline: Any, folder: Path) -> Package:
    Compiler().compile(pipeline, str(folder / "own.yaml"))
    return read_package(folder / "own.yaml")


@pytest.mark.parametrize("name", PIPELINES)
def test_the_config_of_every_step_is_known(name: str) -> None:
    steps = {step.name: step.inputs for step in built_in(name).steps}
    configs = {key: inputs.config for key, inputs in steps.items()}
    assert all(configs.values())
    assert configs["export_model"] == ("export", "ExportConfig")
    others = {key: set(inputs.others) for key, inputs in steps.items() if inputs.others}
    if name == "scheduled_retrain":
        assert others.pop("open_window") == {"scheduled_time"}
        assert others.pop("ingest_graph") == {"nodes", "edges", "features"}
        assert others.pop("train_gnn") == {"warm_start", "run_id"}
        assert others.pop("evaluate_challenger") == {"champion"}
        assert others.pop("promote_model") == {"window"}
    for launching in {"train_gnn", "geo_train_gnn", "geo_train", "partition_at_sites"} & set(others):
        assert others.pop(launching) == {"run_id"}
    assert others == ({"partition_graph": {"fingerprint"}} if "partition_graph" in steps else {})
    check_options(built_in(name), {})


@pytest.mark.parametrize(
    ("pipeline", "values", "message"),
    [
        ("single_site", {"num_parts": 0}, "num_parts is 0; allowed: 1 or more"),
        ("cross_site", {"workers_per_site": 0}, "workers_per_site is 0; allowed: 1 or more"),
        ("warm_start_cross_site", {"warm_start_epochs": 0}, "warm_start_epochs 0: must be at least 1"),
        ("warm_start_cross_site", {"epochs": 0}, "epochs 0: must be at least 1"),
        ("cross_site", {"export_formats": ["tf"]}, "export_formats ['tf']: must be a list of torchscript"),
        ("cross_site", {"topology": {"root": "x"}}, "topology['root'] is 'x', allowed: host:port"),
        ("cross_site", {"compression": "zip"}, "compression 'zip': name is 'zip', allowed: "),
        ("cross_site_table", {"workers_per_site": 0}, "workers_per_site 0: must be at least 1"),
        ("cross_site_table", {"shard_method": "any"}, "shard_method is 'any'; allowed: "),
        ("cross_site_table", {"entry_point": "a:b"}, "entry_point 'a:b' and algorithm 'mlp': both given"),
        ("cross_site_table", {"export_tolerance": 0.0}, "export_tolerance 0.0: must be above 0"),
        ("cross_site_at_sites", {"tables": {}}, "tables is {}, allowed: a mapping of one or more sites"),
        ("cross_site_at_sites", {"tables": AT_OSLO}, "topology['sites']['oslo']['storage'] is '', allowed"),
        (
            "cross_site_at_sites",
            {"tables": AT_OSLO, "topology": {"sites": {"oslo": {"storage": "/kept"}}}, "workers_per_site": 0},
            "workers_per_site is 0; allowed: 1 or more",
        ),
        ("cross_site_at_sites", {"tables": {"oslo": {"nodes": "n.csv"}}}, "tables['oslo']: edges is empty"),
        ("single_site", {"fan_outs": ["ten"]}, "fan_outs ['ten']: must be no number, one, or num_layers"),
        ("single_site", {"train_fraction": 0.9}, "validation_fraction is 0.2; allowed: 0 to 0.1"),
        ("scheduled_retrain", {"champions": ""}, "champions '': must be the path or URI of a folder"),
        ("scheduled_retrain", {"champions": "c", "margin": 2.0}, "margin 2.0: must be at least 0"),
        ("scheduled_retrain", {"champions": "c", "nodes": "%q"}, "nodes '%q': '%q' is no field"),
        ("scheduled_retrain", {"champions": "c", "export_formats": ["tf"]}, "export_formats ['tf']: must"),
    ],
)
def test_a_value_is_refused_by_its_name_in_the_pipeline(
    pipeline: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_options(built_in(pipeline), values)
    assert str(caught.value).startswith(message)


def test_constants_and_the_components_own_defaults_count(tmp_path: Path) -> None:
    @dsl.pipeline(name="own")
    def pipeline(graph_uri: str, layers: int = 2):
        graph = dsl.importer(artifact_uri=graph_uri, artifact_class=dsl.Dataset).output
        parts = partition_graph(graph=graph, num_parts=1).outputs["partitions"]
        train_gnn(partitions=parts, num_layers=layers, fan_outs=[10, 5])

    package = own(pipeline, tmp_path)
    check_options(package, {"graph_uri": "g"})
    with pytest.raises(UsageError, match=r"fan_outs \[10, 5\]: must be .* or layers \(3\)"):
        check_options(package, {"graph_uri": "g", "layers": 3})


def test_what_another_step_gives_is_left_to_the_step(tmp_path: Path) -> None:
    @dsl.component(base_image=toy_pipelines.IMAGE)
    def depth() -> int:
        return 3

    @dsl.pipeline(name="own")
    def pipeline(graph_uri: str, method: str = "metis", site: str = "a", batch_size: int = 0):
        graph = dsl.importer(artifact_uri=graph_uri, artifact_class=dsl.Dataset).output
        parts = partition_graph(graph=graph, partition_method=f"{method}").outputs["partitions"]
        train_gnn(partitions=parts, site=f"site-{site}", num_layers=depth().output, fan_outs=[9, 9, 9])
        with dsl.If(site == "b"):
            train_gnn(partitions=parts, batch_size=batch_size)

    check_options(own(pipeline, tmp_path), {"graph_uri": "g", "method": "any"})


def test_a_package_of_another_version_is_left_to_its_steps(tmp_path: Path) -> None:
    text = compiled_package("cross_site").read_text(encoding="utf-8")
    changes = {
        "components.partition.config": "components.cutting.config",
        "import TrainingConfig": "import LearnConfig",
        "import GeoTrainingConfig": "import GeoConfig",
        "        model_name:": "        given_name:",
    }
    for old, new in changes.items():
        text = text.replace(old, new)
    (tmp_path / "other.yaml").write_text(text, encoding="utf-8")
    package = read_package(tmp_path / "other.yaml")
    check_options(package, {"workers_per_site": 0, "epochs": 0, "export_formats": ["tf"]})
    with pytest.raises(UsageError, match="train_fraction"):
        check_options(package, {"train_fraction": 2.0})


def test_components_of_others_are_not_touched(tmp_path: Path) -> None:
    package = read_package(toy_pipelines.compile_to(tmp_path))
    assert [step.inputs.config for step in package.steps] == [None, None]
    check_options(package, {"size": -1})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("epochs 0: must be at least 1", "warm_start_epochs 0: must be at least 1"),
        ("patience 3: epochs to wait", "patience 3: epochs to wait"),
        ("num_sites 2 x num_parts 3", "num_sites 2 x workers_per_site 3"),
        ("num_parts_x is 3", "num_parts_x is 3"),
    ],
)
def test_only_options_are_renamed(text: str, told: str) -> None:
    renamed = {"epochs": "warm_start_epochs", "num_parts": "workers_per_site"}
    assert in_pipeline_words(text, renamed) == told
    assert in_pipeline_words(text, {}) == text


def test_listing_loads_no_config() -> None:
    code = (
        "import sys\n"
        "import geokfp.pipelines._command_line as command\n"
        "sys.argv = ['geokfp', 'list', 'cross_site']\n"
        "try:\n"
        "    command.main()\n"
        "except SystemExit:\n"
        "    pass\n"
        "loaded = [name for name in sys.modules if name.startswith('geokfp.components')]\n"
        "print(loaded, 'kfp' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] False"


def test_checking_loads_no_engine() -> None:
    code = (
        "import sys\n"
        "from geokfp.pipelines import compiled_package\n"
        "from geokfp.pipelines._command_line.options import check_options\n"
        "from geokfp.pipelines._command_line.package import read_package\n"
        "check_options(read_package(compiled_package('warm_start_cross_site')), {})\n"
        "print(sorted({'kfp', 'torch', 'dgl', 'pandas', 'scipy', 'fsspec'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_cannot_be_checked_without_the_engine_is_told() -> None:
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'torch', 'dgl', 'numpy', 'pandas', 'fsspec', 'msgpack'}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from geokfp.pipelines import compiled_package\n"
        "from geokfp.pipelines._command_line.options import check_options\n"
        "from geokfp.pipelines._command_line.package import read_package\n"
        "package = read_package(compiled_package('cross_site'))\n"
        "print(list(check_options(package, {})))\n"
        "try:\n"
        "    check_options(package, {'workers_per_site': 0})\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['geo_train_gnn']\nworkers_per_site is 0; allowed: 1 or more\n"
