"""`credfleet init`: renders the folder `template`, and writes the files that do not exist yet.

Existing files are never changed. Files that depend on each other are written together or not at all: a public
passphrase never replaces a stack's own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any, Final

from components.errors import CredfleetError
from components.stack_config.cloud_keys import review_sdk
from components.stack_config.schema import stack_file_schema
from operations.cli.answer import CommandResult, Part, as_json
from operations.cli.tables import Commands
from operations.cli.templates import templates_in
from operations.stack.passphrase import PassphraseCrypter
from operations.stack.yaml_file import load_yaml

ROOMS: Final = ("accountPool", "asoCredentials", "pullSecrets", "services", "secretStores")
"""Sections of a stack's configuration that belong to a component."""
PASSPHRASE: Final = "passphrase"  # noqa: S105 - who encrypts, where no cloud does
PUBLIC_PASSPHRASE: Final = "the stack dev of credfleet is public"  # noqa: S105 - public on purpose

_PROJECT: Final = "Pulumi.yaml"
_PROGRAM: Final = "__main__.py"
_SCHEMA: Final = "stack.schema.json"
_GOES_WITH: Final = {
    "stacks/dev/cleaners/sandbox.sh": "Pulumi.dev.yaml",
    "stacks/dev/passphrase": "Pulumi.dev.yaml",
    f"policies/{_PROGRAM}": "policies/PulumiPolicy.yaml",
}
_TEMPLATE: Final = templates_in(Path(__file__).with_name("template"))
_HOME: Final = Path(__file__).parents[2]
_OF_THIS_REPOSITORY: Final = ("audit", "ci.yml", "count", "lint-workflows", "try-package")
_SIGNS_IN_AT: Final = {"awskms": "aws", "azurekeyvault": "azure", "gcpkms": "gcp", PASSPHRASE: ""}
_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME: Final = 90
"""Maximum length; Pulumi allows 100 characters for a project and for a policy pack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options for a new project.

    rooms: sections of the configuration that stack dev shows. cluster: the context of the cluster of stack
    prod; None for no such stack. secrets_provider: of stack prod.
    """

    rooms: Sequence[str]
    cloud: str
    cluster: str | None
    secrets_provider: str


@dataclass(frozen=True, slots=True)
class _Ground:
    """A folder and its project: name, and locations of the program and the stack files."""

    folder: Path
    name: str
    program: str = "."
    stack_files: str = "."
    is_new: bool = False

    def place(self, name: str) -> str:
        """Return the path of a template file; `main` in Pulumi.yaml can name the program or its folder."""
        if name == _PROGRAM:
            named = Path(self.program)
            return os.path.normpath(named if (self.folder / named).is_file() else named / _PROGRAM)
        is_a_stack = name.startswith("Pulumi.") and name != _PROJECT
        return os.path.normpath(Path(self.stack_files, name)) if is_a_stack else name


def rooms_of(text: str) -> Sequence[str]:
    """Parse a list of rooms; raises CredfleetError `unknown-room`."""
    given = [each.strip() for each in text.split(",") if each.strip()]
    if unknown := next((each for each in given if each not in ROOMS), None):
        raise CredfleetError(
            code="unknown-room",
            place="--rooms",
            problem=f"there is no room {unknown}",
            fix=f"name some of {', '.join(ROOMS)}, with commas between",
        )
    return given


def start(folder: Path, wanted: Wanted, *, here: bool) -> CommandResult:
    """Write a project, or, with `here`, its missing files.

    Raises CredfleetError, before anything is written: `folder-not-empty`, `not-python`,
    `no-secrets-provider`, `no-cluster`; Unreadable for a Pulumi.yaml that cannot be read.
    """
    signs_in_at = _cloud_of_the_key(wanted)
    ground = _existing(folder) if here and (folder / _PROJECT).is_file() else _new(folder, here=here)
    written: list[str] = []
    kept: list[str] = []
    for group in _files(ground, wanted, signs_in_at):
        there = [name for name in group if os.path.lexists(ground.folder / name)]
        kept += there
        for name, text in group.items() if not there else ():
            _write(ground.folder / name, text)
            written.append(name)
    lines: list[Part] = [f"+ {ground.folder / name}" for name in written]
    lines += [f"· kept as it is: {ground.folder / name}" for name in kept]
    if steps := tuple(_next(ground, wanted, kept)):
        lines.append(Commands("Next", steps))
    return CommandResult({"project": ground.name, "written": written, "kept": kept}, lines)


def _cloud_of_the_key(wanted: Wanted) -> str:
    """Return the cloud whose key encrypts stack prod, empty for a passphrase."""
    scheme = wanted.secrets_provider.partition(":")[0]
    if scheme not in _SIGNS_IN_AT or wanted.secrets_provider.startswith(f"{PASSPHRASE}:"):
        raise CredfleetError(
            code="no-secrets-provider",
            place="--secrets-provider",
            problem="it names no secrets provider",
            fix="give passphrase, awskms://…, azurekeyvault://… or gcpkms://…",
        )
    if wanted.cluster is None and scheme != PASSPHRASE:
        raise CredfleetError(
            code="no-cluster",
            place="--secrets-provider",
            problem="it is for a stack on a cluster of yours, and no cluster is named",
            fix="add --cluster CONTEXT, or leave --secrets-provider out",
        )
    return _SIGNS_IN_AT[scheme]


