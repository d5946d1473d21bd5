"""The provider's options: which ones are taken, and what they mean."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.contract import Problem
from pulumi_sandbox.providers.options import option_problems

_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
VARIABLE: Final = "ARM_METADATA_HOSTNAME"
"""What the genuine provider reads as well where the option is not given."""
_REQUIRED: Final = {
    "metadataHost": "the sandbox reaches no real Azure; set it to a stand-in (127.0.0.1:PORT), "
    "or use the Pulumi CLI",
    "subscriptionId": "no subscription is given; set azure-native:subscriptionId in the stack",
}
_TEXTS: Final = frozenset({*_REQUIRED, "location"})
_WITHOUT_EFFECT: Final = frozenset(
    {
        "auxiliaryTenantIds",
        "clientCertificatePassword",
        "clientCertificatePath",
        "clientId",
        "clientSecret",
        "disableInstanceDiscovery",
        "disablePulumiPartnerId",
        "environment",
        "msiEndpoint",
        "oidcRequestToken",
        "oidcRequestUrl",
        "oidcToken",
        "oidcTokenFilePath",
        "partnerId",
        "pluginDownloadURL",
        "tenantId",
        "useDefaultAzureCredential",
        "useMsi",
        "useOidc",
        "version",
    }
)
"""They tell the genuine provider who asks; a stand-in takes any token."""


@dataclass(frozen=True, slots=True)
class AzureOptions:
    """The options of one provider; `authority` is the file of the CA that the stand-in is trusted by."""

    metadata_host: str
    subscription: str
    location: str = ""
    authority: str = ""


def problems(config: Properties) -> list[Problem]:
    """List what is wrong with the options, unknown ones passed over."""
    named = {"metadataHost": os.environ[VARIABLE]} if os.environ.get(VARIABLE) else {}
    return option_problems({**named, **config}, _reason, _REQUIRED)


def read(given: Mapping[str, str]) -> AzureOptions:
    """Read the options from what Configure is given; the CA is named by SSL_CERT_FILE, as for Go programs."""
    return AzureOptions(
        metadata_host=given.get("metadataHost") or os.environ.get(VARIABLE, ""),
        subscription=given.get("subscriptionId", ""),
        location=given.get("location", ""),
        authority=os.environ.get("SSL_CERT_FILE", ""),
    )


def _reason(key: str, value: Value) -> str:
    if key in _WITHOUT_EFFECT:
        return ""
    if key not in _TEXTS:
        return "there is no such option, or it is not served here"
    if not isinstance(value, str):
        return "it must be a text"
    if key == "subscriptionId" and not _GUID.fullmatch(value):
        return "it must be a GUID"
    return ""
