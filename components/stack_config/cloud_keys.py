"""Keys of the clouds' providers in a stack's file, and their formats.

Checked before the program runs: the providers would ignore an unknown key, or fail halfway.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.metadata import requires, version
from importlib.util import find_spec
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from components.config.document import misspelt
from components.errors import Problem
from components.naming import is_gcp_project

Form: TypeAlias = tuple[Callable[[str], object], str, str]
"""Condition that a value must meet; problem and fix if it does not."""

_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = re.compile(rf"({_LABEL}\.)*(?!\d+$){_LABEL}")
_PORT: Final = re.compile(r"0|[1-9][0-9]{0,4}")
_OPEN: Final = ("127.0.0.1", "localhost")
"""Hosts for which the sandbox can choose the port; the port is then 0."""


def _is_address(text: str) -> bool:
    return _is_request(text) and "?" not in text


def _is_request(text: str) -> bool:
    """Return whether a string is an address that can have a query."""
    try:
        url = urlsplit(text)
        host, port = url.hostname or "", url.port
    except ValueError:
        return False
    is_plain = text.isprintable() and not {*text} & {*" #"} and "@" not in url.netloc
    is_served = _is_host(host) and (port != 0 or host in _OPEN)
    return is_plain and is_served and url.scheme in ("http", "https")


def _is_machine(text: str) -> bool:
    """Return whether a string is a host with a dot, or with a port."""
    host, colon, port = text.partition(":")
    if not colon:
        return _is_host(host) and ("." in host or host == "localhost")
    lowest = 0 if host in _OPEN else 1
    return _is_host(host) and bool(_PORT.fullmatch(port)) and lowest <= int(port) <= 65_535


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return bool(_NAME.fullmatch(text))
    return True


_ANY: Final[Form] = (lambda _text: True, "", "")
_TEXT: Final[Form] = (
    lambda text: bool(text) and text == text.strip() and text.isprintable(),
    "it is empty, or has blanks at its ends or invisible characters",
    "write it without them",
)
_FLAG: Final[Form] = (
    {"true", "false"}.__contains__,
    "it must be true or false",
    "write true or false, without quotes",
)
_ADDRESS: Final[Form] = (
    _is_address,
    "it is not an address of a service",
    "write it such as https://secretmanager.example/v1/",
)
_REQUEST: Final[Form] = (_is_request, *_ADDRESS[1:])
_GUID: Final[Form] = (
    re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch,
    "it is not an id of Azure: 32 digits of 0-9 and a-f, in lower case, in five groups",
    "take it from: az account show",
)
_TENANT: Final[Form] = (
    lambda text: _GUID[0](text) or ("." in text and _NAME.fullmatch(text)),
    "it is neither the id of a tenant of Azure nor one of its domains",
    "take it from: az account show",
)
_PROJECT: Final[Form] = (
    is_gcp_project,
    "it is not an id of a project of Google Cloud: 6 to 30 lower-case letters, digits and '-'",
    "take it from: gcloud projects list",
)
_MACHINE: Final[Form] = (
    _is_machine,
    "it is not a host, such as management.azure.com or 127.0.0.1:18552",
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
        **_forms(_TENANT, "tenantId"),
        **_forms(_MACHINE, "metadataHost"),
        **_forms(_ADDRESS, "msiEndpoint"),
        **_forms(_REQUEST, "oidcRequestUrl"),
        **_forms(_TEXT, "clientCertificatePath", "environment", "location", "oidcTokenFilePath"),
        **_forms(_TEXT, "partnerId"),
    },
}
"""Namespace → key → form. Google's provider also has a key for the endpoint of each service."""

NAMESPACES: Final = frozenset({*_FORMS, "kubernetes", "pulumi"})
"""Namespaces that are read here or checked elsewhere."""

LOGINS: Final[Mapping[str, tuple[str, ...]]] = {
    "aws": ("accessKey", "secretKey", "token"),
    "azure-native": ("clientCertificatePassword", "clientSecret", "oidcRequestToken", "oidcToken"),
    "gcp": ("accessToken", "credentials", "externalCredentials"),
    "kubernetes": ("kubeconfig",),
}
"""Namespace → its keys that the provider's schema marks as secret, except IDs."""

_MAY_BE_FILES: Final = ("gcp:credentials", "kubernetes:kubeconfig")

_OTHER_NAMES: Final = {"azure": "azure-native", "google": "gcp", "google-native": "gcp"}
"""Namespace of a package that this program does not use → namespace of the one that it uses."""


def is_known(namespace: str, name: str) -> bool:
    """Return whether a cloud's provider has such a key."""
    return name in _FORMS[namespace] or (namespace == "gcp" and name.endswith("CustomEndpoint"))


def cloud_meant(namespace: str) -> str | None:
    """Return the cloud's namespace that an unknown namespace resembles, or None."""
    if namespace in NAMESPACES:
        return None
    written = namespace.lower().replace("_", "-")
    alike = difflib.get_close_matches(written, _FORMS, n=1, cutoff=0.75)
    return _OTHER_NAMES.get(written) or next(iter(alike), None)


def review_cloud_keys(values: Mapping[str, str]) -> Iterator[Problem]:
    """Reject keys that a cloud's provider does not have, and invalid values."""
    for key, text in values.items():
        namespace, _, name = key.partition(":")
        if namespace not in _FORMS:
            continue
        if not is_known(namespace, name):
            yield Problem(key, *misspelt(name, _FORMS[namespace]))
            continue
        test, problem, fix = _FORMS[namespace].get(name, _ADDRESS)
        if not test(text):
            yield Problem(key, problem, fix)


def plain_logins(values: Mapping[str, str], secret_keys: Collection[str]) -> Iterator[str]:
    """Yield the keys of cloud credentials that a configuration has in plaintext."""
    for key in (f"{namespace}:{name}" for namespace, names in LOGINS.items() for name in names):
        text = values.get(key, "").strip()
        is_path = key in _MAY_BE_FILES and "\n" not in text and not text.startswith("{")
        if text and key not in secret_keys and not is_path:
            yield key


def in_plain(path: str) -> Problem:
    """Return the problem of a secret that is not encrypted."""
    return Problem(
        path,
        "it is in plaintext in the stack file, where every reader of the repository can use it",
        f"set it again with `pulumi config set --secret --path '{path}'`, and rotate it",
    )


def is_encrypted(written: Any) -> bool:
    """Return whether a value is encrypted in a stack's file."""
    return isinstance(written, dict) and set(cast("dict[str, Any]", written)) == {"secure"}


_PACKAGES: Final = {"azure": "pulumi-azure-native", "gcp": "pulumi-gcp"}


def review_sdk(extra: str, place: str) -> Iterator[Problem]:
    """Reject what requires the SDK of a cloud, `azure` or `gcp`, if its required version is not installed."""
    package = _PACKAGES[extra]
    required = next(each for each in requires("credfleet") or () if each.startswith(package))
    asked = required.partition(";")[0].strip()
    found = None if find_spec(package.replace("-", "_")) is None else version(package)
    if found is None or found not in Requirement(asked).specifier:
        is_found = f"and {found} is" if found else "which is not"
        yield Problem(
            place,
            f"it needs the package {asked}, {is_found} installed here",
            f"pip install '{asked}'  # and put [{extra}] behind credfleet in requirements.txt",
        )
