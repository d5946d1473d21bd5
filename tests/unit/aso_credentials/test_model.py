"""The data of a Secret: what a credential of the configuration becomes, and what is refused of any other."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from components.aso_credentials.credential import AsoCredential
from components.aso_credentials.model import Unfit, client_secret_of, faults_of, method_of
from tests.support.cases import cases
from tests.support.certificates import pem, pkcs12, without_key

SUB, TENANT, CLIENT = (f"00000000-0000-4000-8000-0000000000{end}" for end in ("aa", "bb", "cc"))
IDS: Mapping[str, bytes] = {
    "AZURE_SUBSCRIPTION_ID": SUB.encode(),
    "AZURE_TENANT_ID": TENANT.encode(),
    "AZURE_CLIENT_ID": CLIENT.encode(),
}
GIVEN: Final = {"subscriptionId": SUB, "tenantId": TENANT, "clientId": CLIENT}
CLOUD: Final = {
    "authorityHost": "https://login.example/",
    "resourceManagerEndpoint": "https://management.example",
    "resourceManagerAudience": "https://management.example",
}
CLOUD_KEYS: Final = {
    "AZURE_AUTHORITY_HOST": b"https://login.example/",
    "AZURE_RESOURCE_MANAGER_ENDPOINT": b"https://management.example",
    "AZURE_RESOURCE_MANAGER_AUDIENCE": b"https://management.example",
}
PEM, LOCKED = pem(), pkcs12(b"p w")
METHODS: Final[Mapping[str, tuple[str, dict[str, Any], Sequence[bytes], set[str]]]] = {
    "secret": ("servicePrincipal", {"secretFrom": "x"}, [b"s"], {"AZURE_CLIENT_SECRET"}),
    "pem": ("servicePrincipal", {"certificateFrom": "x"}, [PEM], {"AZURE_CLIENT_CERTIFICATE"}),
    "pkcs12": (
        "servicePrincipal",
        {"certificateFrom": "x", "passwordFrom": "y"},
        [LOCKED, b"p w"],
        {"AZURE_CLIENT_CERTIFICATE", "AZURE_CLIENT_CERTIFICATE_PASSWORD"},
    ),
    "token": ("workloadIdentity", {}, [], set()),
    "token of an account": (
        "workloadIdentity",
        {"serviceAccount": "mine"},
        [],
        {"AZURE_WORKLOAD_IDENTITY_SERVICE_ACCOUNT"},
    ),
    "pod": ("podIdentity", {}, [], {"AUTH_MODE"}),
}
CHOSEN: Final = {
    "secret": "servicePrincipalSecret",
    "pem": "servicePrincipalCertificate",
    "pkcs12": "servicePrincipalCertificate",
    "token": "workloadIdentity",
    "token of an account": "workloadIdentity",
    "pod": "podIdentity",
}


def credential(method: str, **changes: Any) -> AsoCredential:
    kind, given, _, _ = METHODS[method]
    return AsoCredential.model_validate({kind: {**GIVEN, **given}, **changes})


@pytest.mark.parametrize("cloud", [None, CLOUD], ids=["own cloud", "another cloud"])
@pytest.mark.parametrize(
    "tenants", [[], [SUB, TENANT], ["*"], [SUB, "*"]], ids=["none", "two", "all", "both"]
)
@pytest.mark.parametrize("method", [*METHODS])
def test_what_a_credential_becomes_is_faultless_and_chooses_the_method_that_was_meant(
    method: str, tenants: list[str], cloud: dict[str, str] | None
) -> None:
    tenants = [] if method == "pod" else tenants
    data = credential(method, additionalTenants=tenants, cloud=cloud).data(METHODS[method][2])
    assert faults_of(data, strict=method == "token of an account") == ()
    assert all(data.values())
    assert method_of(data) == CHOSEN[method]
    assert {key: data.get(key) for key in CLOUD_KEYS} == (CLOUD_KEYS if cloud else dict.fromkeys(CLOUD_KEYS))
    assert data.get("AZURE_ADDITIONAL_TENANTS", b"").decode() == ",".join(tenants)


def unfit(data: Mapping[str, bytes], *, strict: bool = False) -> str:
    return "; ".join(faults_of(data, strict=strict))


FAULTS: Final[Mapping[str, tuple[Mapping[str, bytes], str]]] = {
    "empty secret": ({"AZURE_CLIENT_SECRET": b""}, "AZURE_CLIENT_SECRET is empty"),
    "line end behind a secret": ({"AZURE_CLIENT_SECRET": b"s\n"}, "line end"),
    "two methods": ({"AZURE_CLIENT_SECRET": b"s", "AZURE_CLIENT_CERTIFICATE": b"c"}, "no effect"),
    "certificate without a key": ({"AZURE_CLIENT_CERTIFICATE": without_key()}, "no private key"),
    "password alone": ({"AZURE_CLIENT_CERTIFICATE_PASSWORD": b"p"}, "no effect"),
    "a part of a cloud": ({"AZURE_AUTHORITY_HOST": b"https://login.example/"}, "go together"),
    "cloud without URL": ({**CLOUD_KEYS, "AZURE_AUTHORITY_HOST": b"x"}, "not an https:// address"),
    "tenants that are no GUIDs": ({"AZURE_ADDITIONAL_TENANTS": b"example.org"}, "not a list of GUIDs"),
    "tenants of a pod": (
        {"AUTH_MODE": b"podidentity", "AZURE_ADDITIONAL_TENANTS": SUB.encode()},
        "is ignored",
    ),
    "account in relaxed mode": ({"AZURE_WORKLOAD_IDENTITY_SERVICE_ACCOUNT": b"mine"}, "is ignored"),
    "a key of the operator": ({"USE_WORKLOAD_IDENTITY_AUTH": b"true"}, "no effect"),
    "an unknown mode": ({"AUTH_MODE": b"PODIDENTITY"}, "no method"),
    "not a string": ({"AZURE_CLIENT_SECRET": b"\xff"}, "not a string"),
    "no GUID": ({"AZURE_CLIENT_ID": b"principal"}, "AZURE_CLIENT_ID is not a GUID"),
}


@cases("extra, words", FAULTS)
def test_a_secret_no_credential_would_be_is_refused(extra: Mapping[str, bytes], words: str) -> None:
    assert words in unfit({**IDS, **extra})


def test_all_faults_are_told_at_once_and_none_holds_a_value() -> None:
    told = unfit({"AZURE_TENANT_ID": b"sentinel", "AZURE_CLIENT_SECRET": b"hush", "EXTRA": b"sentinel"})
    for part in ("AZURE_SUBSCRIPTION_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "EXTRA has no effect"):
        assert part in told
    assert "sentinel" not in told
    assert "hush" not in told


@cases(
    "content, secret",
    {
        "text": (b"s~e.c", "s~e.c"),
        "field": (b'{"clientSecret": "s", "clientID": "c"}', "s"),
        "text with a brace": (b"{not json", "{not json"),
        "JSON text": (b'"quoted"', '"quoted"'),
    },
)
def test_a_client_secret_is_text_or_a_field_of_an_object(content: bytes, secret: str) -> None:
    assert client_secret_of(content) == secret


@pytest.mark.parametrize("content", [b'{"clientSecret": 7}', b"{}", b'{"clientSecret": "\\ud800"}', b"\xff"])
def test_a_credential_without_a_client_secret_is_refused_without_its_text(content: bytes) -> None:
    with pytest.raises(Unfit, match=r"^AZURE_CLIENT_SECRET(:| is not a string)"):
        client_secret_of(content)
