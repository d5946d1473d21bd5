"""Resources that go to another stack, and what becomes of their names."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol import urns

from components.errors import CredfleetError
from operations.fleet.regroup import regroup
from operations.stack.state import Resource, Snapshot

_ROOT = "urn:pulumi:one::shop::pulumi:pulumi:Stack::shop-one"
_PROVIDER = "urn:pulumi:one::shop::shop:Hall$pulumi:providers:fake::fake"
_HALL = "urn:pulumi:one::shop::shop:Hall::hall"
_LOOKOUT = "urn:pulumi:one::shop::shop:Hall$fake:Look::lookout"


def _shelf(name: str) -> list[Resource]:
    shelf = f"urn:pulumi:one::shop::shop:Hall$shop:Shelf::{name}"
    book = f"urn:pulumi:one::shop::shop:Hall$shop:Shelf$fake:Book::{name}"
    return [
        Resource(shelf, "shop:Shelf", custom=False, parent=_HALL, dependencies=(_LOOKOUT,)),
        Resource(
            book,
            "fake:Book",
            custom=True,
            id=f"book-{name}",
            inputs={"title": name},
            parent=shelf,
            provider=f"{_PROVIDER}::p1",
            dependencies=(_LOOKOUT,),
            property_dependencies={"title": (_LOOKOUT,)},
        ),
    ]


def _state(*names: str) -> Snapshot:
    return Snapshot(
        (
            Resource(_ROOT, "pulumi:pulumi:Stack", custom=False),
            Resource(_HALL, "shop:Hall", custom=False, parent=_ROOT),
            Resource(_PROVIDER, "pulumi:providers:fake", custom=True, id="p1", parent=_HALL),
            Resource(
                _LOOKOUT, "fake:Look", custom=True, id="look", parent=_HALL, provider=f"{_PROVIDER}::p1"
            ),
            *(each for name in names for each in _shelf(name)),
        )
    )


def _moved(states: Mapping[str, Snapshot], homes: Mapping[str, str]) -> dict[str, Snapshot]:
    """Move shelves; homes: name → stack."""
    return regroup(
        states,
        lambda each: homes.get(urns.parse(each.urn).name) if each.type == "shop:Shelf" else None,
        lambda each: each.type == "fake:Look",
    )


def test_what_goes_is_named_after_its_new_stack_and_keeps_all_else():
    states = _moved({"one": _state("a", "b"), "two": Snapshot()}, {"b": "two"})
    assert states["one"] == _state("a")
    book = states["two"].resources[-1]
    assert book.urn == "urn:pulumi:two::shop::shop:Hall$shop:Shelf$fake:Book::b"
    assert book.provider == "urn:pulumi:two::shop::shop:Hall$pulumi:providers:fake::fake::p1"
    assert (book.id, book.inputs) == ("book-b", {"title": "b"})
    assert {each.urn for each in states["two"].resources} >= {*book.references}
    assert states["two"].resources[0].urn == "urn:pulumi:two::shop::pulumi:pulumi:Stack::shop-two"


_NAMES = "abcd"


@given(
    first=st.fixed_dictionaries({name: st.sampled_from(["one", "two", "three"]) for name in _NAMES}),
    then=st.fixed_dictionaries({name: st.sampled_from(["one", "two", "three"]) for name in _NAMES}),
)
def test_wherever_resources_go_each_is_there_once_behind_what_it_refers_to(
    first: dict[str, str], then: dict[str, str]
):
    states: dict[str, Snapshot] = {"one": _state(*_NAMES), "two": Snapshot(), "three": Snapshot()}
    for homes in (first, then):
        states = _moved(states, homes)
        for snapshot in states.values():
            _assert_in_order(snapshot)
        books = {
            each.id: stack
            for stack, snapshot in states.items()
            for each in snapshot.resources
            if each.type == "fake:Book"
        }
        assert books == {f"book-{name}": stack for name, stack in homes.items()}
        assert sum(len(snapshot.resources) - 4 for snapshot in states.values() if snapshot.resources) == 8
    back = _moved(states, dict.fromkeys(_NAMES, "one"))["one"]
    assert {each.urn: each for each in back.resources} == {
        each.urn: each for each in _state(*_NAMES).resources
    }


def test_the_provider_that_a_stack_has_already_serves_what_comes():
    two = _moved({"one": _state("a"), "two": Snapshot()}, {"a": "two"})["two"]
    other = tuple(replace(each, id="p2") if each.is_provider else each for each in two.resources)
    other = tuple(replace(each, provider=each.provider.replace("::p1", "::p2")) for each in other)
    found = _moved({"one": _state("b"), "two": Snapshot(other)}, {"b": "two"})["two"]
    _assert_in_order(found)
    assert {each.provider.rpartition("::")[2] for each in found.resources} == {"", "p2"}


def _assert_in_order(snapshot: Snapshot) -> None:
    """Assert what the CLI asks of a state: each is there once, behind all that it refers to."""
    seen: set[str] = set()
    for each in snapshot.resources:
        assert each.urn not in seen
        assert {*each.references} <= seen
        assert not each.provider or each.provider in seen
        seen |= {each.urn, f"{each.urn}::{each.id}"}


def _refused(states: Mapping[str, Snapshot], homes: Mapping[str, str]) -> str:
    with pytest.raises(CredfleetError) as refused:
        _moved(states, homes)
    assert refused.value.code == "state-entangled"
    return refused.value.problem


def test_what_would_have_to_be_in_two_states_and_is_something_outside_goes_nowhere():
    *common, shelf, book = _state("a", "b").resources
    tied = replace(book, dependencies=(common[-1].urn,))
    assert "refers to" in _refused({"one": Snapshot((*common, shelf, tied)), "two": Snapshot()}, {"b": "two"})
    assert "it stays in stack one" in _refused(
        {"one": Snapshot((*common, shelf, tied)), "two": Snapshot()}, {"a": "two"}
    )
    there = _moved({"one": _state("a"), "two": Snapshot()}, {"a": "two"})["two"]
    other = Snapshot(tuple(replace(each, id=each.id and f"{each.id}-2") for each in there.resources))
    assert "has one of that name already" in _refused({"one": _state("a"), "two": other}, {"a": "two"})


def test_what_refers_to_nothing_is_told_with_what_fixes_it():
    *common, shelf, book = _state("a").resources
    broken = Snapshot((*common, shelf, replace(book, deleted_with=f"{book.urn}-gone")))
    assert "which its state lacks" in _refused({"one": broken, "two": Snapshot()}, {"a": "two"})


def test_what_a_killed_move_has_brought_already_stays_there_and_leaves_the_former_state():
    there = _moved({"one": _state("a"), "two": Snapshot()}, {"a": "two"})
    again = _moved({"one": _state("a"), "two": there["two"]}, {"a": "two"})
    assert again == there


def test_nothing_goes_from_or_to_a_stack_whose_last_update_was_not_finished():
    state = _state("a")
    for damaged in (
        replace(state, pending=(state.resources[-1].urn,)),
        Snapshot((*state.resources[:-1], replace(state.resources[-1], delete=True))),
    ):
        assert "was not finished" in _refused({"one": damaged, "two": Snapshot()}, {"a": "two"})
