"""What a program foretells its claims, and what they make of it, in the genuine host on a real API server."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from components.account_pool.claim_forecast import ClaimForecasts
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.declared import Declaration, DeclaredMember
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import ClaimRequest
from components.account_pool.forecast.forecast import parse
from components.account_pool.provider import AccountClaimProvider
from components.connection import ClusterTarget
from tests.support.dynamic_host import Host, Properties, Provider, dynamic_host
from tests.support.members import Members
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


def request(tenant: str, **more: Any) -> ClaimRequest:
    return replace(ClaimRequest(tenant, "aws", holder=f"pulumi/o/p/s/{tenant}/0"), **more)


def declaration(namespace: str, *members: str) -> Declaration:
    return Declaration(namespace, {name: DeclaredMember("aws", "111") for name in members})


def inputs(namespace: str, wanted: ClaimRequest, forecasts: ClaimForecasts | None = None) -> Properties:
    """The inputs of a claim, as a program with these forecasts gives them."""
    return {
        "namespace": namespace,
        "tenant": wanted.tenant,
        "type": wanted.type,
        "slot": wanted.slot,
        "holder": wanted.holder,
        "required": wanted.required or None,
        "forecast": None if forecasts is None else forecasts.claims.get((wanted.tenant, wanted.slot)),
    }


@pytest.fixture
def target(control_plane: ControlPlane) -> ClusterTarget:
    return ClusterTarget(kubeconfig=str(control_plane.kubeconfig("admin")))


@pytest.fixture
def hosts(control_plane: ControlPlane) -> Generator[Sequence[Host]]:
    """Two hosts of one update."""
    config = {"cluster": {"kubeconfig": str(control_plane.kubeconfig("admin"))}}
    with dynamic_host(config) as first, dynamic_host(config) as second:
        yield first, second


def claims_of(host: Host) -> Provider:
    return host.provider(AccountClaimProvider())


def test_forecasts_count_the_accounts_that_the_update_adds(target: ClusterTarget, namespace: str) -> None:
    wanted = [request("acme"), request("globex")]
    found = ClaimForecasts.of(target, declaration(namespace, "m"), wanted)
    assert found.lines[0] == "acme/0: expected to get the only free aws account"
    assert found.lines[1].startswith(
        "warning: globex/0: expected to find none free: 2 claims for 1 free aws account;"
    )
    assert found.lines[2] == "free accounts expected to be left: aws 0 of 1"


def test_forecasts_on_another_stacks_pool_go_by_what_that_says(
    target: ClusterTarget, admin: DynamicClient, namespace: str
) -> None:
    said = PoolConfigMap(("eu-access",), scheme=LabelScheme({"type": "hyperscalerType"})).render()
    admin.resources.get(api_version="v1", kind="ConfigMap").create(
        body={"metadata": {"name": CONFIG_MAP}, "data": said}, namespace=namespace
    )
    labels = {"hyperscalerType": "aws", "eu-access": "true"}
    Secrets(admin, namespace).put("m", {"key": "value"}, labels=labels)
    wanted = request("acme", partition={"eu-access": "true"})
    found = ClaimForecasts.of(target, declaration(namespace), [wanted], elsewhere=True)
    assert found.lines[0] == "acme/0: expected to get the only free aws account with eu-access=true"


def test_claims_in_any_host_leave_what_is_foretold_to_others(
    hosts: Sequence[Host], target: ClusterTarget, members: Members, namespace: str
) -> None:
    members.add("m")
    acme, globex = request("acme"), request("globex")
    first, second = map(claims_of, hosts)
    foretold = ClaimForecasts.of(target, declaration(namespace), [acme, globex])
    skipping = inputs(namespace, globex, foretold)
    foreseen = second.check(skipping)["skipped"]
    assert "no free aws account is left for it: 2 claims for 1 free" in foreseen["cause"]
    skipped = second.create(skipping)
    assert (skipped.outputs["phase"], skipped.outputs["skipped"]) == ("Skipped", foreseen)
    assert first.create(inputs(namespace, acme, foretold)).outputs["secretName"] == "m"
    assert not first.is_changed(skipped, skipping)

    members.add("n")
    serving = inputs(namespace, globex, ClaimForecasts.of(target, declaration(namespace), [acme, globex]))
    assert first.is_changed(skipped, serving)
    assert "skipped" not in first.check(serving, skipped.inputs)
    assert first.update(skipped, serving).outputs["secretName"] == "n"


@pytest.mark.parametrize("is_foretold", [False, True], ids=["nothing was foretold", "an account was"])
def test_claim_that_gets_no_account_unforetold_says_so(
    *, control_plane: ControlPlane, target: ClusterTarget, members: Members, namespace: str, is_foretold: bool
) -> None:
    members.add("m")
    wanted = request("acme")
    given = inputs(namespace, wanted, ClaimForecasts.of(target, declaration(namespace), [wanted]))
    members.remove("m")
    with dynamic_host({"cluster": {"kubeconfig": str(control_plane.kubeconfig("admin"))}}) as host:
        made = claims_of(host).create(given if is_foretold else {**given, "forecast": None})
        said = host.said()
    assert made.outputs["phase"] == "Skipped"
    assert said[0].startswith("warning: acme/0: skipped: ")
    assert "no free aws account is left" in said[0]


def test_a_change_of_the_forecast_alone_is_no_change_of_a_claim(
    host: Host, target: ClusterTarget, members: Members, namespace: str
) -> None:
    members.add("m")
    wanted, claim = request("acme"), claims_of(host)
    before = inputs(namespace, wanted, ClaimForecasts.of(target, declaration(namespace), [wanted]))
    made = claim.create(before)
    after = inputs(namespace, wanted, ClaimForecasts.of(target, declaration(namespace), [wanted]))
    for each in (after, inputs(namespace, wanted)):
        assert not claim.is_changed(made, each)
    assert not claim.is_changed(made, before), "as a refresh compares: before the claim, it was held by none"
    claim.delete(made)
    lost = inputs(namespace, wanted, ClaimForecasts.of(target, declaration(namespace), [wanted]))
    assert claim.is_changed(made, lost), "another command released it"
    of_an_older_version = {key: value for key, value in made.outputs.items() if key != "forecast"}
    assert not claim.is_changed(replace(made, outputs=of_an_older_version), after)


@pytest.mark.parametrize("slot", ["0", "0~1"])
def test_forecast_of_a_slot_that_two_stacks_name_tells_of_the_other(
    host: Host, target: ClusterTarget, members: Members, namespace: str, slot: str
) -> None:
    members.add("m")
    first, second = (request("acme", holder=f"pulumi/organization/p/{one}/x/0") for one in "ab")
    claims_of(host).create({**inputs(namespace, first), "slot": slot})
    found = ClaimForecasts.of(target, declaration(namespace), [second])
    told = "acme/0: shares its account with stack organization/p/a: they name this slot too"
    assert told in found.lines


def test_forecast_of_a_required_claim_comes_first_and_dooms(
    host: Host, target: ClusterTarget, members: Members, namespace: str
) -> None:
    members.add("m")
    wanted = [request("acme"), request("globex", required=True), request("umbrella", required=True)]
    found = ClaimForecasts.of(target, declaration(namespace), wanted)
    checked = {one.tenant: claims_of(host).check(inputs(namespace, one, found)) for one in wanted}
    assert {tenant: {"skipped", "doomed"} & each.keys() for tenant, each in checked.items()} == {
        "acme": {"skipped"},
        "globex": set(),
        "umbrella": {"doomed"},
    }


def test_forecast_names_what_the_stack_releases_after_its_claims(
    host: Host, target: ClusterTarget, members: Members, namespace: str
) -> None:
    members.add("m")
    claims_of(host).create(inputs(namespace, request("acme")))
    found = ClaimForecasts.of(target, declaration(namespace), [request("globex")])
    assert "this update releases acme/0 after its claims" in found.lines[0]


def test_forecasts_without_a_cluster_expect_nothing(tmp_path: Path) -> None:
    target = ClusterTarget(kubeconfig=str(tmp_path / "none"))
    found = ClaimForecasts.of(target, declaration("pool", "m"), [request("acme")])
    assert not found.claims
    assert parse(found.lines, ()).unseen
