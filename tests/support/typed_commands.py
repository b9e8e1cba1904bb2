"""The `geokfp` command as it is typed, in this process."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from geokfp.pipelines import _command_line


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


Typed = Callable[..., Ended]


def typed_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Returns what runs `geokfp` with arguments."""

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["geokfp", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            _command_line.main()
        printed = capsys.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    return run
