"""The package `azure-native` as the engine meets it, before it is configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pulumi_sandbox.providers.azure_native import options
from pulumi_sandbox.providers.azure_native.kind import AzureKind
from pulumi_sandbox.providers.azure_native.manager import ResourceManager
from pulumi_sandbox.providers.azure_native.resources import RESOURCES
from pulumi_sandbox.providers.contract import Package, Provider
from pulumi_sandbox.providers.dispatch import Dispatcher
from pulumi_sandbox.providers.patience import Patience

_TITLE: Final = "Azure"


def package(pause: Callable[[float], None] | None = None) -> Package:
    """Return the package; `pause` stands in for waiting between attempts."""
    return Package(
        title=_TITLE,
        version="3.29.0",
        problems=options.problems,
        replacing_options=options.replacing,
        configure=partial(_configure, pause),
    )


def _configure(pause: Callable[[float], None] | None, given: Mapping[str, str]) -> Provider:
    chosen = options.read(given)
    patience = Patience(f"Azure at {chosen.metadata_host}")
    api = ResourceManager(chosen, pause or patience.wait)
    kinds = {token: AzureKind(api, chosen, resource) for token, resource in RESOURCES.items()}
    return Dispatcher(_TITLE, kinds, {}, patience)
