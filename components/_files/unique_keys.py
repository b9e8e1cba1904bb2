"""YAML whose mappings hold each key once, as YAML 1.2 (3.2.1.1) has it; PyYAML would take the last."""

from typing import Any

import yaml


class KeyTwice(yaml.YAMLError):
    """A mapping holds a key twice; the message names it.

    Attributes:
        line: where it stands again, from 1.
    """

    def __init__(self, key: str, first: int, line: int) -> None:
        where = f"also on line {first}" if first != line else "on one line"
        super().__init__(f"{key!r} is there twice ({where}); each key once is allowed")
        self.line = line


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)  # before `<<` adds keys
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                name, line = (key.tag, key.value), key.start_mark.line + 1
                if name in lines:
                    raise KeyTwice(key.value, lines[name], line)
                lines[name] = line
        return node


def load(text: str) -> Any:
    """Returns the one document of a YAML text, of plain values.

    Raises:
        KeyTwice: a mapping holds a key twice.
        yaml.YAMLError: it is not YAML, or holds what a safe loader does not make.
    """
    return yaml.load(text, Loader=_Loader)  # noqa: S506  a safe loader
