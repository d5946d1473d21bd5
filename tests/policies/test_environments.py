"""policies/config: what each environment says fits the schemas the rules declare."""

import json
from pathlib import Path
from typing import Any

import pytest
from pack import POLICIES

from tests.support.stacks import ROOT

CONFIGS = sorted((ROOT / "policies" / "config").glob("*.json"))
TYPES: dict[str, type] = {"array": list, "boolean": bool, "integer": int, "object": dict, "string": str}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_an_environment_speaks_to_rules_that_are_there_in_the_types_they_take(path: Path) -> None:
    schemas = {one.name: one.config_schema.properties if one.config_schema else {} for one in POLICIES}

    for name, said in json.loads(path.read_text(encoding="utf-8")).items():
        properties: dict[str, Any] = {} if isinstance(said, str) else dict(said)
        level = said if isinstance(said, str) else properties.pop("enforcementLevel", "mandatory")
        assert level in ("advisory", "mandatory", "remediate", "disabled")
        for key, value in properties.items():
            assert isinstance(value, TYPES[schemas[name][key]["type"]]), f"{name}.{key}"


def test_there_is_a_file_for_every_environment() -> None:
    assert [path.stem for path in CONFIGS] == ["dev", "prod", "staging"]


def test_production_refuses_a_cluster_store_that_serves_everybody() -> None:
    production = json.loads((ROOT / "policies" / "config" / "prod.json").read_text(encoding="utf-8"))

    assert production["stores-cluster-store-conditions"] == "mandatory"
