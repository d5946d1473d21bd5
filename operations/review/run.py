"""A review: a branch's program, shut in, previewed with nothing that could decrypt, judged by our rules."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pulumi_sandbox
from pulumi_sandbox import engine
from pulumi_sandbox.documents import read_json
from pulumi_sandbox.engine import Confinement, Event, PreviewDigest, Resource, Result, Serialised, StackAtRest
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import contains_secret, equal

import components
import operations
from components.connection import RECORDED
from components.errors import CredfleetError, Problem
from components.seals import COULD_NOT
from operations.folders import Folders
from operations.preview_report.digest import Digest, parse
from operations.preview_report.review import UNDECIDED, review
from operations.review.record import CLUSTER, Record, asking_nobody, code_of, texts
from operations.review.sealed import Standing, ciphertexts, is_credential

_MOST_SAID: Final = 4 << 20
"""Characters of what a program says that are kept."""
_HIDDEN: Final = (".git", ".sandbox", ".venv")


@dataclass(frozen=True, slots=True)
class Sealed:
    """A value of the stack file that nobody here can read, how it stands, and whether its shape is known."""

    name: str
    standing: Standing
    shaped: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What a review found.

    digest: of the preview, as `preview-report` reads it. problems: of the configuration, by the base's own
    rules. sealed: all values that nobody could read. undecided: rule → the resources it could not judge.
    may_change: resources without a change of which nobody can say so, and why.
    """

    digest: Digest
    record: Record
    problems: tuple[Problem, ...]
    sealed: tuple[Sealed, ...]
    undecided: Mapping[str, tuple[str, ...]]
    may_change: Mapping[str, str]
    printed: tuple[str, ...]
    failed: bool
    other_code: bool

    @property
    def age_hours(self) -> int:
        """How old the record is."""
        return int((datetime.now(UTC) - self.record.at).total_seconds() // 3600)


def reviewed(folders: Folders, checkout: Path, record: Record) -> Found:
    """Preview a checkout of the program, which is shut in, against a record.

    folders: of the base, whose rules and providers are used.
    Raises CredfleetError: `not-shut-in`, when the kernel does not allow it; SandboxError, for project files.
    """
    nowhere = checkout / ".sandbox" / "none"
    at_rest = StackAtRest.find(checkout, record.stack, backend_dir=nowhere, shut_in=True)
    with asking_nobody(record.cluster) as folder:
        workspace = engine.without_keys(at_rest, record.snapshot, texts(record.seals, at_rest), folder)
        compiled = () if checkout == folders.project else checkout.rglob("__pycache__")
        shut = confinement(checkout, folder, record.environment, compiled)
        options = record.options(folders.project)
        options = replace(options, policy_packs=folders.policy_packs, confinement=shut)
        if (own := folders.policy_config(record.stack)) is not None:
            options = replace(options, policy_configs=dict.fromkeys(folders.policy_packs, own))
        gathered = io.StringIO()
        with _checking(checkout, record.stack, shut) as checking:
            with Serialised(PreviewDigest(gathered)) as display:
                heard = Listening(display)
                result = engine.preview(workspace, options, heard)
            problems = _problems(checking, record.stack)
    document: dict[str, Any] = json.loads(gathered.getvalue())
    undecided = _undecided(document)
    other_code = record.code not in ("", code_of(checkout, at_rest.stack_file.config))
    digest = parse(json.dumps(document).encode(), "the preview")
    return Found(
        digest=digest,
        record=record,
        problems=problems,
        sealed=tuple(
            Sealed(name, record.seals.standing(name, each), record.seals.shape(name, each) is not None)
            for name, each in ciphertexts(at_rest.stack_file.config).items()
        ),
        undecided=undecided,
        may_change=dict(_may_change(record, result, other_code=other_code)),
        printed=tuple(heard.lines),
        failed=review(digest).failed,
        other_code=other_code,
    )


def confinement(
    checkout: Path, folder: Path, given: Mapping[str, str], compiled: Iterable[Path]
) -> Confinement:
    """Return how the program of a checkout is shut in: it sees itself, Python, the packages, and the pool.

    Of the pool it sees what was recorded, which holds no credential: it foretells its claims by that.
    given: variables that providers have their defaults from, as they were when it was recorded. compiled:
    folders whose files Python would run instead of those that the digest of the code is made of.
    """
    address, recorded = folder / "engine", folder / CLUSTER
    address.mkdir()
    packages = Path(sys.prefix)
    return Confinement(
        readable=(checkout, Path(sys.base_prefix), packages, recorded),
        hidden=(*(checkout / each for each in _HIDDEN if checkout / each != packages), *compiled),
        address=address / "socket",
        environment={
            **given,
            "PYTHONPATH": str(checkout / "sandbox"),
            "PYTHONDONTWRITEBYTECODE": "1",
            RECORDED: str(recorded),
        },
    )


def shut_in() -> None:
    """Leave the network, for this process and all it starts: what is left is a loopback of their own.

    Raises CredfleetError, code `not-shut-in`, when the kernel does not let it, or not a program within.
    """
    for name in [each for each in os.environ if each.lower().endswith("_proxy")]:
        del os.environ[name]  # gRPC would look for the loopback behind it
    try:
        engine.leave_network(os.getuid(), os.getgid())
    except OSError as error:
        raise _not_shut_in(str(error.strerror)) from None
    tried = Confinement((Path("/usr"),), Path("/nowhere/socket")).command(Path("/"), "/usr/bin/true")
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    if done.returncode:
        raise _not_shut_in(done.stderr.strip())


def _not_shut_in(why: str) -> CredfleetError:
    return CredfleetError(
        code="not-shut-in",
        place="this machine",
        cause=f"its kernel does not let a program be shut in ({why}), and a branch's is run in no other way",
        mend="allow user namespaces: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        " (Ubuntu), or run it in a virtual machine of its own",
    )


class Listening:
    """Hands events on, and keeps what was said, for the log.

    Whoever says too much is heard no more, and has failed: what else it had to say may be what matters.
    """

    def __init__(self, display: engine.Sink) -> None:
        """Take whom to tell."""
        self.lines: list[str] = []
        self._display = display
        self._room = _MOST_SAID

    def handle(self, event: Event) -> None:
        """Take an event."""
        match event:
            case engine.Diagnostic(severity, message):
                said = [f"{severity}: {line}" for line in message.splitlines()]
            case engine.StdoutLine(line):
                said = [line]
            case _:
                said = []
        if said and self._room < 0:
            return
        self.lines += said
        self._room -= sum(len(line) + 1 for line in said)
        self._display.handle(event)
        if said and self._room < 0:
            self._display.handle(engine.Diagnostic("error", "it said too much, and the rest is left out"))


def _checking(checkout: Path, stack: str, shut: Confinement) -> subprocess.Popen[str]:
    """Begin to check the configuration with the code that runs this, shut in: it names files to be read."""
    code = [Path(module.__path__[0]) for module in (operations, components, pulumi_sandbox)]
    path = os.pathsep.join(str(each.parent) for each in code)
    shut = replace(
        shut, readable=(*shut.readable, *code), environment={**shut.environment, "PYTHONPATH": path}
    )
    check = f"from {operations.__name__}.main import main; main()"
    given = ("config", "check", "--stack", stack, "--output", "json")
    command = shut.command(checkout, sys.executable, "-P", "-c", check, *given)
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, env={}, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, text=True)


