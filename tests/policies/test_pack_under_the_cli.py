"""The project's own policy pack, under the Pulumi CLI, over a program that breaks every mandatory policy.

One preview, which a second pack judges as well: one that takes the rules of this one, and is told nothing.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from pack import POLICIES
from pulumi_policy import EnforcementLevel

from tests.policies.cases import CONFIGS, OF_THE_STACK
from tests.policies.test_rules import VIOLATIONS
from tests.support import pulumi_shell
from tests.support.policies import secret
from tests.support.stacks import ROOT

OWN: Final = ROOT / "policies"
LEFT_OUT: Final = {"resourceGroupName", "resourceName"}
"""Inputs that no output of azure-native repeats."""

MANDATORY: Final = {one.name for one in POLICIES if one.enforcement_level is EnforcementLevel.MANDATORY}
MARKED: Final = "marked-by-another-one"
PROGRAM: Final = """
import json

import pulumi

with open("declared.json") as declared:
    told = json.load(declared)
for name, type_, inputs, outputs in told["resources"]:
    pulumi.ComponentResource(type_, name, inputs).register_outputs(outputs)
for key, value in told["exports"].items():
    pulumi.export(key, value)
"""
MINE: Final = f"""
import sys
sys.path.insert(0, {str(OWN)!r})
from pack import POLICIES
from pulumi_policy import PolicyPack
PolicyPack("mine", policies=[*POLICIES])
"""


def declared() -> Sequence[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Return name, type, inputs and outputs of resources: some that break each rule, named after it."""
    wrong: dict[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
        **OF_THE_STACK,
        "secrets-stay-marked": [
            ("a:b:C", {"a": secret("marked-beside-itself"), "b": "marked-beside-itself"})
        ],
    }
    for policy, type_, inputs, _ in VIOLATIONS:
        wrong.setdefault(policy.name, [(type_, inputs)])
    assert set(wrong) >= MANDATORY
    return [
        (f"{name} {index}", type_, inputs, {key: inputs[key] for key in inputs if key not in LEFT_OUT})
        for name in sorted(MANDATORY)
        for index, (type_, inputs) in enumerate(wrong[name])
    ] + [
        ("marks", "a:b:C", {"a": secret(MARKED)}, {}),
        ("component", "a:b:D", {}, {"b": {"c": MARKED}, "kept": secret(MARKED)}),
    ]


@pytest.fixture(scope="module")
def violations(tmp_path_factory: pytest.TempPathFactory) -> list[Mapping[str, str]]:
    """What both packs have against the program: events of its preview, which fails."""
    base = tmp_path_factory.mktemp("judged")
    program, mine = base / "program", base / "mine"
    for folder in (program, mine):
        folder.mkdir()
    (mine / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (mine / "__main__.py").write_text(MINE)
    runtime = {"name": "python", "options": {"virtualenv": sys.prefix}}
    (program / "Pulumi.yaml").write_text(json.dumps({"name": "judged", "runtime": runtime}))
    (program / "Pulumi.dev.yaml").write_text("{}")
    (program / "__main__.py").write_text(PROGRAM)
    exports = {"d": MARKED, "kept": secret(MARKED)}
    (program / "declared.json").write_text(json.dumps({"resources": declared(), "exports": exports}))
    (base / "config.json").write_text(json.dumps({**CONFIGS, "estate-claims-per-tenant": {"most": 1}}))
    (base / "nothing.json").write_text("{}")
    pulumi_shell.bring_stack(program, "dev")
    environment = {**os.environ, "PULUMI_CONFIG_PASSPHRASE": "of no use", "PULUMI_DEBUG_COMMANDS": "true"}
    words = ["--event-log", str(base / "events"), "--policy-pack", str(OWN), "--policy-pack", str(mine)]
    words += [f"--policy-pack-config={base / name}" for name in ("config.json", "nothing.json")]
    done = subprocess.run(
        pulumi_shell.command("dev", "preview", *words),
        cwd=program,
        env=pulumi_shell.shell(program, "dev", environment),
        capture_output=True,
        text=True,
        check=False,
    )
    events = [json.loads(line) for line in (base / "events").read_text().splitlines()]
    found = [each["policyEvent"] for each in events if "policyEvent" in each]
    assert (done.returncode != 0, bool(found)) == (True, True), done.stdout + done.stderr
    assert MARKED not in json.dumps(found)
    return found


def named(violation: Mapping[str, str]) -> tuple[str, str]:
    """Return the rule, and the name of what breaks it."""
    return violation["policyName"], violation.get("resourceUrn", "").rpartition("::")[2]


def test_a_program_with_one_violation_per_mandatory_rule_fails_with_each_named_once(
    violations: list[Mapping[str, str]],
) -> None:
    mandatory = [
        named(each)
        for each in violations
        if each["enforcementLevel"] == "mandatory" and each["policyPackName"] == "credfleet"
    ]
    assert Counter(rule for rule, name in mandatory if name.rpartition(" ")[0] == rule) == Counter(MANDATORY)


def test_a_secret_that_is_exported_in_plain_or_put_out_by_a_component_fails_the_preview(
    violations: list[Mapping[str, str]],
) -> None:
    assert sorted(
        (*named(each), each["message"].splitlines()[1])
        for each in violations
        if named(each)[1] in ("component", "judged-dev") and each["policyPackName"] == "mine"
    ) == [
        ("secrets-stay-marked-everywhere", "component", "b.c is a secret in plaintext"),
        ("secrets-stay-marked-everywhere", "judged-dev", "d is a secret in plaintext"),
    ]


def test_a_pack_of_one_s_own_that_takes_the_rules_judges_as_this_one(
    violations: list[Mapping[str, str]],
) -> None:
    of_mine = [named(each) for each in violations if each["policyPackName"] == "mine"]
    assert of_mine.count(("secrets-stay-marked", "secrets-stay-marked 0")) == 1
