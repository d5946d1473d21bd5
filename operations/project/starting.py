"""`credfleet init`: which files a project of one's own needs, and those of them that are not there yet.

What is there is never changed. Files that only make sense together are written together or not at all: a
passphrase that anybody may read never comes to a stack that had one of its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.engine import PassphraseCrypter, load_yaml

from components.errors import CredfleetError
from components.settings.cloud_sdks import review_sdk
from components.settings.schema import stack_file_schema
from operations.cli.answer import Answer, Part, as_json
from operations.cli.tables import Commands
from operations.project.words import PASSPHRASE, ROOMS, Cloud
from operations.sandbox.summary import typed_command

PUBLIC_PASSPHRASE: Final = "the stack dev of credfleet is public"  # noqa: S105 - public on purpose

_TEMPLATES: Final = Path(__file__).with_name("templates")
_SIGNS_IN_AT: Final = {"awskms": "aws", "azurekeyvault": "azure", "gcpkms": "gcp", PASSPHRASE: ""}
_PROJECT: Final = "Pulumi.yaml"
_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_SCHEMA: Final = "stack.schema.json"
_LONGEST_NAME: Final = 90
"""Of 100 that Pulumi takes for a project and for a policy pack."""
_IN_TEXT: Final = re.compile(r"[\x00-\x1f\x7f]")


_ACCOUNT_IDS: Final[Mapping[Cloud, Sequence[str]]] = {
    Cloud.AWS: ("111111111111", "222222222222"),
    Cloud.AZURE: ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"),
    Cloud.GCP: ("made-up-1", "made-up-2"),
}
_ACCOUNT_FIELDS: Final[Mapping[Cloud, Sequence[str]]] = {
    Cloud.AWS: ("accessKeyID", "secretAccessKey"),
    Cloud.AZURE: ("clientID", "clientSecret", "subscriptionID", "tenantID"),
    Cloud.GCP: ("serviceaccount.json",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a project is to begin with.

    rooms: sections of the configuration that stack dev shows. cluster: the context of the cluster that stack
    prod is for; None for no such stack. secrets_provider: who encrypts what that holds.
    """

    rooms: Sequence[str]
    cloud: Cloud
    cluster: str | None
    secrets_provider: str


@dataclass(frozen=True, slots=True)
class _Ground:
    """A folder, and the project in it: its name, and where its program and the stacks' files lie."""

    folder: Path
    name: str
    program: str = "."
    stack_files: str = "."
    is_new: bool = False

    @property
    def program_file(self) -> str:
        """The program: what `main` names, or `__main__.py` in the folder that it names."""
        named = Path(self.program)
        return os.path.normpath(named if (self.folder / named).is_file() else named / "__main__.py")


def rooms_of(text: str) -> Sequence[str]:
    """Return the rooms that a list names; raises CredfleetError `unknown-room`."""
    given = [each.strip() for each in text.split(",") if each.strip()]
    for each in given:
        if each not in ROOMS:
            raise CredfleetError(
                code="unknown-room",
                place="--rooms",
                cause=f"there is no room {each}",
                mend=f"name some of {', '.join(ROOMS)}, with commas between",
            )
    return given


def start(folder: Path, wanted: Wanted, *, here: bool) -> Answer:
    """Write a project, or, here, what a project lacks.

    Raises CredfleetError, before anything is written: `folder-not-empty`, `no-project`, `not-python`,
    `no-secrets-provider`, `no-cluster`; SandboxError for a Pulumi.yaml that cannot be read.
    """
    scheme = _scheme(wanted)
    ground = _existing(folder) if here else _new(folder)
    lacking = _files(ground, wanted, scheme)
    written: list[str] = []
    kept: list[str] = []
    for group in lacking:
        there = [name for name in group if os.path.lexists(ground.folder / name)]
        if there:
            kept += there
            continue
        for name, text in group.items():
            _write(ground.folder / name, text)
            written.append(name)
    return _told(ground, wanted, written, kept)


