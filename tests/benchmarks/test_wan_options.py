"""What `wan.py` is told: rates, files of links, options, and the machine's rights."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.wan_rig import delay, links, loss, shaping
from benchmarks.wan_rig.command_line import main
from benchmarks.wan_rig.links import Links
from benchmarks.wan_rig.network import addresses
from benchmarks.wan_rig.options import parse
from benchmarks.wan_rig.requirements import missing
from benchmarks.wan_rig.slow_site import slowed
from geokfp.components._files import InputError
from support.clock import FakeClock

SCRIPT = Path(__file__).with_name("wan.py")
TWO_SITES = links.endpoints(2)


def network_links(rate: float | None = None, **others) -> Links:
    return Links(endpoints=TWO_SITES, schedule=links.uniform(TWO_SITES, rate), **others)


@pytest.mark.parametrize(
    ("text", "rate"), [("10mbit", 1e7), ("1.5gbit", 1.5e9), ("8kbit", 8e3), ("none", None)]
)
def test_a_rate_is_read(text, rate):
    assert links.parse_rate(text, "--rate") == rate


@pytest.mark.parametrize("text", ["", "10", "10mbps", "-1mbit", "0mbit", "7kbit", "nan mbit", "None"])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(InputError, match=r"--rate is .*allowed: none, or 8kbit or more"):
        links.parse_rate(text, "--rate")


MATRIX = """
0s      root    site-0  site-1   # all in step
root    -       10mbit  none
site-0  10mbit  -       100mbit
site-1  2mbit   none    -

