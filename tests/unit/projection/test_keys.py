"""Which key of a source becomes which key of the target, and which values are refused."""

import base64
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.errors import ProjectionError
from components.projection.keys import AsoMethod, plan_keys

GUID = "00000000-0000-4000-8000-000000000001"
ACCOUNT = {"subscriptionID": GUID, "tenantID": GUID, "clientID": GUID}
IDENTITY = {"AZURE_SUBSCRIPTION_ID": GUID, "AZURE_TENANT_ID": GUID, "AZURE_CLIENT_ID": GUID}


def data(values: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


def projected(
    values: Mapping[str, str], method: AsoMethod | None = None, keys: Mapping[str, str] | None = None
) -> dict[str, str]:
    made = plan_keys(keys or {}, method).apply(data(values), "Secret p/a")
    return {key: base64.b64decode(value).decode() for key, value in made.items()}


EXACT: Mapping[AsoMethod, tuple[dict[str, str], dict[str, str]]] = {
    AsoMethod.SERVICE_PRINCIPAL_SECRET: ({"clientSecret": "s"}, {"AZURE_CLIENT_SECRET": "s"}),
    AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE: (
        {"clientCertificate": "c", "clientCertificatePassword": "p"},
        {"AZURE_CLIENT_CERTIFICATE": "c", "AZURE_CLIENT_CERTIFICATE_PASSWORD": "p"},
    ),
    AsoMethod.WORKLOAD_IDENTITY: ({}, {}),
    AsoMethod.POD_IDENTITY: ({}, {"AUTH_MODE": "podidentity"}),
}


@pytest.mark.parametrize("method", AsoMethod)
def test_a_method_of_aso_gets_exactly_its_keys_from_gardeners(method: AsoMethod) -> None:
    own, expected = EXACT[method]
    everything = {**ACCOUNT, "clientSecret": "s", "clientCertificate": "c", "note": "x", **own}
    assert projected(everything, method) == {**IDENTITY, **expected}


def test_keys_say_where_an_account_differs_from_gardeners_names() -> None:
    renamed = {"subscriptionID": GUID, "tenantID": GUID, "appId": GUID, "password": "s"}
    keys = {"AZURE_CLIENT_ID": "appId", "AZURE_CLIENT_SECRET": "password"}
    made = projected(renamed, AsoMethod.SERVICE_PRINCIPAL_SECRET, keys)
    assert made == {**IDENTITY, "AZURE_CLIENT_SECRET": "s"}


def test_a_key_that_would_choose_another_method_is_refused() -> None:
    with pytest.raises(ProjectionError, match="AZURE_CLIENT_SECRET is not a key of method workloadIdentity"):
        plan_keys({"AZURE_CLIENT_SECRET": "clientSecret"}, AsoMethod.WORKLOAD_IDENTITY)


def test_a_name_no_secret_can_have_is_refused() -> None:
    with pytest.raises(ProjectionError, match="a key cannot be a key"):
        plan_keys({"x": "a key"}, None)


def test_missing_keys_are_told_together_beside_those_there_are() -> None:
    with pytest.raises(ProjectionError) as refused:
        projected({"clientID": GUID, "tenantID": GUID}, AsoMethod.SERVICE_PRINCIPAL_SECRET)
    assert (
        refused.value.problem == "of its keys (clientID, tenantID), clientSecret, subscriptionID is missing"
    )


@pytest.mark.parametrize("unfit", ["", f"{GUID}\n", f" {GUID}", "not-a-guid-s3cret", GUID[:-1]])
def test_an_identity_that_is_no_guid_is_refused_without_showing_it(unfit: str) -> None:
    with pytest.raises(ProjectionError) as refused:
        projected({**ACCOUNT, "clientID": unfit, "clientSecret": "s"}, AsoMethod.SERVICE_PRINCIPAL_SECRET)
    assert refused.value.place == "Secret p/a, key clientID"
    assert not unfit.strip() or unfit not in str(refused.value)


@pytest.mark.parametrize("unfit", ["s3cret\n", " s3cret", "s3cret\u00a0"])
@pytest.mark.parametrize("keys", [{}, {"AZURE_CLIENT_SECRET": "password"}], ids=["as-usual", "renamed"])
def test_a_client_secret_with_blanks_around_it_is_refused_without_showing_it(
    unfit: str, keys: dict[str, str]
) -> None:
    account = {**ACCOUNT, keys.get("AZURE_CLIENT_SECRET", "clientSecret"): unfit}
    with pytest.raises(ProjectionError, match="blank or a line end") as refused:
        projected(account, AsoMethod.SERVICE_PRINCIPAL_SECRET, keys)
    assert "s3cret" not in str(refused.value)


@given(secret=st.text(min_size=12, alphabet="QXZ"), keys=st.sampled_from(["clientID", "tenantID"]))
def test_no_value_is_ever_told(secret: str, keys: str) -> None:
    with pytest.raises(ProjectionError) as refused:
        projected({**ACCOUNT, "clientSecret": "s", keys: secret}, AsoMethod.SERVICE_PRINCIPAL_SECRET)
    assert secret not in repr(refused.value.args) + str(refused.value)
