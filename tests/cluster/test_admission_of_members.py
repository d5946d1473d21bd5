"""What the API server refuses of accounts, and what it lets through: raw writes of several users."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from kubernetes.dynamic.exceptions import NotFoundError

from components.account_pool import changes
from components.account_pool.admission import MEMBER_RULES
from components.account_pool.calls import Patch
from components.account_pool.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    INTERNAL,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.model import JsonObject, Member, Partition, Phase, Policy
from components.labels import (
    ACCOUNT_ID,
    BRING_YOUR_OWN,
    EU_ACCESS,
    HYPERSCALER_TYPE,
    SHARED,
    TENANT_NAME,
)
from tests.support.guarded_pool import MERGE, GuardedPool, Keys, guarded_pool, record_of, refusal, secret

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


@pytest.fixture(scope="module")
def pool(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people")) as pool:
        yield pool


@pytest.fixture(scope="module")
def throwaway_pool(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people"), allow_destroy=True) as pool:
        yield pool


CLAIMED_LABELS: Keys = {TENANT_NAME: "acme"}
TOKEN = "claim-0.00000000-0000-4000-8000-000000000000.1"
CLAIMED: Keys = {
    CLAIM_TOKEN: TOKEN,
    CLAIM_ORIGIN: "pool",
    CLAIM_POLICY: "clean",
    TENANT_ID: "acme",
}
OWN_CLAIMED: Keys = {**CLAIMED, CLAIM_ORIGIN: "owner"}
USED: Keys = {CLAIM_ORIGIN: "pool", TENANT_ID: "acme"}
RETAINED: Keys = {CLAIM_ORIGIN: "retained", TENANT_ID: "acme"}
SHARING: Keys = {SHARED_CLAIMS: json.dumps({TOKEN: "one"}), SHARED_CAPACITY: "2"}
GONE: Mapping[str, str] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "gone",
    "uid": "00000000-0000-4000-8000-000000000000",
}
"""An owner that is not there: the garbage collector deletes what it owns."""


@dataclass(frozen=True)
class Write:
    """A change of labels and annotations, from a state, by a user; and the rule that refuses it.

    body: what else the write says, beside or in `metadata`.
    """

    user: str
    rule: str
    labels: Keys = field(default_factory=dict[str, str | None])
    notes: Keys = field(default_factory=dict[str, str | None])
    old_labels: Keys = field(default_factory=dict[str, str | None])
    old_notes: Keys = field(default_factory=dict[str, str | None])
    body: JsonObject = field(default_factory=dict[str, Any])


REFUSED: Mapping[str, Write] = {
    "an operator moves an owner in one write": Write(
        "operator", "an-owner-never-changes-at-once", {TENANT_NAME: "b"}, {}, {TENANT_NAME: "a"}
    ),
    "a claimer moves an owner in one write": Write(
        "claimer", "an-owner-never-changes-at-once", {TENANT_NAME: "b"}, CLAIMED, {TENANT_NAME: "a"}
    ),
    "an operator strips the owner of a claim": Write(
        "operator", "an-owner-stays-while-claimed", {TENANT_NAME: None}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "a claimer strips the owner of a claim": Write(
        "claimer", "an-owner-stays-while-claimed", {TENANT_NAME: None}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "the pool's owner labels a free account": Write(
        "owner", "an-owner-is-written-by-claims", {TENANT_NAME: "acme"}
    ),
    "a claimer labels without a token": Write(
        "claimer", "an-owner-is-written-by-claims", {TENANT_NAME: "acme"}
    ),
    "a claimer takes a retained account from its tenant": Write(
        "claimer", "an-owner-is-written-by-claims", {TENANT_NAME: None}, {}, CLAIMED_LABELS
    ),
    "a release takes an account from who brought it": Write(
        "claimer",
        "an-owner-is-written-by-claims",
        {TENANT_NAME: None},
        {CLAIM_TOKEN: None, CLAIM_ORIGIN: None, CLAIM_POLICY: None},
        CLAIMED_LABELS,
        OWN_CLAIMED,
    ),
    "a cleaner frees an account its tenant brought": Write(
        "cleaner",
        "an-owner-is-written-by-claims",
        {TENANT_NAME: None, POOL_STATE: None},
        {},
        {TENANT_NAME: "acme", POOL_STATE: "cleaning"},
    ),
    "the pool's owner strips a token": Write(
        "owner", "a-token-is-written-by-claims", {}, {CLAIM_TOKEN: None}, CLAIMED_LABELS, CLAIMED
    ),
    "a cleaner strips a token": Write(
        "cleaner", "a-token-is-written-by-claims", {}, {CLAIM_TOKEN: None}, CLAIMED_LABELS, CLAIMED
    ),
    "the pool's owner forges a token": Write(
        "owner", "a-token-is-written-by-claims", {}, {CLAIM_TOKEN: TOKEN}, CLAIMED_LABELS
    ),
    "a claimer puts its token over another": Write(
        "claimer", "a-token-is-written-by-claims", {}, {CLAIM_TOKEN: "claim-1.u.1"}, CLAIMED_LABELS, CLAIMED
    ),
    "the pool's owner empties a shared account": Write(
        "owner", "a-token-is-written-by-claims", {}, {SHARED_CLAIMS: None}, {SHARED: "true"}, SHARING
    ),
    "an operator frees a dirty account": Write(
        "operator",
        "a-used-account-is-cleaned-before-it-is-free",
        {POOL_STATE: None},
        {},
        {POOL_STATE: "dirty"},
    ),
    "a cleaner frees a dirty account uncleaned": Write(
        "cleaner",
        "a-used-account-is-cleaned-before-it-is-free",
        {POOL_STATE: None},
        {},
        {POOL_STATE: "dirty"},
    ),
    "a claimer finishes a cleaning": Write(
        "claimer",
        "a-used-account-is-cleaned-before-it-is-free",
        {POOL_STATE: None},
        {},
        {POOL_STATE: "cleaning"},
    ),
    "an operator frees a quarantined account a tenant has left": Write(
        "operator",
        "a-used-account-is-cleaned-before-it-is-free",
        {POOL_STATE: None},
        {},
        {POOL_STATE: "quarantined"},
        USED,
    ),
    "a cleaner cleans an account in use": Write(
        "cleaner",
        "a-claimed-account-is-not-cleaned",
        {POOL_STATE: "cleaning"},
        {},
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        CLAIMED,
    ),
    "a cleaner cleans a shared account in use": Write(
        "cleaner",
        "a-claimed-account-is-not-cleaned",
        {POOL_STATE: "cleaning"},
        {},
        {SHARED: "true", POOL_STATE: "dirty"},
        SHARING,
    ),
    "a cleaner cleans a free account": Write(
        "cleaner", "a-claimed-account-is-not-cleaned", {POOL_STATE: "cleaning"}
    ),
    "the pool's owner marks an account dirty": Write(
        "owner", "a-state-is-written-by-those-who-may", {POOL_STATE: "dirty"}
    ),
    "a claimer quarantines what it does not release": Write(
        "claimer", "a-state-is-written-by-those-who-may", {POOL_STATE: "quarantined"}
    ),
    "a cleaner quarantines what it does not clean": Write(
        "cleaner",
        "a-state-is-written-by-those-who-may",
        {POOL_STATE: "quarantined"},
        {},
        {POOL_STATE: "dirty"},
    ),
    "an operator writes an unknown state": Write(
        "operator", "a-state-is-written-by-those-who-may", {POOL_STATE: "Dirty"}
    ),
    "the pool's owner hides that a tenant had it": Write(
        "owner", "what-a-claim-noted-stays", {}, {CLAIM_ORIGIN: None}, {POOL_STATE: "dirty"}, USED
    ),
    "the pool's owner changes a release policy": Write(
        "owner", "what-a-claim-noted-stays", {}, {CLAIM_POLICY: "release"}, CLAIMED_LABELS, CLAIMED
    ),
    "a claimer forges a cleaning": Write(
        "claimer",
        "what-a-claim-noted-stays",
        {},
        {CLEANING_TOKEN: "x/1"},
        {POOL_STATE: "cleaning"},
        {CLEANING_TOKEN: "y/1"},
    ),
    "an operator retypes a claimed account": Write(
        "operator", "a-claimed-account-keeps-its-type", {HYPERSCALER_TYPE: "gcp"}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "an operator takes a claimed account out of the pool": Write(
        "operator", "a-claimed-account-keeps-its-type", {HYPERSCALER_TYPE: None}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "an operator shares an account that is being cleaned": Write(
        "operator", "a-claimed-account-keeps-its-type", {SHARED: "true"}, {}, {POOL_STATE: "cleaning"}
    ),
    **{
        f"{user} takes {account} out of the pool": Write(
            user, "an-account-leaves-by-an-operator", {HYPERSCALER_TYPE: None}, {}, labels, notes
        )
        for user in ("owner", "claimer", "cleaner")
        for account, labels, notes in (
            ("a free account", {}, {}),
            ("a retained account", CLAIMED_LABELS, {}),
            ("a dirty account", {**CLAIMED_LABELS, POOL_STATE: "dirty"}, USED),
        )
    },
    "an operator takes a dirty account out of the pool": Write(
        "operator", "an-account-leaves-by-an-operator", {HYPERSCALER_TYPE: None}, {}, {POOL_STATE: "dirty"}
    ),
    **{
        f"{user} puts a Secret with {what} into the pool": Write(
            user,
            "an-account-enters-unclaimed",
            {HYPERSCALER_TYPE: "aws"},
            {},
            {HYPERSCALER_TYPE: None, **labels},
            notes,
        )
        for user in ("owner", "claimer", "cleaner")
        for what, labels, notes in (
            ("an owner", CLAIMED_LABELS, {}),
            ("an owner who is said to have brought it", CLAIMED_LABELS, {BRING_YOUR_OWN: "true"}),
            ("a claim", CLAIMED_LABELS, CLAIMED),
            ("a state", {POOL_STATE: "dirty"}, {}),
            ("the traces of a claim", {}, USED),
        )
    },
    **{
        f"{user} says that {what}": Write(user, rule, labels, notes, old_labels, old_notes)
        for user in ("owner", "cleaner", "claimer")
        for what, rule, labels, notes, old_labels, old_notes in (
            (
                "a free account was brought by a tenant",
                "an-owner-is-written-by-claims",
                {TENANT_NAME: "acme"},
                {BRING_YOUR_OWN: "true"},
                {},
                {},
            ),
            (
                "a retained account was brought by another tenant",
                "an-owner-never-changes-at-once",
                {TENANT_NAME: "b"},
                {BRING_YOUR_OWN: "true"},
                {TENANT_NAME: "a"},
                {},
            ),
            (
                "an account is no longer its tenant's",
                "an-owner-is-written-by-claims",
                {TENANT_NAME: None},
                {},
                CLAIMED_LABELS,
                {BRING_YOUR_OWN: "true"},
            ),
            (
                "nobody brought an account",
                "what-a-claim-noted-stays",
                {},
                {BRING_YOUR_OWN: None},
                CLAIMED_LABELS,
                {BRING_YOUR_OWN: "true"},
            ),
            (
                "somebody brought a retained account",
                "what-a-claim-noted-stays",
                {},
                {BRING_YOUR_OWN: "true"},
                CLAIMED_LABELS,
                {},
            ),
        )
    },
    **{
        f"{user} changes {what}": Write(user, "what-is-declared-stays", labels, notes, old_labels, old_notes)
        for users, what, labels, notes, old_labels, old_notes in (
            (("claimer", "cleaner"), "the type of a free account", {HYPERSCALER_TYPE: "gcp"}, {}, {}, {}),
            (("claimer", "cleaner"), "the part of a free account", {EU_ACCESS: "true"}, {}, {}, {}),
            (
                ("claimer", "cleaner"),
                "who may claim an account",
                {INTERNAL: None},
                {},
                {INTERNAL: "true"},
                {},
            ),
            (
                ("owner", "claimer", "cleaner"),
                "the part of a claimed account",
                {EU_ACCESS: None},
                {},
                {**CLAIMED_LABELS, EU_ACCESS: "true"},
                CLAIMED,
            ),
            (
                ("owner", "claimer", "cleaner"),
                "which account is claimed",
                {},
                {ACCOUNT_ID: "2"},
                CLAIMED_LABELS,
                {**CLAIMED, ACCOUNT_ID: "1"},
            ),
            (
                ("owner", "claimer", "cleaner"),
                "how many share an account",
                {},
                {SHARED_CAPACITY: "9"},
                {SHARED: "true"},
                SHARING,
            ),
            (("claimer", "cleaner"), "which account is free", {}, {ACCOUNT_ID: "2"}, {}, {ACCOUNT_ID: "1"}),
        )
        for user in users
    },
    **{
        f"a claimer {what}": Write(
            "claimer",
            "an-unused-account-is-claimed",
            old_labels | {TENANT_NAME: "acme"},
            notes,
            old_labels,
            old_notes,
        )
        for what, notes, old_labels, old_notes in (
            ("claims a dirty account", CLAIMED, {POOL_STATE: "dirty"}, {}),
            ("claims a quarantined account", CLAIMED, {POOL_STATE: "quarantined"}, USED),
            ("claims what a tenant brought as the pool's", CLAIMED, CLAIMED_LABELS, {BRING_YOUR_OWN: "true"}),
            ("claims the pool's as what a tenant brought", OWN_CLAIMED, {}, {}),
            ("claims by no policy", {**CLAIMED, CLAIM_POLICY: "none"}, {}, {}),
        )
    },
    "a claimer claims for nobody": Write("claimer", "an-unused-account-is-claimed", {}, CLAIMED),
    **{
        f"a claimer releases {what}": Write(
            "claimer",
            "a-release-ends-as-a-policy-says",
            labels,
            {CLAIM_TOKEN: None, **notes},
            {**CLAIMED_LABELS, **old_labels},
            CLAIMED,
        )
        for what, labels, notes, old_labels in (
            ("and leaves the policy", {}, {CLAIM_ORIGIN: None}, {}),
            (
                "a dirty account as retained",
                {POOL_STATE: "dirty"},
                {CLAIM_POLICY: None, CLAIM_ORIGIN: "retained"},
                {},
            ),
            ("and calls the pool's its tenant's", {}, {CLAIM_POLICY: None, CLAIM_ORIGIN: "owner"}, {}),
            (
                "a quarantined account to the cleaner",
                {POOL_STATE: "dirty"},
                {CLAIM_POLICY: None},
                {POOL_STATE: "quarantined"},
            ),
            (
                "a quarantined account to the pool",
                {POOL_STATE: None, TENANT_NAME: None},
                {CLAIM_POLICY: None, CLAIM_ORIGIN: None, TENANT_ID: None},
                {POOL_STATE: "quarantined"},
            ),
            (
                "a dirty account that nobody would clean for the pool",
                {POOL_STATE: "dirty"},
                {CLAIM_POLICY: None, CLAIM_ORIGIN: None},
                {},
            ),
            (
                "a free account to the cleaner",
                {POOL_STATE: "dirty", TENANT_NAME: None},
                {CLAIM_POLICY: None},
                {},
            ),
        )
    },
    "a claimer calls what a tenant brought retained": Write(
        "claimer",
        "a-release-ends-as-a-policy-says",
        {},
        {CLAIM_TOKEN: None, CLAIM_POLICY: None, CLAIM_ORIGIN: "retained"},
        CLAIMED_LABELS,
        OWN_CLAIMED,
    ),
    "a claimer changes the policy of a claim": Write(
        "claimer", "what-a-claim-noted-stays", {}, {CLAIM_POLICY: "release"}, CLAIMED_LABELS, CLAIMED
    ),
    "a claimer calls what a tenant brought the pool's": Write(
        "claimer", "what-a-claim-noted-stays", {}, {CLAIM_ORIGIN: "pool"}, CLAIMED_LABELS, OWN_CLAIMED
    ),
    "a cleaner calls what a tenant brought the pool's": Write(
        "cleaner",
        "what-a-claim-noted-stays",
        {POOL_STATE: "cleaning"},
        {CLAIM_ORIGIN: "pool"},
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        {BRING_YOUR_OWN: "true"},
    ),
    "a cleaner hides why an account is quarantined": Write(
        "cleaner",
        "what-a-claim-noted-stays",
        {},
        {STATE_REASON: None},
        {POOL_STATE: "quarantined"},
        {STATE_REASON: "odd bills"},
    ),
    **{
        f"a claimer {what}": Write(
            "claimer",
            "places-are-taken-and-left-one-by-one",
            {},
            {SHARED_CLAIMS: after if isinstance(after, str) else json.dumps(after)},
            {SHARED: "true"},
            {SHARED_CLAIMS: json.dumps(before), SHARED_CAPACITY: "2"},
        )
        for what, before, after in (
            ("takes two places at once", {}, {TOKEN: "one", f"{TOKEN}2": "two"}),
            (
                "takes a place too many",
                {TOKEN: "one", f"{TOKEN}2": "two"},
                {TOKEN: "one", f"{TOKEN}2": "two", f"{TOKEN}3": "three"},
            ),
            ("empties a shared account", {TOKEN: "one", f"{TOKEN}2": "two"}, {}),
            ("takes over a place", {TOKEN: "one"}, {f"{TOKEN}2": "two"}),
            ("garbles who shares an account", {TOKEN: "one"}, "nobody"),
        )
    },
    **{
        f"{user} {what}": Write(user, "what-deletes-or-locks-is-an-operators", body=body)
        for user in ("owner", "claimer", "cleaner")
        for what, body in (
            ("gives an account to the garbage collector", {"metadata": {"ownerReferences": [GONE]}}),
            ("keeps an account from going", {"metadata": {"finalizers": ["example.com/kept"]}}),
            ("locks a credential", {"immutable": True}),
        )
    },
}


@pytest.mark.parametrize("write", REFUSED.values(), ids=REFUSED.keys())
def test_the_api_server_refuses_by_the_rule_that_says_why(pool: GuardedPool, write: Write) -> None:
    member = pool.member(write.old_labels, write.old_notes)
    assert f" {write.rule}: " in str(pool.patch(write.user, member, _change(write)))


def test_every_rule_about_changes_is_put_to_the_test() -> None:
    assert {write.rule for write in REFUSED.values()} == {r.name for r in MEMBER_RULES if r.on == "UPDATE"}


def _change(write: Write) -> JsonObject:
    metadata = {"labels": dict(write.labels), "annotations": dict(write.notes)}
    return {**write.body, "metadata": {**metadata, **write.body.get("metadata", {})}}


ALLOWED: Mapping[str, Write] = {
    "the pool's owner relabels a free account": Write("owner", "", {"region": "eu"}),
    "the pool's owner retypes a free account": Write("owner", "", {HYPERSCALER_TYPE: "gcp"}),
    "the pool's owner annotates a claimed account": Write(
        "owner", "", {}, {"note": "x"}, CLAIMED_LABELS, CLAIMED
    ),
    "the pool's owner puts a bare Secret into the pool": Write(
        "owner", "", {HYPERSCALER_TYPE: "aws"}, {}, {HYPERSCALER_TYPE: None}
    ),
    "an operator takes a quarantined account out of the pool": Write(
        "operator", "", {HYPERSCALER_TYPE: None}, {}, {**CLAIMED_LABELS, POOL_STATE: "quarantined"}, USED
    ),
    "an operator puts an account back into the pool": Write(
        "operator", "", {HYPERSCALER_TYPE: "aws"}, {}, {HYPERSCALER_TYPE: None, **CLAIMED_LABELS}
    ),
    "an operator gives a claimed account its type back": Write(
        "operator", "", {HYPERSCALER_TYPE: "aws"}, {}, {HYPERSCALER_TYPE: None, **CLAIMED_LABELS}, CLAIMED
    ),
    "an operator gives an account to who brought it": Write(
        "operator", "", {TENANT_NAME: "acme"}, {BRING_YOUR_OWN: "true"}
    ),
    "an operator takes a licence back that is not in use": Write(
        "operator", "", {TENANT_NAME: None}, {BRING_YOUR_OWN: None}, CLAIMED_LABELS, {BRING_YOUR_OWN: "true"}
    ),
    "an operator keeps an account from going": Write(
        "operator", "", body={"metadata": {"finalizers": ["example.com/kept"]}, "immutable": True}
    ),
    "an operator takes a retained account back": Write(
        "operator", "", {TENANT_NAME: None}, {}, CLAIMED_LABELS
    ),
    "an operator marks an account dirty that is in use": Write(
        "operator", "", {POOL_STATE: "dirty"}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "an operator mends an unknown state": Write(
        "operator", "", {POOL_STATE: None}, {}, {POOL_STATE: "Dirty"}
    ),
}


@pytest.mark.parametrize("write", ALLOWED.values(), ids=ALLOWED.keys())
def test_the_api_server_lets_through_what_breaks_no_promise(pool: GuardedPool, write: Write) -> None:
    member = pool.member(write.old_labels, write.old_notes)
    assert pool.patch(write.user, member, _change(write)) is None


BOUND = replace(record_of(Phase.BOUND), uid="u-1")
CARRYING: Keys = {**CLAIMED, CLAIM_TOKEN: str(BOUND.token)}

Change: TypeAlias = Callable[[Member], Patch]


def _releasing_by(policy: Policy) -> Change:
    return lambda member: changes.remove(member, BOUND.token, BOUND, policy)


PROTOCOL: Mapping[str, tuple[str, Keys, Keys, Change]] = {
    "C3 takes a free member": ("claimer", {}, {}, lambda m: changes.take(m, BOUND)),
    "C3 takes an own member": ("claimer", CLAIMED_LABELS, {}, lambda m: changes.take(m, BOUND)),
    "C3 takes a place on a shared member": (
        "claimer",
        {SHARED: "true"},
        SHARING,
        lambda m: changes.take(m, replace(BOUND, partition=Partition("aws", shared=True))),
    ),
    "C4 heals": ("claimer", {}, CARRYING, lambda m: changes.heal(m, BOUND)),
    "C7 gives back": (
        "claimer",
        CLAIMED_LABELS,
        CARRYING,
        _releasing_by(Policy.RELEASE),
    ),
    "X2 releases an own member": (
        "claimer",
        CLAIMED_LABELS,
        {**CARRYING, CLAIM_ORIGIN: "owner"},
        lambda m: changes.remove(m, BOUND.token, BOUND),
    ),
    "X2 releases a quarantined member": (
        "claimer",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        CARRYING,
        lambda m: changes.remove(m, BOUND.token, BOUND),
    ),
    "C3 takes the first place on a shared member": (
        "claimer",
        {SHARED: "true"},
        {SHARED_CAPACITY: "1"},
        lambda m: changes.take(m, replace(BOUND, slot='a "b": c', partition=Partition("aws", shared=True))),
    ),
    "X2 releases a dirty member": (
        "claimer",
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        CARRYING,
        lambda m: changes.remove(m, BOUND.token, BOUND, Policy.QUARANTINE),
    ),
    "X2 releases a member relabelled by hand": (
        "claimer",
        {TENANT_NAME: "other"},
        CARRYING,
        lambda m: changes.remove(m, BOUND.token, BOUND),
    ),
    "X2 releases a member stripped by hand": (
        "claimer",
        {},
        CARRYING,
        lambda m: changes.remove(m, BOUND.token, None),
    ),
    "C3 takes a member quarantined once": (
        "claimer",
        CLAIMED_LABELS,
        {CLAIM_ORIGIN: "pool", TENANT_ID: "acme"},
        lambda m: changes.take(m, BOUND),
    ),
    "X2 gives up a place on a shared member": (
        "claimer",
        {SHARED: "true"},
        {SHARED_CLAIMS: json.dumps({str(BOUND.token): "0"}), SHARED_CAPACITY: "2"},
        lambda m: changes.remove(m, BOUND.token, BOUND),
    ),
    "K2 starts cleaning": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        USED,
        lambda m: changes.start_cleaning(m, "janitor/1"),
    ),
    "K3 quarantines": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "cleaning"},
        {**USED, CLEANING_TOKEN: "janitor/1"},
        lambda m: changes.quarantine(m, "it would not go"),
    ),
    "K4 frees": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "cleaning"},
        {**USED, CLEANING_TOKEN: "janitor/1"},
        changes.finish_cleaning,
    ),
    "K4 leaves an own member with its tenant": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "cleaning"},
        {CLEANING_TOKEN: "janitor/1"},
        changes.finish_cleaning,
    ),
    "an operator quarantines what is in use": (
        "operator",
        CLAIMED_LABELS,
        CARRYING,
        lambda m: changes.quarantine(m, "odd bills"),
    ),
    "an operator gives up a dirty member": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        USED,
        lambda m: changes.quarantine(m, "gone"),
    ),
    "an operator sends a quarantined member to the cleaner": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        {**USED, STATE_REASON: "odd bills"},
        changes.unquarantine,
    ),
    "an operator lets a quarantined member back that nobody had": (
        "operator",
        {POOL_STATE: "quarantined"},
        {STATE_REASON: "odd bills"},
        changes.unquarantine,
    ),
    "an operator lets a quarantined member back that is in use": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        {**CARRYING, STATE_REASON: "odd bills"},
        changes.unquarantine,
    ),
    "C3 takes a retained member": ("claimer", CLAIMED_LABELS, RETAINED, lambda m: changes.take(m, BOUND)),
    "K4 leaves a retained member with its tenant": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "cleaning"},
        {**RETAINED, CLEANING_TOKEN: "janitor/1"},
        changes.finish_cleaning,
    ),
    "an operator returns a retained member": ("operator", CLAIMED_LABELS, RETAINED, changes.take_back),
    "an operator lets a retained member back": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        {**RETAINED, STATE_REASON: "odd bills"},
        changes.unquarantine,
    ),
    "an operator has a member cleaned": ("operator", {}, {}, lambda m: changes.mark_dirty(m, "used by hand")),
    "an operator binds a restored claim": (
        "operator",
        CLAIMED_LABELS,
        CLAIMED,
        lambda m: changes.rebind(m, BOUND, m.token),
    ),
    **{
        f"X2 releases by policy {policy}": (
            "claimer",
            CLAIMED_LABELS,
            CARRYING,
            _releasing_by(policy),
        )
        for policy in Policy
    },
}


@pytest.mark.parametrize(("user", "labels", "notes", "change"), PROTOCOL.values(), ids=PROTOCOL.keys())
def test_every_write_of_the_protocol_to_a_member_passes(
    pool: GuardedPool, user: str, labels: Keys, notes: Keys, change: Change
) -> None:
    member = pool.member(labels, notes)
    assert pool.patch(user, member, change(member).body) is None


def test_a_new_account_of_the_pools_owner_is_free(pool: GuardedPool) -> None:
    def create(labels: Keys, notes: Keys, user: str = "owner") -> str | None:
        return pool.create(user, "Secret", secret(labels, notes))

    assert create({}, {}) is None
    assert create(CLAIMED_LABELS, {BRING_YOUR_OWN: "true"}, "operator") is None
    assert create(CLAIMED_LABELS, CLAIMED, "operator") is None
    for labels, notes in (
        (CLAIMED_LABELS, {}),
        (CLAIMED_LABELS, {BRING_YOUR_OWN: "true"}),
        ({}, {BRING_YOUR_OWN: "true"}),
        ({}, USED),
        ({}, {CLAIM_TOKEN: TOKEN}),
        ({POOL_STATE: "quarantined"}, {}),
        ({SHARED: "true"}, SHARING),
    ):
        assert " a-new-account-is-unclaimed: " in str(create(labels, notes))


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_what_is_made_is_not_made_to_vanish_or_to_stay(pool: GuardedPool, kind: str) -> None:
    def body(change: JsonObject) -> JsonObject:
        drawn = secret({}, {}) if kind == "Secret" else record_of(Phase.PENDING).render(pool.namespace)
        metadata = {**drawn["metadata"], **change.get("metadata", {})}
        return {**drawn, **change, "metadata": metadata}

    assert pool.create("claimer", kind, body({})) is None
    for change in (
        {"metadata": {"ownerReferences": [GONE]}},
        {"metadata": {"finalizers": ["example.com/kept"]}},
        {"immutable": True},
    ):
        refused = pool.create("claimer", kind, body(change))
        assert " nothing-new-is-deleted-or-locked-with-another: " in str(refused)
        assert pool.create("operator", kind, body(change)) is None


def test_an_account_deleted_in_the_foreground_goes_once_the_garbage_collector_says_so(
    pool: GuardedPool,
) -> None:
    member = pool.member({}, {})
    api, where = pool.api("owner", "Secret"), {"name": member.name, "namespace": pool.namespace}
    api.delete(**where, body={"propagationPolicy": "Foreground"})
    gone: JsonObject = {"metadata": {"finalizers": None}}
    try:
        assert pool.patch("owner", member, gone) is None
    except NotFoundError:
        assert pool.create("owner", "Secret", secret({}, {})) is None


def test_secrets_that_are_no_accounts_are_nobodys_business(pool: GuardedPool) -> None:
    body = secret({TENANT_NAME: "acme", POOL_STATE: "dirty"}, CLAIMED)
    del body["metadata"]["labels"][HYPERSCALER_TYPE]
    assert pool.create("owner", "Secret", body) is None


def test_whoever_declares_a_claimed_account_rotates_its_credential(pool: GuardedPool) -> None:
    manifest = secret({}, {})
    where = {"name": manifest["metadata"]["name"], "namespace": pool.namespace}
    declare = {"content_type": "application/apply-patch+yaml", "field_manager": "pulumi-kubernetes"}
    declared, claimed = pool.api("owner", "Secret"), pool.api("claimer", "Secret")
    declared.patch(**where, body=manifest, **declare)
    claim = {"metadata": {"labels": dict(CLAIMED_LABELS), "annotations": dict(CLAIMED)}}
    claimed.patch(**where, body=claim, content_type=MERGE, field_manager="credfleet-claims")
    rotated = {**manifest, "data": {"key": "bmV3"}}
    assert refusal(lambda: declared.patch(**where, body=rotated, **declare)) is None
    now = declared.get(**where)
    assert (now.data["key"], now.metadata.labels[TENANT_NAME]) == ("bmV3", "acme")
    assert now.metadata.annotations[CLAIM_TOKEN] == TOKEN


IN_USE: Mapping[str, tuple[Keys, Keys]] = {
    "claimed": (CLAIMED_LABELS, CLAIMED),
    "claimed without its label": ({}, CLAIMED),
    "shared": ({SHARED: "true"}, SHARING),
    "dirty": ({POOL_STATE: "dirty"}, USED),
    "being cleaned": ({POOL_STATE: "cleaning"}, {CLEANING_TOKEN: "janitor/1"}),
}
NOT_IN_USE: Mapping[str, tuple[Keys, Keys]] = {
    "free": ({}, {}),
    "owned without a claim": (CLAIMED_LABELS, {}),
    "quarantined": ({POOL_STATE: "quarantined"}, USED),
    "shared by nobody": ({SHARED: "true"}, {SHARED_CLAIMS: "{}"}),
}


@pytest.mark.parametrize("user", ["owner", "operator", "claimer", "cleaner"])
@pytest.mark.parametrize(("labels", "notes"), IN_USE.values(), ids=IN_USE.keys())
def test_an_account_in_use_is_deleted_by_nobody(
    pool: GuardedPool, labels: Keys, notes: Keys, user: str
) -> None:
    refused = pool.delete(user, "Secret", pool.member(labels, notes).name)
    assert " an-account-in-use-is-not-deleted: " in str(refused)


@pytest.mark.parametrize(("labels", "notes"), NOT_IN_USE.values(), ids=NOT_IN_USE.keys())
def test_an_account_nobody_uses_is_deleted_by_its_owner(pool: GuardedPool, labels: Keys, notes: Keys) -> None:
    assert pool.delete("owner", "Secret", pool.member(labels, notes).name) is None


@pytest.mark.parametrize(("labels", "notes"), IN_USE.values(), ids=IN_USE.keys())
def test_a_pool_that_may_be_thrown_away_lets_everything_be_deleted(
    throwaway_pool: GuardedPool, labels: Keys, notes: Keys
) -> None:
    member, record = throwaway_pool.member(labels, notes), throwaway_pool.record(Phase.BOUND)
    assert throwaway_pool.delete("owner", "Secret", member.name) is None
    assert throwaway_pool.delete("owner", "ConfigMap", record.name) is None


def test_a_claim_in_another_namespace_is_not_touched(
    pool: GuardedPool, namespace: str, admin: DynamicClient
) -> None:
    api: Any = admin.resources.get(api_version="v1", kind="Secret")
    body = secret(CLAIMED_LABELS, CLAIMED)
    api.create(body=body, namespace=namespace)
    where = {"name": body["metadata"]["name"], "namespace": namespace}

    def delete() -> object:
        return api.delete(**where)

    assert refusal(delete) is None
