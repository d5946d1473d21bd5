"""The package `azure-native` before it is configured: its options and resources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Properties, text
from pulumi_sandbox.providers.azure_native.resources import RESOURCES, AzureKind
from pulumi_sandbox.providers.contract import (
    Package,
    Patience,
    Problem,
    Provider,
    missing_options,
)
from pulumi_sandbox.providers.rest import Rest, Retries

VARIABLE: Final = "ARM_METADATA_HOSTNAME"
"""Variable that is read if the option is not set, as in the real provider."""
_REQUIRED: Final = {
    "metadataHost": "the sandbox reaches no real Azure; set it to an emulator (127.0.0.1:PORT), "
    "or use the Pulumi CLI",
    "subscriptionId": "no subscription is given; set azure-native:subscriptionId in the stack",
}

_METADATA: Final = {"api-version": "2022-09-01"}

_RETRIES: Final = Retries(
    delays=(20, 60, 120),
    statuses=frozenset({408, 429, 500, 502, 503, 504}),
    reasons=frozenset(
        {"AnotherOperationInProgress", "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"}
    ),
    lost=frozenset({"GET", "PUT", "DELETE"}),
)
"""Every request of this provider can be repeated safely."""


def problems(config: Properties) -> list[Problem]:
    """Return the missing options; credentials are not required, as an emulator accepts any token."""
    return missing_options(config, _REQUIRED, {"metadataHost": metadata_host({})})


def metadata_host(given: Mapping[str, str]) -> str:
    """Return the host of Resource Manager's metadata, from the option or the variable."""
    return given.get("metadataHost") or os.environ.get(VARIABLE, "")


def _resource_manager(host: str, pause: Callable[[float], None]) -> Rest:
    """Return Resource Manager of a cloud, whose address comes from the metadata of a host.

    SSL_CERT_FILE names the CA that it is trusted by, as for Go programs.
    """
    authority = os.environ.get("SSL_CERT_FILE", "")

    def connect(find: Callable[[], str]) -> Rest:
        return Rest("Azure Resource Manager", find, "sandbox", _RETRIES, pause, authority=authority)

    metadata = connect(lambda: host)

    def find() -> str:
        told = metadata.ask("read the metadata of", host, "GET", "/metadata/endpoints", query=_METADATA)
        return text(told.get("resourceManager")).rstrip("/")

    return connect(find)


def package() -> Package:
    """Return the package."""
    return Package(
        title="Azure",
        version="3.29.0",
        served=", ".join(sorted(RESOURCES)),
        problems=problems,
        configure=_configure,
    )


def _configure(given: Mapping[str, str]) -> Provider:
    host = metadata_host(given)
    patience = Patience(lambda: f"Azure at {host}")
    api = _resource_manager(f"https://{host}", patience.wait)
    subscription, location = given.get("subscriptionId", ""), given.get("location", "")
    kinds = {token: AzureKind(api, subscription, location, resource) for token, resource in RESOURCES.items()}
    return Provider(lambda urn: kinds.get(urns.parse(urn).type), patience.cancel)
