"""What the output folder refuses before a run, and what it says of an error in the middle of one."""

from pathlib import Path

import pytest
from geokfp.pipelines._command_line.errors import RunFailed, UsageError
from geokfp.pipelines._command_line.output_folder import output_folder


def test_a_folder_that_cannot_be_had_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="Not a directory"), output_folder(tmp_path / "file" / "out"):
        pass


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device", "/data/log.txt"), "No space left on device (/data/log.txt)"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (BrokenPipeError("gone"), "gone"),
    ],
)
def test_an_error_of_the_system_in_the_middle_is_a_failed_run(
    tmp_path: Path, error: OSError, message: str
) -> None:
    with pytest.raises(RunFailed) as caught, output_folder(tmp_path / "out"):
        raise error
    assert str(caught.value) == f"the run ended early: {message}"
    assert caught.value.exit_status == 1
    assert list((tmp_path / "out").iterdir()) == []
    with output_folder(tmp_path / "out") as work:
        assert work.is_dir()
