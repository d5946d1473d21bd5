"""What the API server refuses of a pool, tried by machine: it lets through what the tables allow, no more.

Seven kinds of users make dry runs of writes drawn from the tables and beside them; the oracle is the tables
folded in Python. What a row ought to allow is decided by
`tests/unit/account_pool/test_transitions.py`.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from components.account_pool.model import JsonObject
from components.account_pool.rows import Table, Verb, Write, allows
from tests.support.guarded_pool import enforce
from tests.support.people import ALL_OBJECTS, grant
from tests.support.proving import counted, tried
from tests.support.transitions import SETTINGS, TABLES, Drawing, merge_patch

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
    "tenant": (frozenset(), frozenset()),
}
"""User → what its Role lets it do to any Secret and ConfigMap, and its virtual verbs."""

OBJECTS, CHANGES = counted(12, 200), counted(2, 9)
"""How many objects of each kind, and how many changes of each; every one is tried by seven users."""


class Place:
    """A namespace with objects in all states, made before the policies came into force."""

    def __init__(self, admin: DynamicClient, namespace: str) -> None:
        self._admin = admin
        self.namespace = namespace
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


@pytest.fixture(scope="module", params=["members", "records"])
def drawn(
    request: pytest.FixtureRequest, admin: DynamicClient
) -> tuple[Place, Table, Drawing, list[JsonObject]]:
    table = TABLES[request.param]
    namespace = f"test-{secrets.token_hex(5)}"
    body = {"metadata": {"name": namespace}}
    owner = admin.resources.get(api_version="v1", kind="Namespace").create(body=body)
    reference = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": owner.metadata.uid}
    drawing = Drawing(table, 20, reference)
    place = Place(admin, namespace)
    prefix = "claim-" if table.name == "records" else "m-"
    made: list[JsonObject] = []
    for number in range(OBJECTS):
        status, body = place.send("POST", table.resource, drawing.body(f"{prefix}{number}"))
        assert status == 201, body["message"]
        made.append(body)
    for user, (may, verbs) in USERS.items():
        words = {"CREATE": "create", "UPDATE": "patch", "DELETE": "delete"}
        objects = {**ALL_OBJECTS[0], "verbs": ["get", *(words[each] for each in may)]}
        virtual = {
            "apiGroups": ["credfleet.io"],
            "resources": ["accounts"],
            "verbs": [str(verb) for verb in verbs],
        }
        grant(admin, namespace, user, [objects, *([virtual] if verbs else [])])
    enforce(admin, namespace, SETTINGS)
    return place, table, drawing, made


def test_every_write_is_allowed_exactly_where_a_row_allows_it(
    drawn: tuple[Place, Table, Drawing, list[JsonObject]],
) -> None:
    place, table, drawing, made = drawn
    writes: list[tuple[str, JsonObject | None, JsonObject | None]] = []
    for before in made:
        for after in [*drawing.changes(before, CHANGES), None]:
            writes += [(user, before, after) for user in USERS]
        new = drawing.body(before["metadata"]["name"] + "-new")
        writes += [(user, None, new) for user in USERS]
    answers: Counter[tuple[bool, bool]] = Counter()
    wrong: list[Any] = []

    def attempt(write: tuple[str, JsonObject | None, JsonObject | None]) -> None:
        user, before, after = write
        path, name = table.resource, (before or after or {})["metadata"]["name"]
        if before is None:
            status, answer = place.send("POST", path, after, user)
        elif after is None:
            status, answer = place.send("DELETE", f"{path}/{name}", {"dryRun": ["All"]}, user)
        else:
            status, answer = place.send("PATCH", f"{path}/{name}", merge_patch(before, after), user)
        may, verbs = USERS[user]
        asked = Write(before, after, verbs, user)
        expected = asked.on in may and allows(table, asked)
        if status not in (200, 201, 403):
            assert status == 422, (asked.on, user, answer["message"], before)
            return
        answers[expected, status != 403] += 1
        if expected != (status != 403):
            wrong.append(
                (
                    user,
                    asked.on,
                    expected,
                    status,
                    merge_patch(before or {}, after or {}),
                    before,
                    answer.get("message"),
                )
            )

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(attempt, writes))
    assert not wrong, "\n".join(map(str, wrong[:3]))
    tried(f"writes to {table.name}, as dry runs", sum(answers.values()))
    assert min(answers[True, True], answers[False, False]) > 0
