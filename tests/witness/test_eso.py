"""What External Secrets Operator's own providers say of themselves is what the project has of each kind.

Their files, with the commit that they are of, are named in eso-providers.json. eso-stores.json has drawn
stores, and what `ValidateStore` of that commit, compiled, said of each.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from components.errors import Problem
from components.secret_stores.eso_providers import Scope, facts_of, unmet
from components.secret_stores.explain import KnownObjects, Ready, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import ClusterSecretStore, SecretStore
from tests.support.proving import PROVES, tried
from tests.support.shapes import SHAPES
from tests.witness.published import published

PUBLISHED: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("eso-providers.json").read_text())
JUDGED: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("eso-stores.json").read_text())
CAPABILITIES: Final = re.compile(
    r"^func \([^)]*\) Capabilities\(\) esv1\.SecretStoreCapabilities \{\s+return esv1\.SecretStore(\w+)\s+\}",
    re.M,
)


def test_a_file_is_named_for_every_kind() -> None:
    assert PUBLISHED["files"].keys() == SHAPES.keys()


@pytest.mark.built
@pytest.mark.parametrize("key", PUBLISHED["files"])
@pytest.mark.skipif(not PROVES, reason="make prove WHAT=witness fetches what was published")
def test_a_kind_can_do_what_its_provider_says(key: str) -> None:
    named = PUBLISHED["files"][key]
    place = PUBLISHED["source"].removeprefix("github.com/")
    url = f"https://raw.githubusercontent.com/{place}/{PUBLISHED['commit']}/{named['file']}"
    source = published(url, named["sha256"]).decode()
    tried("External Secrets Operator: kinds of provider asked what they can do")
    assert CAPABILITIES.findall(source) == [facts_of(key).get("can")]


def demanded(kind: str, key: str, spec: dict[str, Any]) -> list[Problem]:
    """What is said to be refused by ValidateStore, but for namespaces, and for what `faults` adds to it."""
    own = (Scope.OWN, Scope.OWN_EMBEDDED) if kind == "SecretStore" else ()
    return [*unmet(key, spec, Scope.ANY, Scope.EMBEDDED, *own)]


@pytest.mark.parametrize("key", SHAPES)
def test_a_drawn_store_is_refused_where_its_own_code_refused_it_and_nowhere_else(key: str) -> None:
    drawn = [each for each in JUDGED["stores"] if key in each["provider"]]
    assert JUDGED["source"]["commit"] == PUBLISHED["commit"]
    assert len(drawn) >= 4
    for each in drawn:
        identity = {"namespace": "a"} if each["kind"] == "SecretStore" else {}
        model = SecretStore if identity else ClusterSecretStore
        store = model.model_validate({**identity, "name": "s", "spec": {"provider": each["provider"]}})
        found = explain(store, identity.get("namespace", ""), KnownObjects(KINDS, {}, {}, as_they_stand=True))
        if each["refused"]:
            assert found.ready is Ready.INVALID or found.undecided, each
        else:
            assert demanded(each["kind"], key, each["provider"][key]) == [], each
