"""The stack files of the environments, run through the program with made-up credentials."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from components.errors import CredfleetError
from components.labels import TENANT
from operations.config.settings import plain_credentials
from operations.folders import Folders
from operations.stack.at_rest import StackAtRest
from tests.support.cases import table
from tests.support.policies import objections
from tests.support.recorder import Recorder, record
from tests.support.stacks import NO_ENTRIES, ROOT, SECRET_KEYS, as_passed, program

ENVIRONMENTS: Final = sorted(
    path.name.removeprefix("Pulumi.").removesuffix(".yaml")
    for path in ROOT.glob("Pulumi.*.yaml")
    if path.name != "Pulumi.dev.yaml"
)
MADE_UP_PULL_SECRET: Final = json.dumps({"auths": {"quay.io": {"auth": "bWFkZTp1cA=="}}})
COUNTS: Final[Mapping[str, Mapping[str, int]]] = table(__file__, "COUNTS")
"""Namespaces: the pool's, one per tenant and cluster, and `kube-system`, which is read before all writes."""


def stack_file(stack: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))


def with_made_up_credentials(value: Any) -> Any:
    """What only the environment's KMS can decrypt is replaced by a credential of the right form."""
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return json.dumps({"clientID": "made-up", "clientSecret": "made-up"})
        return {
            key: MADE_UP_PULL_SECRET if key == "quay-pull" else with_made_up_credentials(item)
            for key, item in value.items()
        }
    return [with_made_up_credentials(item) for item in value] if isinstance(value, list) else value


def configuration(stack: str) -> dict[str, str]:
    config = with_made_up_credentials(stack_file(stack)["config"])
    ours = {key.removeprefix("credfleet:"): value for key, value in config.items() if "credfleet:" in key}
    clouds = {key: value for key, value in config.items() if "credfleet:" not in key}
    return {**as_passed(ours), **clouds}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def stack(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def recorded(stack: str) -> Recorder:
    """What the program registers for an environment in a preview."""
    config = configuration(stack)
    return record(program, config=config, secret_keys=SECRET_KEYS, preview=True, calls=NO_ENTRIES)


def test_an_environment_declares_what_it_always_has(stack: str, recorded: Recorder) -> None:
    assert Counter(one.type for one in recorded.registrations) == COUNTS[stack]


def test_an_environment_satisfies_the_policies_with_what_it_says_to_them(
    stack: str, recorded: Recorder
) -> None:
    assert objections(stack, recorded) == []


def test_an_environment_writes_to_the_one_cluster_it_names(recorded: Recorder) -> None:
    (looked_up,) = (one for one in recorded.registrations if one.read_id)

    assert looked_up.read_id == "kube-system"


def test_an_environment_refuses_to_delete_accounts_that_were_used(recorded: Recorder) -> None:
    guards = ("PoolRoster", "PoolSeal")

    allowed = {
        one.inputs["allowDestroy"]
        for guard in guards
        for one in recorded.of_type(f"pulumi-python:dynamic/credfleet:{guard}").values()
    }
    assert allowed == {False}


def test_an_environment_protects_its_accounts_and_namespaces_and_not_its_claims(recorded: Recorder) -> None:
    protected = {one.urn for one in recorded.registrations if not one.read_id and one.request.protect}

    accounts = {
        one.urn
        for one in recorded.of_type("kubernetes:core/v1:Secret").values()
        if one.parent.endswith("::account-pool")
    }
    namespaces = {
        one.urn
        for one in recorded.of_type("kubernetes:core/v1:Namespace").values()
        if one.name == "account-pool-namespace" or TENANT in one.inputs.get("metadata", {}).get("labels", {})
    }
    assert protected == accounts | namespaces


def test_an_environment_leaves_released_accounts_with_their_tenants(recorded: Recorder) -> None:
    (pool,) = recorded.of_type("kubernetes:core/v1:ConfigMap").values()
    claims = recorded.of_type("pulumi-python:dynamic/credfleet:AccountClaim").values()

    assert pool.inputs["data"]["releasePolicy"] == "retain"
    assert [one.name for one in claims if one.inputs.get("releasePolicy")] == []


def test_no_two_environments_share_a_cluster_an_account_or_a_key() -> None:
    files = [stack_file(stack) for stack in ENVIRONMENTS]
    pools = [file["config"]["credfleet:accountPool"]["members"].values() for file in files]

    accounts = [member["accountId"] for pool in pools for member in pool]
    assert len(accounts) == len(set(accounts))
    assert len({file["config"]["credfleet:cluster"]["uid"] for file in files}) == len(files)
    assert len({file["secretsprovider"] for file in files}) == len(files)


def test_every_credential_of_an_environment_is_encrypted_by_itself(stack: str) -> None:
    assert list(plain_credentials(stack_file(stack)["config"])) == []


def test_every_credential_of_an_environment_is_somebodys(stack: str) -> None:
    config = stack_file(stack)["config"]

    used = {member["credentialsFrom"] for member in config["credfleet:accountPool"]["members"].values()}
    used |= {cluster["pullSecretFrom"] for cluster in config["credfleet:pullSecrets"]["clusters"].values()}
    assert used == set(config["credfleet:credentials"])


def test_editors_find_the_schema_of_a_stack_file_on_its_first_line(stack: str) -> None:
    first = (ROOT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8").splitlines()[0]

    schema = json.loads((ROOT / first.removeprefix("# yaml-language-server: $schema=")).read_text())
    assert schema["title"] == "Stack file of credfleet"


def test_the_sandbox_refuses_an_environment_and_names_the_cli(stack: str, tmp_path: Path) -> None:
    with pytest.raises(CredfleetError) as refused:
        StackAtRest.find(ROOT, stack, backend_dir=tmp_path).unlock("any")

    assert refused.value.code == "stack-unsupported"
    assert "Pulumi CLI" in refused.value.fix


def test_the_public_passphrase_opens_no_environment(stack: str) -> None:
    folders = Folders(ROOT)
    assert folders.public_passphrase("dev") == folders.dev_passphrase
    assert folders.public_passphrase(stack) is None
