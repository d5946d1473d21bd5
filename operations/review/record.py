"""The record for reviews: exported by the environment's own run, and read by a review.

It contains references, names and digests, but no ciphertexts and no values: the placeholder for each secret
in the state is what this program made from the placeholders of its credentials.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, cast

from pulumi_sandbox.protocol.values import Properties, Secret, Value, reveal, text

from components.account_pool.core.pool import Pool
from components.connection import ClusterTarget, record
from components.credentials import KEY
from components.documents import read_json
from components.errors import CredfleetError
from components.stack_config import tenant_files
from components.stack_config.stack import NAMESPACE, Settings
from operations.cli.inputs import read_bytes, unreadable
from operations.folders import Folders
from operations.review.preview import Recorded, preview
from operations.review.sealed import (
    Seals,
    align,
    ciphertexts,
    conceal_unmade,
    in_the_open,
    is_credential,
    is_unread,
    shape_of,
    unread_outputs,
    without_port,
)
from operations.stack.at_rest import StackAtRest
from operations.stack.state import Resource, Snapshot, decode, encode

VERSION: Final = 1
_DYNAMIC: Final = "pulumi:providers:pulumi-python"
_FORESEEN: Final = "foreseen"
"""Input of copies that only previews set; the last preview's value is what the last update wrote."""
_DIGEST: Final = "digest"
"""Output of copies: a digest with a key that anyone can compute, so that contents could be guessed."""
_DEFAULTS: Final = (
    *("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"),
    *("GOOGLE_REGION", "GCLOUD_REGION", "CLOUDSDK_COMPUTE_REGION"),
    *("GOOGLE_ZONE", "GCLOUD_ZONE", "CLOUDSDK_COMPUTE_ZONE"),
)
"""Variables with options of the Google Cloud provider that are not secrets."""
_NO_CODE: Final = (
    *(".*", "*.md", "LICENSE", "Makefile", "Pulumi.*.yaml", "conftest.py", "uv.txt", "stacks", "stacks.yaml"),
    *("benchmarks", "docs", "models", "operations", "policies", "tests", "sandbox/docs", "sandbox/tests"),
)
"""Patterns of paths in the project that the program neither imports nor reads as its own."""


