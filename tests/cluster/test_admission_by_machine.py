"""What the API server refuses of a pool, tried by machine: it lets through what the tables allow, no more.

Eight kinds of users make dry runs of writes drawn from the tables and beside them; the oracle is their twin
in Python. What a row ought to allow is decided by `tests/unit/account_pool/test_transitions.py`.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest

from components.account_pool.admission.state_machine import StateMachine, Verb
from components.account_pool.core.audit import COMPONENT
from components.account_pool.core.config_map import CONFIG_MAP
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import JsonObject
from tests.support.admission_twin import RENEWED, Write, allows
from tests.support.guarded_pool import enforce, merged
from tests.support.memory_pool import KEB
from tests.support.people import ALL_OBJECTS, grant
from tests.support.proving import counted, tried
from tests.support.transitions import (
    MACHINES,
    SETTINGS,
    Drawing,
    meant,
    merge_patch,
    said,
    signed,
    understood,
)

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

WRITERS: Final = frozenset({"CREATE", "UPDATE", "DELETE"})
USERS: Final[Mapping[str, tuple[frozenset[str], frozenset[Verb]]]] = {
    "root": (WRITERS, frozenset()),
    "editor": (WRITERS, frozenset()),
    "patcher": (frozenset({"UPDATE"}), frozenset()),
    "claimer": (WRITERS, frozenset({Verb.CLAIM})),
    "cleaner": (WRITERS, frozenset({Verb.CLEAN})),
    "operator": (WRITERS, frozenset({Verb.OPERATE})),
    "bringer": (WRITERS, frozenset({Verb.BRING})),
    "tenant": (frozenset(), frozenset()),
}
"""User → what its Role lets it do to any Secret and ConfigMap, and its virtual verbs."""

KYMA: Final = replace(KEB, shared_capacity=None)

OBJECTS, CHANGES = counted(12, 200), counted(2, 9)
"""How many objects of each kind, and how many changes of each; every one is tried by eight users."""
SAID, PAIRED = counted(5, 120), counted(1, 40)
"""How many settings, and of how many every pair of data is tried."""
EVENTS = counted(9, 1)
"""Of how many Events one is tried."""


class Place:
    """A namespace, and requests to it; reference: to an owner that is there."""

    def __init__(self, admin: DynamicClient, namespace: str, uid: str) -> None:
        self._admin = admin
        self.namespace = namespace
        self.reference = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": uid}
        self._pool: Any = admin.client.rest_client.pool_manager
        self._host = admin.client.configuration.host
        self._login = {
            one["key"]: one["value"] for one in admin.client.configuration.auth_settings().values()
        }

    def send(
        self, method: str, path: str, body: JsonObject | None, user: str | None = None
    ) -> tuple[int, JsonObject]:
        """Make a request; of a user, as a dry run."""
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {**self._login, "Content-Type": content}
        query = ""
        if user is not None:
            headers |= {"Impersonate-User": user, "Impersonate-Group": "system:authenticated"}
            query = "?dryRun=All"
        url = f"{self._host}/api/v1/namespaces/{self.namespace}/{path}{query}"
        answer = self._pool.request(method, url, body=json.dumps(body or {}), headers=headers)
        return answer.status, json.loads(answer.data)


@pytest.fixture
def place(admin: DynamicClient) -> Place:
    """A namespace of its own, whose people may do what `USERS` says."""
    namespace = f"test-{secrets.token_hex(5)}"
    body = {"metadata": {"name": namespace}}
    uid = admin.resources.get(api_version="v1", kind="Namespace").create(body=body).metadata.uid
    for user, (may, verbs) in USERS.items():
        words = {"CREATE": "create", "UPDATE": "patch", "DELETE": "delete"}
        objects = {**ALL_OBJECTS[0], "verbs": ["get", *(words[each] for each in may)]}
        virtual = {
            "apiGroups": ["credfleet.io"],
            "resources": ["accounts"],
            "verbs": [str(verb) for verb in verbs],
        }
        grant(admin, namespace, user, [objects, *([virtual] if verbs else [])])
    return Place(admin, namespace, uid)


class Trial:
    """Writes to the objects of one table by all users: what was answered, and where not as the table."""

    def __init__(self, place: Place, machine: StateMachine, words: LabelScheme = SETTINGS.scheme) -> None:
        self._place = place
        self._machine = machine
        self._words = words
        self._answers: Counter[tuple[bool, bool]] = Counter()
        self._wrong: list[Any] = []

    def of_all_users(self, pairs: Iterable[tuple[JsonObject | None, JsonObject | None]]) -> None:
        """Try each write as each user."""
        writes = [(user, before, after) for before, after in pairs for user in USERS]
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(self._attempt, writes))

    def _attempt(self, write: tuple[str, JsonObject | None, JsonObject | None]) -> None:
        user, before, after = write
        path, name = self._machine.resource, (before or after or {})["metadata"]["name"]
        if before is None:
            status, answer = self._place.send("POST", path, after, user)
        elif after is None:
            status, answer = self._place.send("DELETE", f"{path}/{name}", {"dryRun": ["All"]}, user)
        else:
            patch = merge_patch(before, after)
            status, answer = self._place.send("PATCH", f"{path}/{name}", patch, user)
        may, verbs = USERS[user]
        asked = Write(before, after, verbs, user)
        expected = asked.on in may and allows(self._machine, meant(asked, self._words))
        is_there_already = status == 409 and before is None
        if status not in (200, 201, 403) and not is_there_already:
            assert status == 422, (asked.on, user, answer["message"], before)
            return
        self._answers[expected, status != 403] += 1
        if expected != (status != 403):
            patch = merge_patch(before or {}, after or {})
            self._wrong.append((user, asked.on, expected, status, patch, before, answer.get("message")))

    def end(self) -> None:
        """Hold that every answer was the table's, and that there were some of each."""
        assert not self._wrong, "\n".join(map(str, self._wrong[:3]))
        tried(f"writes to {self._machine.name}, as dry runs", sum(self._answers.values()))
        assert min(self._answers[True, True], self._answers[False, False]) > 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("members", SETTINGS.scheme),
        ("members", KYMA),
        ("renewed", SETTINGS.scheme),
        ("records", SETTINGS.scheme),
    ],
    ids=["members", "members in the words of Kyma", "members that get new keys", "records"],
)
def test_a_write_to_an_account_or_a_claim_passes_exactly_where_a_row_has_it(
    place: Place, admin: DynamicClient, name: str, words: LabelScheme
) -> None:
    machine = MACHINES[name]
    drawing, trial = Drawing(machine, 20, place.reference), Trial(place, machine, words)

    def drawn(number: int) -> JsonObject:
        called = f"claim-{number:040x}" if name == "records" else f"m-{number}"
        return said(drawing.body(called), words)

    made: list[JsonObject] = []
    for number in range(OBJECTS):
        status, body = place.send("POST", machine.resource, drawn(number))
        assert status == 201, body["message"]
        made.append(body)
    new_keys = RENEWED if name == "renewed" else ()
    enforce(admin, place.namespace, replace(SETTINGS, scheme=words, new_keys=new_keys))
    for number, before in enumerate(made):
        changes = drawing.changes(understood(before, words), CHANGES)
        trial.of_all_users((before, said(after, words)) for after in changes)
        trial.of_all_users([(before, None), (None, drawn(OBJECTS + number))])
    if name == "records":
        trial.of_all_users([(None, {**drawing.body("claim-by-hand"), "data": made[0]["data"]})])
    trial.end()