def _scheme(wanted: Wanted) -> str:
    scheme = wanted.secrets_provider.partition(":")[0]
    if scheme not in _SIGNS_IN_AT or (scheme == PASSPHRASE) != (wanted.secrets_provider == PASSPHRASE):
        raise CredfleetError(
            code="no-secrets-provider",
            place="--secrets-provider",
            cause="it names nobody who encrypts",
            mend="give passphrase, awskms://…, azurekeyvault://… or gcpkms://…",
        )
    if wanted.cluster is None and scheme != PASSPHRASE:
        raise CredfleetError(
            code="no-cluster",
            place="--secrets-provider",
            cause="it is for a stack on a cluster of yours, and no cluster is named",
            mend="add --cluster CONTEXT, or leave --secrets-provider out",
        )
    for option, text in (
        ("--cluster", wanted.cluster or ""),
        ("--secrets-provider", wanted.secrets_provider),
    ):
        if _IN_TEXT.search(text):
            raise CredfleetError(
                code="bad-text", place=option, cause="it has control characters", mend="give it in one line"
            )
    return scheme


def _new(folder: Path) -> _Ground:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CredfleetError(
            code="folder-not-empty",
            place=str(folder),
            cause="something is there, and a new project is written to a new folder",
            mend="name another folder; to add to a Pulumi project: change to it, then credfleet init --here",
        )
    name = _IN_A_NAME.sub("-", folder.resolve().name).strip("-.")[:_LONGEST_NAME] or "fleet"
    return _Ground(folder, name, is_new=True)


def _existing(folder: Path) -> _Ground:
    path = folder / _PROJECT
    if not path.is_file():
        raise CredfleetError(
            code="no-project",
            place=str(folder.resolve()),
            cause="there is no Pulumi.yaml to add to",
            mend="change to the folder of a Pulumi project, or make a new one: credfleet init DIR",
        )
    project: dict[str, Any] = load_yaml(path)
    runtime = project.get("runtime")
    language = runtime.get("name") if isinstance(runtime, dict) else runtime
    if language != "python":
        raise CredfleetError(
            code="not-python",
            place=str(path),
            cause=f"its programs are written for {language}, and credfleet's components are for Python",
            mend="make a project beside it: credfleet init DIR",
        )
    name = _IN_A_NAME.sub("-", str(project.get("name") or "fleet"))
    return _Ground(folder, name, str(project.get("main") or "."), str(project.get("stackConfigDir") or "."))


def _files(ground: _Ground, wanted: Wanted, scheme: str) -> Iterator[Mapping[str, str]]:
    """Yield the files of a project, those together that make sense only together."""
    crypter = PassphraseCrypter.new(PUBLIC_PASSPHRASE)

    def made(template: str) -> str:
        return _rendered(
            template,
            account_ids=_ACCOUNT_IDS[wanted.cloud],
            cloud=wanted.cloud.value,
            cluster=wanted.cluster,
            credentials=dict(_credentials(wanted)),
            project=ground.name,
            pulumi_version=version("pulumi"),
            quoted=json.dumps,
            rooms=wanted.rooms,
            salt=crypter.salt,
            secret=crypter.encrypt,
            schema=schema,
            secrets_provider=wanted.secrets_provider,
            signs_in_at=_SIGNS_IN_AT[scheme],
            requirements=_requirements(wanted.rooms),
        )

    def stack_file(stack: str) -> str:
        return os.path.normpath(Path(ground.stack_files, f"Pulumi.{stack}.yaml"))

    schema = os.path.relpath(_SCHEMA, os.path.normpath(ground.stack_files))

    yield {_PROJECT: made("Pulumi.yaml")}
    yield {ground.program_file: made("main.py")}
    yield {
        stack_file("dev"): made("Pulumi.dev.yaml"),
        "stacks/dev/passphrase": f"{PUBLIC_PASSPHRASE}\n",
    }
    if wanted.cluster is not None:
        yield {stack_file("prod"): made("Pulumi.prod.yaml")}
        yield {".github/workflows/deploy.yml": made("github/deploy.yml")}
    yield {
        "policies/PulumiPolicy.yaml": made("PulumiPolicy.yaml"),
        "policies/__main__.py": made("policies.py"),
    }
    yield {".github/workflows/check.yml": made("github/check.yml")}
    yield {"Makefile": made("Makefile")}
    yield {"requirements.txt": made("requirements.txt")}
    yield {_SCHEMA: f"{as_json(stack_file_schema())}\n"}
    yield {".gitignore": made("gitignore")}


