"""Where a tree's pods go, as the `topology` parameter says: clusters, namespaces, settings, stores.

Beside the addresses of `topology.py` each site takes::

    cluster              {"kubeconfig": path, "context": name}; {} is the step's own cluster
    namespace            of its pods; empty is the step's own
    image, image_pull_secrets, service_account, resources, env, volumes, volume_mounts, tolerations,
    node_selector, affinity
                         of its pods, as Kubernetes writes them; what is missing is as for the step
    certificates_secret  a secret in the namespace with `tls.crt`, `tls.key` and `ca.crt` of the site
    storage              URI of the site's own store

and `root_pod` the same of the root's, but `storage`, and `service`, the type of the Service that opens the
root's port to other clusters. Where `root` is missing, a `LoadBalancer` tells its address itself; where it is
a host alone, a `NodePort` its port. Knows nothing of what the pods do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..._files import InputError
from ..._launch.cluster import Cluster
from ..._launch.pods import PodService, PodSettings
from ..topology import ROOT, check
from ..transport.base import Address

ROOT_PORT = 7000
"""Where the root listens in its pod; further roots of `multigps(at=root)` at the next ports."""
OF_CLUSTER = ("kubeconfig", "context")
LISTS = ("env", "volumes", "volume_mounts", "tolerations")
MAPPINGS = ("resources", "node_selector", "affinity")
OF_SETTINGS = ("image", "service_account")
TEXTS = (*OF_SETTINGS, "namespace", "certificates_secret")
SECRETS = "image_pull_secrets"
OF_PODS = ("cluster", SECRETS, *TEXTS, *LISTS, *MAPPINGS)
OF_ROOT_POD = (*OF_PODS, "service")
OF_SITE_PODS = (*OF_PODS, "storage")
CERTIFICATES = "/var/run/geokfp/certificates"
"""Where a pod finds the certificates of a secret."""
_VOLUME = "geokfp-certificates"


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupPlace:
    """Where the pods of one group go."""

    cluster: Cluster = field(default_factory=Cluster)
    """Whose API server starts them."""
    namespace: str = ""
    """Empty for the step's own."""
    settings: PodSettings = field(default_factory=PodSettings)
    """Of the pods."""
    storage: str = ""
    """URI of the site's own store; empty for none."""
    service: PodService | None = None
    """What opens the root's port beyond its cluster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TreePlaces:
    """Where all pods of a tree go."""

    root: GroupPlace
    """The root's pod."""
    sites: Mapping[str, GroupPlace]
    """The pods of each site."""
    certificates: str
    """Folder of certificates in each pod; empty for none."""

    @property
    def are_apart(self) -> bool:
        """Whether a site's pods know the names of their own launch only, not of the root's."""
        return any(not self.together(site) for site in self.sites)

    def together(self, site: str) -> bool:
        """Whether a site's pods are where the root's is."""
        return _where(self.sites[site]) == _where(self.root)


def check_pods(options: Mapping[str, Any]) -> tuple[Address, ...]:
    """Checks the `topology` parameter of a tree of pods, as far as it can be without knowing the sites.

    Returns:
        The addresses that it gives.

    Raises:
        InputError: a key that does not exist, or a value that is not allowed.
    """
    _check_keys("topology", options, ("root", "root_pod", "sites"))
    sites = options.get("sites", {})
    _check_type("topology['sites']", sites, Mapping, "a mapping of site names")
    for name, site in sites.items():
        option = f"topology['sites'][{name!r}]"
        _check_keys(option, site, ("accepts", *OF_SITE_PODS))
        _place(option, _of_pods(site), OF_SITE_PODS, PodSettings())
    _place("topology['root_pod']", options.get("root_pod", {}), OF_ROOT_POD, PodSettings())
    _service(options)
    return check(addresses(options))


def has_secrets(options: Mapping[str, Any]) -> bool:
    """Tells whether secrets with certificates are named in the `topology` parameter."""
    named = (options.get("root_pod", {}), *options.get("sites", {}).values())
    return any(place.get("certificates_secret") for place in named)


def has_stores(options: Mapping[str, Any]) -> bool:
    """Tells whether sites have stores of their own in the `topology` parameter."""
    sites = options.get("sites") if isinstance(options, Mapping) else None
    given = sites.values() if isinstance(sites, Mapping) else ()
    return any("storage" in site for site in given if isinstance(site, Mapping))


