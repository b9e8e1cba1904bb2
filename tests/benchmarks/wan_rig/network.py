"""The whole network of a trial: endpoints, hub, rates, loss and delay."""

import contextlib
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from . import delay, loss, shaping
from .errors import RigError
from .execute import execute
from .links import Links
from .namespaces import namespaces, set_kernel, within

HUB = "hub"
CONGESTION_CONTROL = "cubic"
"""How TCP answers losses; set by route, as machines differ in their defaults and in which ones they allow."""

_READY_S = 20.0


class Network:
    """A network that is up; made by `network`."""

    def __init__(self, names: Mapping[str, str], links: Links) -> None:
        self._names = names
        self._links = links
        self._over = threading.Event()
        self._changer: threading.Thread | None = None

    @property
    def hub(self) -> str:
        """Namespace of the hub."""
        return self._names[HUB]

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The root, then the sites."""
        return self._links.endpoints

    @property
    def addresses(self) -> dict[str, str]:
        """IPv4 address of each endpoint."""
        return addresses(self._links)

    def namespace(self, endpoint: str) -> str:
        """Returns the namespace of an endpoint."""
        return self._names[endpoint]

    def within(self, endpoint: str, command: Sequence[str]) -> list[str]:
        """Returns the command that runs `command` at an endpoint."""
        return within(self._names[endpoint], command)

    def start_schedule(self, began: float) -> None:
        """Changes the rates at their times from now on.

        Args:
            began: the moment from which the schedule counts, on the monotonic clock.
        """
        if len(self._links.schedule) > 1 and self._changer is None:
            self._changer = threading.Thread(target=self._change_rates, args=(began,))
            self._changer.start()

    def stop_schedule(self) -> None:
        """Leaves the rates as they are."""
        self._over.set()
        if self._changer is not None:
            self._changer.join()

    def _change_rates(self, began: float) -> None:
        for at_s, rates in self._links.schedule[1:]:
            if self._over.wait(max(0.0, began + at_s - time.monotonic())):
                return
            shaping.change(self._names, self._links, rates)


def addresses(links: Links) -> dict[str, str]:
    """Returns the IPv4 address of each endpoint; it is known in the namespaces only."""
    return {name: f"10.77.{number}.2" for number, name in enumerate(links.endpoints)}


@contextmanager
def network(links: Links) -> Iterator[Network]:
    """Builds a network, and removes it with all that runs in it.

    Args:
        links: endpoints, rates, loss and delay.

    Raises:
        RigError: it could not be built; nothing is left of it.
    """
    with namespaces([HUB, *links.endpoints]) as names, contextlib.ExitStack() as stack:
        _wire(names, links)
        shaping.install(names, addresses(links), links, _hub_device(0))
        loss.install(names[HUB], links.loss_percent)
        if links.delay_ms:
            stack.enter_context(_delayed(names[HUB], links))
        built = Network(names, links)
        stack.callback(built.stop_schedule)
        yield built


def _hub_device(number: int) -> str:
    return f"e{number}"


def _wire(names: Mapping[str, str], links: Links) -> None:
    for name in names.values():
        # Else every device looks for neighbours and routers, among the bytes that are counted.
        set_kernel(name, "ipv6.conf.default.disable_ipv6", "1")
    for number, endpoint in enumerate(links.endpoints):
        _join(names[HUB], names[endpoint], number)
        if links.shaped or links.loss_percent or links.delay_ms:
            # Else the kernel hands on up to 64 KiB as one packet, which no wide-area link does.
            execute(["ip", "-n", names[endpoint], "link", "set", shaping.DEVICE, "gso_max_segs", "1"])
    set_kernel(names[HUB], "ipv4.ip_forward", "1")


def _join(hub: str, endpoint: str, number: int) -> None:
    """Lays the wire of one endpoint, and routes all that it sends through it."""
    device, subnet = _hub_device(number), f"10.77.{number}"
    lines = [
        f"link add {device} type veth peer name {shaping.DEVICE} netns {endpoint}",
        f"address add {subnet}.1/30 dev {device}",
        f"link set {device} up",
    ]
    _ip(hub, lines)
    lines = [
        f"address add {subnet}.2/30 dev {shaping.DEVICE}",
        f"link set {shaping.DEVICE} up",
        f"route add default via {subnet}.1 congctl {CONGESTION_CONTROL}",
    ]
    _ip(endpoint, lines)


@contextmanager
def _delayed(hub: str, links: Links) -> Iterator[None]:
    """Sends all that enters the hub through a relay."""
    command = within(hub, [sys.executable, "-I", delay.__file__, f"{links.delay_ms}"])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        if not select.select([process.stdout], [], [], _READY_S)[0] or not process.stdout.readline():
            raise RigError(
                f"the relay that delays packets made no device {delay.DEVICE} within {_READY_S:g} s"
            )
        # Strict checks would drop packets that come from the device with an endpoint's address.
        set_kernel(hub, f"ipv4.conf.{delay.DEVICE}.rp_filter", "0")
        set_kernel(hub, "ipv4.conf.all.rp_filter", "0")
        lines = [
            f"link set {delay.DEVICE} txqueuelen 20000 up",
            f"route add default dev {delay.DEVICE} table {delay.TABLE}",
            *(f"rule add iif {_hub_device(n)} lookup {delay.TABLE}" for n in range(len(links.endpoints))),
        ]
        _ip(hub, lines)
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _ip(namespace: str, lines: list[str]) -> None:
    execute(["ip", "-n", namespace, "-batch", "-"], "".join(f"{line}\n" for line in lines))
