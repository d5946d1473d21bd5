"""The witness program, built once per version of its source: others' libraries behind lines of JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from pulumi_sandbox.errors import SandboxError

from tests.support.go_program import built
from tests.support.proving import PROVES, tried

SOURCE: Final = Path(__file__).parent / "program"
SUBJECTS: Final = {
    "azure": "azidentity, as Azure Service Operator uses it: Secrets of credentials",
    "json": "encoding/json, as Korifi uses it: credentials of services",
    "vcap": "encoding/json, as Korifi's builder uses it: VCAP_SERVICES of applications",
    "gjson": "gjson and encoding/json, as External Secrets Operator uses them: values of stores",
    "template": "text/template, as External Secrets Operator uses it: templates of reads",
    "pull-secret": "k8s.io/kubernetes/pkg/credentialprovider, as kubelet uses it: pull secrets",
}
"""What the program answers about."""

Witness: TypeAlias = Callable[[str, Iterable[object]], Sequence[Any]]


@pytest.fixture(scope="session")
def witness() -> Witness:
    """Ask the program: a subject and documents → its answers, in their order."""
    try:
        program = built(SOURCE, "witness", offline=not PROVES)
    except SandboxError as error:
        if PROVES:
            raise
        pytest.skip(f"nothing is built or fetched here ({error.code}): make prove WHAT=witness")

    def ask(subject: str, documents: Iterable[object]) -> Sequence[Any]:
        given = [json.dumps(document) for document in documents]
        tried(SUBJECTS[subject], len(given))
        answer = subprocess.run(
            [program, subject], input="\n".join(given).encode(), env={}, capture_output=True, check=False
        )
        assert answer.returncode == 0, answer.stderr.decode()
        return [json.loads(line) for line in answer.stdout.splitlines()]

    return ask
