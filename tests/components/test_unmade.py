"""Every component where nothing is made: refresh and destroy run the program, and all outputs are None."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from components.fleet import Fleet
from tests.support import stacks
from tests.support.cases import table
from tests.support.recorder import Recorder, record
from tests.support.stacks import ROOT, SECRET_KEYS, settings

LATEST = {"gcpSecret": "projects/p/secrets/s/versions/latest"}
IDS = dict.fromkeys(("subscriptionId", "tenantId", "clientId"), "00000000-0000-4000-8000-000000000001")
ACCOUNT = {"account": "acme/aws"}
BY_REFERENCE: Any = table(__file__, "BY_REFERENCE")
ESO = [f"external-secrets.io/v1/{kind}" for kind in ("SecretStore", "ExternalSecret")]
MADE: Mapping[str, Mapping[str, Any]] = {
    "pulumi-python:dynamic/credfleet:AccountClaim": {"secretName": "aws-1", "accountId": "111"},
    "pulumi-python:dynamic/credfleet:EsoLookout": {"kinds": ESO},
    "pulumi-python:dynamic/credfleet:PullSecretStart": {"begun": True},
}
"""What everything else hangs on: with it, all of a stack is declared."""


def dev(folder: Path, outputs: Mapping[str, Mapping[str, Any]]) -> Recorder:
    values, secret_keys = stacks.dev(folder)
    return record(
        stacks.program, config=values, secret_keys=secret_keys, outputs=outputs, calls=stacks.NO_ENTRIES
    )


def by_reference(folder: Path, outputs: Mapping[str, Mapping[str, Any]]) -> Recorder:
    del folder
    return record(
        lambda: Fleet("fleet", settings(BY_REFERENCE)).export(),
        config=BY_REFERENCE,
        secret_keys=SECRET_KEYS,
        outputs=outputs,
        calls=stacks.NO_ENTRIES,
    )


@pytest.mark.parametrize("outputs", [{}, MADE], ids=["nothing", "claims"])
@pytest.mark.parametrize("program", [dev, by_reference])
def test_program_runs_where_resources_have_no_outputs(program: Any, outputs: Any, tmp_path: Path) -> None:
    assert program(tmp_path, outputs).stack_outputs


def test_programs_declare_all_components_and_dynamic_resources(tmp_path: Path) -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(ROOT, "components").rglob("*.py")]
    components = {type_ for text in sources for type_ in re.findall(r'TYPE: ClassVar = "([^"]+)"', text)}
    frozen = (ROOT / "tests" / "dynamic" / "frozen_paths.txt").read_text(encoding="utf-8").split()
    dynamic = {
        f"pulumi-python:dynamic/credfleet:{path.rpartition(':')[2].removesuffix('Provider')}"
        for path in frozen
    }

    declared = {one.type for each in (dev, by_reference) for one in each(tmp_path, MADE).registrations}

    # Only a pool in which a key was rotated has a receipt for it.
    assert (components | dynamic) - declared == {"pulumi-python:dynamic/credfleet:AccountKey"}
