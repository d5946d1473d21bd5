"""A preview by the Pulumi CLI, on a recorded state, without access to clusters, clouds or keys.

Everything it needs is in a temporary folder: a backend with the recorded state, a stack file with
placeholders for secrets, providers that answer from the record, and a language host that isolates the program
(docs/review.md).
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pulumi_sandbox
import yaml
from google.protobuf.struct_pb2 import Struct
from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.protocol import wire
from pulumi_sandbox.protocol.values import Properties, reveal
from pulumi_sandbox.providers import MODULES, OFFLINE, UNSEEN

import components
import operations
from components.connection import RECORDED
from components.errors import CredfleetError
from components.stack_config.stack import NAMESPACE
from operations.folders import Folders
from operations.preview_report.digest import Digest, digest_of
from operations.review import confined
from operations.review.confinement import (
    CONFIGURED,
    DYNAMIC_HOST,
    LANGUAGE_HOST,
    PROJECT,
    TASK,
    Confinement,
    Task,
    start,
)
from operations.sandbox.control_plane import OWNER
from operations.stack.at_rest import StackAtRest
from operations.stack.passphrase import PassphraseCrypter
from operations.stack.stack_file import ProgramConfig
from operations.stack.state import Snapshot, state_text

_SECONDS: Final = 300
_PASSPHRASE: Final = "PULUMI_CONFIG_PASSPHRASE"  # noqa: S105 - the name of a variable
_OPEN: Final = re.compile(r"(?<=127\.0\.0\.1):0(?![0-9])")
_UID: Final = re.compile(r'"uid": *"([0-9a-f-]+)"')
_OWN: Final = re.compile(r"using pulumi-[a-z-]+ from \$PATH at ")
_EXECUTOR: Final = "pulumi-language-python-exec"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The basis of a preview: a state, the cluster's answers, and variables for provider defaults."""

    snapshot: Snapshot
    cluster: Mapping[str, Any]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Previewed:
    """The result of a preview: its digest, and the inputs of each declared resource, by URN."""

    digest: Digest
    declared: Mapping[str, Properties]