60.5s   site-0  root    site-1
site-0  -       1mbit   1mbit
root    2mbit   -       2mbit
site-1  3mbit   3mbit   -
"""


def test_a_matrix_is_read_with_its_schedule(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text(MATRIX)
    (at_first, first), (at_second, second) = links.read_schedule(path, TWO_SITES)
    assert (at_first, at_second) == (0, 60.5)
    assert first["root", "site-0"] == 1e7
    assert first["site-1", "root"] == 2e6
    assert first["site-1", "site-0"] is None
    assert second["root", "site-0"] == 2e6
    assert second["site-0", "root"] == 1e6
    assert len(first) == len(second) == 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0s      root", "5s      root", r"has 5s, 60.5s, allowed: blocks from 0s on"),
        ("60.5s", "0s", r"has 0s, 0s, allowed"),
        ("60.5s", "soon", r"links.txt:7 begins with 'soon', allowed: a time"),
        ("2mbit   none", "2mbps   none", r"links.txt:5 from site-1 to root is '2mbps', allowed"),
        ("-       10mbit", "1mbit   10mbit", r"links.txt:3 has '1mbit' from root to root, allowed: -"),
        ("2mbit   none", "2mbit   -", r"links.txt:5 has '-' from site-1 to site-0, allowed: -"),
        ("site-1  2mbit", "site-2  2mbit", r"links.txt:5 has rows root, site-0, site-2, allowed: root"),
        ("root    site-0  site-1", "root    site-0", r"links.txt:2 has columns root, site-0, allowed: root"),
        ("site-1  3mbit   3mbit   -", "", r"links.txt:9 has 0 words, allowed: a name and 3 rates"),
        (MATRIX, "", r"has no block, allowed: blocks from 0s"),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_line(tmp_path, old, new, message):
    assert old in MATRIX
    path = tmp_path / "links.txt"
    path.write_text(MATRIX.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        links.read_schedule(path, TWO_SITES)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"--links .* cannot be read"):
        links.read_schedule(tmp_path / "none.txt", TWO_SITES)


@pytest.mark.parametrize("rate", [None, 1e7])
def test_pairs_of_sites_have_the_same_rate_as_those_with_the_root(rate):
    (_, rates), *rest = links.uniform(TWO_SITES, rate)
    assert not rest
    assert set(rates.values()) == {rate}
    assert len(rates) == 6


def test_a_class_borrows_above_its_share_of_a_common_limit_only():
    lines = "\n".join(
        shaping.installation("root", addresses(network_links()), network_links(1e7, root_rate=1.2e7))
    )
    assert "htb rate 12000000" in lines
    assert lines.count("htb rate 6000000 ceil 10000000") == 2
    assert "match ip dst 10.77.1.2/32 flowid 1:11" in lines
    assert "match ip dst 10.77.2.2/32 flowid 1:12" in lines


def test_packets_that_come_back_from_the_delay_are_not_lost_anew():
    assert f'iifname != "{delay.DEVICE}" numgen random mod 100000 < 250 counter drop' in loss.rules(0.25)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sites", "0"], r"--sites is 0, allowed: 1 or more"),
        (["--sites", "51"], r"--sites is 51, allowed: 1 to 50"),
        (["--sites", "two"], r"argument --sites: invalid int value: 'two'"),
        (["--workers", "0"], r"--workers is 0, allowed: 1 or more"),
        (["--every", "-5"], r"--every is -5, allowed: 1 or more"),
        (["--runs", "0"], r"--runs is 0, allowed: 1 or more"),
        (["--target", "95"], r"--target is 95, allowed: above 0, at most 1"),
        (["--target", "nan"], r"--target is nan, allowed"),
        (["--max-seconds", "0"], r"--max-seconds is 0, allowed: above 0"),
        (["--split", "random"], r"--split is 'random', allowed: iid, by_class"),
        (["--systems", "mxnet,ours"], r"--systems names ours, allowed: mxnet, .*alone"),
        (["--systems", ""], r"--systems names none, allowed: mxnet"),
        (["--learning-rates", "1e-3,0"], r"--learning-rates is .*allowed: numbers above 0"),
        (["--learning-rates", "fast"], r"argument --learning-rates: invalid"),
        (["--plot", "plot.png"], r"--plot is plot.png, allowed: a name that ends in .svg"),
        (
            ["--rate", "1mbit", "--links", "links.txt"],
            r"--rate is 1mbit beside --links links.txt, allowed: one",
        ),
        (["--slow-site", "site-2:3"], r"--slow-site is 'site-2:3', allowed: NAME:FACTOR.* of site-0, site-1"),
        (["--slow-site", "site-1:-1"], r"--slow-site is 'site-1:-1', allowed: .* a number of 0 or more"),
        (["--slow-site", "site-1"], r"--slow-site is 'site-1', allowed: NAME:FACTOR"),
        (["--slow-site", "site-1:nan"], r"--slow-site is 'site-1:nan', allowed: NAME:FACTOR"),
        (["--slow-site", "site-1:1,site-1:2"], r"--slow-site is 'site-1:1,site-1:2', allowed: .*once"),
        (["--keep", "."], r"--keep is \., which exists"),
        (["--speed", "1"], r"unrecognized arguments: --speed 1"),
    ],
)
def test_a_wrong_option_is_refused(words, message):
    with pytest.raises(InputError, match=message):
        parse(["--data", "images", *words])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rate", "fast"], "--rate is 'fast', allowed"),
        (["--root-rate", "1"], "--root-rate is '1', allowed"),
        (["--loss", "100"], "--loss is 100, allowed: 0 or more, below 100"),
        (["--loss", "nan"], "--loss is nan, allowed"),
        (["--delay-ms", "-1"], "--delay-ms is -1, allowed: 0 to 10000"),
        (["--links", "nowhere.txt"], "--links nowhere.txt cannot be read"),
    ],
)
def test_a_wrong_network_is_refused(words, message):
    with pytest.raises(InputError, match=message):
        parse(["--data", "images", *words]).network()


def test_the_images_must_be_named():
    with pytest.raises(InputError, match="--data"):
        parse([])


def test_options_are_read():
    words = "--data d --rate 5mbit --loss 1 --delay-ms 20 --sites 4 --workers 1 --systems mxnet,mxnet_p3"
    words += " --slow-site site-3:0.5,site-0:1"
    options = parse([*words.split(), "--learning-rates", "1e-3,1e-2", "--runs", "3", "--to-the-end"])
    assert options.learning_rates == (0.001, 0.01)
    assert options.systems == ("mxnet", "mxnet_p3")
    assert options.to_the_end
    assert options.slow_sites() == {"site-3": 0.5, "site-0": 1}
    told = options.network()
    assert len(told.endpoints) == 5
    assert (told.loss_percent, told.delay_ms) == (1, 20)
    assert told.schedule[0][1]["site-3", "root"] == 5e6
    assert told.unshaped().shaped is False


def test_the_script_says_in_one_line_what_is_wrong():
    command = [sys.executable, SCRIPT, "--data", "no/such/folder"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 2
    assert done.stderr.startswith("wan.py: --data has no readable t10k-images-idx3-ubyte.gz")
    assert done.stderr.count("\n") == 1


def test_without_root_it_says_what_it_needs(monkeypatch, real_data, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["--data", str(real_data / "mnist_10k")]) == 2
    assert "need root (this is user 1000)" in capsys.readouterr().err


def test_a_missing_command_is_named_with_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    lacking = missing(network_links(loss_percent=1))
    assert "the command tc of iproute2" in lacking
    assert "the command nft of nftables" in lacking
    assert "the command nft of nftables" not in missing(network_links())


@pytest.mark.parametrize(("factor", "slept"), [(3.0, 6.0), (0.5, 1.0)])
def test_a_slow_worker_sleeps_in_proportion_to_what_it_has_computed(factor, slept):
    clock = FakeClock()
    with slowed(factor, finish=lambda: clock.advance(1.5), clock=clock, sleep=clock.advance):
        clock.advance(0.5)
    assert clock() == 2.0 + slept


def test_a_worker_that_is_not_slowed_does_not_wait_for_what_it_has_begun():
    with slowed(0.0, finish=lambda: pytest.fail("it waited"), sleep=lambda _: pytest.fail("it slept")):
        done = True
    assert done
