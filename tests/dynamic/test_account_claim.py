"""The claim in the genuine host of dynamic providers, over gRPC, on a real API server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from pulumi.runtime.proto.provider_pb2 import DiffResponse

from components.account_pool.core.keys import CLAIM_TOKEN, POOL_STATE
from components.account_pool.provider import AccountClaimProvider
from components.labels import TENANT_NAME
from tests.support.cases import tabled
from tests.support.dynamic_host import Properties, Provider, dynamic_host, provided
from tests.support.members import SENTINEL, Members

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


claim = provided(AccountClaimProvider)


def wanted(namespace: str, **more: Any) -> Properties:
    return {"namespace": namespace, "tenant": "acme", "type": "aws", "holder": "pulumi/o/p/s/acme/0", **more}


def test_a_claim_tells_which_secret_it_is_and_nothing_of_what_is_in_it(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace))
    outputs = {key: made.outputs[key] for key in ("secretName", "accountId", "phase", "reused", "sequence")}
    assert outputs == {
        "secretName": "aws-1",
        "accountId": "id-of-aws-1",
        "phase": "Bound",
        "reused": False,
        "sequence": 1,
    }
    assert SENTINEL not in str(made)


def test_what_was_left_out_is_filled_in_and_the_same_claim_again_is_no_change(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace))
    assert (made.inputs["slot"], made.inputs["shared"]) == ("0", False)
    assert not claim.is_changed(made, wanted(namespace))


@tabled("key, value")
def test_another_account_is_another_claim(
    key: str, value: object, claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace))
    difference = claim.diff(made, {**wanted(namespace), key: value})
    assert difference.changes == DiffResponse.DIFF_SOME
    assert list(difference.replaces) == [key]
    assert not difference.deleteBeforeReplace


@pytest.mark.parametrize(
    ("key", "value"), [("holder", "somebody else"), ("releasePolicy", "retain"), ("limit", 5)]
)
def test_facts_of_a_claim_change_in_place_and_the_account_stays(
    key: str, value: object, claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace))
    news = {**wanted(namespace), key: value}
    assert list(claim.diff(made, news).replaces) == []
    changed = claim.update(made, news)
    assert changed.outputs[key] == value
    assert changed.outputs["secretName"] == made.outputs["secretName"]
    assert changed.outputs.keys() >= made.outputs.keys()
    assert not claim.is_changed(changed, news)


@tabled("before, after, agreed")
def test_what_the_pool_says_now_reaches_claims_that_are_there(
    *,
    claim: Provider,
    admin: DynamicClient,
    namespace: str,
    members: Members,
    before: Properties,
    after: Properties,
    agreed: list[str | None] | None,
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace, **before))
    news = wanted(namespace, **after)
    assert claim.is_changed(made, news) is (agreed is not None)
    changed = claim.update(made, news)
    assert not claim.is_changed(changed, news)
    assert claim.refresh(changed).inputs == changed.inputs
    record = admin.resources.get(api_version="v1", kind="ConfigMap").get(name=made.id, namespace=namespace)
    if agreed is not None:
        assert [record.data.policy, record.data.limit] == agreed


def test_a_preview_says_which_claims_get_another_policy_and_who_keeps_a_limit_from_falling(
    control_plane: ControlPlane, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    cluster = {"cluster": {"kubeconfig": str(control_plane.kubeconfig("admin"))}}
    with dynamic_host(cluster) as host:
        claim = host.provider(AccountClaimProvider())
        made = claim.create(wanted(namespace, poolPolicy="clean"))
        claim.create(wanted(namespace, poolPolicy="clean", holder="ci"))
        claim.diff(made, wanted(namespace, poolPolicy="retain", poolLimit=1))
        said = host.said()
    assert said == [
        "acme/0: as the pool says now, its release policy clean becomes retain and its limit none becomes 1",
        "warning: acme/0: expected to be refused, since account aws-1 is held by 2: ci, pulumi/o/p/s/acme/0",
    ]


def test_claim_whose_record_is_gone_asks_for_its_former_account(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace, releasePolicy="release"))
    claim.delete(made)
    for number in range(2, 8):
        members.add(f"aws-{number}")
    seen = claim.refresh(made)
    assert seen.outputs["phase"] == "Lost"
    again = claim.update(seen, wanted(namespace, releasePolicy="release"))
    assert (again.outputs["secretName"], again.outputs["phase"]) == ("aws-1", "Bound")


def test_an_account_deleted_by_hand_is_lost_until_somebody_decides(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    members.add("aws-2")
    made = claim.create(wanted(namespace))
    members.remove(made.outputs["secretName"])
    lost = claim.refresh(made)
    assert lost.outputs["phase"] == "Lost"
    assert claim.is_changed(lost, wanted(namespace))
    with pytest.raises(grpc.RpcError, match="lost-member: account aws-"):
        claim.update(lost, wanted(namespace))
    claim.delete(lost)
    assert claim.create(wanted(namespace)).outputs["phase"] == "Bound"


def test_delete_releases_by_policy_and_a_second_delete_is_no_error(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace))
    claim.delete(made)
    claim.delete(made)
    assert members.metadata("aws-1")["labels"][POOL_STATE] == "dirty"
    assert CLAIM_TOKEN not in members.metadata("aws-1")["annotations"]


def test_a_replacement_after_the_record_vanished_keeps_what_it_just_took(
    claim: Provider, admin: DynamicClient, namespace: str, members: Members
) -> None:
    """The new record counts from one again: only its uid tells the old claim from the new one."""
    members.add("aws-1")
    old = claim.create(wanted(namespace, releasePolicy="release"))
    admin.resources.get(api_version="v1", kind="ConfigMap").delete(name=old.id, namespace=namespace)
    new = claim.create(wanted(namespace, releasePolicy="release"))
    claim.delete(old)
    assert new.outputs["sequence"] == old.outputs["sequence"]
    assert claim.refresh(new) == new


def test_an_empty_pool_is_told_in_two_lines_without_a_trace_of_the_protocol(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1", {TENANT_NAME: "other"})
    with pytest.raises(grpc.RpcError) as refusal:
        claim.create(wanted(namespace, required=True))
    assert refusal.value.details() == (
        f"pulumi.errors.RunError: exhausted: pool {namespace}: no free aws account is left "
        "(partition hyperscaler-type=aws): 1 owned, 0 dirty, 0 cleaning, 0 quarantined; nothing was claimed\n"
        "→ add accounts, or clean or release some, and run again\n"
    )


def test_a_claim_that_cannot_be_served_says_why_and_is_served_once_it_can_be(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1", {TENANT_NAME: "other"})
    skipped = claim.create(wanted(namespace))
    assert (skipped.outputs["phase"], skipped.outputs.get("secretName")) == ("Skipped", None)
    assert skipped.outputs["skipped"]["code"] == "exhausted"
    assert "no free aws account is left" in skipped.outputs["skipped"]["cause"]
    assert claim.refresh(skipped) == skipped
    assert claim.update(skipped, wanted(namespace)).outputs == skipped.outputs
    members.add("aws-2")
    served = claim.update(skipped, wanted(namespace))
    assert (served.outputs["phase"], served.outputs["secretName"]) == ("Bound", "aws-2")
    assert (served.outputs.get("skipped"), served.outputs["record"]) == (None, skipped.id)
    assert not claim.is_changed(served, wanted(namespace))
    assert claim.refresh(served) == served
    claim.delete(served)
    assert members.metadata("aws-2")["labels"][POOL_STATE] == "dirty"


def test_a_skipped_claim_goes_without_a_word_to_the_pool(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1", {POOL_STATE: "quarantined"})
    skipped = claim.create(wanted(namespace))
    members.add("aws-2")
    other = claim.create(wanted(namespace))
    claim.delete(skipped)
    assert claim.refresh(other) == other


def test_a_claim_that_would_replace_another_is_never_skipped(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace))
    with pytest.raises(grpc.RpcError, match="exhausted: pool"):
        claim.create({**wanted(namespace), "slot": "1"})
    assert claim.refresh(made) == made


def test_a_state_of_before_skips_were_known_is_the_same_after_a_refresh(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace))
    assert "skipped" not in {**made.inputs, **made.outputs}
    refreshed = claim.refresh(made)
    assert "skipped" not in {**refreshed.inputs, **refreshed.outputs}


def test_a_refusal_is_in_the_audit_trail_before_the_engine_hears_of_it(
    claim: Provider, admin: DynamicClient, namespace: str, members: Members
) -> None:
    members.add("aws-1", {TENANT_NAME: "other"})
    claim.create(wanted(namespace))
    events = admin.resources.get(api_version="v1", kind="Event").get(namespace=namespace).to_dict()["items"]
    assert [event["reason"] for event in events] == ["ClaimRefused"]


def test_claim_of_a_lost_state_is_updated_by_the_one_that_says_so(
    claim: Provider, namespace: str, members: Members
) -> None:
    members.add("aws-1")
    made = claim.create(wanted(namespace, state="lost"))
    other = replace(made, inputs={**made.inputs, "state": "new"})
    with pytest.raises(grpc.RpcError, match="another Pulumi state"):
        claim.update(other, wanted(namespace, limit=2))
    assert claim.update(other, wanted(namespace, limit=2, takesOver=True)).id == made.id


@tabled("inputs, reason")
def test_what_no_pool_could_serve_is_refused_at_preview(
    inputs: Properties, reason: str, claim: Provider
) -> None:
    (refusal,) = claim.refusals({**wanted("pool"), **inputs})
    assert reason in refusal


def test_another_cluster_than_the_configured_one_is_refused(
    control_plane: ControlPlane, namespace: str
) -> None:
    cluster = {"kubeconfig": str(control_plane.kubeconfig("admin")), "uid": "no-such-cluster"}
    with dynamic_host({"cluster": cluster}) as host:
        stranger = host.provider(AccountClaimProvider())
        with pytest.raises(grpc.RpcError, match="wrong-cluster"):
            stranger.create(wanted(namespace))
