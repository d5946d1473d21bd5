"""The one connection to Secret Manager, on the stand-in: what is repeated, and what is told."""

import json
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import pytest
from pulumi_sandbox.services.cloud.front import Fault
from pulumi_sandbox.services.ports import free_ports

from components.errors import SecretManagerError
from components.secret_manager import (
    LATEST,
    Patience,
    SecretManager,
    SecretManagerTarget,
    VersionState,
    _identity,  # pyright: ignore[reportPrivateUsage] - what a client is given is not to be seen otherwise
    new_secret_manager,
    open_secret_manager,
    secret_name,
    version_name,
)
from sandbox.tests.support import clouds
from sandbox.tests.support.clouds import Served
from tests.support.cases import tabled

SENTINEL = b"sentinel-of-a-payload"
PATIENCE = Patience(first_pause=0.01, longest_pause=0.05, in_all=5.0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with clouds.secret_manager(tmp_path_factory.mktemp("secret-manager")) as running:
        yield running


@pytest.fixture
def manager(served: Served) -> Generator[SecretManager]:
    yield open_secret_manager(SecretManagerTarget(f"{served.url}/v1/", "any"), PATIENCE)
    served.service.faults.clear()


@pytest.fixture
def secret(manager: SecretManager) -> str:
    name = secret_name("test-project", f"s-{uuid4()}")
    assert manager.create(name, {"team": "platform"})
    return name


def test_a_secret_is_found_with_its_labels_and_a_missing_one_is_none(
    manager: SecretManager, secret: str
) -> None:
    found = manager.secret(secret)
    assert found is not None
    assert found.labels == {"team": "platform"}
    assert manager.secret(f"{secret}-other") is None
    assert manager.version(version_name(secret, 1)) is None


def test_versions_are_listed_the_newest_first_however_many_pages_there_are(
    manager: SecretManager, secret: str
) -> None:
    for number in range(30):
        manager.add(secret, b"%d" % number)
    assert [one.number for one in manager.versions(secret)] == [*range(30, 0, -1)]


def test_a_version_is_read_by_its_number_and_the_latest_says_which_it_is(
    manager: SecretManager, secret: str
) -> None:
    manager.add(secret, b"one")
    manager.add(secret, SENTINEL)
    assert manager.access(version_name(secret, 1)).content == b"one"
    latest = manager.access(version_name(secret, LATEST))
    assert (latest.version, latest.content) == (2, SENTINEL)
    assert "sentinel" not in repr(latest)


def test_a_version_goes_through_its_states(manager: SecretManager, secret: str) -> None:
    disabled = manager.disable(manager.add(secret, SENTINEL))
    assert disabled.state is VersionState.DISABLED
    with pytest.raises(SecretManagerError) as refused:
        manager.access(disabled.name)
    assert (refused.value.code, "sentinel" in str(refused.value)) == ("refused", False)
    assert manager.destroy(disabled).state is VersionState.DESTROYED


def test_a_version_somebody_else_turned_meanwhile_is_refused(manager: SecretManager, secret: str) -> None:
    version = manager.add(secret, SENTINEL)
    manager.disable(version)
    with pytest.raises(SecretManagerError):
        manager.destroy(version)


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_the_four_codes_that_pass_are_repeated(
    served: Served, manager: SecretManager, secret: str, status: int
) -> None:
    served.service.faults.append(Fault(path=secret, status=status, times=3))
    assert manager.secret(secret) is not None
    assert served.service.faults == []


@tabled("status, code")
def test_any_other_code_is_told_at_once(
    served: Served, manager: SecretManager, secret: str, status: int, code: str
) -> None:
    served.service.faults.append(Fault(path=secret, status=status))
    with pytest.raises(SecretManagerError) as failed:
        manager.versions(secret)
    assert failed.value.code == code
    assert manager.versions(secret) == []


def test_repeating_ends_when_the_time_is_over(served: Served, secret: str) -> None:
    brief = Patience(first_pause=0.01, longest_pause=0.01, in_all=0.2)
    hurried = open_secret_manager(SecretManagerTarget(f"{served.url}/v1", "any"), brief)
    served.service.faults.append(Fault(path=secret, status=503, times=100_000))
    with pytest.raises(SecretManagerError) as failed:
        hurried.secret(secret)
    served.service.faults.clear()
    assert failed.value.code == "unreachable"
    assert "UNAVAILABLE" in failed.value.problem


def test_an_answer_that_takes_too_long_is_asked_for_again(served: Served, secret: str) -> None:
    impatient = Patience(first_pause=0.01, longest_pause=0.01, attempt=0.2, in_all=5.0)
    manager = open_secret_manager(SecretManagerTarget(f"{served.url}/v1", "any"), impatient)
    served.service.faults.append(Fault(path=secret, seconds=0.6))
    assert manager.secret(secret) is not None


def test_nobody_there_is_told_as_unreachable() -> None:
    (port,) = free_ports(1)
    target = SecretManagerTarget(f"http://127.0.0.1:{port}/v1/", "any")
    manager = open_secret_manager(target, Patience(first_pause=0.01, longest_pause=0.01, in_all=0.1))
    with pytest.raises(SecretManagerError) as failed:
        manager.secret("projects/p/secrets/s")
    assert failed.value.code == "unreachable"


def test_an_answer_to_adding_that_is_lost_adds_nothing_twice(
    served: Served, manager: SecretManager, secret: str
) -> None:
    manager.add(secret, b"before")
    served.service.faults.append(Fault(path=":addVersion", lost=True))
    assert manager.add(secret, SENTINEL).number == 2
    assert [one.number for one in manager.versions(secret)] == [2, 1]


def test_no_error_holds_the_payload_or_the_token(served: Served, secret: str) -> None:
    target = SecretManagerTarget(f"{served.url}/v1/", "sentinel-token")
    manager = open_secret_manager(target, PATIENCE)
    served.service.faults.append(Fault(path=":addVersion", status=400))
    with pytest.raises(SecretManagerError) as failed:
        manager.add(secret, SENTINEL)
    told = f"{failed.value} {failed.value!r} {failed.value.__cause__!r} {target!r}"
    assert "sentinel" not in told


def test_a_payload_google_refuses_for_its_size_is_told_without_it(
    manager: SecretManager, secret: str
) -> None:
    with pytest.raises(SecretManagerError) as failed:
        manager.add(secret, SENTINEL * 4000)
    assert failed.value.code == "refused"
    assert "sentinel" not in str(failed.value)


def test_nobody_signed_in_is_told_with_both_ways_to_do_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(SecretManagerError) as failed:
        open_secret_manager(SecretManagerTarget("http://127.0.0.1:1/v1/", None))
    assert failed.value.code == "no-identity"
    assert "gcp:accessToken" in failed.value.fix


@tabled("config, variables, target")
def test_target_is_the_one_that_the_provider_of_google_has_too(
    config: dict[str, str],
    variables: dict[str, str],
    target: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT", "GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert SecretManagerTarget.configured(config.get) == SecretManagerTarget(**target)


@pytest.mark.filterwarnings("ignore:The load_credentials_from_:DeprecationWarning")
def test_secret_is_read_with_the_key_of_the_configuration_as_the_impersonated_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    config = {"gcp:credentials": json.dumps(key), "gcp:impersonateServiceAccount": "sa@p.example"}
    identity = _identity(SecretManagerTarget.configured(config.get))
    assert identity.service_account_email == "sa@p.example"
    config["gcp:credentials"] = "{"
    with pytest.raises(SecretManagerError) as failed:
        new_secret_manager(SecretManagerTarget.configured(config.get))
    assert failed.value.code == "no-identity"
