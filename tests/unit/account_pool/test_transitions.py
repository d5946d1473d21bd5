"""Which writes to an account are transitions, and which are not: the tables and their twin, without CEL.

That the API server says the same is tried by `tests/cluster/test_admission_by_machine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from components.account_pool.admission.member_transitions import build_member_machine
from components.account_pool.admission.record_transitions import build_record_machine
from components.account_pool.admission.state_machine import StateMachine
from components.account_pool.core.keys import POOL_RECORD
from components.account_pool.core.model import JsonObject, Partition, Phase
from components.account_pool.core.records import Record
from components.labels import EU_ACCESS, HYPERSCALER_TYPE, TENANT_NAME
from tests.support import admission_twin, cases
from tests.support.guarded_pool import VERBS, Keys, merged, record_of, secret

MEMBERS, RENEWED = (build_member_machine((EU_ACCESS,), new_keys) for new_keys in ((), ("aws",)))


@dataclass(frozen=True)
class Write:
    """A change of labels and annotations, from a state, by a user; body: what else it says."""

    user: str
    labels: Keys = field(default_factory=dict[str, str | None])
    notes: Keys = field(default_factory=dict[str, str | None])
    old_labels: Keys = field(default_factory=dict[str, str | None])
    old_notes: Keys = field(default_factory=dict[str, str | None])
    body: JsonObject = field(default_factory=dict[str, Any])

    def passes(self, machine: StateMachine = MEMBERS) -> bool:
        """Whether the table of accounts allows it."""
        before = secret(self.old_labels, self.old_notes)
        change = {"metadata": {"labels": dict(self.labels), "annotations": dict(self.notes)}}
        after = merged(merged(before, change), self.body)
        return admission_twin.allows(
            machine, admission_twin.Write(before, after, VERBS[self.user], self.user)
        )


@cases.cases("write", cases.table(__file__, "refused"))
def test_a_write_that_is_no_transition_is_refused(write: Mapping[str, Any]) -> None:
    assert not Write(**write).passes()


@cases.cases("write", cases.table(__file__, "allowed"))
def test_a_write_that_breaks_no_promise_passes(write: Mapping[str, Any]) -> None:
    assert Write(**write).passes()


@cases.cases("write", cases.table(__file__, "renewed"))
def test_account_that_needs_a_new_key_is_free_only_with_one(write: Mapping[str, Any]) -> None:
    may = write["may"]
    assert Write(**{key: each for key, each in write.items() if key != "may"}).passes(RENEWED) is may


RECORDS = build_record_machine((EU_ACCESS,))
PART = Partition("aws", ((EU_ACCESS, None),))
PENDING, BOUND, RELEASING = (replace(record_of(phase), partition=PART) for phase in Phase)


def may_write(user: str, before: Record | None, after: JsonObject | None) -> bool:
    drawn = before and before.render("pool")
    return admission_twin.allows(RECORDS, admission_twin.Write(drawn, after, VERBS[user], user))


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


BEFORE = {
    "pending": PENDING,
    "bound": BOUND,
    "bound again": replace(BOUND, holders={"h": 3}),
    "crowded": replace(BOUND, holders={"a": 1, "b": 2, "h": 1}, retired=4),
    "releasing": RELEASING,
}


@cases.cases("garbled", cases.table(__file__, "garbled"))
def test_a_claimer_writes_into_a_record_what_the_protocol_writes(garbled: Mapping[str, Any]) -> None:
    before = BEFORE[garbled["before"]]
    assert not may_write("claimer", before, merged(before.render("pool"), {"data": garbled["data"]}))


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