def _problems(checking: subprocess.Popen[str], stack: str) -> tuple[Problem, ...]:
    written, _ = checking.communicate()
    try:
        error: dict[str, Any] = read_json(written).get("error") or {}
    except (ValueError, AttributeError):
        error = {"message": f"the configuration could not be checked (exit code {checking.returncode})"}
    told = error.get("problems") or ([{"place": stack, "cause": error["message"]}] if error else [])
    return tuple(
        Problem(str(each["place"]), str(each["cause"]), str(each.get("mend") or "read the log"))
        for each in told
    )


def _undecided(document: dict[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """Tell what the rules could not decide from what they object to, in a preview."""
    found: dict[str, list[str]] = {}
    events: list[dict[str, Any]] = document.get("policyEvents") or []
    for each in events:
        if COULD_NOT in str(each.get("message")):
            each["enforcementLevel"] = UNDECIDED
            urn = str(each.get("resourceUrn") or "")
            found.setdefault(str(each["policyName"]), []).append(urns.parse(urn).name if urn else "the stack")
    return {rule: tuple(dict.fromkeys(names)) for rule, names in found.items()}


def _may_change(record: Record, result: Result, *, other_code: bool) -> Iterator[tuple[str, str]]:
    """Name what has no change here, and may have one: what another program makes of sealed values."""
    if not other_code:
        return
    before = {each.urn: each for each in record.snapshot.resources}
    for each in result.foreseen.resources:
        known = before.get(each.urn)
        if (
            known
            and each.custom
            and not each.is_provider
            and _has_secret(each)
            and equal(known.inputs, each.inputs)
        ):
            yield urns.parse(each.urn).name, "another program makes it of a sealed value"


def _has_secret(resource: Resource) -> bool:
    return any(contains_secret(value) for key, value in resource.inputs.items() if not key.startswith("__"))


def unmade_checks(found: Found) -> list[str]:
    """Name the credentials whose content nobody checked: those of no known shape, or not as deployed."""
    return [
        each.name
        for each in found.sealed
        if is_credential(each.name) and not (each.shaped and each.standing is Standing.SAME)
    ]
