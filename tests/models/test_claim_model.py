"""The claim protocol holds in the small scope, and the checker finds every mistake put into it on purpose."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.models.conftest import Checker

RECORDED = Path(__file__).parents[2] / "models" / "claims" / "results.txt"

VIOLATED = {
    "W1": "I3",
    "W2": "I2",
    "W3": "I3",
    "W4": "I4",
    "W5": "I4",
    "W6": "I4",
    "W7": "I1",
    "W8": "I1",
    "W9": "I4",
    "W10": "I8",
    "W11": "I8",
    "W12": "I8",
    "W13": "I1",
    "W14": "I5",
    "W15": "I6",
    "W16": "I3",
    "W17": "I9",
    "W18": "I9",
    "W19": "I3",
    "W20": "I3",
    "W21": "I3",
    "W22": "I2",
    "W23": "I2",
    "W24": "I1",
    "W25": "I1",
    "W26": "I1",
    "W27": "I11",
    "W28": "I11",
    "W29": "I4",
    "W30": "I2",
    "W31": "I5",
    "W32": "I12",
    "W33": "I12",
    "W34": "I12",
    "W35": "I13",
    "W36": "I13",
}
"""The invariant each deliberately wrong variant of the protocol breaks."""


def results(output: str) -> dict[str, tuple[str, str]]:
    """Read the checker's lines: name → its counts, and its verdict."""
    line = re.compile(
        r"^(?P<name>\S.*?) {2,}(?P<counts>\d+ states .*?) +[\d.]+ s  (?P<verdict>.*)$", re.MULTILINE
    )
    return {m["name"]: (" ".join(m["counts"].split()), m["verdict"]) for m in line.finditer(output)}


@pytest.fixture(scope="module")
def wrong(checker: Checker) -> str:
    return checker("-wrong").stdout


def test_the_protocol_holds_in_the_small_scope_in_exactly_the_states_that_were_recorded(checker: Checker):
    answer = checker("-small")
    found = results(answer.stdout)
    assert answer.returncode == 0, answer.stdout
    assert {verdict for _, verdict in found.values()} == {"holds"}
    assert found.items() <= results(RECORDED.read_text()).items()


def test_the_small_scope_has_scenarios_of_every_group_but_the_three_that_are_only_large(checker: Checker):
    groups = {name[0] for name in checker("-list").stdout.splitlines()}
    assert groups - {name[0] for name in checker("-list", "-small").stdout.splitlines()} == set("IJL")


def test_the_checker_succeeds_when_every_wrong_variant_is_found(checker: Checker):
    assert checker("-wrong").returncode == 0


def test_no_wrong_variant_is_left_unnamed_here(wrong: str):
    assert [name.split()[0] for name in results(wrong)] == list(VIOLATED)


@pytest.mark.parametrize("variant", VIOLATED)
def test_a_wrong_variant_is_found_by_the_invariant_it_breaks(wrong: str, variant: str):
    [verdict] = [verdict for name, (_, verdict) in results(wrong).items() if name.split()[0] == variant]
    assert verdict.split(":")[0] == VIOLATED[variant]


def test_a_wrong_variant_is_shown_by_the_steps_that_lead_to_it(checker: Checker):
    lines = checker("-wrong", "-v", "-only", "W19 ").stdout.splitlines()
    steps = [line for line in lines if re.match(r" +\d+\. ", line)]
    assert " claim    C2 " in steps[3]
    assert " release  R2 " in steps[-1]


def test_a_cycle_is_shown_from_where_it_begins(checker: Checker):
    output = checker("-wrong", "-v", "-only", "W17 ").stdout
    way, _, around = output.partition("from here on for ever")
    assert "OP:strip-label" in way
    assert "C4" in around


def test_a_scenario_that_does_not_exist_is_refused(checker: Checker):
    answer = checker("-only", "no such scenario")
    assert answer.returncode == 2
    assert 'no scenario is named like "no such scenario"' in answer.stderr
