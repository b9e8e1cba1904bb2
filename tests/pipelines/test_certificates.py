"""`geokfp certificates`: what it writes can be used as it is, is its owner's only, and replaces nothing."""

import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from geokfp.components.geo_training.transport.certificates import Certificates

COMMAND = [sys.executable, "-m", "geokfp.pipelines._command_line", "certificates"]


def geokfp(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def every_file(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_each_node_gets_a_folder_that_its_peers_accept(tmp_path: Path) -> None:
    done = geokfp(tmp_path, "--site", "oslo", "--site", "são paulo", "--output", "made", "--days", "3")
    assert done.returncode == 0, done.stderr
    assert "geokfp://s%C3%A3o%20paulo" in done.stdout
    made = tmp_path / "made"
    for node, folder in (("root", "root"), ("oslo", "oslo"), ("são paulo", "s%C3%A3o%20paulo")):
        Certificates(made, node).check()
        Certificates(made / folder, node).check()
    names = {f"{folder}/{name}" for folder in ("root", "oslo", "s%C3%A3o%20paulo") for name in NODE_FILES}
    assert set(every_file(made)) == {"ca.crt", "ca.key", *names}
    for path in made.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    certificate = x509.load_pem_x509_certificate((made / "oslo" / "tls.crt").read_bytes())
    assert certificate.not_valid_after_utc - datetime.now(UTC) < timedelta(days=3)
    assert len({(made / folder / "tls.key").read_bytes() for folder in ("root", "oslo")}) == 2


NODE_FILES = ("tls.crt", "tls.key", "ca.crt")


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path) -> None:
    assert geokfp(tmp_path, "--site", "oslo", "--output", "made").returncode == 0
    before = every_file(tmp_path)
    again = geokfp(tmp_path, "--site", "oslo", "--output", "made")
    assert again.returncode == 2
    assert again.stderr == "geokfp: --output made: Directory not empty; a new folder is needed\n"
    (tmp_path / "file").write_text("mine")
    assert geokfp(tmp_path, "--site", "oslo", "--output", "file").returncode == 2
    assert every_file(tmp_path) == {**before, "file": b"mine"}


@pytest.mark.parametrize("days", ["1000000", "0", "-3"])
def test_days_that_no_certificate_can_last_are_refused_in_one_line(tmp_path: Path, days: str) -> None:
    done = geokfp(tmp_path, "--site", "oslo", "--output", "made", "--days", days)
    assert done.returncode == 2
    assert done.stderr == f"geokfp: --days {days}: 1 to 36500 are allowed\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sites", [["root"], ["a/b"], ["oslo", "oslo"], ["ca.key"], [""], []])
def test_names_that_no_site_can_have_are_refused(tmp_path: Path, sites: list[str]) -> None:
    options = [part for site in sites for part in ("--site", site)]
    done = geokfp(tmp_path, *options, "--output", "made")
    assert done.returncode == 2
    assert "--site" in done.stderr
    assert not list(tmp_path.iterdir())