def _new(folder: Path, *, here: bool) -> _Ground:
    is_taken = folder.exists() and (
        not folder.is_dir() or any(each.name != ".git" for each in folder.iterdir())
    )
    if is_taken and not here:
        into = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
        raise CredfleetError(
            code="folder-not-empty",
            place=str(folder.resolve()),
            problem="something is there, and a new project is written to an empty folder",
            fix=f"name another folder, or add to what is there: {into}credfleet init --here",
        )
    name = _IN_A_NAME.sub("-", folder.resolve().name).strip("-.")[:_LONGEST_NAME] or "fleet"
    return _Ground(folder, name, is_new=True)


def _existing(folder: Path) -> _Ground:
    path = folder / _PROJECT
    project: dict[str, Any] = load_yaml(path)
    runtime = project.get("runtime")
    language = runtime.get("name") if isinstance(runtime, dict) else runtime
    if language != "python":
        raise CredfleetError(
            code="not-python",
            place=str(path),
            problem=f"its programs are written for {language}, and credfleet's components are for Python",
            fix="make a project beside it: credfleet init DIR",
        )
    name = _IN_A_NAME.sub("-", str(project.get("name") or "fleet"))
    return _Ground(folder, name, str(project.get("main") or "."), str(project.get("stackConfigDir") or "."))


def _files(ground: _Ground, wanted: Wanted, signs_in_at: str) -> Iterable[Mapping[str, str]]:
    """Return the rendered files of a project, grouped by dependence on each other."""
    crypter = PassphraseCrypter.new(PUBLIC_PASSPHRASE)
    known = asdict(wanted) | {
        "passphrase": PUBLIC_PASSPHRASE,
        "project": ground.name,
        "quoted": json.dumps,
        "requirement": _requirement(wanted.rooms),
        "salt": crypter.salt,
        "schema": os.path.relpath(_SCHEMA, os.path.normpath(ground.stack_files)),
        "secret": crypter.encrypt,
        "stack_schema": as_json(stack_file_schema()),
    }
    groups: dict[str, dict[str, str]] = {}
    for path in _workflows() if signs_in_at else ():
        name = str(path.relative_to(_HOME))
        groups[name] = {name: path.read_text(encoding="utf-8")}
    for template in _TEMPLATE.list_templates(["j2"]):
        name = template.removesuffix(".j2")
        if text := _TEMPLATE.get_template(template).render(known):
            groups.setdefault(_GOES_WITH.get(name, name), {})[ground.place(name)] = text
    return groups.values()


def _workflows() -> Iterator[Path]:
    """Yield this repository's workflows and their files, except those specific to its own code."""
    folder = _HOME / ".github"
    for path in sorted(
        [*folder.glob("workflows/*.yml"), *folder.glob("actions/*/*"), *folder.glob("scripts/*")]
    ):
        if path.name not in _OF_THIS_REPOSITORY:
            yield path


def _requirement(rooms: Sequence[str]) -> str:
    """Return the requirement of a project, from this installation's source: no index is asked for the name.

    Pull secrets need the SDK of Google Cloud; the other rooms start without any cloud's. If pip recorded no
    source (PEP 610), the package came from an index, and its version is required.
    """
    name = "credfleet[gcp]" if "pullSecrets" in rooms else "credfleet"
    told = json.loads(distribution("credfleet").read_text("direct_url.json") or "{}")
    digest = (told.get("archive_info") or {}).get("hash", "").replace("sha256=", "#sha256=")
    return f"{name} @ {told['url']}{digest}" if told else f"{name}=={version('credfleet')}"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        path.chmod(0o755 if text.startswith("#!") else path.stat().st_mode)
    except OSError as error:
        raise CredfleetError(
            code="not-written",
            place=str(path),
            problem=f"it cannot be written ({error.strerror}); what comes before it in a project is there",
            fix="fix that, then add what is lacking, in the folder: credfleet init --here",
        ) from None


def _next(ground: _Ground, wanted: Wanted, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    def lacks(name: str, word: str) -> bool:
        return name in kept and word not in (ground.folder / name).read_text("utf-8", "replace")

    if lacks("requirements.txt", "credfleet"):
        line = shlex.quote(_requirement(wanted.rooms))
        yield f"echo {line} >> requirements.txt", "your program needs it"
    if "pullSecrets" in wanted.rooms and [*review_sdk("gcp", "pullSecrets")]:
        file = shlex.quote(str(ground.folder / "requirements.txt"))
        yield f"pip install -r {file}", "pull secrets need the SDK of Google Cloud"
    if ground.is_new:
        into = "" if ground.folder == Path() else f"cd {shlex.quote(str(ground.folder))} && "
        yield f"{into}make up", "a real API server, everything declared, accounts claimed"
    if lacks(ground.place(_PROGRAM), "credfleet"):
        declared = 'in your program, and: Fleet("fleet", Settings.load()).export()'
        yield "from credfleet import Fleet, Settings", declared
    if lacks(".gitignore", ".sandbox"):
        yield "echo .sandbox/ >> .gitignore", "the sandbox keeps its state there"
    if wanted.cluster is not None:
        provider = shlex.quote(wanted.secrets_provider)
        yield f"pulumi stack init prod --secrets-provider {provider}", "its key; needs the Pulumi CLI"
        if wanted.secrets_provider != PASSPHRASE:
            setup = "credfleet bootstrap --stack prod --repo OWNER/REPO > setup.sh"
            yield setup, "what lets its workflows sign in; read it before you run it"
    elif not ground.is_new:
        yield "credfleet sandbox up", "stack dev on a real API server, with no cloud"
