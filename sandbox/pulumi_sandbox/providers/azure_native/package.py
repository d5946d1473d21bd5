"""The package `azure-native` as the engine meets it, before it is configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pulumi_sandbox.protocol.values import text
from pulumi_sandbox.providers.azure_native import resources
from pulumi_sandbox.providers.azure_native.resources import RESOURCES, AzureKind, AzureOptions
from pulumi_sandbox.providers.contract import Package, Provider
from pulumi_sandbox.providers.dispatch import Dispatcher, Patience
from pulumi_sandbox.providers.rest import Rest, Retries, Service, ask

_METADATA_VERSION: Final = "2022-09-01"
_SERVICE: Final = "Azure Resource Manager"
_HEADERS: Final = {"Authorization": "Bearer sandbox", "User-Agent": "pulumi-sandbox"}

_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504})
_CONFLICTS: Final = frozenset(
    {"AnotherOperationInProgress", "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"}
)
_DELAYS: Final = (20, 60, 120)


_RETRIES: Final = Retries(
    lambda refusal: _DELAYS if refusal.status in _STATUSES or refusal.code in _CONFLICTS else (),
    lambda _: _DELAYS,
)
"""Every request of this provider may be made twice."""


def _resource_manager(chosen: AzureOptions, pause: Callable[[float], None]) -> Rest:
    """Return Resource Manager of the cloud that the options name; that is asked for its address."""

    def at(find: Callable[[], str]) -> Rest:
        return Rest(Service(_SERVICE, find, _HEADERS, chosen.authority), _RETRIES, pause)

    host = f"https://{chosen.metadata_host}"
    return at(partial(_address, at(lambda: host), host))


def _address(metadata: Rest, host: str) -> str:
    version = {"api-version": _METADATA_VERSION}
    told = ask(metadata, "read the metadata of", host, "GET", "/metadata/endpoints", query=version)
    return text(told.get("resourceManager")).rstrip("/")


_TITLE: Final = "Azure"


def package(pause: Callable[[float], None] | None = None) -> Package:
    """Return the package; `pause` stands in for waiting between attempts."""
    return Package(
        title=_TITLE,
        version="3.29.0",
        problems=resources.judge_options,
        configure=partial(_configure, pause),
    )


def _configure(pause: Callable[[float], None] | None, given: Mapping[str, str]) -> Provider:
    chosen = resources.read(given)
    patience = Patience(lambda: f"Azure at {chosen.metadata_host}")
    api = _resource_manager(chosen, pause or patience.wait)
    kinds = {token: AzureKind(api, chosen, resource) for token, resource in RESOURCES.items()}
    return Dispatcher(_TITLE, kinds, {}, patience)
