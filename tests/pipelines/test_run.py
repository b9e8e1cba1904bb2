"""`geokfp run` on pipelines of seconds, as a process of its own: results, exit status, what it leaves."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml
from geokfp.pipelines import compiled_package
from support import toy_pipelines

COMMAND = [sys.executable, "-m", "geokfp.pipelines._command_line"]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_pipelines.compile_to(tmp_path_factory.mktemp("compiled"))


def geokfp(*arguments: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def done(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The output folder of one good run, and what it printed."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "p.yaml").write_text("rate: 2\nextra: {a: 1}\nloud: true\n")
    values = ["--params-file", "p.yaml", "-p", "shape=[7]", "-p", "size=5"]
    ended = geokfp("run", toy, "--output", "out", *values, folder=folder)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return folder / "out", ended.stdout


@pytest.fixture(scope="module")
def failed(
    toy: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The output folder of one run whose step raised, and the ended process."""
    folder = tmp_path_factory.mktemp("failed")
    ended = geokfp("run", toy, "--output", "out", "-p", "mode=raise", folder=folder)
    assert ended.returncode == 1
    return folder / "out", ended


def test_a_run_leaves_metrics_report_model_and_every_artifact(done: tuple[Path, str]) -> None:
    out, _ = done
    assert json.loads((out / "metrics.json").read_text()) == {
        "rows": 5,
        "score": 0.75,
        "make.rows": 5,
        "make.score": 0.25,
        "fit.score": 0.75,
    }
    assert (out / "model/weights").read_text() == "5"
    assert "steps/fit/report" in (out / "report.html").read_text()
    assert "fitted" in (out / "steps/fit/report").read_text()
    assert (out / "steps/make/made/rows.txt").read_text() == "row\n" * 5
    assert (out / "steps/fit/model/weights").is_file()
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "done"
    assert record["parameters"]["size"] == 5
    assert record["parameters"]["shape"] == [7]
    assert record["parameters"]["mode"] == "work"
    assert list(record["seconds"]) == ["make", "fit"]
    assert sorted(os.listdir(out)) == ["log.txt", "metrics.json", "model", "report.html", "run.json", "steps"]


def test_progress_is_shown_and_chatter_is_not(done: tuple[Path, str]) -> None:
    out, shown = done
    assert "make: making rows" in shown
    assert re.search(r"make: succeeded in \d+\.\d s", shown)
    assert "chatter" not in shown
    assert "chatter" in (out / "log.txt").read_text()
    assert str(out / "report.html") in shown
    assert str(out / "model") in shown


def test_verbose_shows_what_the_steps_print(toy: Path, tmp_path: Path) -> None:
    ended = geokfp("run", toy, "--output", "out", "--verbose", "-p", "mode=raise", folder=tmp_path)
    assert ended.returncode == 1
    assert "chatter" in ended.stdout
    assert "Traceback" in ended.stdout


def test_values_reach_the_steps_in_their_types(done: tuple[Path, str]) -> None:
    log = (done[0] / "log.txt").read_text()
    assert re.search(r"received \[7(\.0)?\] 2\.0 True \{'a': 1(\.0)?\}", log)


