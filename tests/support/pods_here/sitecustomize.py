"""Lets all processes that have this folder in PYTHONPATH run a step's pods here, as processes.

For steps that kfp starts, which a test cannot hand a runner to. Python imports it as it begins; what is
changed is changed when `launch_step` is imported, so that other processes pay nothing.
"""

import sys
from dataclasses import replace
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

CHANGED = "geokfp.components._launch.launch_step"


class _Changing(Loader):
    def __init__(self, own: Loader) -> None:
        self._own = own

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        surroundings_of = module.surroundings_of

        def with_runner(*given: Any) -> Any:
            from geokfp.components._launch.as_processes import run_as_processes

            return replace(surroundings_of(*given), run=run_as_processes, run_id="of-the-steps-pod")

        module.surroundings_of = with_runner


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != CHANGED:
            return None
        found = PathFinder.find_spec(name, path, target)
        assert found is not None
        assert found.loader is not None
        return spec_from_loader(name, _Changing(found.loader), origin=found.origin)


sys.meta_path.insert(0, _Finder())
