"""`credfleet bootstrap --check`, of an API server and a Google Cloud that are made up."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from components.connection import Reply
from operations.bootstrap import check
from operations.bootstrap.google import GoogleAnswer
from operations.bootstrap.rights import CLUSTER, Rights, rights_of
from operations.bootstrap.script import Bootstrap, open_bootstrap
from operations.cli.answer import CommandResult, VerdictLine
from tests.support.fleet_project import ROOT


@dataclass
class _Cluster:
    """An API server that goes by the rights of these identities, and answers so who looks at a namespace."""

    rights: Mapping[str, Rights]
    looked_at: int
    server: str = "https://made.up"

    @property
    def patient(self) -> _Cluster:
        return self

    def call(self, method: str, _path: str, body: dict[str, Any] | None = None) -> Reply:
        if method == "GET":
            return Reply(self.looked_at, {})
        spec = (body or {})["spec"]
        asked = spec["resourceAttributes"]
        held = self.rights.get(spec["user"], {})
        resource = "/".join(filter(None, (asked["resource"], asked["subresource"])))
        allowed = any(
            (each.group, each.resource) == (asked["group"], resource) and asked["verb"] in each.verbs
            for place in {CLUSTER, asked.get("namespace", CLUSTER)}
            for each in held.get(place, ())
        )
        return Reply(201, {"status": {"allowed": allowed}})


def _checked(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    google: GoogleAnswer,
    looked_at: int = 200,
    *,
    roles: bool = True,
) -> tuple[CommandResult, str]:
    """Check a stack. roles: whether its identities have theirs."""
    for name in ("Pulumi.yaml", "Pulumi.prod.yaml"):
        shutil.copy(ROOT / name, folder)
    found = open_bootstrap(folder, "prod", None)
    rights = {each.name: rights_of(each.role, found.settings, folder) for each in found.workers if roles}

    def reach(*_: object) -> _Cluster:
        return _Cluster(rights, looked_at)

    def ask(_: Bootstrap) -> GoogleAnswer:
        return google

    monkeypatch.setattr(check, "reach", reach)
    monkeypatch.setattr(check, "ask_google", ask)
    result = check.check(found, None)
    return result, "\n".join(
        each.text if isinstance(each, VerdictLine) else str(each) for each in result.parts
    )


@pytest.mark.parametrize(
    ("google", "code", "says"),
    [
        (GoogleAnswer(), 0, "may do what they need, no more"),
        (GoogleAnswer(lacking=["drift lacks: x of key k"]), 5, "drift lacks: x of key k"),
        (GoogleAnswer(excess=["drift can use x of key k"]), 1, "drift can use x of key k"),
        (GoogleAnswer(unasked=["Google Cloud, as drift: no login"]), 0, "not asked: Google Cloud, as drift"),
    ],
)
def test_what_google_answers_is_told_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, google: GoogleAnswer, code: int, says: str
) -> None:
    result, told = _checked(monkeypatch, tmp_path, google)
    assert result.exit_code == code, told
    assert says in told
    assert ("get-iam-policy example" in told) == bool(google.unasked)


@pytest.mark.parametrize("looked_at", [200, 403, 404])
def test_a_namespace_that_may_not_be_looked_at_is_not_taken_for_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    result, told = _checked(monkeypatch, tmp_path, GoogleAnswer(), looked_at, roles=False)
    assert result.exit_code == 5
    assert ("account-pool is not there yet" in told) == (looked_at == 404)
    assert ("preview lacks: list secrets in account-pool" in told) == (looked_at != 404)
