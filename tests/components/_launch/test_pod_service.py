"""Ports of pods that are open beyond their cluster."""

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.pods import PodService


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"kind": "ClusterIP", "port": 443}, "'ClusterIP': must be one of LoadBalancer, NodePort"),
        ({"kind": "NodePort", "port": 443}, "port 443 of a NodePort: must be 30000 to 32767"),
        ({"kind": "LoadBalancer", "port": 0}, "port 0 of a LoadBalancer: must be 1 to 65535"),
    ],
)
def test_what_cannot_be_opened_is_refused(values, reason):
    with pytest.raises(InputError, match=reason):
        PodService(target_port=7000, **values)


def test_ports_that_can_be_opened():
    assert PodService(kind="NodePort", port=30700, target_port=7000).address == ""
    assert PodService(kind="LoadBalancer", port=443, target_port=7000, address="10.0.0.1").port == 443
