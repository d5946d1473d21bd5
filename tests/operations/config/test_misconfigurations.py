"""What is said of more than 150 misconfigurations, over all rooms: misconfigurations.yaml.

Each is one mistake in a copy of the dev stack. That the stack without one is sound is the first test. To read
what is said of each: python -m tests.support.misconfigurations
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.misconfigurations import ROWS, copied_stack, made, told


@pytest.fixture(autouse=True)
def stack() -> Iterator[None]:
    with copied_stack():
        yield


def test_the_stack_that_the_mistakes_are_made_in_has_none() -> None:
    assert told() == ()


def test_there_are_many_mistakes_and_hardly_one_is_told_as_two() -> None:
    rows = [row for each in ROWS.values() for row in each]
    assert len(rows) >= 150
    assert sum(row.get("problems", 1) for row in rows) / len(rows) <= 1.2


@pytest.mark.parametrize("room", ROWS)
def test_each_mistake_is_told_where_it_is_with_problem_and_fix_and_in_words_of_ours(room: str) -> None:
    wrong: list[str] = []
    for row in ROWS[room]:
        with made(row) as lines:
            problems = told()
            pointed = [problem.at for problem in problems if problem.at]
            saved = row.get("encoding", "utf-8")
            texts = [Path(at[0]).read_text(saved, "replace").split("\n")[at[1] - 1] for at in pointed]
        file = row.get("file", "Pulumi.dev.yaml")
        faults = {
            "accepted": not problems,
            f"{len(problems)} problems": len(problems) > row.get("problems", 1),
            "no place": len(pointed) < len(problems),
            "no fix": not all(problem.problem and problem.fix for problem in problems),
            "not told": not any(row["told"] in str(problem) for problem in problems),
            "elsewhere": not any(
                row["at"] in text if "at" in row else at[0] == file and at[1] in lines
                for at, text in zip(pointed, texts, strict=True)
            ),
            "words of a library": any("nput should" in str(problem) for problem in problems),
        }
        wrong += [f"{row}: {fault}: {[*map(str, problems)]}" for fault, is_so in faults.items() if is_so]
    assert not wrong, "\n".join(wrong)


def refers(value: object, words: AbstractSet[str]) -> bool:
    """Whether a value names one of these: a tenant, its namespace, or an account of it."""
    match value:
        case dict():
            return any(refers(each, words) for each in value.values())
        case list():
            return any(refers(each, words) for each in value)
        case _:
            return isinstance(value, str) and not {value, value.partition("/")[0]}.isdisjoint(words)


@pytest.mark.parametrize("tenant", ["acme", "globex", "team-a", "team-b"])
def test_all_places_that_name_a_tenant_which_leaves_are_told_in_one_error(tenant: str) -> None:
    file = Path("Pulumi.dev.yaml")
    document = yaml.safe_load(file.read_text())
    config: dict[str, Any] = document["config"]
    words = {tenant, config["credfleet:tenants"].pop(tenant)["namespace"]}
    file.write_text(yaml.safe_dump(document))

    said = " ".join(f"{each.place} {each.problem}" for each in told())

    for room in ("accountPool", "asoCredentials", "pullSecrets", "secretStores", "services"):
        for part, entries in config[f"credfleet:{room}"].items():
            for name, entry in entries.items() if isinstance(entries, dict) else ():
                is_named = refers(entry, words) or (part == "namespaces" and name in words)
                if is_named and name != "shared":  # whose conditions may let in any namespace
                    assert f"credfleet:{room}.{part}.{name}" in said
