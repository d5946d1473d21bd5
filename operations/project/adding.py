"""`credfleet add`: one thing more in a stack's file, judged as it will be before a byte of it is written.

What a command adds is a table of places and values, made by the functions below; a credential among them is
encrypted by whoever encrypts the stack.
"""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import typer
from pulumi_sandbox.documents import read_file
from pulumi_sandbox.engine import PassphraseCrypter, StackAtRest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import paths

from components.credentials import KEY
from components.errors import CredfleetError
from components.naming import config_path
from components.settings.stack import NAMESPACE
from operations.cli.answer import Answer
from operations.cli.inputs import STANDARD_INPUT, read_bytes
from operations.config.settings import judged
from operations.folders import Folders
from operations.sandbox.public_passphrase import refuse_new
from operations.sandbox.stack_state import stack_here

Place: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Addition:
    """What comes into a stack's file: place → value, the first of them being what is added.

    defaults: what that needs around it, where it is not there. credential: the name a value is kept under.
    """

    entries: Mapping[Place, Any]
    defaults: Mapping[Place, Any] = field(default_factory=dict[Place, Any])
    credential: str | None = None


def tenant(name: str, namespace: str | None, accounts: Sequence[str]) -> Addition:
    """Return a tenant. accounts: `SLOT=TYPE`, or a type, whose slot is called main.

    Raises CredfleetError `slot-twice`, `slot-missing`.
    """
    if unnamed := next((each for each in accounts if each.startswith("=")), None):
        raise CredfleetError(
            code="slot-missing",
            place="--account",
            cause=f"{unnamed} names no slot before its =",
            mend=f"give the type alone, {unnamed[1:] or 'TYPE'}, or SLOT{unnamed}",
        )
    asked = [(slot or "main", kind) for slot, _, kind in (each.rpartition("=") for each in accounts)]
    slots = {slot: {"type": kind} for slot, kind in asked}
    if len(slots) < len(asked):
        twice = next(slot for slot, count in Counter(slot for slot, _ in asked).items() if count > 1)
        raise CredfleetError(
            code="slot-twice",
            place="--account",
            cause=f"slot {twice} is asked for more than once, and has one account",
            mend=f"call each by a name of its own: --account {twice}=TYPE --account other=TYPE",
        )
    claims = {"accounts": slots} if slots else {}
    return Addition({("tenants", name): {"namespace": namespace or f"tenant-{name}", **claims}})


def account(name: str, kind: str, id_: str, owner: str | None) -> Addition:
    """Return an account of the pool, with its credential. owner: the one tenant that may claim it."""
    own = {} if owner is None else {"tenant": owner}
    member = {"type": kind, "accountId": id_, **own, "credentialsFrom": name}
    return Addition(
        {("accountPool", "members", name): member},
        {("accountPool", "namespace"): "account-pool"},
        credential=name,
    )


def service(name: str, namespace: str, bindings: Sequence[str]) -> Addition:
    """Return a service that somebody else runs, with its credential."""
    bound = {"bindings": {each: {} for each in bindings}} if bindings else {}
    instance = {"namespace": namespace, "credentialsFrom": name, **bound}
    return Addition({("services", "instances", name): instance}, credential=name)


def pull_secret(id_: str, name: str, project: str, generation: int) -> Addition:
    """Return a cluster with its pull secret. project: its id, or `TENANT/SLOT` of a claimed account."""
    held = {"account": project} if "/" in project else project
    entry = f"{name}-pull"
    cluster = {"name": name, "generation": generation, "project": held, "pullSecretFrom": entry}
    return Addition({("pullSecrets", "clusters", id_): cluster}, credential=entry)


def aso_credential(
    namespace: str, subscription: str, tenant_id: str, client_id: str, *, certificate: bool
) -> Addition:
    """Return the credential of a namespace's resources of Azure Service Operator."""
    entry = f"{namespace}-sp"
    principal = {
        "subscriptionId": subscription,
        "tenantId": tenant_id,
        "clientId": client_id,
        "certificateFrom" if certificate else "secretFrom": entry,
    }
    return Addition(
        {("asoCredentials", "namespaces", namespace): {"servicePrincipal": principal}}, credential=entry
    )


def store(name: str, namespace: str, kind: str, spec: Path | None, *, logs_in: bool) -> Addition:
    """Return a store of a namespace, on a provider of its own. spec: the file of what that is told."""
    told = {} if spec is None else read_file(spec).data
    login = {"credentialsFrom": name} if logs_in else {}
    return Addition(
        {
            ("secretStores", "providers", name): {
                "kind": kind,
                "namespace": namespace,
                **login,
                "spec": told,
            },
            ("secretStores", "stores", name): {"namespace": namespace, "providerRef": name},
        },
        credential=name if logs_in else None,
    )


