"""Addresses whose port a stack's file leaves open: what the environment says of them, and what is asked."""

import pytest

from components.errors import CredfleetError
from components.open_ports import HYPERFLEET, VARIABLES, is_in_environment, leaves_port_open, settle
from tests.support.cases import tabled


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names none of the services."""
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


@tabled("address, is_open")
def test_leaves_port_open_reads_urls_and_hosts(address: str, *, is_open: bool) -> None:
    assert leaves_port_open(address) is is_open


@pytest.mark.parametrize("key", VARIABLES)
def test_settled_takes_an_open_port_from_the_environment(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES[key], "http://127.0.0.1:7")
    assert settle(key, "http://127.0.0.1:0") == "http://127.0.0.1:7"
    assert settle(key, "http://127.0.0.1:8") == "http://127.0.0.1:8"


@pytest.mark.parametrize("key", VARIABLES)
@pytest.mark.parametrize("value", [None, ""])
def test_settled_without_an_address_names_the_commands(
    key: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv(VARIABLES[key], value)
    assert settle(key, "http://127.0.0.1:8") == "http://127.0.0.1:8"
    with pytest.raises(CredfleetError) as caught:
        settle(key, "http://127.0.0.1:0")
    assert (caught.value.code, caught.value.place) == ("sandbox-unknown", key)
    assert VARIABLES[key] in caught.value.problem
    assert '`eval "$(credfleet sandbox env)"`' in caught.value.fix


def test_is_in_environment_knows_a_key_and_what_it_lies_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES[HYPERFLEET], "http://127.0.0.1:7")
    assert is_in_environment(HYPERFLEET)
    assert is_in_environment("credfleet:pullSecrets")
    assert not is_in_environment("gcp:secretManagerCustomEndpoint")
