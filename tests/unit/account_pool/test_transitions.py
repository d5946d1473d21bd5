"""Which writes to an account are steps of somebody, and which are not: the table, without CEL.

That the API server says the same is tried by `tests/cluster/test_admission_by_machine.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from components.account_pool.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    INTERNAL,
    POOL_RECORD,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.member_steps import member_table
from components.account_pool.model import JsonObject, Partition, Phase, Record
from components.account_pool.record_steps import record_table
from components.account_pool.rows import Verb, allows
from components.account_pool.rows import Write as Asked
from components.account_pool.transitions import tables
from components.labels import (
    ACCOUNT_ID,
    BRING_YOUR_OWN,
    EU_ACCESS,
    HYPERSCALER_TYPE,
    SHARED,
    TENANT_NAME,
)
from tests.support.guarded_pool import (
    CLAIMED,
    CLAIMED_LABELS,
    OWN_CLAIMED,
    SHARING,
    TOKEN,
    USED,
    VERBS,
    Keys,
    merged,
    record_of,
    secret,
)

MEMBERS = member_table((EU_ACCESS,))

GONE: Mapping[str, str] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}
"""An owner that is not there: the garbage collector deletes what it owns."""


@dataclass(frozen=True)
class Write:
    """A change of labels and annotations, from a state, by a user; body: what else it says."""

    user: str
    labels: Keys = field(default_factory=dict[str, str | None])
    notes: Keys = field(default_factory=dict[str, str | None])
    old_labels: Keys = field(default_factory=dict[str, str | None])
    old_notes: Keys = field(default_factory=dict[str, str | None])
    body: JsonObject = field(default_factory=dict[str, Any])

    @property
    def passes(self) -> bool:
        """Whether the table of accounts allows it."""
        before = secret(self.old_labels, self.old_notes)
        change = {"metadata": {"labels": dict(self.labels), "annotations": dict(self.notes)}}
        after = merged(merged(before, change), self.body)
        return allows(MEMBERS, Asked(before, after, VERBS[self.user], self.user))


REFUSED: Mapping[str, Write] = {
    "an operator moves an owner in one write": Write("operator", {TENANT_NAME: "b"}, {}, {TENANT_NAME: "a"}),
    "a claimer moves an owner in one write": Write(
        "claimer", {TENANT_NAME: "b"}, CLAIMED, {TENANT_NAME: "a"}
    ),
    "an operator strips the owner of a claim": Write(
        "operator", {TENANT_NAME: None}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "a claimer strips the owner of a claim": Write(
        "claimer", {TENANT_NAME: None}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "the pool's owner labels a free account": Write("owner", {TENANT_NAME: "acme"}),
    "a claimer labels without a token": Write("claimer", {TENANT_NAME: "acme"}),
    "a claimer takes a retained account from its tenant": Write(
        "claimer", {TENANT_NAME: None}, {}, CLAIMED_LABELS
    ),
    "a release takes an account from who brought it": Write(
        "claimer",
        {TENANT_NAME: None},
        {CLAIM_TOKEN: None, CLAIM_ORIGIN: None, CLAIM_POLICY: None},
        CLAIMED_LABELS,
        OWN_CLAIMED,
    ),
    "a cleaner frees an account its tenant brought": Write(
        "cleaner",
        {TENANT_NAME: None, POOL_STATE: None},
        {},
        {TENANT_NAME: "acme", POOL_STATE: "cleaning"},
    ),
    "the pool's owner strips a token": Write("owner", {}, {CLAIM_TOKEN: None}, CLAIMED_LABELS, CLAIMED),
    "a cleaner strips a token": Write("cleaner", {}, {CLAIM_TOKEN: None}, CLAIMED_LABELS, CLAIMED),
    "the pool's owner forges a token": Write("owner", {}, {CLAIM_TOKEN: TOKEN}, CLAIMED_LABELS),
    "a claimer puts its token over another": Write(
        "claimer", {}, {CLAIM_TOKEN: "claim-1.u.1"}, CLAIMED_LABELS, CLAIMED
    ),
    "the pool's owner empties a shared account": Write(
        "owner", {}, {SHARED_CLAIMS: None}, {SHARED: "true"}, SHARING
    ),
    "an operator frees a dirty account": Write(
        "operator",
        {POOL_STATE: None},
        {},
        {POOL_STATE: "dirty"},
    ),
    "a cleaner frees a dirty account uncleaned": Write(
        "cleaner",
        {POOL_STATE: None},
        {},
        {POOL_STATE: "dirty"},
    ),
    "a claimer finishes a cleaning": Write(
        "claimer",
        {POOL_STATE: None},
        {},
        {POOL_STATE: "cleaning"},
    ),
    "an operator frees a quarantined account a tenant has left": Write(
        "operator",
        {POOL_STATE: None},
        {},
        {POOL_STATE: "quarantined"},
        USED,
    ),
    "a cleaner cleans an account in use": Write(
        "cleaner",
        {POOL_STATE: "cleaning"},
        {},
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        CLAIMED,
    ),
    "a cleaner cleans a shared account in use": Write(
        "cleaner",
        {POOL_STATE: "cleaning"},
        {},
        {SHARED: "true", POOL_STATE: "dirty"},
        SHARING,
    ),
    "a cleaner cleans a free account": Write("cleaner", {POOL_STATE: "cleaning"}),
    "the pool's owner marks an account dirty": Write("owner", {POOL_STATE: "dirty"}),
    "a claimer quarantines what it does not release": Write("claimer", {POOL_STATE: "quarantined"}),
    "a cleaner quarantines what it does not clean": Write(
        "cleaner",
        {POOL_STATE: "quarantined"},
        {},
        {POOL_STATE: "dirty"},
    ),
    "an operator writes an unknown state": Write("operator", {POOL_STATE: "Dirty"}),
    "the pool's owner hides that a tenant had it": Write(
        "owner", {}, {CLAIM_ORIGIN: None}, {POOL_STATE: "dirty"}, USED
    ),
    "the pool's owner changes a release policy": Write(
        "owner", {}, {CLAIM_POLICY: "release"}, CLAIMED_LABELS, CLAIMED
    ),
    "a claimer forges a cleaning": Write(
        "claimer",
        {},
        {CLEANING_TOKEN: "x/1"},
        {POOL_STATE: "cleaning"},
        {CLEANING_TOKEN: "y/1"},
    ),
    "an operator retypes a claimed account": Write(
        "operator", {HYPERSCALER_TYPE: "gcp"}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "an operator takes a claimed account out of the pool": Write(
        "operator", {HYPERSCALER_TYPE: None}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "an operator shares an account that is being cleaned": Write(
        "operator", {SHARED: "true"}, {}, {POOL_STATE: "cleaning"}
    ),
    **{
        f"{user} takes {account} out of the pool": Write(user, {HYPERSCALER_TYPE: None}, {}, labels, notes)
        for user in ("owner", "claimer", "cleaner")
        for account, labels, notes in (
            ("a free account", {}, {}),
            ("a retained account", CLAIMED_LABELS, {}),
            ("a dirty account", {**CLAIMED_LABELS, POOL_STATE: "dirty"}, USED),
        )
    },
    "an operator takes a dirty account out of the pool": Write(
        "operator", {HYPERSCALER_TYPE: None}, {}, {POOL_STATE: "dirty"}
    ),
    **{
        f"{user} puts a Secret with {what} into the pool": Write(
            user,
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
        f"{user} says that {what}": Write(user, labels, notes, old_labels, old_notes)
        for user in ("owner", "cleaner", "claimer")
        for what, labels, notes, old_labels, old_notes in (
            (
                "a free account was brought by a tenant",
                {TENANT_NAME: "acme"},
                {BRING_YOUR_OWN: "true"},
                {},
                {},
            ),
            (
                "a retained account was brought by another tenant",
                {TENANT_NAME: "b"},
                {BRING_YOUR_OWN: "true"},
                {TENANT_NAME: "a"},
                {},
            ),
            (
                "an account is no longer its tenant's",
                {TENANT_NAME: None},
                {},
                CLAIMED_LABELS,
                {BRING_YOUR_OWN: "true"},
            ),
            (
                "nobody brought an account",
                {},
                {BRING_YOUR_OWN: None},
                CLAIMED_LABELS,
                {BRING_YOUR_OWN: "true"},
            ),
            (
                "somebody brought a retained account",
                {},
                {BRING_YOUR_OWN: "true"},
                CLAIMED_LABELS,
                {},
            ),
        )
    },
    **{
        f"{user} changes {what}": Write(user, labels, notes, old_labels, old_notes)
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
            {**old_labels, TENANT_NAME: "acme"},
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
    "a claimer claims for nobody": Write("claimer", {}, CLAIMED),
    **{
        f"a claimer releases {what}": Write(
            "claimer",
            labels,
            {CLAIM_TOKEN: None, **notes},
            {**CLAIMED_LABELS, **old_labels},
            CLAIMED,
        )
        for what, labels, notes, old_labels in (
            ("and leaves the policy", {}, {CLAIM_ORIGIN: None}, {}),
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
    "a claimer changes the policy of a claim": Write(
        "claimer", {}, {CLAIM_POLICY: "release"}, CLAIMED_LABELS, CLAIMED
    ),
    "a claimer calls what a tenant brought the pool's": Write(
        "claimer", {}, {CLAIM_ORIGIN: "pool"}, CLAIMED_LABELS, OWN_CLAIMED
    ),
    "a cleaner calls what a tenant brought the pool's": Write(
        "cleaner",
        {POOL_STATE: "cleaning"},
        {CLAIM_ORIGIN: "pool"},
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        {BRING_YOUR_OWN: "true"},
    ),
    "a cleaner hides why an account is quarantined": Write(
        "cleaner",
        {},
        {STATE_REASON: None},
        {POOL_STATE: "quarantined"},
        {STATE_REASON: "odd bills"},
    ),
    **{
        f"a claimer {what}": Write(
            "claimer",
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
        f"{user} {what}": Write(user, body=body)
        for user in ("owner", "claimer", "cleaner")
        for what, body in (
            ("gives an account to the garbage collector", {"metadata": {"ownerReferences": [GONE]}}),
            ("keeps an account from going", {"metadata": {"finalizers": ["example.com/kept"]}}),
            ("locks a credential", {"immutable": True}),
        )
    },
    **{
        f"{user} {what}": Write(user, labels, {}, old_labels, body=body)
        for user in ("owner", "claimer", "cleaner")
        for what, labels, old_labels, body in (
            ("relabels a free account", {"region": "eu"}, {}, {}),
            ("retypes a free account", {HYPERSCALER_TYPE: "gcp"}, {}, {}),
            ("empties the owner of a free account", {TENANT_NAME: ""}, {}, {}),
            ("empties the state of a free account", {POOL_STATE: ""}, {}, {}),
            ("puts a bare Secret into the pool", {HYPERSCALER_TYPE: "aws"}, {HYPERSCALER_TYPE: None}, {}),
            (
                "strips the state of an account that left the pool",
                {POOL_STATE: None},
                {HYPERSCALER_TYPE: None, POOL_STATE: "dirty"},
                {},
            ),
            (
                "strips the owner of an account that left the pool",
                {TENANT_NAME: None},
                {HYPERSCALER_TYPE: None, **CLAIMED_LABELS},
                {},
            ),
            ("puts another credential into an account", {}, {}, {"data": {"key": "bmV3"}}),
        )
    },
    "an operator frees an account that was retained": Write(
        "operator", {TENANT_NAME: None}, {}, CLAIMED_LABELS
    ),
    "an operator frees a licence": Write(
        "operator", {TENANT_NAME: None}, {BRING_YOUR_OWN: None}, CLAIMED_LABELS, {BRING_YOUR_OWN: "true"}
    ),
    "an operator frees an account of an unknown state": Write(
        "operator", {POOL_STATE: None}, {}, {POOL_STATE: "Dirty"}
    ),
    "an operator strips the state of an account that left the pool": Write(
        "operator", {POOL_STATE: None}, {}, {HYPERSCALER_TYPE: None, POOL_STATE: "dirty"}
    ),
    "an operator claims": Write("operator", {TENANT_NAME: "acme"}, CLAIMED),
    "a claimer claims for one tenant by the name of another": Write(
        "claimer", {TENANT_NAME: "acme"}, {**CLAIMED, TENANT_ID: "globex"}
    ),
    "a claimer puts another owner back": Write("claimer", {TENANT_NAME: "globex"}, {}, {}, CLAIMED),
    "a claimer takes an account that is kept out of the pool": Write(
        "claimer", CLAIMED_LABELS, CLAIMED, {INTERNAL: "true"}
    ),
    "a claimer frees at once what was claimed to be cleaned": Write(
        "claimer",
        {TENANT_NAME: None},
        dict.fromkeys(CLAIMED),
        CLAIMED_LABELS,
        CLAIMED,
    ),
    "a cleaner takes over what another cleans": Write(
        "cleaner", {}, {CLEANING_TOKEN: "mine/1"}, {POOL_STATE: "cleaning"}, {CLEANING_TOKEN: "other/1"}
    ),
}


@pytest.mark.parametrize("write", REFUSED.values(), ids=REFUSED.keys())
def test_a_write_that_is_no_step_is_refused(write: Write) -> None:
    assert not write.passes


ALLOWED: Mapping[str, Write] = {
    "the pool's owner annotates a claimed account": Write(
        "owner", {}, {"note": "x"}, CLAIMED_LABELS, CLAIMED
    ),
    "a claimer notes another policy of a claim": Write(
        "claimer", {}, {CLAIM_POLICY: "retain"}, CLAIMED_LABELS, CLAIMED
    ),
    "an operator puts a bare Secret into the pool": Write(
        "operator", {HYPERSCALER_TYPE: "aws"}, {}, {HYPERSCALER_TYPE: None}
    ),
    "an operator moves a free account to another part": Write("operator", {EU_ACCESS: "true"}),
    "an operator rotates a credential in use": Write(
        "operator", old_labels=CLAIMED_LABELS, old_notes=CLAIMED, body={"data": {"key": "bmV3"}}
    ),
    "a cleaner rotates the credential it cleans": Write(
        "cleaner", old_labels={POOL_STATE: "cleaning"}, body={"data": {"key": "bmV3"}}
    ),
    "an operator takes a quarantined account out of the pool": Write(
        "operator", {HYPERSCALER_TYPE: None}, {}, {**CLAIMED_LABELS, POOL_STATE: "quarantined"}, USED
    ),
    "an operator puts an account back into the pool": Write(
        "operator", {HYPERSCALER_TYPE: "aws"}, {}, {HYPERSCALER_TYPE: None, **CLAIMED_LABELS}
    ),
    "an operator gives a claimed account its type back": Write(
        "operator", {HYPERSCALER_TYPE: "aws"}, {}, {HYPERSCALER_TYPE: None, **CLAIMED_LABELS}, CLAIMED
    ),
    "an operator gives an account to who had it before": Write("operator", {TENANT_NAME: "acme"}),
    "an operator gives an account to who brought it": Write(
        "operator", {TENANT_NAME: "acme"}, {BRING_YOUR_OWN: "true"}
    ),
    "an operator keeps an account from going": Write(
        "operator", body={"metadata": {"finalizers": ["example.com/kept"]}, "immutable": True}
    ),
    **{
        f"an operator takes {what} from its tenant, to be cleaned": Write(
            "operator",
            {TENANT_NAME: None, POOL_STATE: "dirty"},
            {BRING_YOUR_OWN: None},
            CLAIMED_LABELS,
            notes,
        )
        for what, notes in (
            ("a retained account", {}),
            ("a licence that is not in use", {BRING_YOUR_OWN: "true"}),
        )
    },
    "an operator marks an account dirty that is in use": Write(
        "operator", {POOL_STATE: "dirty"}, {}, CLAIMED_LABELS, CLAIMED
    ),
    "an operator mends an unknown state": Write("operator", {POOL_STATE: "dirty"}, {}, {POOL_STATE: "Dirty"}),
}


@pytest.mark.parametrize("write", ALLOWED.values(), ids=ALLOWED.keys())
def test_a_write_that_breaks_no_promise_passes(write: Write) -> None:
    assert write.passes


RECORDS = record_table((EU_ACCESS,))
PART = Partition("aws", ((EU_ACCESS, None),))
PENDING, BOUND, RELEASING = (replace(record_of(phase), partition=PART) for phase in Phase)
CROWDED = replace(BOUND, holders={"a": 1, "b": 2, "h": 1}, retired=4)


def may_write(user: str, before: Record | None, after: JsonObject | None) -> bool:
    drawn = before and before.render("pool")
    return allows(RECORDS, Asked(drawn, after, VERBS[user], user))


def may_replace(user: str, before: Record, after: Record) -> bool:
    return may_write(user, before, replace(after, name=before.name).render("pool"))


@pytest.mark.parametrize("user", ["owner", "cleaner"])
@pytest.mark.parametrize("before", [PENDING, BOUND, RELEASING], ids=["pending", "bound", "releasing"])
def test_a_record_is_written_by_claimers_and_operators_alone(user: str, before: Record) -> None:
    for after in (before.with_holder("me"), before.without_holder("h"), replace(before, former_uid="u-0")):
        assert not may_replace(user, before, after)
    assert not may_write(user, before, None)
    assert not may_write(user, None, before.render("pool"))


@pytest.mark.parametrize("user", ["claimer", "operator"])
def test_a_record_stays_whose_it_is_and_never_goes_back(user: str) -> None:
    for before, after in (
        (BOUND, replace(BOUND, tenant="other")),
        (BOUND, replace(BOUND, slot="1")),
        (BOUND, replace(BOUND, partition=Partition("gcp", PART.values))),
        (BOUND, replace(BOUND, phase=Phase.PENDING)),
        (RELEASING, replace(RELEASING, phase=Phase.BOUND)),
        (RELEASING, replace(RELEASING, phase=Phase.PENDING)),
        (BOUND, replace(BOUND, member="aws-2")),
        (BOUND, replace(BOUND, attempt=2)),
    ):
        assert not may_replace(user, before, after)
    assert not may_write(user, BOUND, None)


GARBLED: Mapping[str, tuple[Record, Mapping[str, str | None]]] = {
    "another account under the same name": (BOUND, {"memberUid": "u-2"}),
    "another account in the same attempt": (PENDING, {"member": "aws-2"}),
    "an attempt skipped": (PENDING, {"member": "aws-2", "attempt": "3"}),
    "a policy before it is bound": (PENDING, {"policy": "release"}),
    "a limit before it is bound": (PENDING, {"limit": "1"}),
    "a policy when it is released": (RELEASING, {"policy": "retain"}),
    "an unknown policy": (BOUND, {"policy": "forget"}),
    "a limit that is no number": (BOUND, {"limit": "many"}),
    "a limit below its holders": (CROWDED, {"limit": "2"}),
    "an attempt that is no number": (BOUND, {"attempt": "x"}),
    "no account": (PENDING, {"member": None}),
    "no holders": (BOUND, {"holders": None}),
    "nobody": (BOUND, {"holders": "{}", "retired": "1"}),
    "holders that are no JSON": (BOUND, {"holders": "h"}),
    "holders that are a list": (BOUND, {"holders": '["h"]'}),
    "a holder without a number": (BOUND, {"holders": '{"h": "1"}'}),
    "two holders at once": (BOUND, {"holders": '{"a": 1, "b": 1, "h": 1}'}),
    "a holder with a number of its own": (BOUND, {"holders": '{"h": 1, "i": 9}'}),
    "a number that goes back": (replace(BOUND, holders={"h": 3}), {"holders": '{"h": 2}'}),
    "a number skipped": (BOUND, {"holders": '{"h": 3}'}),
    "one who left and is forgotten": (CROWDED, {"holders": '{"a": 1, "b": 2}', "retired": None}),
    "one who never left": (CROWDED, {"retired": "5"}),
    "all holders at once": (CROWDED, {"holders": "{}", "phase": "Releasing"}),
    "holders that stay after the release": (BOUND, {"phase": "Releasing"}),
    "a number of those who left that is none": (BOUND, {"retired": "-1"}),
    "a uid of before a restore": (BOUND, {"formerUid": "u-0"}),
    "a key of its own": (BOUND, {"note": "x"}),
}


@pytest.mark.parametrize(("before", "data"), GARBLED.values(), ids=GARBLED.keys())
def test_a_claimer_writes_into_a_record_what_the_protocol_writes(
    before: Record, data: Mapping[str, str | None]
) -> None:
    assert not may_write("claimer", before, merged(before.render("pool"), {"data": dict(data)}))


def test_a_new_record_is_the_first_attempt_of_a_claim_and_can_be_read() -> None:
    assert may_write("claimer", None, PENDING.render("pool"))
    for change in (
        {"metadata": {"name": "anything"}},
        {"metadata": {"labels": {POOL_RECORD: None}}},
        {"metadata": {"labels": {TENANT_NAME: "other"}}},
        {"metadata": {"finalizers": ["example.com/kept"]}},
        {"data": {"attempt": "2"}},
        {"data": {"phase": "Bound"}},
        {"data": {"holders": "[]"}},
        {"data": {"partition": "hyperscaler-type=aws"}},
        {"data": {"partition": "eu-access=true,hyperscaler-type=aws,region=eu"}},
    ):
        assert not may_write("claimer", None, merged(PENDING.render("pool"), change))


def test_a_record_keeps_the_labels_it_is_found_by() -> None:
    for key in (TENANT_NAME, HYPERSCALER_TYPE, POOL_RECORD):
        labelled = merged(BOUND.render("pool"), {"metadata": {"labels": {key: "other"}}})
        assert not may_write("claimer", BOUND, labelled)


WHO: Mapping[Verb, str] = {
    Verb.CLAIM: "claimers",
    Verb.CLEAN: "cleaners",
    Verb.OPERATE: "operators",
    Verb.BRING: "bringers",
}
PAGE = Path("docs/design/pool-steps.md")


def test_the_page_of_steps_is_the_tables() -> None:
    drawn = PAGE.read_text(encoding="utf-8").partition("\n## ")[0].rstrip()
    for table in tables((), quotas=True):
        drawn += f"\n\n## {table.name.capitalize()}\n\n| Step | Who | What it changes |\n|---|---|---|"
        for step in table.steps:
            who = ", ".join(WHO[verb] for verb in step.by) or "everybody"
            touched = [f"`{one.shown.removeprefix('credfleet.io/')}`" for one in step.new]
            what = (
                "the whole"
                if step.on != "UPDATE" or len(touched) == len(table.fields)
                else ", ".join(touched)
            )
            drawn += f"\n| {step.does} | {who} | {what} |"
    assert PAGE.read_text(encoding="utf-8") == drawn + "\n"