def add(stack: str, addition: Addition, values: str | None) -> Answer:
    """Write an addition into a stack's file, and return how the file differs.

    values: the file that holds the credential, `-` for standard input; None asks a person on a terminal.

    Raises, before anything is written: CredfleetError `already-there`, ConfigurationError with all that
    `config check` would refuse, SandboxError as `StackAtRest.unlock`; `pulumi-failed`, for a stack that the
    Pulumi CLI encrypts.
    """
    text = None if addition.credential is None else _value(addition.credential, values)
    at_rest = stack_here(stack)
    before = _shape(at_rest)
    entries = {(f"{NAMESPACE}{head}", *rest): value for (head, *rest), value in addition.entries.items()}
    credential: Place = (f"{NAMESPACE}{KEY}", addition.credential or "")
    crypter = None if text is None else _crypter(at_rest)
    for place in (*entries, *([credential] if text is not None else ())):
        _refuse_present(at_rest, place)
    if text is not None:
        if crypter is not None and not at_rest.stack_file.salt:
            at_rest.stack_file.salt = crypter.salt
        sealed = "" if crypter is None else crypter.encrypt(text, place=paths.render(credential))
        at_rest.stack_file.put(credential, {"secure": sealed})
    _put_all(at_rest, addition, entries)
    judged(at_rest, crypter)
    if text is not None and crypter is None:
        _encrypt_by_the_cli(at_rest, credential, text)
        at_rest = stack_here(stack)
        _put_all(at_rest, addition, entries)
    at_rest.stack_file.save()
    return _told(at_rest, before, addition)


def _put_all(at_rest: StackAtRest, addition: Addition, entries: Mapping[Place, Any]) -> None:
    for (head, *rest), value in addition.defaults.items():
        place = (f"{NAMESPACE}{head}", *rest)
        if not paths.get(at_rest.stack_file.config, place)[0]:
            at_rest.stack_file.put(place, value)
    for place, value in entries.items():
        at_rest.stack_file.put(place, value)


def _crypter(at_rest: StackAtRest) -> PassphraseCrypter | None:
    """Return what encrypts the stack's values here, None where the Pulumi CLI does; as `refuse_new`."""
    folders = Folders(at_rest.project.directory)
    try:
        crypter = at_rest.unlock(public=folders.public_passphrase(at_rest.stack))
    except SandboxError as error:
        if error.code != "stack-unsupported":
            raise
        return None
    refuse_new(folders, at_rest)
    return crypter


def _refuse_present(at_rest: StackAtRest, place: Place) -> None:
    if paths.get(at_rest.stack_file.config, place)[0]:
        raise CredfleetError(
            code="already-there",
            place=f"{at_rest.stack_file.at(*place)} {_shown(place)}",
            cause="it is in the stack's file, and nothing was written",
            mend="give another name, or change it there",
        )


def _shown(place: Place) -> str:
    head, *rest = place
    own = config_path(head.removeprefix(NAMESPACE), *rest)
    return own if head.startswith(NAMESPACE) else own.removeprefix(NAMESPACE)


def _value(name: str, values: str | None) -> str:
    """Return a credential as the configuration has it: text without its last newline, or base64 of bytes."""
    if values is None and sys.stdin.isatty():
        return str(typer.prompt(name, hide_input=True, err=True))
    piped = values in (None, STANDARD_INPUT)
    content = sys.stdin.buffer.read() if piped else read_bytes(str(values), f"the value of {name}")
    try:
        text = content.decode().removesuffix("\n")
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(content).decode()}"
    if not text:
        raise CredfleetError(
            code="no-value",
            place=values or "standard input",
            cause=f"it holds no value of {name}, and nothing was written",
            mend="name a file with --values, or give it on standard input",
        )
    return text


def _encrypt_by_the_cli(at_rest: StackAtRest, place: Place, text: str) -> None:
    """Let the Pulumi CLI encrypt a value into the stack's file; it gets it on its standard input."""
    head, *rest = place
    key = paths.render((head.removeprefix(NAMESPACE), *rest))
    command = [
        "pulumi",
        "--non-interactive",
        "config",
        "set",
        "--secret",
        "--path",
        "--stack",
        at_rest.stack,
        NAMESPACE + key,
    ]
    try:
        failed = subprocess.run(
            command,
            cwd=at_rest.project.directory,
            input=f"{text}\n",  # of which it takes the last newline off
            text=True,
            stdout=subprocess.DEVNULL,
            check=False,
        ).returncode
    except FileNotFoundError:
        failed = True
    if failed:
        raise CredfleetError(
            code="pulumi-failed",
            place=f"stack {at_rest.stack}",
            cause="the Pulumi CLI encrypts its values, and is not there or failed; nothing was written",
            mend=f"sign in where the key is; a new stack first: pulumi stack init {at_rest.stack}"
            f" --secrets-provider {shlex.quote(at_rest.stack_file.provider)}",
        )


def _shape(at_rest: StackAtRest) -> dict[str, str]:
    """Return what a stack's file says, place by place, without a value of what is encrypted."""
    return {
        place: text
        for key, value in at_rest.stack_file.config.items()
        for place, text in _flat((key,), value)
    }


def _flat(place: Place, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case {"secure": _, **others} if not others:
            yield _shown(place), "[secret]"
        case dict() if value:
            for key, inner in value.items():
                yield from _flat((*place, str(key)), inner)
        case _:
            yield _shown(place), json.dumps(value, default=str, ensure_ascii=False)


def _told(at_rest: StackAtRest, before: Mapping[str, str], addition: Addition) -> Answer:
    """Tell what differs: values that stood there are not shown, since somebody may have encrypted none."""
    after = _shape(at_rest)
    gone = [f"- {place}: {text}" for place, text in before.items() if place not in after]
    new = [f"+ {place}: {text}" for place, text in after.items() if before.get(place) != text]
    name = at_rest.stack_file.path.name
    added = [_shown((f"{NAMESPACE}{head}", *rest)) for head, *rest in addition.entries]
    document = {"stack": at_rest.stack, "file": name, "added": added, "diff": [*gone, *new]}
    return Answer(document, [*gone, *new, f"✓ {name}: added {', '.join(added)}"])
