"""The benchmarks still run, at a small size; what they measure is not judged here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.wan_rig import links
from benchmarks.wan_rig.requirements import missing

TWO_SITES = links.endpoints(2)
LACKING = missing(links.Links(endpoints=TWO_SITES, schedule=links.uniform(TWO_SITES, None)))


@pytest.mark.long
def test_start_up(tmp_path):
    command = [sys.executable, Path(__file__).with_name("start_up.py"), "--output", tmp_path / "result.json"]
    size = ["--nodes", "2000", "--edges", "10000", "--parts", "2", "--epochs", "1"]
    said = subprocess.run([*command, *size], capture_output=True, text=True, check=True, timeout=300)
    assert "plain / forked" in said.stdout
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["ratio"] > 0
    assert [run["way"] for run in result["runs"]] == ["plain", "forked"]


@pytest.mark.long
def test_step_overhead(tmp_path):
    command = [sys.executable, Path(__file__).with_name("step_overhead.py"), "--repeats", "1"]
    output = ["--output", tmp_path / "result.json"]
    said = subprocess.run([*command, *output], capture_output=True, text=True, check=True, timeout=120)
    assert "overhead" in said.stdout
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["seconds"]["step"] > 0
    assert result["seconds"]["plain"] > 0


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=f"the network needs {', '.join(LACKING)}")
def test_overlap(tmp_path):
    command = [sys.executable, Path(__file__).with_name("overlap.py"), "--output", tmp_path / "result.json"]
    size = ["--steps", "6", "--repeats", "1"]
    said = subprocess.run([*command, *size], capture_output=True, text=True, check=True, timeout=300)
    assert "p3 / fifo: " in said.stdout
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["step_ratio_of_p3"] > 0
    assert 0.4 < result["bytes_ratio_of_two_roots"] < 0.6  # bytes do not depend on how busy a machine is


@pytest.mark.long
def test_encode(tmp_path):
    command = [sys.executable, Path(__file__).with_name("encode.py"), "--output", tmp_path / "result.json"]
    size = ["--values", "200000", "--repeats", "1"]
    said = subprocess.run([*command, *size], capture_output=True, text=True, check=True, timeout=300)
    assert "bits=2) / torch.topk: " in said.stdout
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["ratio"] > 0
    assert {row["compression"].partition("(")[0] for row in result["rows"]} >= {"none", "top_k", "bi_sparse"}


def test_scaling(tmp_path):
    command = [sys.executable, Path(__file__).with_name("scaling.py"), "--output", tmp_path / "result.json"]
    size = ["--sites", "1,2", "--values", "5000", "--rounds", "3"]
    said = subprocess.run([*command, *size], capture_output=True, text=True, check=True, timeout=110)
    assert said.stdout.startswith("sites  root's CPU a round")
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert [row["sites"] for row in result["rows"]] == [1, 2]
    assert all(row["cpu_ms_a_round"] >= 0 for row in result["rows"])


def test_metrics_cost(tmp_path):
    command = [sys.executable, Path(__file__).with_name("metrics_cost.py"), "--blocks", "2", "--rounds", "5"]
    subprocess.run([*command, "--output", tmp_path / "result.json"], check=True, timeout=60)
    result = json.loads((tmp_path / "result.json").read_text())
    for clock in ("passed", "computed"):
        assert result[clock]["quartiles"][0] <= result[clock]["ratio"] <= result[clock]["quartiles"][1]
