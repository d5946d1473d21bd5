"""The package `kubernetes` as the engine meets it, before a cluster is chosen."""

from collections.abc import Mapping
from typing import Final

from pulumi_sandbox.providers.contract import Package
from pulumi_sandbox.providers.kubernetes import kubeconfig, options
from pulumi_sandbox.providers.kubernetes.connection import Connection
from pulumi_sandbox.providers.kubernetes.provider import Provider


def _configure(given: Mapping[str, str]) -> Provider:
    """Take the options; the cluster is not asked for anything yet."""
    chosen = options.read(given)
    return Provider(chosen, Connection(chosen))


KUBERNETES: Final = Package(
    title="Kubernetes",
    version="4.34.2",
    problems=options.problems,
    replacing_options=lambda old, new: options.replacing_keys(old, new, kubeconfig.load_if_readable),
    configure=_configure,
)
