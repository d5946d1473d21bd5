"""A state's file that was cut off or edited by hand: it is read, or refused with a mend, never half of it."""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pulumi_sandbox.engine.model.resource import CustomTimeouts, PendingOperation, Resource, Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Secret

URN: Final = urns.make("dev", "shop", "", "shop:index:Shelf", "a")
SHELF: Final = Resource(
    URN,
    "shop:index:Shelf",
    custom=True,
    id="a",
    inputs={"size": 3, "key": Secret("hidden")},
    outputs={"size": 3},
    property_dependencies={"size": ()},
    custom_timeouts=CustomTimeouts(create=300),
    created="2026-01-01T00:00:00Z",
    ignore_changes=("size",),
    resource_hooks={"beforeCreate": ("h",)},
    source_position="project:///__main__.py#1",
    other={"stackTrace": [{"sourcePosition": "project:///__main__.py#1"}]},
)
ODD: Final = (None, "", 0, 1.5, True, [], {}, "x", ["x"], [[]], {"a": 1}, {"a": ["b"]}, "\ud800", 10**30)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path, "shop", "dev", PassphraseCrypter(passphrase="", key=bytes(32), salt="v1:"))
    made.save(Snapshot((SHELF,), (PendingOperation(replace(SHELF, id="b"), "creating"),)))
    return made


def outcome(store: Store, text: str) -> str:
    """Return how many resources are read from the text of a state, or why it is refused."""
    store.path.write_text(text, errors="surrogatepass")
    try:
        return f"{len(store.load().resources)} read"
    except SandboxError as refused:
        return refused.code


def places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if above:
        yield above
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from places(child, (*above, key))


def damaged(state: Any) -> Iterator[tuple[str, str]]:
    """Yield which part of the state is replaced or left out, and the text of the state then."""
    for place in places(state):
        for odd in (*ODD, ...):
            changed = copy.deepcopy(state)
            parent = changed
            for key in place[:-1]:
                parent = parent[key]
            if odd is ...:
                del parent[place[-1]]
            else:
                parent[place[-1]] = odd
            yield f"{place}: {odd!r}", json.dumps(changed)


def test_a_state_with_any_one_part_replaced_is_read_or_refused_and_empty_only_where_it_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    def reopened(crypter: PassphraseCrypter, _: str) -> PassphraseCrypter:
        return crypter  # as one with the salt of the state, without its million rounds

    monkeypatch.setattr(PassphraseCrypter, "reopened", reopened)
    state = json.loads(store.path.read_text())
    outcomes = {place: outcome(store, text) for place, text in damaged(state)}
    latest, resources = ("checkpoint", "latest"), ("checkpoint", "latest", "resources")
    says_so = (
        (latest, None),
        (latest, ...),
        (resources, None),
        (resources, ...),
        (resources, []),
        ((*resources, 0), ...),
    )
    assert {place for place, said in outcomes.items() if said == "0 read"} == {
        f"{place}: {odd!r}" for place, odd in says_so
    }


def test_a_state_that_is_cut_off_is_refused_wherever_it_ends(store: Store):
    text = store.path.read_text()
    assert {outcome(store, text[:end]) for end in range(0, len(text), 7)} == {"state-unreadable"}


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '{"version":3}', '{"version":3,"checkpoint":{}}', "[" * 100_000, "\x00"]
)
def test_what_is_no_checkpoint_never_counts_as_a_stack_without_resources(store: Store, text: str):
    assert outcome(store, text) == "state-unreadable"


def test_a_stack_that_the_cli_made_and_nobody_updated_has_no_resources(store: Store):
    assert outcome(store, '{"version":3,"checkpoint":{"stack":"organization/shop/dev"}}') == "0 read"
