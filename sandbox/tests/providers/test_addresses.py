"""Providers of clouds find the sandbox's services by the clouds' own variables, unless a stack names them."""

import pytest
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.azure_native import package as azure
from pulumi_sandbox.providers.gcp import package as gcp

GCP: Properties = {"accessToken": "any"}
AZURE: Properties = {"subscriptionId": "00000000-0000-4000-8000-0000000000e1"}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no service."""
    for variable in (gcp.VARIABLE, azure.VARIABLE):
        monkeypatch.delenv(variable, raising=False)


def test_an_endpoint_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [each.place for each in gcp.problems(GCP)] == [gcp.ENDPOINT]
    monkeypatch.setenv("GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT", "http://127.0.0.1:7/v1/")
    assert gcp.problems(GCP) == []
    assert gcp.endpoint({}) == "http://127.0.0.1:7/v1/"
    assert gcp.endpoint({gcp.ENDPOINT: "http://127.0.0.1:8/v1/"}) == "http://127.0.0.1:8/v1/"


def test_a_metadata_host_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [each.place for each in azure.problems(AZURE)] == ["metadataHost"]
    monkeypatch.setenv("ARM_METADATA_HOSTNAME", "127.0.0.1:7")
    assert azure.problems(AZURE) == []
    assert azure.metadata_host({}) == "127.0.0.1:7"
    assert azure.metadata_host({"metadataHost": "127.0.0.1:8"}) == "127.0.0.1:8"
