"""Where the pods of a tree go, by the `topology` parameter, and what of it is refused."""

import re
from pathlib import Path

import geokfp.components.geo_training
import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.cluster import Cluster
from geokfp.components._launch.pods import PodService, PodSettings
from geokfp.components.geo_training.clusters.site_pods import CERTIFICATES, check_pods, places
from geokfp.components.geo_training.topology_file import written_out

COMMON = PodSettings(resources={"limits": {"cpu": "2"}}, env=({"name": "A", "value": "1"},))
SITES = ("oslo", "paris")
OSLO = {
    "cluster": {"kubeconfig": "/secrets/oslo/config", "context": "oslo"},
    "namespace": "geo",
    "service_account": "trainer",
    "image": "registry.oslo/geokfp-training:1",
    "image_pull_secrets": ["oslo"],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
    "certificates_secret": "geokfp-oslo",
    "storage": "s3://oslo/geokfp",
}
TWO = {
    "root": "hub.example:30700",
    "root_pod": {"service": "NodePort", "certificates_secret": "geokfp-root"},
    "sites": {"oslo": OSLO, "paris": {"certificates_secret": "geokfp-paris"}},
}


@pytest.mark.parametrize(
    ("options", "service"),
    [
        (
            {"root_pod": {"service": "LoadBalancer"}},
            PodService(kind="LoadBalancer", port=7000, target_port=7000),
        ),
        (
            {"root": "hub", "root_pod": {"service": "NodePort"}},
            PodService(kind="NodePort", port=0, target_port=7000, address="hub"),
        ),
    ],
)
def test_where_the_root_is_reached_may_be_for_its_cluster_to_say(options, service):
    apart = {**options, "sites": {"oslo": {"cluster": {"context": "oslo"}}}}
    assert check_pods(apart) == ()
    found = places(apart, SITES, COMMON, "")
    assert found.root.service == service
    assert not found.root.service.is_known
    assert places(TWO, SITES, COMMON, "").root.service.is_known


def test_without_a_word_all_pods_are_where_the_step_is():
    found = places({}, SITES, COMMON, "")
    assert not found.are_apart
    assert found.root.cluster == found.sites["oslo"].cluster == Cluster()
    assert found.sites["paris"].settings == found.root.settings == COMMON
    assert found.certificates == ""


def test_the_example_of_the_readme_is_read(tmp_path):
    readme = Path(geokfp.components.geo_training.__file__).with_name("README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "topology.yaml").write_text(example, encoding="utf-8")
    options = written_out({"file": str(tmp_path / "topology.yaml")})
    assert [str(address) for address in check_pods(options)] == ["hub.example:30700"]
    found = places(options, SITES, COMMON, "")
    assert found.sites["oslo"].cluster == Cluster(kubeconfig="/secrets/oslo/config", context="oslo")


def test_sites_are_in_clusters_of_their_own_and_the_root_is_opened_to_them():
    assert [str(address) for address in check_pods(TWO)] == ["hub.example:30700"]
    found = places(TWO, SITES, COMMON, "")
    assert found.are_apart
    assert (found.together("oslo"), found.together("paris")) == (False, True)
    oslo = found.sites["oslo"]
    assert oslo.cluster == Cluster(kubeconfig="/secrets/oslo/config", context="oslo")
    assert (oslo.namespace, oslo.storage) == ("geo", "s3://oslo/geokfp")
    assert oslo.settings.service_account == "trainer"
    assert oslo.settings.resources == OSLO["resources"]
    assert oslo.settings.env == COMMON.env
    assert (oslo.settings.image, oslo.settings.image_pull_secrets) == (OSLO["image"], ("oslo",))
    assert found.root.service == PodService(
        kind="NodePort", port=30700, target_port=7000, address="hub.example"
    )
    assert found.certificates == CERTIFICATES
    for place, secret in ((found.root, "geokfp-root"), (oslo, "geokfp-oslo")):
        assert [volume["secret"] for volume in place.settings.volumes] == [{"secretName": secret}]
        assert [mount["mountPath"] for mount in place.settings.volume_mounts] == [CERTIFICATES]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hub": 1}, r"topology has \['hub'\], allowed: root, root_pod, sites"),
        (
            {"sites": {"oslo": {"listens": "a:1"}}},
            r"\['oslo'\] has \['listens'\], allowed: accepts, cluster, ",
        ),
        ({"sites": {"oslo": 3}}, r"\['oslo'\] is 3, allowed: a mapping with accepts, cluster"),
        ({"sites": []}, r"topology\['sites'\] is \[\], allowed: a mapping of site names"),
        (
            {"sites": {"oslo": {"cluster": "oslo"}}},
            r"\['cluster'\] is 'oslo', allowed: a mapping with kubeconf",
        ),
        ({"sites": {"oslo": {"cluster": {"server": "a"}}}}, r"\['server'\], allowed: kubeconfig, context"),
        ({"sites": {"oslo": {"cluster": {"context": 1}}}}, r"\['context'\] is 1, allowed: text"),
        ({"sites": {"oslo": {"namespace": 1}}}, r"\['namespace'\] is 1, allowed: text"),
        ({"sites": {"oslo": {"env": {}}}}, r"\['env'\] is \{\}, allowed: a list of mappings"),
        ({"sites": {"oslo": {"tolerations": ["a"]}}}, r"\['tolerations'\] is 'a', allowed: a list of mapp"),
        ({"sites": {"oslo": {"resources": 1}}}, r"\['resources'\] is 1, allowed: a mapping"),
        (
            {"root_pod": {"storage": "a"}},
            r"topology\['root_pod'\] has \['storage'\], allowed: cluster, .*service",
        ),
        (
            {"root_pod": {"service": "NodePort"}},
            r"\['service'\] is 'NodePort', allowed with topology\['root'\]",
        ),
        (
            {"root": "a:1", "root_pod": {"service": "NodePort"}},
            "port 1 of a NodePort: must be 30000 to 32767",
        ),
        (
            {"root": "a:1", "root_pod": {"service": "ClusterIP"}},
            "'ClusterIP': must be one of LoadBalancer, Nod",
        ),
        ({"root": "a"}, r"topology\['root'\] is 'a', allowed: host:port"),
    ],
)
def test_what_is_wrong_is_named_with_its_value_and_what_is_allowed(options, reason):
    with pytest.raises(InputError, match=reason):
        check_pods(options)


def test_a_site_elsewhere_needs_a_root_that_it_reaches():
    with pytest.raises(InputError, match=r"topology\['root'\] is missing; site 'oslo' is in another cluster"):
        places({"sites": {"oslo": {"cluster": {"context": "oslo"}}}}, SITES, COMMON, "")


def test_certificates_are_of_secrets_for_all_or_for_none():
    some = {"sites": {"oslo": {"certificates_secret": "a"}}}
    with pytest.raises(
        InputError, match="certificates_secret is given, and 'root' has none; allowed: one for"
    ):
        places(some, SITES, COMMON, "")
    with pytest.raises(InputError, match="and certificates is '/certificates'; allowed"):
        places(TWO, SITES, COMMON, "/certificates")
    assert places({}, SITES, COMMON, "/certificates").certificates == "/certificates"