class _Layout:
    """The folder of a preview."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.programs = folder / "bin"
        self.socket = folder / "engine" / "socket"
        self.backend = folder / "backend"
        self.home = folder / "home"
        self.cluster = folder / "cluster.json"


def preview(
    at_rest: StackAtRest,
    recorded: Recorded,
    stand_in: Callable[[str], str],
    base: Folders,
    shut: Confinement | None = None,
    *,
    policies: bool = False,
) -> Previewed:
    """Preview a stack on recorded data.

    stand_in: returns the placeholder for a ciphertext. base: the project whose own code checks, compares and
    evaluates policies. shut: the confinement of the program, which is untrusted then; policies: whether the
    base's policies are evaluated. Raises CredfleetError `not-shut-in`.
    """
    with ProgressLine() as progress:
        cli = pulumi_cli.find(OWNER, progress)
    with tempfile.TemporaryDirectory(prefix="credfleet-") as folder:
        layout = _Layout(Path(folder))
        environment = _laid_out(layout, at_rest, recorded, stand_in)
        executor = cli.program.resolve().with_name(_EXECUTOR)
        _task(layout, at_rest, executor, recorded, shut).write(layout.folder / "task.json")
        command = [str(cli.program), "preview", "--json", "--non-interactive"]
        command += ["--stack", at_rest.stack, "--config-file", "stack.yaml"]
        packs, config = base.policy_packs if policies else (), base.policy_config(at_rest.stack)
        command += [f"--policy-pack={pack}" for pack in packs]
        command += [f"--policy-pack-config={config}" for _ in packs if config]
        packages = (Path(each) for each in (sys.prefix, sys.base_prefix))
        own = (*packages, *own_code(), cli.program, cli.program.resolve(), executor, *base.policy_packs)
        outer = shut and Confinement(
            readable=(*own, at_rest.project.directory),
            writable=(layout.folder,),
            seconds=_SECONDS,
            nests=True,
        )
        process = start(outer, layout.project, command, environment)
        with process:
            try:
                said = process.communicate()[0].decode(errors="replace")
            finally:
                process.kill()
        _refuse_unless_apart(layout, process.returncode, said)
        return Previewed(digest_of([*_events(said)], "the preview"), _declared(layout))


def own_code() -> tuple[Path, ...]:
    """Return the folders of the packages that run this."""
    return tuple(Path(each.__path__[0]) for each in (operations, components, pulumi_sandbox))


def import_path() -> str:
    """Return the PYTHONPATH with which Python finds them."""
    return os.pathsep.join(str(each.parent) for each in own_code())


def installed_providers() -> Iterator[tuple[str, str]]:
    """Yield package and version of providers with an installed SDK; programs cannot use others."""
    for package in MODULES:
        with suppress(metadata.PackageNotFoundError):
            yield package, metadata.version(f"pulumi-{package}")


def _laid_out(
    layout: _Layout, at_rest: StackAtRest, recorded: Recorded, stand_in: Callable[[str], str]
) -> dict[str, str]:
    """Write the folder; return the environment variables of the CLI."""
    for each in (layout.project, layout.programs, layout.socket.parent, layout.home):
        each.mkdir()
    name, stack = at_rest.project.name, at_rest.stack
    passphrase = secrets.token_hex(16)
    crypter = PassphraseCrypter.new(passphrase)
    _write(layout.project / "Pulumi.yaml", yaml.safe_dump({"name": name, "runtime": "python"}))
    given, _ = at_rest.read(stand_in)
    # Under another key, and with any port instead of open ones: nothing is contacted.
    texts = {key: _OPEN.sub(":1", text) for key, text in given.values.items()}
    config = {
        key: {"secure": crypter.encrypt(text)} if key in given.secret_keys else text
        for key, text in texts.items()
    }
    document = {"encryptionsalt": crypter.salt, "config": config}
    _write(layout.project / "stack.yaml", yaml.safe_dump(document, sort_keys=False))
    _write(layout.backend / ".pulumi" / "meta.yaml", "version: 1\n")
    state = layout.backend / ".pulumi" / "stacks" / name / f"{stack}.json"
    _write(state, state_text(name, stack, recorded.snapshot, crypter))
    _write(layout.cluster, json.dumps(recorded.cluster))
    _write(layout.folder / "recorded.json", json.dumps(_recorded(recorded.snapshot, given)))
    for package, version in installed_providers():
        program = layout.home / "plugins" / f"resource-{package}-v{version}" / f"pulumi-resource-{package}"
        _script(program, OFFLINE, package, str(layout.folder / "recorded.json"))
    _script(layout.programs / "pulumi-language-python", LANGUAGE_HOST)
    _script(layout.programs / "pulumi-resource-pulumi-python", DYNAMIC_HOST)
    return {
        **recorded.environment,
        "HOME": str(layout.home),
        "PATH": f"{layout.programs}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "PULUMI_BACKEND_URL": f"{layout.backend.as_uri()}?metadata=skip",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true",
        "PULUMI_HOME": str(layout.home),
        "PULUMI_PYTHON_CMD": sys.executable,  # a pack without a virtual environment uses the active one
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PYTHONPATH": import_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(layout.folder),
        _PASSPHRASE: passphrase,
        RECORDED: str(layout.cluster),
        CONFIGURED: str(layout.folder / "configured"),
        PROJECT: name,
        TASK: str(layout.folder / "task.json"),
    }


def _recorded(state: Snapshot, given: ProgramConfig) -> dict[str, Any]:
    """Return the resources for the providers; a cluster without recorded answers counts as the expected one.

    Components are omitted: their outputs are unknown after a failed update.
    """
    uid: list[str] = _UID.findall(given.values.get(f"{NAMESPACE}cluster", ""))
    unseen = ("", "", {"metadata": {"uid": uid[0] if uid else ""}})
    managed = (each for each in state.resources if each.custom)
    known = {each.urn: (each.type, each.id, reveal(each.outputs)) for each in managed}
    return {**known, UNSEEN: unseen}


def _task(
    layout: _Layout, at_rest: StackAtRest, executor: Path, recorded: Recorded, shut: Confinement | None
) -> Task:
    program = at_rest.project.program
    folder, entry = (program, ".") if program.is_dir() else (program.parent, program.name)
    if shut is not None:
        shut = replace(
            shut,
            readable=(*shut.readable, layout.socket.parent, layout.cluster, executor),
            environment={**recorded.environment, **shut.environment, RECORDED: str(layout.cluster)},
        )
    return Task(
        folder=str(folder),
        entry=entry,
        executor=str(executor),
        socket=str(layout.socket),
        notes=str(layout.folder / "declared"),
        ended=str(layout.folder / "ended"),
        confinement=shut,
    )


def _refuse_unless_apart(layout: _Layout, code: int, said: str) -> None:
    """Raise CredfleetError if the program was not isolated, or isolation failed."""
    ended = layout.folder / "ended"
    was_run = ended.exists()
    inner = ended.read_text(encoding="utf-8") if was_run else ""
    if str(confined.REFUSED) in (str(code), inner):
        why = said.strip().splitlines()[-1] if said.strip() else "no reason"
        raise CredfleetError(
            code="not-shut-in",
            place="this machine",
            problem=f"its kernel does not let a program be shut in ({why}), and a branch's is run in no other"
            " way",
            fix="allow user namespaces: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
            " (Ubuntu), or run it in a virtual machine of its own",
        )
    # If nothing was declared, the CLI's messages are shown as for any preview.
    if not was_run and ("resourcePreEvent" in said or "summaryEvent" not in said):
        told = [str((each.get("diagnosticEvent") or {}).get("message") or "") for each in _events(said)]
        told += [line for line in said.splitlines() if not line.startswith("{")]
        raise CredfleetError(
            code="review-failed",
            place="the Pulumi CLI",
            problem=f"it did not run the program as a review does: {' '.join(' '.join(told).split())[-600:]}",
            fix="correct what it says, or put a supported Pulumi CLI on PATH (or PULUMI=/path/to/pulumi)",
        )


def _events(said: str) -> Iterator[dict[str, Any]]:
    """Yield the events about the program, without messages of the CLI about its own plugins."""
    for line in said.splitlines():
        event: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        told: dict[str, Any] = event.get("diagnosticEvent") or {}
        if event and told.get("severity") != "debug" and not _OWN.match(str(told.get("message"))):
            yield event


def _declared(layout: _Layout) -> dict[str, Properties]:
    found: dict[str, Properties] = {}
    for name in ("configured", "declared"):
        file = layout.folder / name
        for line in file.read_text(encoding="ascii").splitlines() if file.exists() else ():
            urn, _, encoded = line.partition("\t")
            found[urn] = wire.decode(Struct.FromString(base64.b64decode(encoded)))
    return found


def _script(path: Path, module: str, *words: str) -> None:
    """Write an executable that runs one of our modules."""
    command = shlex.join([sys.executable, "-u", "-P", "-m", module, *words])
    _write(path, f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o700)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