def test_a_recorded_failure_is_one_line_with_step_replica_and_cause(toy: Path, tmp_path: Path) -> None:
    ended = geokfp("run", toy, "--output", "out", "-p", "mode=record", folder=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == (
        "geokfp: make (site-0/trainer-1) failed: killed by signal 9; it last printed: no memory\n"
    )
    assert sorted(os.listdir(tmp_path / "out")) == ["log.txt", "run.json", "steps"]
    assert json.loads((tmp_path / "out/run.json").read_text())["status"] == "failed"
    assert (tmp_path / "out/steps/make/error.json").is_file()


def test_an_unrecorded_failure_names_the_step_and_the_error(
    failed: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, ended = failed
    assert ended.stderr.startswith(
        "geokfp: make failed: ValueError: rows.csv line 3: 'x' is not a number; see"
    )
    assert ended.stderr.count("\n") == 1
    assert "Traceback" not in ended.stdout


def test_retries_are_not_made_on_this_machine(
    failed: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    assert (failed[0] / "log.txt").read_text().count("Executing task") == 1


def test_a_failed_run_keeps_no_result_that_looks_new(toy: Path, tmp_path: Path) -> None:
    assert geokfp("run", toy, "--output", "out", folder=tmp_path).returncode == 0
    for _ in range(2):
        assert geokfp("run", toy, "--output", "out", "-p", "mode=raise", folder=tmp_path).returncode == 1
        assert not (tmp_path / "out/metrics.json").exists()
        assert not (tmp_path / "out/model").exists()
        assert (tmp_path / "out/previous/metrics.json").is_file()
        assert (tmp_path / "out/previous/model/weights").read_text() == "3"
    assert geokfp("run", toy, "--output", "out", "-p", "size=4", folder=tmp_path).returncode == 0
    assert (tmp_path / "out/model/weights").read_text() == "4"
    assert not (tmp_path / "out/previous").exists()


def test_bad_usage_changes_nothing(toy: Path, done: tuple[Path, str]) -> None:
    out, _ = done
    before = (out / "run.json").read_text()
    refused = geokfp("run", toy, "--output", "out", "-p", "sise=4", folder=out.parent)
    assert refused.returncode == 2
    assert refused.stderr == "geokfp: --param sise: toy has no such parameter; did you mean 'size'?\n"
    assert (out / "run.json").read_text() == before


def test_a_folder_with_other_files_is_refused(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.tex").write_text("years of work")
    refused = geokfp("run", toy, "--output", "out", folder=tmp_path)
    assert refused.returncode == 2
    assert "thesis.tex" in refused.stderr
    assert os.listdir(tmp_path / "out") == ["thesis.tex"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "single_sit", "-o", "out"], "did you mean 'single_site'"),
        (["run", "absent.yaml", "-o", "out"], "absent.yaml: no such file"),
        (["run", "other.yaml", "-o", "out"], "other.yaml: not a compiled pipeline"),
        (["run", "single_site"], "--output"),
        (["run", "single_site", "-o", "file"], "--output"),
        (["fly"], "fly"),
        (["compile", "-o", "out"], "nothing to compile"),
        (["compile", "single_site", "-o", "out", "--image-prefix", "a b"], "--image-prefix a b"),
    ],
)
def test_bad_usage_ends_with_2(tmp_path: Path, arguments: list[str], named: str) -> None:
    (tmp_path / "other.yaml").write_text("a: 1\n")
    (tmp_path / "file").write_text("")
    refused = geokfp(*arguments, folder=tmp_path)
    assert refused.returncode == 2
    assert named in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_value_that_is_needed_is_asked_for(toy: Path, tmp_path: Path) -> None:
    refused = geokfp("run", toy.with_name("needy.yaml"), "-o", "out", folder=tmp_path)
    assert refused.returncode == 2
    assert "no value for size" in refused.stderr


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_interrupted_it_leaves_no_process_and_no_result(
    toy: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    command = [*COMMAND, "run", str(toy), "--output", "out", "-p", "mode=wait"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("making rows" in line for line in process.stdout)
        started = psutil.Process(process.pid).children(recursive=True)
        assert len(started) >= 2
        process.send_signal(number)
        assert process.wait(30) == status
    _, alive = psutil.wait_procs(started, timeout=20)
    assert not alive
    assert not (tmp_path / "out/metrics.json").exists()
    again = geokfp("run", toy, "--output", "out", folder=tmp_path)
    assert again.returncode == 0, again.stderr


def test_two_runs_do_not_share_a_folder(toy: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "run", str(toy), "--output", "out", "-p", "mode=wait"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("making rows" in line for line in process.stdout)
        refused = geokfp("run", toy, "--output", "out", folder=tmp_path)
        process.send_signal(signal.SIGINT)
        process.wait(30)
    assert refused.returncode == 2
    assert "another run" in refused.stderr


def test_the_engine_that_is_missing_is_named(tmp_path: Path) -> None:
    code = (
        "import importlib.metadata as m, sys\n"
        "real = m.version\n"
        "def version(name):\n"
        "    if name in ('dgl', 'torch'):\n"
        "        raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version\n"
        "import geokfp.pipelines._command_line as c\n"
        "sys.argv = ['geokfp', 'demo', '--output', 'out']\n"
        "c.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "geokfp: running steps here needs dgl, torch: pip install 'geokfp[engine]'\n"
    assert not (tmp_path / "out").exists()


def test_help_has_an_example_everywhere(tmp_path: Path) -> None:
    assert "Example: " in geokfp("--help", folder=tmp_path).stdout
    for name in ("list", "run", "compile", "demo"):
        assert re.search(rf"Example: geokfp {name} ", geokfp(name, "--help", folder=tmp_path).stdout), name


def test_version(tmp_path: Path) -> None:
    assert re.fullmatch(r"geokfp \d+\.\d+\.\d+\n", geokfp("--version", folder=tmp_path).stdout)


def test_list_shows_pipelines_and_parameters(toy: Path, tmp_path: Path) -> None:
    listed = geokfp("list", folder=tmp_path).stdout
    assert re.search(r"single_site +ingest_graph >> partition_graph >> train_gnn >> export_model", listed)
    parameters = geokfp("list", toy, folder=tmp_path).stdout
    assert re.search(r"size +int +3 +Rows to make\.", parameters)
    assert re.search(r"shape +list +\[2, 3\]", parameters)


def test_tab_completes_pipelines_and_parameters(tmp_path: Path) -> None:
    def complete(words: str) -> str:
        return geokfp(
            folder=tmp_path,
            _GEOKFP_COMPLETE="complete_bash",
            COMP_WORDS=words,
            COMP_CWORD=str(words.count(" ")),
        ).stdout

    of_sites = ["cross_site", "cross_site_at_sites", "cross_site_table"]
    assert sorted(complete("geokfp run cross").split()) == of_sites
    assert complete("geokfp run single_site --param num_p").split() == ["num_parts="]


def test_an_image_prefix_reaches_our_images_only(toy: Path, tmp_path: Path) -> None:
    done = geokfp(
        "compile", "single_site", toy, "-o", "out", "--image-prefix", "localhost:5000/team/", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    spec = yaml.safe_load((tmp_path / "out/toy.yaml").read_text().split("\n---\n")[0])
    assert {e["container"]["image"] for e in spec["deploymentSpec"]["executors"].values()} == {
        toy_pipelines.IMAGE
    }
    spec = yaml.safe_load((tmp_path / "out/single_site.yaml").read_text().split("\n---\n")[0])
    images = {e["container"]["image"] for e in spec["deploymentSpec"]["executors"].values()}
    assert all(re.fullmatch(r"localhost:5000/team/geokfp-\w+:\d+\.\d+\.\d+", image) for image in images)


def test_a_pipeline_may_be_spelled_as_kfp_shows_it(tmp_path: Path) -> None:
    assert (
        geokfp("list", "single-site", folder=tmp_path).stdout
        == geokfp("list", "single_site", folder=tmp_path).stdout
    )
    done = geokfp("compile", "single-site", "single_site", "-o", "out", folder=tmp_path)
    assert done.stdout == "out/single_site.yaml\n"
    assert (tmp_path / "out/single_site.yaml").read_bytes() == compiled_package("single_site").read_bytes()


def test_an_image_prefix_reaches_our_images_in_a_compiled_file(tmp_path: Path) -> None:
    shutil.copy(compiled_package("single_site"), tmp_path / "mine.yaml")
    done = geokfp(
        "compile", "mine.yaml", "-o", "out", "--image-prefix", "localhost:5000/team", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    from_name = geokfp(
        "compile", "single_site", "-o", "named", "--image-prefix", "localhost:5000/team", folder=tmp_path
    )
    assert from_name.returncode == 0, from_name.stderr
    ours, theirs = (
        list(yaml.safe_load_all((tmp_path / folder / "single_site.yaml").read_text()))
        for folder in ("out", "named")
    )
    assert ours == theirs


def test_kubernetes_manifests(tmp_path: Path) -> None:
    done = geokfp("compile", "cross_site", "-o", "out", "--kubernetes-manifests", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    pipeline, pipeline_version = yaml.safe_load_all((tmp_path / "out/cross_site.yaml").read_text())
    assert pipeline["kind"] == "Pipeline"
    assert pipeline["metadata"]["name"] == "cross-site"
    assert pipeline["spec"]["displayName"] == "Cross site"
    assert pipeline_version["kind"] == "PipelineVersion"
    assert pipeline_version["spec"]["pipelineName"] == "cross-site"
    assert pipeline_version["spec"]["pipelineSpec"]["pipelineInfo"]["name"] == "cross-site"
    assert pipeline_version["spec"]["platformSpec"]
