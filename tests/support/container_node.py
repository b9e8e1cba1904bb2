"""Plays the node of a cluster double: pods are containers of their images, run by what their documents say.

What a kubelet does with a pod's image, command, variables, volumes and name; each pod has a network of its
own, and finds the others by their names. Steps of pipelines run as KFP's pods do, with the service account
by which they ask the API server for pods.
"""

import itertools
import os
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from geokfp.components._launch.manifests import unescaped
from geokfp.components._launch.pod_network import PodNetwork, opened_network
from geokfp.components._launch.pod_states import is_replica, replica_name

from .api_server import ApiServerDouble
from .cluster_script import ClusterScript, Document
from .container_images import BuiltImages
from .pod_container import SHM_BYTES, Contained, prepared, run_container
from .pod_steps import Step
from .real_cluster import write_certificates

MOST_PODS = 16
"""Of one node, in all its life."""
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
LOOKS_S = 0.1
"""Seconds between two looks at a container."""
STOP_S = 20.0
"""Seconds that a container has to end when its pod is deleted."""
_ANNOTATION = re.compile(r"metadata\.annotations\['(.+)'\]")


class EncryptedDouble(ApiServerDouble):
    """An API server double that speaks TLS, as pods expect; see `ApiServerDouble`.

    Args:
        folder: its certificates go here; `authority.crt` is whom clients trust.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True)
        write_certificates(folder)
        self.authority = folder / "authority.crt"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self._http.socket = context.wrap_socket(
            self._http.socket, server_side=True, do_handshake_on_connect=False
        )

    @property
    def url(self) -> str:
        return super().url.replace("http:", "https:", 1)


@dataclass
class ContainerNode:
    """A node, and the claims of volumes that its cluster has."""

    images: BuiltImages
    server: EncryptedDouble
    folder: Path
    """Empty: for what containers print, their settings and temporary folders."""
    claims: Mapping[str, Path]
    """Folder of each PersistentVolumeClaim."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Volumes and where steps mount them, as `dsl.TaskConfig` tells steps of them."""
    namespace: str = "geo"
    ended: dict[str, int] = field(default_factory=dict)
    """Exit status by `step: group/index` of each pod that has ended."""

    def __post_init__(self) -> None:
        self._script = ClusterScript(self.server, self.namespace)
        self._closed = threading.Event()
        self._joining = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._hosts = self.folder / "hosts"
        self._numbers = itertools.count()

    @contextmanager
    def running(self) -> Iterator["ContainerNode"]:
        """Runs pods as they come, until the block ends; none is left then."""
        self._hosts.write_text("127.0.0.1 localhost\n")
        with ExitStack() as stack:
            network = stack.enter_context(opened_network(_slots(), apart=True))
            watch = threading.Thread(target=self._watch, args=(network,))
            watch.start()
            stack.callback(self._stop, watch)
            yield self

    def run_step(self, step: Step, data: Path, user: tuple[int, int] | None = None) -> str:
        """Runs a step as KFP's pod, in this machine's network, where the API server is; see `PodSteps`."""
        image = {"name": "main", "image": step.image}
        labels = {"labels": {"pipeline/runid": "run-1"}}
        pod = self._script.add("v1", "Pod", "pods", step.name, spec={"containers": [image]}, metadata=labels)
        account = self.folder / f"{step.name}-account"
        account.mkdir()
        (account / "token").write_text(self.server.token)
        (account / "namespace").write_text(self.namespace)
        (account / "ca.crt").write_bytes(self.server.authority.read_bytes())
        address = urlsplit(self.server.url)
        mounts, _ = self._mounts(step.name, self.settings)
        contained = Contained(
            name=f"geokfp-{os.getpid()}-{step.name}",
            image=step.image,
            command=step.command,
            folder=_made(self.folder / f"{step.name}-bundle"),
            mounts={"/minio": step.store, "/data": data, ACCOUNT: account, **mounts, "/tmp": step.scratch},
            environment={
                "KFP_POD_NAME": step.name,
                "KFP_POD_UID": pod["metadata"]["uid"],
                "KUBERNETES_SERVICE_HOST": str(address.hostname),
                "KUBERNETES_SERVICE_PORT": str(address.port),
            },
            user=user,
            own_network=False,
        )
        return run_container(self.images, contained)

    def _watch(self, network: PodNetwork) -> None:
        seen: set[str] = set()
        while not self._closed.is_set():
            with self.server.store.changed:
                pods = [pod for pod in self._script.pods() if is_replica(pod)]
                new = [pod for pod in pods if pod["metadata"]["uid"] not in seen]
                if not new:
                    self.server.store.changed.wait(LOOKS_S)
            for pod in new:
                seen.add(pod["metadata"]["uid"])
                thread = threading.Thread(target=self._run, args=(pod, network, next(self._numbers)))
                self._threads.append(thread)
                thread.start()

    def _stop(self, watch: threading.Thread) -> None:
        self._closed.set()
        for thread in (watch, *self._threads):
            thread.join()

    def _run(self, pod: Document, network: PodNetwork, number: int) -> None:
        slot, folder = _slots()[number], _made(self.folder / f"pod-{number}")
        host = _host_name(pod)
        with self._hosts.open("a") as names:
            names.write(f"{network.addresses[slot]} {host}.{pod['spec']['subdomain']} {host}\n")
        with prepared(self.images, self._contained(pod, folder, number)) as command:
            log = _made(folder / "log") / "log.txt"
            with self._joining:  # whose network is joined is told in the order of asking
                process = network.start(slot, command, os.environ, 0, log)
            self._tell(pod, self._script.start)
            self._follow(pod, process, log)
        step = pod["metadata"]["labels"]["geokfp/step"]
        self.ended[f"{step}: {replica_name(pod)}"] = process.returncode
        if process.returncode:
            told = log.read_text().splitlines()[-5:]
            self._tell(pod, self._script.fail, exitCode=process.returncode, message="\n".join(told))
        else:
            self._tell(pod, self._script.succeed)

    def _contained(self, pod: Document, folder: Path, number: int) -> Contained:
        (container,) = pod["spec"]["containers"]
        own = {"volumes": pod["spec"].get("volumes", []), "volumeMounts": container.get("volumeMounts", [])}
        mounts, shared_memory_bytes = self._mounts(folder.name, own)
        return Contained(
            name=f"geokfp-{os.getpid()}-pod-{number}",
            image=container["image"],
            command=container["command"],
            folder=_made(folder / "bundle"),
            mounts=mounts,
            environment={entry["name"]: _value(pod, entry) for entry in container["env"]},
            shared_memory_bytes=shared_memory_bytes,
            hosts=self._hosts,
            own_network=False,
        )

    def _mounts(self, name: str, settings: Mapping[str, Any]) -> tuple[dict[str, Path], int]:
        """Returns where a pod sees which folder, and the size of its /dev/shm."""
        volumes = {volume["name"]: volume for volume in settings.get("volumes", [])}
        found: dict[str, Path] = {}
        shared_memory_bytes = SHM_BYTES
        for mount in settings.get("volumeMounts", []):
            volume = volumes[mount["name"]]
            if "persistentVolumeClaim" in volume:
                found[mount["mountPath"]] = self.claims[volume["persistentVolumeClaim"]["claimName"]]
            elif volume["emptyDir"].get("medium") == "Memory":
                assert mount["mountPath"] == "/dev/shm"
                shared_memory_bytes = int(volume["emptyDir"]["sizeLimit"])
            else:
                found[mount["mountPath"]] = open_to_all(self.folder / f"{name}-{mount['name']}")
        return found, shared_memory_bytes

    def _follow(self, pod: Document, process: "subprocess.Popen[bytes]", log: Path) -> None:
        """Returns when the process has ended; it is made to when its pod is deleted."""
        with log.open() as printed:
            while process.poll() is None:
                self._log(pod, printed.readlines())
                if self._closed.is_set() or not self._is_there(pod):
                    process.terminate()
                    process.wait(STOP_S)
                self._closed.wait(LOOKS_S)
            self._log(pod, printed.readlines())

    def _log(self, pod: Document, lines: Sequence[str]) -> None:
        for line in lines:
            self._tell(pod, lambda replica, line=line: self._script.log(replica, line.rstrip("\n")))

    def _tell(self, pod: Document, tell: Any, **told: Any) -> None:
        """Tells the cluster of a pod, unless that is deleted."""
        with self.server.store.changed:
            if self._is_there(pod):
                tell(replica_name(pod), **told)

    def _is_there(self, pod: Document) -> bool:
        return pod["metadata"]["uid"] in {each["metadata"]["uid"] for each in self._script.pods()}


def open_to_all(folder: Path) -> Path:
    """Makes a folder that any user may write in, as volumes of pods are."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _slots() -> list[str]:
    return [f"pod-{number}" for number in range(MOST_PODS)]


def _host_name(pod: Document) -> str:
    """Returns what an Indexed Job's controller sets as the host name of its pod."""
    (owner,) = pod["metadata"]["ownerReferences"]
    index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
    return f"{owner['name']}-{index}"


def _value(pod: Document, entry: Mapping[str, Any]) -> str:
    if "valueFrom" not in entry:
        return unescaped(entry.get("value", ""))
    field_path = entry["valueFrom"]["fieldRef"]["fieldPath"]
    found = _ANNOTATION.fullmatch(field_path)
    assert found, field_path
    return str(pod["metadata"]["annotations"][found[1]])
