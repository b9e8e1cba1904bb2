"""A port is open beyond its cluster, and its address known, before any pod of the launch is there."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from geokfp.components._launch.cluster_run import Placed, run_on_clusters
from geokfp.components._launch.creation import Creation
from geokfp.components._launch.errors import ClusterFailed, ProcessFailed
from geokfp.components._launch.kubernetes import ApiServer
from geokfp.components._launch.manifests import MANIFESTS
from geokfp.components._launch.manifests.access import rules
from geokfp.components._launch.opened import opened_port
from geokfp.components._launch.pods import PodService
from geokfp.components._launch.termination import Deletion
from support.api_server import ApiServerDouble
from support.cluster_script import NODE_PORT, ClusterScript
from support.launched import NAMESPACE, at, launch, quick, refuse_what_schemas_do
from support.pod_launches import pod_group

BALANCER = PodService(kind="LoadBalancer", port=7000, target_port=7000)
NODES = PodService(kind="NodePort", port=0, target_port=7000, address="node.example")
NAME = launch().name


@pytest.fixture
def server() -> Iterator[ApiServerDouble]:
    with ApiServerDouble() as double:
        double.checks = [refuse_what_schemas_do]
        double.rules = rules(["job"])
        yield double


@pytest.fixture
def script(server: ApiServerDouble) -> ClusterScript:
    return ClusterScript(server, NAMESPACE)


def placed(server: ApiServerDouble, folder: Path, service: PodService) -> Placed:
    root = pod_group("root", 1, service=service)
    return Placed(launch=launch(root, pod_group("worker", 1)), kind="job", cluster=at(server, folder))


def left(server: ApiServerDouble) -> list[str]:
    found = [one for one in server.store.everything() if one["kind"] != "Event"]
    return [f"{one['kind']} {one['metadata']['name']}" for one in found]


@pytest.mark.parametrize(
    ("ingress", "host"), [({"ip": "10.0.0.9"}, "10.0.0.9"), ({"hostname": "lb.example"}, "lb.example")]
)
def test_a_balancers_address_is_waited_for_and_the_launch_goes_on_with_it(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path, ingress: dict[str, str], host: str
) -> None:
    one = placed(server, tmp_path, BALANCER)
    give = threading.Thread(target=partial(script.balance, f"{NAME}-root-open", **ingress))
    give.start()
    with opened_port(one, "root", quick()) as address:
        assert address == (host, 7000)
        assert left(server) == [f"Service {NAME}", f"Service {NAME}-root-open"]
        lines: list[str] = []
        end = threading.Thread(target=lambda: (script.start("root/0"), script.succeed("root/0", "worker/0")))
        end.start()
        run_on_clusters(
            [one], on_line=lambda _, text: lines.append(text), beat=lambda: None, settings=quick()
        )
        end.join()
    give.join()
    assert any(line.startswith("created Job") for line in lines)
    assert left(server) == []


def test_the_port_of_a_node_is_read_from_the_service(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    with (
        pytest.raises(ProcessFailed, match="of the caller"),
        opened_port(placed(server, tmp_path, NODES), "root", quick()) as address,
    ):
        assert address == ("node.example", NODE_PORT)
        raise ProcessFailed("root", "of the caller")
    script.wait_for(lambda: left(server) == [], "all to go")


def test_a_cluster_that_gives_no_address_is_named_with_what_it_says(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.event(f"{NAME}-root-open", "SyncLoadBalancerFailed", "no addresses are left")
    with (
        pytest.raises(ClusterFailed, match=r"Service geo/.*-root-open has no address after 0.2 s") as caught,
        opened_port(placed(server, tmp_path, BALANCER), "root", quick(start_timeout_s=0.2)),
    ):
        pytest.fail("no address was given")
    assert "status.loadBalancer.ingress[0]" in str(caught.value)
    assert caught.value.last_lines == ("event Warning SyncLoadBalancerFailed: no addresses are left",)
    assert f"waits for the address of Service geo/{NAME}-root-open" in capsys.readouterr().out
    script.wait_for(lambda: left(server) == [], "all to go")


def test_what_an_earlier_try_left_keeps_its_address_unless_that_has_failed(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    one = placed(server, tmp_path, BALANCER)
    script.addresses = ["10.0.0.1", "10.0.0.2"]
    api = ApiServer(one.cluster, request_s=20.0)
    guard = Deletion(lambda: api.ready_request("DELETE", "/", {}))
    Creation(api, one.cluster, quick(), threading.Event()).create(MANIFESTS["job"].objects(one.launch), guard)
    guard.close()
    api.close()  # and was killed: it leaves all there
    with opened_port(one, "root", quick()) as address:
        assert address == ("10.0.0.1", 7000)
    assert server.asked("DELETE") == []
    script.fail("worker/0")
    with opened_port(one, "root", quick()) as address:
        assert address == ("10.0.0.2", 7000)
        assert sorted(left(server)) == [f"Service {NAME}", f"Service {NAME}-root-open"]