def test_a_write_to_the_settings_passes_exactly_where_a_row_has_it(
    place: Place, admin: DynamicClient
) -> None:
    machine = MACHINES["settings"]
    drawing, trial = Drawing(machine, 20, place.reference), Trial(place, machine)
    enforce(admin, place.namespace, SETTINGS)
    path = f"{machine.resource}/{CONFIG_MAP}"
    for number in range(SAID):
        place.send("PATCH", path, {"metadata": {"finalizers": None}})
        place.send("DELETE", path, {})
        drawn = drawing.body(CONFIG_MAP)
        status, body = place.send("POST", machine.resource, {**drawn, "immutable": False})
        assert status == 201, body["message"]
        own = {"data": signed(body).get("data"), "immutable": drawn.get("immutable")}
        status, before = place.send("PATCH", path, own)
        assert status == 200, before["message"]
        trial.of_all_users((before, after) for after in (*drawing.changes(before, CHANGES), None))
        trial.of_all_users([(None, drawing.body(CONFIG_MAP))])
        if number < PAIRED and not before.get("immutable"):
            trial.of_all_users((before, after) for after in drawing.pairs(before))
    trial.end()


def told(reason: str, by: str, reporting: str, source: str) -> JsonObject:
    """Return an Event of an account."""
    return {
        "metadata": {"name": f"m-1.{secrets.token_hex(8)}"},
        "involvedObject": {"apiVersion": "v1", "kind": "Secret", "name": "m-1"},
        "reason": reason,
        "reportingInstance": by,
        "reportingComponent": reporting,
        "source": {"component": source},
    }


def test_a_write_to_an_event_passes_exactly_where_a_row_has_it(place: Place, admin: DynamicClient) -> None:
    machine = MACHINES["events"]
    trial = Trial(place, machine)
    reasons = ("Claimed", "ClaimRefused", "Released", "Cleaned", "Quarantined", "Anything", "")
    tellers = (*USERS, "somebody", "")
    components = tuple(product((COMPONENT, "other"), repeat=2))
    made: list[JsonObject] = []
    for reporting, source in components:
        event = told("Claimed", "claimer", reporting, source)
        status, body = place.send(
            "POST",
            "events",
            {**event, "involvedObject": {**event["involvedObject"], "namespace": place.namespace}},
        )
        assert status == 201, body["message"]
        made.append(body)
    enforce(admin, place.namespace, SETTINGS)
    events = [told(*each) for each in ((r, by, *c) for r, by, c in product(reasons, tellers, components))]
    for event in events:
        event["involvedObject"]["namespace"] = place.namespace
    changes: list[JsonObject] = [
        {"message": "as it was not"},
        {"metadata": {"labels": {"note": "x"}}},
        *({"reason": reason} for reason in reasons),
        *({"reportingInstance": by} for by in tellers),
        *({"reportingComponent": r, "source": {"component": s}} for r, s in components),
    ]
    trial.of_all_users((None, event) for event in events[::EVENTS])
    for before in made:
        trial.of_all_users((before, merged(before, change)) for change in changes[::EVENTS])
        trial.of_all_users([(before, None)])
    trial.end()
