"""A stack's state and configuration at rest: shown, carried out and in, changed; no engine runs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from pulumi_sandbox.documents import read_json
from pulumi_sandbox.engine import Snapshot, StackAtRest, Workspace, decode, find_backend, verify
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import paths, urns
from pulumi_sandbox.protocol.values import Json, Properties, masked
from pulumi_sandbox.steering import escaped, visible

from components.errors import CredfleetError, how_many
from operations.cli.answer import Answer
from operations.cli.ask import ask
from operations.cli.tables import Column, Table
from operations.folders import Folders
from operations.sandbox.public_passphrase import refuse_new


def open_workspace(folders: Folders, stack: str) -> Workspace:
    """Open a stack of the project, as the Pulumi CLI's own variables say or else the sandbox's defaults.

    Raises:
        SandboxError: as `find_backend` and `Workspace.open`.
    """
    return Workspace.open(
        folders.project,
        stack,
        backend_dir=find_backend(folders.backend),
        public_passphrase=folders.public_passphrase(stack),
    )


def stack_here(stack: str) -> StackAtRest:
    """Read what the files say of a stack of the project around here; no key is needed.

    Raises:
        SandboxError: as `Folders.find`, `find_backend` and `StackAtRest.find`.
    """
    folders = Folders.find(Path.cwd())
    return StackAtRest.find(folders.project, stack, backend_dir=find_backend(folders.backend))


def outputs(snapshot: Snapshot) -> Properties:
    """Return what a stack exports."""
    stacks = (each for each in snapshot.resources if each.type == urns.ROOT_STACK_TYPE)
    return next((stack.outputs for stack in stacks), {})


def shown_outputs(snapshot: Snapshot) -> dict[str, Json]:
    """Return what a stack exports, secrets masked, in order of name."""
    return {key: masked(value) for key, value in sorted(outputs(snapshot).items())}


def exported(stack: str) -> Answer:
    """Return what a stack exports."""
    shown = shown_outputs(_here(stack).store.load())
    table = Table(
        "Outputs",
        (Column("Name", names=True), Column("Value", folds=True)),
        [(key, as_text(value)) for key, value in shown.items()],
    )
    return Answer(json.loads(_ordered(shown)), [table if shown else f"Stack {stack} exports nothing."])


def as_text(value: Json) -> str:
    """Return a value as people read it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else _ordered(value)


def export(stack: str, file: Path | None) -> None:
    """Write the deployment as `pulumi stack export` does; secrets stay encrypted."""
    store = _here(stack).store
    text = store.export(store.load())
    if file is None:
        typer.echo(escaped(text))
    else:
        file.write_text(f"{text}\n", encoding="utf-8")


def import_(stack: str, file: Path | None, *, yes: bool) -> None:
    """Replace the deployment; what was there is kept beside it as `.bak`.

    As with the genuine CLI, calls that were under way when it was exported are dropped, which is said.

    Raises:
        CredfleetError: code `no-deployment`, for a file that `stack export` did not write; `not-confirmed`.
        SandboxError: as `decode`, `verify` and the store.
    """
    workspace = _to_encrypt(stack)
    given = decode(_deployment(file), workspace.crypter)
    snapshot = replace(given, pending=())
    verify(snapshot)
    with workspace.store.locked():
        count = len(workspace.store.load().resources)
        if count:
            ask(
                f"{how_many(count, 'resource')} in the state of stack {stack} will be replaced. Go on?",
                yes=yes,
            )
        workspace.keep_salt()
        workspace.store.save(snapshot)
    for each in given.pending:
        typer.echo(visible(f"· dropped a call that was under way: {each.type} {each.resource.urn}"), err=True)
    typer.echo(f"✓ the state of stack {stack} now has {how_many(len(snapshot.resources), 'resource')}")


def config_value(stack: str, key: str, *, path: bool) -> Answer:
    """Answer with one value in plain.

    A key is asked for only where the value is encrypted. Raises CredfleetError with code `bad-configuration`
    when there is no such value; SandboxError as `StackAtRest.unlock`, or for what is wrong with the value.
    """
    at_rest = stack_here(stack)
    full = at_rest.project.key(key)
    inside: paths.Path = ()
    if path:
        namespace, _, rest = full.partition(":")
        head, *tail = paths.parse(rest)
        full, inside = f"{namespace}:{head}", tuple(tail)
    config, faults = at_rest.read()
    asked = (full, *inside)
    if any(paths.covers(asked, sealed) or paths.covers(sealed, asked) for sealed in config.sealed):
        config, faults = at_rest.read(
            at_rest.unlock(public=Folders.find(Path.cwd()).public_passphrase(stack))
        )
    for fault in faults:
        if paths.covers(asked, fault.path) or paths.covers(fault.path, asked):
            place = str(at_rest.stack_file.at(*fault.path))
            raise SandboxError(code=fault.code, place=place, cause=fault.cause, mend=fault.mend)
    text = config.values.get(full)
    found, value = paths.get(read_json(text or "null"), inside) if inside else (text is not None, text)
    if not found:
        raise CredfleetError(
            code="bad-configuration",
            place=f"{at_rest.stack_file.path.name} {key}",
            cause=f"the configuration of stack {stack} has no such value",
            mend="look for its name in the file; a value inside an object needs --path",
        )
    return Answer({"value": value}, [as_text(masked(value))])


def set_config(stack: str, key: str, value: str | None, *, path: bool, secret: bool) -> None:
    """Write one value; without one it is read from standard input, up to its last newline."""
    if not secret:
        file = stack_here(stack).stack_file
        file.set(key, _read_value(key) if value is None else value, path=path)
        file.save()
        return
    workspace = _to_encrypt(stack)
    text = _read_value(key) if value is None else value
    workspace.keep_salt()
    workspace.stack_file.set(key, text, path=path, crypter=workspace.crypter)
    workspace.stack_file.save()


def _ordered(value: Json) -> str:
    """Write JSON with keys in order: a program's objects come in another order each time."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def _here(stack: str) -> Workspace:
    return open_workspace(Folders.find(Path.cwd()), stack)


def _to_encrypt(stack: str) -> Workspace:
    workspace = _here(stack)
    refuse_new(Folders.find(Path.cwd()), workspace)
    return workspace


def _read_value(key: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(key, hide_input=True, err=True))
    return sys.stdin.read().removesuffix("\n")


def _deployment(file: Path | None) -> dict[str, Any]:
    place = "standard input" if file is None else str(file)
    try:
        text = sys.stdin.read() if file is None else file.read_text(encoding="utf-8")
        return dict(read_json(text)["deployment"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CredfleetError(
            code="no-deployment",
            place=place,
            cause=f"no deployment can be read from it ({type(error).__name__})",
            mend="give a file that `credfleet sandbox stack export` or `pulumi stack export` wrote",
        ) from None
