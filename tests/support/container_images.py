"""The images, built for real: by buildah, upon a Debian made here, from wheels fetched once.

What takes long lies in a cache outside the checkout, named by what it was made of. Everything else is
done by the commands that `geokfp images` prints, as anybody would run them. It needs root, and
`apt-get install buildah mmdebstrap runc`.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GEOKFP = (sys.executable, "-m", "geokfp.pipelines._command_line")
TOOLS = ("buildah", "mmdebstrap", "runc")
DEBIAN = (
    "mmdebstrap",
    "--variant=apt",
    "--include=passwd,python3.11,python3.11-venv,libgomp1,libquadmath0",
    "bookworm",
)
BASE_IMAGE = "localhost/debian-python:3.11"
RUN = "/run/geokfp-images"
"""What is to be gone when the machine starts anew."""
MOST_KEPT = 200
"""Images with layers of former builds that the cache may hold, some 15 GB, before it is emptied."""


class CannotBuild(Exception):
    """What building needs is not here, or a command of it failed; names it."""


def dockerfile(image: str) -> str:
    """Returns the text of an image's Dockerfile, its continued lines joined."""
    return (ROOT / "images" / image / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def packages(image: str) -> list[str]:
    """Returns the packages that an image's Dockerfile asks for by name."""
    lines = re.findall(r" pip install((?: +[a-z][\w-]*)+)$", dockerfile(image), re.M)
    return [name for line in lines for name in line.split()]


@dataclass(frozen=True)
class BuiltImages:
    """Where images are built, and kept for the next time."""

    cache: Path
    """Folder outside the checkout."""

    @cached_property
    def environment(self) -> dict[str, str]:
        """What makes buildah keep its images in the cache, and run without privileges of a daemon."""
        settings = self.cache / "storage.conf"
        settings.write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{self.cache / "storage"}"\nrunroot = "{RUN}"\n'
        )
        return os.environ | {"CONTAINERS_STORAGE_CONF": str(settings), "BUILDAH_ISOLATION": "chroot"}

    def build(self, names: Sequence[str]) -> None:
        """Builds all images, by the printed commands.

        Args:
            names: the images, to hold the cache of wheels by.

        Raises:
            CannotBuild: with the end of what the failed command said.
        """
        self._check()
        with (self.cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another run of the tests may build right now
            self._build(names)

    def _build(self, names: Sequence[str]) -> None:
        if len(self.command(["buildah", "images", "--all", "--quiet"]).split()) > MOST_KEPT:
            self.command(["buildah", "rmi", "--all", "--force"])
        self._base()
        options = ["--engine=buildah", f"--build-arg=BASE_IMAGE={BASE_IMAGE}", "--build-arg=PIP_NO_INDEX=1"]
        printed = self.command([*GEOKFP, "images", *options, f"--wheels={self._wheels(names)}"])
        for line in printed.splitlines():
            self.command(["sh", "-c", line])

    def config(self, reference: str) -> Mapping[str, Any]:
        """Returns an image's configuration: User, Env, WorkingDir, Labels."""
        described = json.loads(self.command(["buildah", "inspect", "--type", "image", reference]))
        return dict(described["OCIv1"]["config"])

    def command(self, command: Sequence[str], timeout_s: float = 1500) -> str:
        """Returns what a command prints.

        Raises:
            CannotBuild: it failed, or took too long.
        """
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=timeout_s
            )
        except subprocess.TimeoutExpired as error:
            raise CannotBuild(f"{' '.join(command)}: not done in {timeout_s} s") from error
        if done.returncode:
            raise CannotBuild(f"{' '.join(command)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done.stdout

    def _check(self) -> None:
        missing = [name for name in TOOLS if shutil.which(name) is None]
        if missing or os.getuid():
            raise CannotBuild(
                f"images are built by root with {', '.join(TOOLS)}; missing: {missing or 'root'}"
            )
        self.cache.mkdir(parents=True, exist_ok=True)

    def _base(self) -> None:
        """Makes a Debian with Python, as small as the slim images of registries, unless the cache has it."""
        archive = self.cache / f"debian-{_digest(*DEBIAN)}.tar"
        if not archive.exists():
            made = archive.with_suffix(".new.tar")
            self.command([*DEBIAN, str(made)])
            made.rename(archive)
        described = self.cache / "debian.Dockerfile"
        described.write_text(f"FROM scratch\nADD {archive.name} /\n")
        build = ["buildah", "build", "--layers", f"--file={described}", f"--ignorefile={os.devnull}"]
        self.command([*build, f"--tag={BASE_IMAGE}", str(self._only(archive))])

    def _only(self, archive: Path) -> Path:
        """Returns a folder that holds an archive alone: buildah's context, without its own storage."""
        folder = self.cache / "debian"
        folder.mkdir(exist_ok=True)
        (folder / archive.name).unlink(missing_ok=True)
        os.link(archive, folder / archive.name)
        return folder

    def _wheels(self, names: Sequence[str]) -> Path:
        """Fetches by this machine's pip, with its index and certificates, what builds find at hand then."""
        wanted = sorted({name for image in names for name in packages(image)} | {"setuptools", "wheel"})
        constraints = ROOT / "images/constraints.txt"
        folder = self.cache / f"wheels-{_digest(*wanted, constraints.read_text())}"
        if not folder.exists():
            made = self.cache / f"{folder.name}.new"
            shutil.rmtree(made, ignore_errors=True)
            download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:"]
            download += ["--constraint", str(constraints), "--dest", str(made)]
            self.command([*download, *wanted])
            self.command([*download, "--no-deps", "kfp"])
            made.rename(folder)
        return folder


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
