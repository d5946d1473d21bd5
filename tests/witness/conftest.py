"""The witness program, built once per version of its source: others' libraries behind lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from pulumi_sandbox.errors import SandboxError

from tests.support.go_program import built

SOURCE: Final = Path(__file__).parent / "program"
WHOLE: Final = os.environ.get("CREDFLEET_WITNESS") == "whole"
"""Whether `make witness` runs: all cases, and what is missing is fetched."""

SUBJECTS: Final = {
    "azure": "azidentity, as Azure Service Operator uses it: Secrets of credentials",
    "json": "encoding/json, as Korifi uses it: credentials of services",
    "vcap": "encoding/json, as Korifi's builder uses it: VCAP_SERVICES of applications",
    "gjson": "gjson and encoding/json, as External Secrets Operator uses them: values of stores",
}
"""What the program answers about."""

Witness: TypeAlias = Callable[[str, Iterable[object]], Sequence[Any]]


COUNTS: Final[Counter[str]] = Counter()
"""Witness → cases it was asked, which `make witness` prints."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many cases each witness was asked."""
    if WHOLE:
        terminalreporter.section("witnesses")
        for name, count in sorted(COUNTS.items()):
            terminalreporter.write_line(f"{count:>7,}  {name}")


def cases_of(few: int, whole: int) -> int:
    """Return how many cases are tried: few within `make test`, all of them in `make witness`."""
    return whole if WHOLE else few


@pytest.fixture(scope="session")
def witness() -> Witness:
    """Ask the program: a subject and documents → its answers, in their order."""
    try:
        program = built(SOURCE, "witness", offline=not WHOLE)
    except SandboxError as error:
        if WHOLE:
            raise
        pytest.skip(
            f"the witness program is not built, and nothing is fetched here ({error.code}): make witness"
        )

    def ask(subject: str, documents: Iterable[object]) -> Sequence[Any]:
        given = [json.dumps(document) for document in documents]
        COUNTS[SUBJECTS[subject]] += len(given)
        answer = subprocess.run(
            [program, subject], input="\n".join(given).encode(), env={}, capture_output=True, check=False
        )
        assert answer.returncode == 0, answer.stderr.decode()
        return [json.loads(line) for line in answer.stdout.splitlines()]

    return ask
