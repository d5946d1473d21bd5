from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.aso_credentials.model import (
    ClientCertificate,
    ClientSecret,
    Cloud,
    Credential,
    Method,
    PodIdentity,
    Unfit,
    WorkloadIdentity,
    client_secret_of,
    method_of,
    read,
)
from tests.support.certificates import pem, pkcs12, without_key

SUB, TENANT, CLIENT = (f"00000000-0000-4000-8000-0000000000{end}" for end in ("aa", "bb", "cc"))
IDS: Mapping[str, bytes] = {
    "AZURE_SUBSCRIPTION_ID": SUB.encode(),
    "AZURE_TENANT_ID": TENANT.encode(),
    "AZURE_CLIENT_ID": CLIENT.encode(),
}
CLOUD = Cloud("https://login.example/", "https://management.example", "https://management.example")
PEM, LOCKED = pem(), pkcs12(b"p w")

guids = st.uuids().map(str)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text == text.strip()
)
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
methods: st.SearchStrategy[Method] = st.one_of(
    st.builds(ClientSecret, texts),
    st.sampled_from([ClientCertificate(PEM), ClientCertificate(LOCKED, "p w")]),
    st.builds(WorkloadIdentity, st.just(value=True), st.none() | names),
    st.builds(WorkloadIdentity),
    st.builds(PodIdentity),
)


@st.composite
def credentials(draw: st.DrawFn) -> Credential:
    method = draw(methods)
    tenants = () if isinstance(method, PodIdentity) else tuple(draw(st.lists(guids, max_size=3)))
    cloud = draw(st.none() | st.just(CLOUD))
    return Credential(draw(guids), draw(guids), draw(guids), method, tenants, cloud)


@given(credentials())
def test_what_is_emitted_is_read_as_the_same_credential(credential: Credential) -> None:
    strict = isinstance(credential.method, WorkloadIdentity) and credential.method.strict
    assert read(credential.emit(), strict=strict) == credential


@given(credentials())
def test_no_key_is_empty_and_aso_chooses_the_method_that_was_meant(credential: Credential) -> None:
    data = credential.emit()
    assert all(data.values())
    assert method_of(data) is credential.method.METHOD


@pytest.mark.parametrize(
    ("method", "keys"),
    [
        (ClientSecret("s"), {"AZURE_CLIENT_SECRET"}),
        (ClientCertificate(PEM), {"AZURE_CLIENT_CERTIFICATE"}),
        (ClientCertificate(LOCKED, "p w"), {"AZURE_CLIENT_CERTIFICATE", "AZURE_CLIENT_CERTIFICATE_PASSWORD"}),
        (WorkloadIdentity(), set[str]()),
        (WorkloadIdentity(strict=True), set[str]()),
        (WorkloadIdentity(strict=True, service_account="mine"), {"AZURE_WORKLOAD_IDENTITY_SERVICE_ACCOUNT"}),
        (PodIdentity(), {"AUTH_MODE"}),
    ],
)
def test_each_method_emits_exactly_its_keys(method: Method, keys: set[str]) -> None:
    assert Credential(SUB, TENANT, CLIENT, method).emit().keys() == IDS.keys() | keys


def test_ids_and_tenants_are_emitted_without_the_blanks_around_them_m15() -> None:
    credential = Credential(f" {SUB}\n", f"{TENANT}\t", CLIENT, WorkloadIdentity(), (SUB, f" {TENANT}"))
    tenants = f"{SUB},{TENANT}".encode()
    assert credential.emit() == {**IDS, "AZURE_ADDITIONAL_TENANTS": tenants}
    assert read({**IDS, "AZURE_ADDITIONAL_TENANTS": f"{SUB}, {TENANT}".encode()}, strict=False) == credential


def test_a_credential_does_not_show_its_secrets() -> None:
    shown = [
        repr(Credential(SUB, TENANT, CLIENT, m))
        for m in (ClientSecret("hush"), ClientCertificate(LOCKED, "p w"))
    ]
    assert [text for text in shown if "hush" in text or "p w" in text or "certificate=" in text] == []