def addresses(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of the `topology` parameter of a tree of pods that is about addresses."""
    sites = {
        name: {"accepts": site["accepts"]}
        for name, site in options.get("sites", {}).items()
        if "accepts" in site
    }
    known = "root" in options and not _is_host(options)
    return {"sites": sites} | ({"root": options["root"]} if known else {})


def places(
    options: Mapping[str, Any],
    sites: Sequence[str],
    common: PodSettings,
    certificates: str,
    *,
    root_needed: bool = True,
) -> TreePlaces:
    """Returns where a tree's pods go.

    Args:
        options: a `topology` parameter that `check_pods` passed.
        sites: the tree's sites.
        common: settings of all pods where `options` says nothing.
        certificates: folder of certificates in each pod that volumes of the settings bring; empty for none.
        root_needed: whether sites must reach the root.

    Raises:
        InputError: a site does not exist, the root cannot be reached from one, or some have a secret with
            certificates and others have none.
    """
    given = options.get("sites", {})
    if unknown := sorted(set(given) - set(sites)):
        raise InputError(f"topology['sites'] names {unknown}, allowed: {sorted(sites)}")
    root = replace(
        _place("topology['root_pod']", options.get("root_pod", {}), OF_ROOT_POD, common),
        service=_service(options),
    )
    found = TreePlaces(
        root=root,
        sites={site: _site(site, given.get(site, {}), common) for site in sites},
        certificates=_certificates(options, sites, certificates),
    )
    apart = [site for site in sites if not found.together(site)]
    if root_needed and apart and "root" not in options and root.service is None:
        raise InputError(
            f"topology['root'] is missing; site {apart[0]!r} is in another cluster or namespace than the "
            "root, allowed then: host:port at which the root is reached from there, or none with the service "
            "LoadBalancer of root_pod"
        )
    return found


def _site(name: str, given: Mapping[str, Any], common: PodSettings) -> GroupPlace:
    return _place(f"topology['sites'][{name!r}]", _of_pods(given), OF_SITE_PODS, common)


def _of_pods(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key in OF_SITE_PODS}


def _place(option: str, given: Any, keys: tuple[str, ...], common: PodSettings) -> GroupPlace:
    _check_keys(option, given, keys)
    _check_types(option, given)
    cluster = given.get("cluster", {})
    _check_keys(f"{option}['cluster']", cluster, OF_CLUSTER)
    for key in OF_CLUSTER:
        _check_type(f"{option}['cluster'][{key!r}]", cluster.get(key, ""), str, "text")
    changed: dict[str, Any] = {key: tuple(given[key]) for key in (*LISTS, SECRETS) if key in given}
    changed |= {key: given[key] for key in (*MAPPINGS, *OF_SETTINGS) if key in given}
    settings = replace(common, **changed)
    if given.get("certificates_secret"):
        settings = _with_secret(settings, given["certificates_secret"])
    return GroupPlace(
        cluster=Cluster(**cluster) if cluster else Cluster(),
        namespace=given.get("namespace", ""),
        settings=settings,
        storage=given.get("storage", ""),
    )


def _with_secret(settings: PodSettings, secret: str) -> PodSettings:
    volume = {"name": _VOLUME, "secret": {"secretName": secret}}
    mount = {"name": _VOLUME, "mountPath": CERTIFICATES, "readOnly": True}
    return replace(
        settings, volumes=(*settings.volumes, volume), volume_mounts=(*settings.volume_mounts, mount)
    )


def _service(options: Mapping[str, Any]) -> PodService | None:
    kind = options.get("root_pod", {}).get("service", "")
    if not kind:
        return None
    if "root" not in options:
        if kind == "NodePort":
            raise InputError(
                f"topology['root_pod']['service'] is {kind!r}, allowed with topology['root'] only: a node's "
                "host, or host:port, at which the Service is reached"
            )
        return PodService(kind=kind, port=ROOT_PORT, target_port=ROOT_PORT)
    if _is_host(options):
        return PodService(kind=kind, port=0, target_port=ROOT_PORT, address=options["root"])
    root = Address.parse(options["root"], "topology['root']")
    return PodService(kind=kind, port=root.port, target_port=ROOT_PORT, address=root.host)


def _is_host(options: Mapping[str, Any]) -> bool:
    """Whether `root` is a host alone, as it may be where the cluster chooses the port of its nodes."""
    root, service = options.get("root"), options.get("root_pod", {}).get("service")
    return service == "NodePort" and isinstance(root, str) and bool(root) and ":" not in root


def _certificates(options: Mapping[str, Any], sites: Sequence[str], certificates: str) -> str:
    given = {ROOT: options.get("root_pod", {})} | {
        name: options.get("sites", {}).get(name, {}) for name in sites
    }
    lacking = [name for name, place in given.items() if not place.get("certificates_secret")]
    if len(lacking) == len(given):
        return certificates
    if certificates or lacking:
        whose = f"{lacking[0]!r} has none" if lacking else f"certificates is {certificates!r}"
        raise InputError(
            f"topology: certificates_secret is given, and {whose}; allowed: one for root_pod and each site, "
            "and certificates empty"
        )
    return CERTIFICATES


def _where(place: GroupPlace) -> tuple[str, str, str]:
    return place.cluster.kubeconfig, place.cluster.context, place.namespace


def _check_types(option: str, given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        name = f"{option}[{key!r}]"
        if key in LISTS:
            _check_type(name, value, list, "a list of mappings")
            for item in value:
                _check_type(name, item, Mapping, "a list of mappings")
        elif key == SECRETS:
            _check_type(name, value, list, "a list of names")
        elif key in MAPPINGS:
            _check_type(name, value, Mapping, "a mapping")
        elif key != "cluster":
            _check_type(name, value, str, "text")


def _check_type(option: str, value: object, kind: type, allowed: str) -> None:
    if not isinstance(value, kind):
        raise InputError(f"{option} is {value!r}, allowed: {allowed}")


def _check_keys(option: str, given: Any, keys: tuple[str, ...]) -> None:
    _check_type(option, given, Mapping, f"a mapping with {', '.join(keys)}")
    if unknown := sorted(set(given) - set(keys)):
        raise InputError(f"{option} has {unknown}, allowed: {', '.join(keys)}")
