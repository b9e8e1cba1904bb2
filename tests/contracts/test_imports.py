"""Holds who may import what; `lint-imports` holds the layers, this the places of single libraries."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from geokfp.pipelines import PIPELINES

ROOT = Path(__file__).resolve().parents[2]
ENGINES = {"torch", "dgl", "mxnet"}
KFP = {"kfp"}


def imports(path: Path, *, top_level_only: bool) -> Iterator[str]:
    """Yields the first name of each absolute import of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if not top_level_only else _top_level(tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from _top_level(node.body)
        elif isinstance(node, ast.Try | ast.With):
            yield from _top_level(node.body)
        else:
            yield node


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def test_the_layers_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_components_declarations_and_pipelines_import_kfp() -> None:
    for path in sources("components"):
        if path.name not in ("component.py", "_task_settings.py"):
            assert not KFP & set(imports(path, top_level_only=False)), path


def test_only_one_module_imports_the_kubernetes_client() -> None:
    for path in sources("components") + sources("pipelines"):
        if path != ROOT / "components/_launch/kubernetes.py":
            assert "kubernetes" not in set(imports(path, top_level_only=False)), path


@pytest.mark.parametrize("pattern", ["*/component.py", "*/config.py", "_launch/*.py", "_files/*.py"])
def test_engines_are_never_at_the_top(pattern: str) -> None:
    paths = list((ROOT / "components").glob(pattern))
    assert paths
    for path in paths:
        assert not ENGINES & set(imports(path, top_level_only=True)), path


def test_imports_inside_the_package_are_relative() -> None:
    for path in sources("components"):
        if path.name not in ("component.py", "_task_settings.py"):
            assert "geokfp" not in set(imports(path, top_level_only=False)), path


def test_pipelines_import_and_compile_without_any_engine(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'torch', 'dgl', 'mxnet', 'numpy', 'scipy', 'pandas', 'fsspec',\n"
        "                                  'matplotlib', 'sklearn', 'pymetis'}:\n"
        "            raise ModuleNotFoundError(f'blocked: {name}')\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "import geokfp.components, geokfp.pipelines\n"
        "sys.argv = ['geokfp', 'compile', '--all', '--output', 'out']\n"
        "import geokfp.pipelines._command_line as command\n"
        "command.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").glob("*.yaml"))) == len(PIPELINES)


def test_importing_a_stage_loads_nothing_heavy() -> None:
    stages = [path.parent.name for path in (ROOT / "components").glob("*/component.py")]
    code = "import sys\n" + "".join(f"import geokfp.components.{stage}\n" for stage in stages)
    code += "print(sorted({'kfp', 'torch', 'dgl', 'numpy', 'pandas'} & set(sys.modules)))\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
