"""Assignment of tenants in files to stacks: `stacks.yaml`, by ranges of their names.

A range includes names that are not used yet, so adding a tenant's file changes no other file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from components.config.document import below, problems_of
from components.config.field_types import ConfigModel, Name, optional
from components.config.places import steps_in
from components.documents import Document, Unreadable, read_file
from components.errors import ConfigurationError, Problem

STACKS: Final = "stacks.yaml"


class Shard(ConfigModel):
    """What one stack has of the tenants."""

    since: Name | None = optional("Name of its first tenant; the first stack has none.")


class Shards(ConfigModel):
    """Stacks that share one folder of tenants' files: each has those from its first name to the next's."""

    pool: Name | None = optional("Stack that declares their pool: brought up before.")
    stacks: Mapping[Name, Shard] = Field(description="Stack → its tenants, in the order of their names.")

    def stack_of(self, tenant: str) -> str:
        """Return the stack of a tenant."""
        return [stack for stack, shard in self.stacks.items() if (shard.since or "") <= tenant][-1]


class Stacks(ConfigModel):
    """What the file of a project says; nothing where there is none."""

    fleets: Mapping[Name, Shards]

    @classmethod
    def read(cls, root: Path) -> Stacks:
        """Read the file of a project. Raises ConfigurationError."""
        try:
            document = read_file(root / STACKS)
        except Unreadable as error:
            if error.code == "file-missing":
                return cls(fleets={})
            raise ConfigurationError([Problem(STACKS, error.problem, error.fix, error.at)]) from None
        try:
            found = cls.model_validate(document.data)
        except ValidationError as error:
            problems = problems_of(error, cls)
            raise ConfigurationError(_placed(each, document) for each in problems) from None
        if problems := [*found._problems(document)]:
            raise ConfigurationError(problems)
        return found

    def tenants_of(self, stack: str) -> Callable[[str], bool]:
        """Return a test for tenants of a stack; a stack without a fleet has all tenants of its folder."""
        fleet = next((each for each in self.fleets.values() if stack in each.stacks), None)
        return bool if fleet is None else lambda tenant: fleet.stack_of(tenant) == stack

    def _problems(self, document: Document) -> Iterator[Problem]:
        """Yield why a tenant does not have one stack, or a stack not one fleet."""

        def at(path: Iterable[str], problem: str, fix: str) -> Problem:
            steps = ("fleets", *path)
            return Problem(f"{STACKS} {below('', steps)}", problem, fix, document.at(steps))

        seen: set[str] = set()
        for name, fleet in self.fleets.items():
            twice = [fleet.pool] if fleet.pool and fleet.pool in fleet.stacks else []
            for stack in (*fleet.stacks, *twice):
                if stack in seen:
                    fix = "name it once: it has the tenants of one range, and the stack of a pool has none"
                    yield at((name, "stacks", stack), f"stack {stack} is named twice", fix)
                seen.add(stack)
            first = next(iter(fleet.stacks), None)
            if first is None or fleet.stacks[first].since is not None:
                problem = (
                    "its first stack does not begin with the first name, so some tenants would have none"
                )
                yield at((name, "stacks"), problem, "write the first stack as {}, without since")
            for (before, a), (stack, b) in pairwise(fleet.stacks.items()):
                if b.since is None or b.since <= (a.since or ""):
                    problem = (
                        f"its tenants do not begin after those of {before}, so some would have two stacks"
                    )
                    fix = "order the stacks by the names of their first tenants, and give each another one"
                    yield at((name, "stacks", stack), problem, fix)


def _placed(problem: Problem, document: Document) -> Problem:
    steps = tuple(steps_in(document.data, f".{problem.place}"))
    return replace(problem, place=f"{STACKS} {problem.place}", at=document.at(steps))
