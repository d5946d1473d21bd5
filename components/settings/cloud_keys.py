"""The keys of the clouds' providers that a stack's file may set, and what each may look like.

Told before the program runs: the providers themselves would ignore an unknown key, or end half-way
(docs/design/decisions.md, Explicit providers read their own keys).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from components.errors import Problem
from components.naming import is_gcp_project
from components.settings.document import misspelt

Form: TypeAlias = tuple[Callable[[str], object], str, str]
"""What passes, and cause and mend for what does not."""

_PORT: Final = r":[1-9][0-9]{0,4}"
_HOST: Final = re.compile(
    rf"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+)({_PORT})?|[a-z0-9-]+{_PORT}|(127\.0\.0\.1|localhost):0"
)


def _is_address(text: str) -> bool:
    try:
        url = urlsplit(text)
        if url.port == 0 and url.hostname not in ("127.0.0.1", "localhost"):
            return False
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.hostname) and text == text.strip()


_ANY: Final[Form] = (lambda _text: True, "", "")
_TEXT: Final[Form] = (
    lambda text: bool(text) and text == text.strip() and text.isprintable(),
    "it is empty, or has blanks at its ends or characters nobody sees",
    "write it without them",
)
_FLAG: Final[Form] = (
    {"true", "false"}.__contains__,
    "it is neither true nor false",
    "write true or false, without quotes",
)
_ADDRESS: Final[Form] = (
    _is_address,
    "it is no address of a service",
    "write it such as https://secretmanager.example/v1/",
)
_GUID: Final[Form] = (
    re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch,
    "it is no id of Azure: 32 digits of 0-9 and a-f, in lower case, in five groups",
    "take it from: az account show",
)
_PROJECT: Final[Form] = (
    is_gcp_project,
    "it is no id of a project of Google Cloud: 6 to 30 lower-case letters, digits and '-'",
    "take it from: gcloud projects list",
)
_MACHINE: Final[Form] = (
    _HOST.fullmatch,
    "it is no host, such as management.azure.com or 127.0.0.1:18552",
    "write a host name with a dot in it, or a port behind it",
)


def _forms(form: Form, *names: str) -> Mapping[str, Form]:
    return dict.fromkeys(names, form)


_FORMS: Final[Mapping[str, Mapping[str, Form]]] = {
    "gcp": {
        **_forms(_ANY, "accessToken", "credentials", "batching", "defaultLabels", "externalCredentials"),
        **_forms(_ANY, "impersonateServiceAccountDelegates", "scopes"),
        **_forms(_FLAG, "addPulumiAttributionLabel", "disableGooglePartnerName", "preferGlobalEndpoints"),
        **_forms(_FLAG, "preferRegionalEndpoints", "userProjectOverride"),
        **_forms(_PROJECT, "billingProject", "project"),
        **_forms(_TEXT, "deletionPolicy", "googlePartnerName", "impersonateServiceAccount", "pollInterval"),
        **_forms(_TEXT, "pulumiAttributionLabelAdditionStrategy", "region", "requestReason"),
        **_forms(_TEXT, "requestTimeout", "universeDomain", "zone"),
    },
    "azure-native": {
        **_forms(_ANY, "auxiliaryTenantIds", "clientCertificatePassword", "clientSecret"),
        **_forms(_ANY, "oidcRequestToken", "oidcToken"),
        **_forms(_FLAG, "disableInstanceDiscovery", "disablePulumiPartnerId", "useDefaultAzureCredential"),
        **_forms(_FLAG, "useMsi", "useOidc"),
        **_forms(_GUID, "clientId", "subscriptionId"),
        **_forms(_MACHINE, "metadataHost"),
        **_forms(_ADDRESS, "msiEndpoint", "oidcRequestUrl"),
        **_forms(_TEXT, "clientCertificatePath", "environment", "location", "oidcTokenFilePath"),
        **_forms(_TEXT, "partnerId", "tenantId"),
    },
}
"""Namespace → key → form. Google's provider has besides a key for the endpoint of each service."""

NAMESPACES: Final = frozenset({*_FORMS, "kubernetes", "pulumi"})
"""Those that somebody reads, or that are told of elsewhere."""


_OTHER_NAMES: Final = {"azure": "azure-native", "google": "gcp", "google-native": "gcp"}
"""Namespaces of packages that this program does not use."""


def is_known(namespace: str, name: str) -> bool:
    """Whether a cloud's provider has such a key."""
    return name in _FORMS[namespace] or (namespace == "gcp" and name.endswith("CustomEndpoint"))


def cloud_meant(namespace: str) -> str | None:
    """Return the cloud's namespace that was meant by one that nobody reads, if it is like one."""
    if namespace in NAMESPACES:
        return None
    written = namespace.lower().replace("_", "-")
    alike = difflib.get_close_matches(written, _FORMS, n=1, cutoff=0.75)
    return _OTHER_NAMES.get(written) or next(iter(alike), None)


def review_cloud_keys(values: Mapping[str, str]) -> Iterator[Problem]:
    """Refuse keys that a cloud's provider does not have, and what none of them could mean."""
    for key, text in values.items():
        namespace, _, name = key.partition(":")
        if namespace not in _FORMS:
            continue
        if not is_known(namespace, name):
            yield Problem(key, *misspelt(name, _FORMS[namespace]))
            continue
        test, cause, mend = _FORMS[namespace].get(name, _ADDRESS)
        if not test(text):
            yield Problem(key, cause, mend)