def _requirements(rooms: Sequence[str]) -> Sequence[str]:
    """Return what a project installs, each from where it was installed here: no index is asked for a name.

    Pull secrets need the SDK of Google Cloud; the other rooms begin without that of any cloud.

    Where pip knows no such place (PEP 610), it came from an index, by its version.
    """
    found: list[str] = []
    for name in ("credfleet", "pulumi-sandbox"):
        extra = "[gcp]" if name == "credfleet" and "pullSecrets" in rooms else ""
        told = json.loads(distribution(name).read_text("direct_url.json") or "{}")
        digest = (told.get("archive_info") or {}).get("hash", "").replace("sha256=", "#sha256=")
        where = f" @ {told['url']}{digest}" if told else f"=={version(name)}"
        found.append(f"{name}{extra}{where}")
    return found


def _credentials(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """Yield what the rooms of stack dev name; nothing of it opens anything."""
    if "accountPool" in wanted.rooms:
        fields = _ACCOUNT_FIELDS[wanted.cloud]
        for number in (1, 2):
            yield f"{wanted.cloud}-{number}", json.dumps({each: f"made up {number}" for each in fields})
    if "asoCredentials" in wanted.rooms:
        yield "acme-sp", '{"clientSecret": "made up"}'
    if "pullSecrets" in wanted.rooms:
        yield "registry-pull", '{"auths": {"registry.example": {"auth": "bWFkZTp1cA=="}}}'
    if "services" in wanted.rooms:
        yield "orders-db", '{"type": "postgresql", "host": "db.example", "password": "made up"}'


def _rendered(template: str, **known: Any) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=False,  # noqa: S701 - these are no pages
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    text = (_TEMPLATES / f"{template}.j2").read_text(encoding="utf-8")
    return environment.from_string(text).render(known)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CredfleetError(
            code="not-written",
            place=str(path),
            cause=f"it cannot be written ({error.strerror}); what comes before it in a project is there",
            mend="mend that, then add what is lacking, in the folder: credfleet init --here",
        ) from None


def _told(ground: _Ground, wanted: Wanted, written: Sequence[str], kept: Sequence[str]) -> Answer:
    lines: list[Part] = [f"+ {ground.folder / name}" for name in written]
    lines += [f"· kept as it is: {ground.folder / name}" for name in kept]
    steps = tuple(_next(ground, wanted, kept))
    if steps:
        lines.append(Commands("Next", steps))
    return Answer({"project": ground.name, "written": [*written], "kept": [*kept]}, lines)


def _next(ground: _Ground, wanted: Wanted, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    typed = typed_command()
    if "requirements.txt" in kept:
        lines = " ".join(map(shlex.quote, _requirements(wanted.rooms)))
        yield f"printf '%s\\n' {lines} >> requirements.txt", "your program needs them"
    if "pullSecrets" in wanted.rooms and [*review_sdk("gcp", "pullSecrets")]:
        file = shlex.quote(str(ground.folder / "requirements.txt"))
        yield f"pip install -r {file}", "pull secrets need the SDK of Google Cloud"
    if ground.is_new:
        yield (
            f"cd {shlex.quote(str(ground.folder))} && make up",
            "a real API server, everything declared, accounts claimed",
        )
    if ground.program_file in kept:
        yield (
            "from credfleet import Fleet, Settings",
            'in your program, and: Fleet("fleet", Settings.load()).export()',
        )
    if ".gitignore" in kept:
        yield "echo .sandbox/ >> .gitignore", "the sandbox keeps its state there"
    if wanted.cluster is not None and wanted.secrets_provider != PASSPHRASE:
        yield (
            f"pulumi stack init prod --secrets-provider {shlex.quote(wanted.secrets_provider)}",
            "its key; needs the Pulumi CLI",
        )
    elif not ground.is_new:
        yield f"{typed} sandbox up", "stack dev on a real API server, with no cloud"