@dataclass(frozen=True, slots=True)
class Record(Recorded):
    """A state without secrets, the cluster's answers, the identities of sealed values, and the time.

    code: a digest of the deployed program. environment: variables of its run that become defaults of
    providers.
    """

    stack: str
    at: datetime
    code: str
    seals: Seals

    @classmethod
    def none(cls, stack: str) -> Record:
        """Return an empty record, for a stack without one."""
        return cls(Snapshot(), {}, {}, stack, datetime.now(UTC), "", Seals(secrets.token_hex(16), {}, {}))

    @classmethod
    def read(cls, file: Path, stack: str) -> Record:
        """Read a record of `review export`. Raises CredfleetError `record-unreadable`, or as `read_bytes`."""
        holds = "what `credfleet review export` wrote"
        try:
            given: Any = read_json(read_bytes(str(file), holds))
            if given["version"] != VERSION or given["stack"] != stack:
                raise _unreadable(file, f"it is of stack {given['stack']}, version {given['version']}")
            return cls(
                decode(given["deployment"], str),
                given["cluster"],
                given["environment"],
                stack,
                datetime.fromisoformat(given["at"]),
                given["code"],
                Seals(**given["seals"]),
            )
        except UnicodeDecodeError:
            raise unreadable(str(file), "it is not UTF-8", f"a file with {holds}") from None
        except (ValueError, KeyError, TypeError):
            raise _unreadable(file, "it is not a record of a stack") from None

    def document(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return {
            "version": VERSION,
            "stack": self.stack,
            "at": self.at.isoformat(timespec="seconds"),
            "code": self.code,
            "seals": asdict(self.seals),
            "deployment": encode(self.snapshot, str),
            "cluster": self.cluster,
            "environment": self.environment,
        }


def code_of(project: Path, config: Mapping[str, Any] | None = None) -> str:
    """Return a digest of a program's folder: all that it could import or read, and its lock files.

    Without compiled files, which a review hides from the program. config: of the stack; tenant and member
    files that it names are excluded as configuration.
    """
    pool = (config or {}).get(f"{NAMESPACE}accountPool")
    named = (
        (config or {}).get(NAMESPACE + tenant_files.KEY),
        isinstance(pool, dict) and pool.get("membersFrom"),
    )
    given = [path for each in named if each and (path := project / str(each)) != project]
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(project):
        below = Path(folder).relative_to(project)
        own = [each for each in (*folders, *files) if _is_code(str(below / each))]
        folders[:] = sorted(each for each in folders if each in own)
        for file in sorted(Path(folder, each) for each in own):
            is_data = file.suffix in (".yaml", ".pem", ".csv") and not file.is_symlink()
            if is_data and any(path in (file, *file.parents) for path in given):
                continue
            if file.is_symlink() or file.is_file():
                content = os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()
                for each in (os.fsencode(file.relative_to(project)), content):
                    digest.update(hashlib.sha256(each).digest())
    return digest.hexdigest()


def _is_code(path: str) -> bool:
    return Path(path).name != "__pycache__" and not any(fnmatchcase(path, each) for each in _NO_CODE)


def make_record(at_rest: StackAtRest, state: Snapshot, settings: Settings, *, asks: bool = True) -> Record:
    """Return the record of a stack that was just deployed.

    state: with its secrets in plaintext, or unread. settings: the deployed configuration. asks: whether the
    pool is read. Raises CredfleetError: `not-deployed` if the state is of another configuration;
    `record-failed`.
    """
    sealed = ciphertexts(at_rest.stack_file.config)
    if (place := find_undeployed(at_rest, state, settings)) is not None:
        raise CredfleetError(
            code="not-deployed",
            place=place,
            problem="it is not what the stack was last updated with, so changes in it would count as"
            " deployed",
            fix="run the update first, then export: the deploy workflow does both",
        )
    shown = frozenset(
        text
        for each in state.resources
        for text in in_the_open(each.inputs).values()
        if isinstance(text, str)
    )
    shown |= {each.rpartition("/")[2] for each in shown}  # also the type of a binding
    held = reveal(_configured(state).get(NAMESPACE + KEY))
    credentials: Any = {} if is_unread(held) else read_json(text(held) or "{}")
    shapes = {
        f"{NAMESPACE}{KEY}.{name}": shape
        for name, held in credentials.items()
        if isinstance(held, str) and (shape := shape_of(held, shown)) is not None
    }
    key = secrets.token_hex(16)
    blank = Seals(key, {}, {})
    others = {name: {"text": 32} for name in sealed if not is_credential(name)}
    seals = Seals(key, {name: blank.identity(each) for name, each in sealed.items()}, shapes | others)
    record = Record(
        state,
        _cluster(settings) if asks else {},
        {name: os.environ[name] for name in _DEFAULTS if name in os.environ},
        at_rest.stack,
        datetime.now(UTC),
        code_of(at_rest.project.directory, at_rest.stack_file.config),
        seals,
    )
    return replace(record, snapshot=_sealed(record, at_rest))


def _configured(state: Snapshot) -> Properties:
    """Return the configuration that made the state: dynamic providers get all of it."""
    return next((each.inputs for each in state.resources if each.type == _DYNAMIC), {})


def find_undeployed(at_rest: StackAtRest, state: Snapshot, settings: Settings) -> str | None:
    """Return the file that differs from those that made a state; None if all match, or the state is empty."""
    config, _ = at_rest.read()
    configured = _configured(state)
    names = {key for key in config.values if key not in config.secret_keys}
    files = (text(each.inputs.get(tenant_files.DIGEST)) for each in state.resources)
    if configured and any(_meant(config.values[key]) != _meant(configured.get(key)) for key in names):
        return str(at_rest.stack_file.path)
    if state.resources and settings.files != next(filter(None, files), ""):
        pool = settings.account_pool
        named = filter(None, (settings.tenants_from, pool and pool.members_from))
        return " or ".join(named) or str(at_rest.stack_file.path)
    return None


def _meant(value: Value) -> Any:
    """Return the value of a text in the configuration, regardless of whitespace."""
    said = without_port(text(reveal(value)))
    try:
        return read_json(said)
    except ValueError:
        return said


def _sealed(record: Record, at_rest: StackAtRest) -> Snapshot:
    """Return the state with a placeholder for each secret, as the program makes it."""
    base, stand_ins = Folders(at_rest.project.directory), texts(record.seals, at_rest)
    found = preview(at_rest, record, stand_ins, base)
    if errors := [each.message.strip() for each in found.digest.diagnostics if each.severity == "error"]:
        raise CredfleetError(
            code="record-failed",
            place=f"stack {record.stack}",
            problem=f"its program does not run without keys: {'; '.join(errors)}",
            fix="correct what it says, deploy, and export again",
        )
    return Snapshot(
        tuple(_without_secrets(each, found.declared.get(each.urn, {})) for each in record.snapshot.resources)
    )


def _without_secrets(resource: Resource, made_now: Properties) -> Resource:
    inputs, became = align(resource.inputs, made_now)
    became = {**in_the_open(resource.inputs), **unread_outputs(resource.outputs, inputs), **became}
    outputs = cast("Properties", conceal_unmade(resource.outputs, became))
    if isinstance(metadata := outputs.get("metadata"), dict):
        outputs = {**outputs, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
    if _DIGEST in outputs and not isinstance(outputs[_DIGEST], Secret):
        outputs = {**outputs, _DIGEST: ""}
    foreseen = {_FORESEEN: made_now[_FORESEEN]} if made_now.get(_FORESEEN) is not None else {}
    return replace(resource, inputs={**inputs, **foreseen}, outputs={**outputs, **foreseen})


def texts(seals: Seals, at_rest: StackAtRest) -> Callable[[str], str]:
    """Return a function that returns the placeholder of a ciphertext in a stack's file."""
    sealed = ciphertexts(at_rest.stack_file.config)
    return {each: seals.find(name, each).text for name, each in sealed.items()}.__getitem__


def _cluster(settings: Settings) -> Mapping[str, Any]:
    """Read the pool and return the recorded answers of the cluster; empty without a pool."""
    if settings.account_pool is None:
        return {}
    cluster = settings.cluster
    target = ClusterTarget(cluster.context, cluster.kubeconfig, cluster.uid)
    recording = record(target)
    Pool.snapshot(target, settings.account_pool.namespace)
    return recording.answers


def _unreadable(file: Path, problem: str) -> CredfleetError:
    return CredfleetError(
        code="record-unreadable",
        place=str(file),
        problem=problem,
        fix="give it what `credfleet review export` wrote for this stack",
    )