def unfit(data: Mapping[str, bytes], *, strict: bool = False) -> str:
    with pytest.raises(Unfit) as raised:
        read(data, strict=strict)
    return str(raised.value)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        pytest.param({"AZURE_CLIENT_SECRET": b""}, "AZURE_CLIENT_SECRET is empty", id="empty-secret"),
        pytest.param({"AZURE_CLIENT_SECRET": b"s\n"}, "line end", id="line-end-behind-a-secret"),
        pytest.param({"AZURE_CLIENT_SECRET": b"s", "AZURE_CLIENT_CERTIFICATE": b"c"}, "no effect", id="M6"),
        pytest.param({"AZURE_CLIENT_CERTIFICATE": without_key()}, "no private key", id="M10"),
        pytest.param({"AZURE_CLIENT_CERTIFICATE_PASSWORD": b"p"}, "no effect", id="M11"),
        pytest.param(
            {"AZURE_AUTHORITY_HOST": b"https://login.example/"}, "go together", id="cloud-incomplete"
        ),
        pytest.param(
            {**CLOUD.emit(), "AZURE_AUTHORITY_HOST": b"x"}, "no https:// address", id="cloud-no-url"
        ),
        pytest.param({"AZURE_ADDITIONAL_TENANTS": b"example.org"}, "no list of GUIDs", id="tenants"),
        pytest.param(
            {"AUTH_MODE": b"podidentity", "AZURE_ADDITIONAL_TENANTS": SUB.encode()}, "is ignored", id="M3"
        ),
        pytest.param({"AZURE_WORKLOAD_IDENTITY_SERVICE_ACCOUNT": b"mine"}, "is ignored", id="W1"),
        pytest.param({"USE_WORKLOAD_IDENTITY_AUTH": b"true"}, "no effect", id="global-only"),
        pytest.param({"AUTH_MODE": b"PODIDENTITY"}, "no method", id="unknown-mode"),
        pytest.param({"AZURE_CLIENT_SECRET": b"\xff"}, "no text", id="no-text"),
        pytest.param({"AZURE_CLIENT_ID": b"principal"}, "AZURE_CLIENT_ID is no GUID", id="no-guid"),
    ],
)
def test_a_secret_no_credential_would_be_is_refused(extra: Mapping[str, bytes], words: str) -> None:
    assert words in unfit({**IDS, **extra})


def test_a_bad_serviceaccount_is_refused_in_strict_mode_w4() -> None:
    assert "no name" in unfit({**IDS, "AZURE_WORKLOAD_IDENTITY_SERVICE_ACCOUNT": b"My_Own"}, strict=True)


def test_all_faults_are_told_at_once_and_none_holds_a_value() -> None:
    told = unfit({"AZURE_TENANT_ID": b"sentinel", "AZURE_CLIENT_SECRET": b"hush", "EXTRA": b"sentinel"})
    for part in ("AZURE_SUBSCRIPTION_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "EXTRA has no effect"):
        assert part in told
    assert "sentinel" not in told
    assert "hush" not in told


@pytest.mark.parametrize(
    ("keys", "method"),
    [
        (("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE", "AUTH_MODE"), "servicePrincipalSecret"),
        (
            ("AZURE_CLIENT_CERTIFICATE", "AZURE_USER_ASSIGNED_IDENTITY_CREDENTIALS"),
            "servicePrincipalCertificate",
        ),
        (("AZURE_USER_ASSIGNED_IDENTITY_CREDENTIALS", "AUTH_MODE"), None),
        (("AUTH_MODE",), "workloadIdentity"),
    ],
)
def test_a_key_chooses_the_method_even_when_it_is_empty(keys: tuple[str, ...], method: str | None) -> None:
    assert method_of(dict.fromkeys(keys, b"")) == method


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        pytest.param(b"s~e.c", "s~e.c", id="text"),
        pytest.param(b'{"clientSecret": "s", "clientID": "c"}', "s", id="field"),
        pytest.param(b"{not json", "{not json", id="text-with-a-brace"),
        pytest.param(b'"quoted"', '"quoted"', id="json-text"),
    ],
)
def test_a_client_secret_is_text_or_a_field_of_an_object(content: bytes, secret: str) -> None:
    assert client_secret_of(content) == secret


@pytest.mark.parametrize("content", [b'{"clientSecret": 7}', b"{}", b"\xff"])
def test_a_credential_without_a_client_secret_is_refused_without_its_text(content: bytes) -> None:
    with pytest.raises(Unfit, match=r"^AZURE_CLIENT_SECRET(:| is no text)"):
        client_secret_of(content)
