"""What programs in other languages can say to the components, and what they register then.

That an engine constructs them so is for the examples to show.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.account_pool.component import TenantAccounts, TenantAccountsArgs
from components.account_pool.model import ClaimRequest, Policy
from components.holding import holder_here
from credfleet.remote.remote_components import Remote, package_schema, package_shapes, remote_components
from tests.support.recorder import Registration, record
from tests.support.stacks import ROOT

SCHEMA: Mapping[str, Any] = json.loads((ROOT / "docs/schema/package.json").read_text(encoding="utf-8"))
COMPONENTS = remote_components(package_shapes())
ACCOUNTS = "credfleet:index:TenantAccounts"


def component(name: str) -> Remote:
    return COMPONENTS[f"credfleet:index:{name}"]


def test_the_schema_in_the_repository_is_the_one_that_is_served() -> None:
    assert package_schema() == SCHEMA


def test_every_component_is_in_the_schema_by_the_type_that_states_have() -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(ROOT, "components").rglob("*.py")]
    types = {type_ for text in sources for type_ in re.findall(r'TYPE: ClassVar = "([^"]+)"', text)}
    assert types == set(SCHEMA["resources"])


def test_components_are_described_and_all_that_their_docstrings_tell_of_inputs_is_there() -> None:
    assert all(one["description"] for one in (*SCHEMA["resources"].values(), *SCHEMA["types"].values()))
    pool = SCHEMA["resources"]["credfleet:index:AccountPool"]["inputProperties"]
    assert pool["allowDestroy"]["description"] == "dirty members may go uncleaned"


def test_credentials_are_secret_inputs_and_no_others_are() -> None:
    secret = {
        f"{type_.rpartition(':')[2]}.{key}"
        for type_, one in SCHEMA["resources"].items()
        for key, spec in one["inputProperties"].items()
        if spec.get("secret")
    }
    aso = ("AsoGlobalSettings", "AsoNamespaceCredential", "AsoResourceCredential")
    assert secret == {"AccountPool.data", *(f"{one}.data" for one in aso)}


def _registered(program: Callable[[], None]) -> list[Registration]:
    return record(program).registrations


def test_what_another_language_says_registers_what_a_python_program_does() -> None:
    said = {
        "poolNamespace": "accounts",
        "tenant": "acme",
        "claims": [{"tenant": "acme", "type": "gcp", "limit": 2.0, "policy": "retain", "required": True}],
    }

    def remote() -> None:
        component("TenantAccounts").made("acme", said, pulumi.ResourceOptions())

    def python() -> None:
        claim = ClaimRequest(
            "acme",
            "gcp",
            holder=holder_here("acme"),
            policy=Policy("retain"),
            limit=2,
            required=True,
        )
        TenantAccounts(
            "acme", TenantAccountsArgs(pool_namespace="accounts", tenant="acme", claims=[claim], reader=None)
        )

    registered = [[(one.urn, one.inputs) for one in _registered(each)] for each in (remote, python)]
    assert registered[0][-1][0].endswith("AccountClaim::acme/0")
    assert registered[0] == registered[1]


@pytest.mark.parametrize(
    ("name", "inputs", "place", "why"),
    [
        pytest.param(
            "TenantAccounts", {"tenant": "a", "claims": []}, "poolNamespace", "required", id="lacking"
        ),
        pytest.param(
            "TenantAccounts",
            {"poolNamespace": "p", "tenant": "a", "claims": [{"tenant": "a", "type": "gcp", "limits": 1.0}]},
            "claims[0].limits",
            "no such property",
            id="misspelt",
        ),
        pytest.param(
            "TenantAccounts",
            {"poolNamespace": "p", "tenant": "a", "claims": [{"tenant": "a", "type": "gcp", "limit": 1.5}]},
            "claims[0].limit",
            "whole number",
            id="broken",
        ),
        pytest.param(
            "TenantAccounts",
            {"poolNamespace": "p", "tenant": "a", "claims": [{"tenant": "a", "type": "gcp", "policy": "x"}]},
            "claims[0].policy",
            "one of",
            id="none of its words",
        ),
        pytest.param(
            "UserProvidedService",
            {
                "namespace": "n",
                "owner": "o",
                "instance": {"namespace": "n", "credentialsFrom": "db", "strikt": True},
            },
            "instance.strikt",
            "not permitted",
            id="no part of the configuration",
        ),
        pytest.param(
            "ServiceBinding",
            {"service": "urn:pulumi:dev::p::t::n", "name": "b", "binding": {}},
            "service",
            "UserProvidedService of this program",
            id="a component that nobody constructed",
        ),
    ],
)
def test_inputs_that_make_no_sense_are_refused_by_their_place(
    name: str, inputs: Mapping[str, Any], place: str, why: str
) -> None:
    def program() -> None:
        with pytest.raises(pulumi.InputPropertyError) as refused:
            component(name).made("one", inputs, pulumi.ResourceOptions())
        assert refused.value.property_path == place
        assert why in refused.value.reason

    _registered(program)


def test_what_is_wrong_with_a_secret_is_told_without_an_input_whose_value_an_engine_prints() -> None:
    def program() -> None:
        inputs = {"namespace": "n", "secretName": "s", "data": {"key": "canary, no base64"}, "place": "x"}
        with pytest.raises(pulumi.RunError, match=r"data\.key: it has to be base64") as refused:
            component("AsoNamespaceCredential").made("one", inputs, pulumi.ResourceOptions())
        assert "canary" not in str(refused.value)

    _registered(program)


def test_what_decides_which_resources_there_are_cannot_be_an_output() -> None:
    def program() -> None:
        inputs = {"poolNamespace": "p", "tenant": pulumi.Output.from_input("acme"), "claims": []}
        with pytest.raises(pulumi.InputPropertyError, match="known when the program runs"):
            component("TenantAccounts").made("one", inputs, pulumi.ResourceOptions())

    _registered(program)
