"""`geokfp images`: commands in order, that a shell runs as they are."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from geokfp.components._images import PARENTS, image

COMMAND = [sys.executable, "-m", "geokfp.pipelines._command_line", "images"]


def geokfp(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_each_image_is_built_after_what_it_is_built_upon() -> None:
    done = geokfp()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"docker build --file images/{name}/Dockerfile --tag {image(name)} ." for name in PARENTS
    ]


def test_a_registry_is_in_all_names_and_is_pushed_to() -> None:
    done = geokfp("--prefix", "registry.example.com/team/", "--push", "--engine", "buildah")
    assert done.returncode == 0, done.stderr
    base, pushed, training, *others = done.stdout.splitlines()
    assert base.startswith("buildah build --layers ")
    assert pushed == f"buildah push registry.example.com/team/{image('base')}"
    assert f"--build-arg PARENT_IMAGE=registry.example.com/team/{image('base')} " in training
    assert len(others) == 5


def test_build_arguments_go_to_the_images_that_have_them(tmp_path: Path) -> None:
    wheels = tmp_path / "my wheels"
    wheels.mkdir()
    chosen = (
        "BASE_IMAGE=debian:12",
        "TORCH_INDEX_URL=https://download.pytorch.org/whl/cu130",
        "PIP_NO_INDEX=",
    )
    done = geokfp(*(f"--build-arg={argument}" for argument in chosen), "--wheels", str(wheels))
    assert done.returncode == 0, done.stderr
    lines = [shlex.split(line) for line in done.stdout.splitlines()]
    given = {line[3]: [part for part in line if part in chosen] for line in lines}
    assert given == {
        "images/base/Dockerfile": [chosen[0], chosen[2]],
        "images/training/Dockerfile": [chosen[1], chosen[2]],
        "images/geomx/Dockerfile": [chosen[1], chosen[2]],
        "images/export/Dockerfile": [chosen[2]],
    }
    assert all(f"wheels={wheels}" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--prefix", "https//:x y"],
            "--image-prefix https//:x y: a registry and folder such as localhost:5000/team",
        ),
        (["--push"], "--push: --image-prefix is needed, the registry to push to"),
        (["--build-arg", "TORCH=1"], "--build-arg TORCH=1: NAME=VALUE is needed, NAME one of BASE_IMAGE, "),
        (
            ["--build-arg", "BASE_IMAGE"],
            "--build-arg BASE_IMAGE: NAME=VALUE is needed, NAME one of BASE_IMAGE, ",
        ),
        (["--wheels", "/no/such"], "--wheels /no/such: a folder of wheels is needed"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(arguments: list[str], said: str) -> None:
    done = geokfp(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"geokfp: {said}")
    assert done.stderr.count("\n") == 1
