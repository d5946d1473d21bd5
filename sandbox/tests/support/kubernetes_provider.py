"""The sandbox's Kubernetes provider, configured for a cluster."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pulumi_sandbox.providers.kubernetes.provider import package

from sandbox.tests.support.provider_engine import Engine, served


@contextmanager
def provider_at(kubeconfig: Path, **options: str) -> Generator[Engine]:
    """Serve a provider of this cluster, configured with the options."""
    with served(package()) as engine:
        engine.configure(kubeconfig=str(kubeconfig), **options)
        yield engine
