"""The options of a training over several sites that are about its tree, and whether they go together."""

from collections.abc import Mapping
from typing import Any, Protocol

from ..._files import InputError
from ..security import check_security
from ..topology import check
from .site_pods import check_pods, has_secrets, has_stores


class TreeOptions(Protocol):
    """What the configs of all such trainings have."""

    @property
    def launcher(self) -> str:
        """Where the processes run."""

    @property
    def launches_pods(self) -> bool:
        """Whether they run in pods of their own."""

    def pod_namespace(self) -> str:
        """Returns where pods go that name no namespace."""

    @property
    def service_account(self) -> str:
        """Account of pods; empty is the namespace's default."""

    @property
    def topology(self) -> Mapping[str, Any]:
        """Addresses, and where pods go."""

    @property
    def certificates(self) -> str:
        """Folder of certificates; empty for none."""

    @property
    def plain_text(self) -> bool:
        """Whether links beyond a machine may go without TLS."""

    @property
    def synchronization(self) -> str:
        """How the sites keep in step."""

    @property
    def compression(self) -> str:
        """How values travel."""

    @property
    def transmission(self) -> str:
        """In which pieces and in what order."""

    @property
    def round_timeout_s(self) -> int:
        """Seconds that a round waits for its last worker."""

    @property
    def metrics_host(self) -> str:
        """Where pages for Prometheus listen."""

    @property
    def metrics_port(self) -> int:
        """Port of the first one; 0 for none."""


def check_links(options: TreeOptions) -> None:
    """Holds the topology, certificates and plain text against each other.

    Raises:
        InputError: an option is wrong, or links would be plain text beyond a machine, unasked.
    """
    if options.launcher == "local":
        if has_stores(options.topology):
            check_pods(options.topology)  # processes of this machine stand in for them, over loopback
            return
        check_security(options.certificates, options.plain_text, check(options.topology))
        return
    addresses = check_pods(options.topology)
    secrets = has_secrets(options.topology)
    if not (secrets or options.certificates or options.plain_text):
        raise InputError(
            f"certificates '': must be a folder in every pod with launcher {options.launcher!r}, whose pods "
            "speak over the network; or topology must name a certificates_secret, or plain_text be True"
        )
    check_security("secrets" if secrets else options.certificates, options.plain_text, addresses)
