"""Datagrams over loopback: whole frames, known as the peer's, in the order of their channels."""

import itertools
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.transport import sealing as sealing_module
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.transport.datagram import FRAME_BYTES, MOST_BYTES, DatagramSocket, fits
from geokfp.components.geo_training.transport.pace import HIGHEST, LOWEST, Pace
from geokfp.components.geo_training.transport.sealing import DOWN, UP, check_secret, sealing
from geokfp.components.geo_training.wire.block_messages import Blocks
from geokfp.components.geo_training.wire.messages import Payload
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st
from support.lossy_datagrams import Loss

LINK, KEY = b"8 bytes.", bytes(range(32))
HEADER = LINK + bytes(8)
WAIT_S = 20.0


def block(number: int, size: int = 200) -> Blocks:
    values = np.full(size, number, "<f4")
    return Blocks(
        RoundId(TREE, Unit("gradient w", 0, 10_000), 3), size, (number,), Payload("dense", "<f4", (values,))
    )


class Pair:
    """Both ends of a channel over loopback; `came` holds the numbers of the blocks at the dialled end."""

    def __init__(self, secret: bool = False, key: bytes = KEY) -> None:
        self.came: queue.Queue[int] = queue.Queue()
        up, down = (sealing(KEY, way, secret=secret) for way in (UP, DOWN))
        self.dialled = DatagramSocket(Address("127.0.0.1", 0))
        self.there = self.dialled.open(LINK, (down, up), lambda m: self.came.put(m.numbers[0]), "site")
        self.dialling = DatagramSocket(None, Address("127.0.0.1", self.dialled.port))
        up, down = (sealing(key, way, secret=secret) for way in (UP, DOWN))
        self.back: queue.Queue[int] = queue.Queue()
        self.here = self.dialling.open(LINK, (up, down), lambda m: self.back.put(m.numbers[0]), "root")

    def __enter__(self) -> "Pair":
        return self

    def __exit__(self, *_) -> None:
        self.dialling.close()
        self.dialled.close()


@pytest.mark.parametrize("secret", [False, True])
def test_a_probe_opens_both_ends_and_frames_come_through(secret):
    with Pair(secret) as pair:
        assert not pair.here.is_open
        pair.here.probe()
        assert pair.here.is_open
        assert pair.there.is_open
        left = threading.Event()
        pair.here.send([[block(5), block(2)], [], [block(9)]], left.set)
        assert left.wait(WAIT_S)
        assert [pair.came.get(timeout=WAIT_S) for _ in range(3)] == [5, 2, 9]
        pair.there.send([[block(7)]], lambda: None)
        assert pair.back.get(timeout=WAIT_S) == 7
    assert pair.here.traffic.sent_bytes == pair.there.traffic.received_bytes
    assert pair.there.traffic.sent_bytes == pair.here.traffic.received_bytes


def test_datagrams_of_another_key_are_dropped(capsys):
    with Pair(key=bytes(32)) as pair:
        pair.here.probe()
        assert not pair.here.is_open
        assert not pair.there.is_open
        assert pair.there.traffic.received_bytes == 0
    assert capsys.readouterr().out.count("do not come back") == 1


def test_noise_and_what_is_no_frame_are_dropped():
    with Pair() as pair, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        seal = sealing(KEY, UP, secret=False)
        for datagram in (
            b"",
            b"short",
            bytes(40),
            HEADER + bytes(60),
            HEADER + seal.seal(HEADER, b"no frame"),
        ):
            stranger.sendto(datagram, ("127.0.0.1", pair.dialled.port))
        pair.here.probe()
        pair.here.send([[block(1)]], lambda: None)
        assert pair.came.get(timeout=WAIT_S) == 1


def test_what_is_lost_is_counted_by_the_sender(monkeypatch):
    with Pair() as pair:
        pair.here.probe()
        number_of_block = itertools.count()
        loss = Loss(lambda _, datagram: len(datagram) > 800 and next(number_of_block) == 1)
        loss.install(monkeypatch)
        pair.here.send([[block(1), block(2), block(3)]], lambda: None)
        assert [pair.came.get(timeout=WAIT_S) for _ in range(2)] == [1, 3]  # and before them all probes
        assert loss.lost == 1
        missing = pair.here.traffic.sent_bytes - pair.there.traffic.received_bytes
    assert 800 < missing <= MOST_BYTES


def test_a_link_on_which_nothing_arrives_any_more_closes_once(capsys):
    with Pair() as pair:
        pair.here.probe()
        pair.here.told(9, 0)
        assert pair.here.is_open
        for _ in range(2):
            pair.here.told(10, 0)
        assert not pair.here.is_open
    assert capsys.readouterr().out.count("do not come through any more") == 1


def test_what_is_sent_on_a_closed_link_is_over_at_once():
    with Pair() as pair:
        pair.here.close()
        left = threading.Event()
        pair.here.send([[block(1)]], left.set)
        assert left.is_set()


