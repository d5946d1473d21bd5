"""How objects of External Secrets Operator stand, and how long an update waits for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from components.secret_stores.eso_cluster import await_states, path_of, shortcoming
from tests.support.cases import cases, table

SEEN = {"metadata": {"generation": 1, "finalizers": ["externalsecrets.external-secrets.io/x"]}}
BARE: Mapping[str, Any] = {"metadata": {"generation": 1}}


def saying(
    status: str, *, generation: int = 1, message: str = "own words: another's", **more: Any
) -> Mapping[str, Any]:
    condition = {"type": "Ready", "status": status, "reason": "R", "message": message}
    return {"metadata": {"generation": generation}, "status": {"conditions": [condition], **more}}


@cases("found, why", table(__file__, "test_an_object_stands_by_its_own_condition_for_what_it_says_now"))
def test_an_object_stands_by_its_own_condition_for_what_it_says_now(
    found: Mapping[str, Any], why: str | None
) -> None:
    assert shortcoming(found) == why


class Time:
    """A clock that only waiting moves, and the objects as they are at each look."""

    def __init__(self, *looks: Mapping[str, Mapping[str, Any]]) -> None:
        self.seconds = 0.0
        self.looked = 0
        self._looks = looks

    def look(self, _names: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        self.looked += 1
        return self._looks[min(self.looked, len(self._looks)) - 1]

    def pause(self, seconds: float) -> None:
        self.seconds += seconds

    def awaited(self, seconds: float) -> dict[str, str]:
        return await_states(["a"], self.look, seconds, self.pause, lambda: self.seconds)


@cases(
    "looks, seconds, short, waited",
    table(__file__, "test_an_update_waits_for_who_is_at_work_and_not_longer_than_it_was_told"),
)
def test_an_update_waits_for_who_is_at_work_and_not_longer_than_it_was_told(
    looks: list[Mapping[str, Mapping[str, Any]]], seconds: float, short: dict[str, str], waited: float
) -> None:
    time = Time(*looks)
    assert (time.awaited(seconds), time.seconds) == (short, waited)


def test_an_object_is_looked_for_where_the_api_server_keeps_it() -> None:
    version = "external-secrets.io/v1"
    assert path_of(version, "ClusterSecretStore", None, "s") == f"/apis/{version}/clustersecretstores/s"
    assert path_of(version, "SecretStore", "n", "s") == f"/apis/{version}/namespaces/n/secretstores/s"
