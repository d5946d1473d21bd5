"""A holder's sequence numbers only ever rise, so that a fence of an earlier claim never fits a later one."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.core.records import Fence, Record
from tests.support.records import BOUND

HOLDERS = st.sampled_from(("first", "second", "third"))


def claim_held_by(holder: str) -> Record:
    return replace(BOUND, holders={holder: 1})


def as_stored(record: Record) -> Record:
    body = record.render("pool")
    body["metadata"] |= {"uid": record.uid, "resourceVersion": record.resource_version}
    return Record.parse(body)


def test_the_release_of_an_earlier_claim_does_not_touch_the_claim_of_a_holder_who_left_and_returned():
    record = claim_held_by("first").with_holder("first").with_holder("second")
    fence = Fence(record.uid, record.holders["first"])
    returned = as_stored(record.without_holder("first")).with_holder("first")
    assert fence.is_overtaken(returned, "first")


@given(st.lists(st.tuples(st.booleans(), HOLDERS), max_size=20))
def test_whoever_comes_and_goes_no_sequence_number_is_given_to_a_holder_twice(moves: list[tuple[bool, str]]):
    record = claim_held_by("first")
    given_numbers = {("first", 1)}
    for comes, holder in moves:
        if comes:
            record = as_stored(record.with_holder(holder))
            number = (holder, record.holders[holder])
            assert number not in given_numbers
            given_numbers.add(number)
        else:
            record = as_stored(record.without_holder(holder))