def test_channels_have_a_dscp_in_falling_priority():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(WAIT_S)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        dialling = DatagramSocket(None, Address("127.0.0.1", receiver.getsockname()[1]))
        seals = (sealing(KEY, UP, secret=False), sealing(KEY, DOWN, secret=False))
        link = dialling.open(LINK, seals, lambda _: None, "root")
        link.send([[block(1)], [block(2)], [block(3)]], lambda: None)
        marks = [receiver.recvmsg(2048, 64)[1][0][2][0] for _ in range(3)]
        dialling.close()
    assert marks == [64, 32, 0]


@pytest.mark.parametrize("secret", [False, True])
@given(st.binary(max_size=100), st.integers(0, 300), st.integers(1, 255))
def test_a_changed_datagram_is_foreign(secret, frame, place, change):
    seal = sealing(KEY, UP, secret=secret)
    body = seal.seal(HEADER, frame)
    assert len(body) == len(frame) + sealing_module.SEAL_BYTES
    assert seal.unseal(HEADER, body) == frame
    changed = bytearray(HEADER + body)
    changed[place % len(changed)] ^= change
    assert seal.unseal(bytes(changed[:16]), bytes(changed[16:])) is None
    assert sealing(KEY, DOWN, secret=secret).unseal(HEADER, body) is None
    assert seal.unseal(HEADER, body[:10]) is None


def test_an_encrypted_datagram_shows_nothing_of_its_frame():
    frame = b"gradient of a secret layer"
    assert frame in sealing(KEY, UP, secret=False).seal(HEADER, frame)
    assert b"secret" not in sealing(KEY, UP, secret=True).seal(HEADER, frame)


def test_without_the_library_encryption_is_refused_by_name(monkeypatch):
    check_secret()
    monkeypatch.setattr(sealing_module, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="dgt over TLS needs the package cryptography"):
        check_secret()


def test_a_frame_that_does_not_fit_is_known():
    assert fits(block(0, 256))
    assert not fits(block(0, FRAME_BYTES // 4))


def test_what_has_come_is_taken_though_its_reader_has_not_come_to_it_yet(monkeypatch):
    monkeypatch.setattr(DatagramSocket, "_read", lambda _: None)
    with Pair() as pair:
        left = threading.Event()
        pair.here.send([[block(number) for number in range(20)]], left.set)
        assert left.wait(WAIT_S)
        pair.dialled.catch_up()
        assert [pair.came.get_nowait() for _ in range(20)] == list(range(20))
        pair.dialled.catch_up()
        assert pair.came.empty()


def test_a_late_datagram_of_few_does_not_halve_the_pace():
    pace = Pace(rate=1e6)
    for _ in range(10):
        for sent, arrived in ((1, 0), (26, 26), (7, 7)):
            pace.told(sent, arrived)
    assert pace.rate == pytest.approx(1e6 * 1.1**10)


@given(st.lists(st.tuples(st.integers(1, 1400), st.floats(0, 0.1)), min_size=1, max_size=200))
def test_no_more_leaves_than_the_rate_and_one_burst_allow(steps):
    pace, now, sent = Pace(rate=1e5), 0.0, 0
    for num_bytes, passes_s in steps:
        while wait_s := pace.delay(num_bytes, now):
            now += wait_s
        sent += num_bytes
        assert sent <= 1e5 * now + 6000 + 1400 + 1
        now += passes_s


def test_the_pace_grows_where_all_arrives_and_falls_to_what_does():
    pace = Pace(rate=1e6)
    pace.told(100, 98)
    assert pace.rate == pytest.approx(1.1e6)
    pace.told(100, 60)
    assert pace.rate == pytest.approx(0.66e6)
    for _ in range(100):
        pace.told(10, 0)
    assert pace.rate == LOWEST
    for _ in range(400):
        pace.told(10, 10)
    assert pace.rate == HIGHEST
    pace.told(0, 0)
    assert pace.rate == HIGHEST


NO_NETWORK = 77
FULL_QUEUE = """
import queue, sys, threading
sys.path[:0] = [{folder!r}, {tests!r}]
from test_datagram import Pair, block

with Pair() as pair:
    pair.here.probe()
    left = threading.Event()
    pair.here.send([[block(number, 300) for number in range(120)]], left.set)
    assert left.wait(20)
    print([pair.came.get(timeout=5) for _ in range(120)] == list(range(120)))
"""


def test_where_the_link_is_slower_than_the_pace_datagrams_wait_and_are_not_lost():
    here = Path(__file__).parent
    script = FULL_QUEUE.format(folder=str(here), tests=str(here.parents[2]))
    slow = "ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate 2mbit burst 3000 limit 4000000"
    inside = f'({slow}) || exit {NO_NETWORK}; exec "$0" -c "$1"'
    unshared = "unshare" if os.geteuid() == 0 else None
    if not (unshared and shutil.which(unshared)) or subprocess.run([unshared, "-n", "true"]).returncode:
        pytest.skip("needs root, for a network of its own")
    command = [unshared, "-n", "sh", "-c", inside, sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    if done.returncode == NO_NETWORK:
        pytest.skip(f"needs ip and tc, to make a link slow: {done.stderr}")
    assert done.stdout.strip() == "True", done.stderr
