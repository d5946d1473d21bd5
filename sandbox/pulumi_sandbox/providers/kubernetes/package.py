"""The package `kubernetes` as the engine meets it, before a cluster is chosen."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pulumi_sandbox.providers.contract import Package
from pulumi_sandbox.providers.kubernetes import kubeconfig, options
from pulumi_sandbox.providers.kubernetes.connection import Connection
from pulumi_sandbox.providers.kubernetes.provider import Provider


def package(folder: Path = Path()) -> Package:
    """Return the package; folder: whence relative paths of kubeconfigs are meant."""
    load = partial(kubeconfig.load_if_readable, folder=folder)
    return Package(
        title="Kubernetes",
        version="4.34.2",
        problems=options.problems,
        replacing_options=lambda old, new: options.replacing_keys(old, new, load),
        configure=partial(_configure, folder),
    )


def _configure(folder: Path, given: Mapping[str, str]) -> Provider:
    """Take the options; the cluster is not asked for anything yet."""
    chosen = options.read(given, folder)
    return Provider(chosen, Connection(chosen))
