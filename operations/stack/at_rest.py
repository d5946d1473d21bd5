"""A stack whose program is not running: reads its files, and decrypts them with its passphrase."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from components.errors import CredfleetError
from operations.stack.passphrase import PassphraseCrypter, find_passphrase, name_source
from operations.stack.project_file import NAME, Project
from operations.stack.stack_file import Fault, ProgramConfig, StackFile, read_config
from operations.stack.state import deployment_in


@dataclass(frozen=True, slots=True)
class StackAtRest:
    """The files of a stack, with any secrets provider; no key is needed.

    backend_dir: the folder of its backend; None if the backend is not a folder, such as a bucket.
    """

    project: Project
    stack: str
    stack_file: StackFile
    backend_dir: Path | None

    @classmethod
    def find(
        cls, project_dir: Path, stack: str, *, backend_dir: Path | None, shut_in: bool = False
    ) -> StackAtRest:
        """Read the files. shut_in: they are untrusted, so none can be outside the project, or link there.

        Raises CredfleetError `stack-name-invalid`; `stack-unknown` if neither configuration nor state has
        this name; `file-elsewhere`; and as `Project.load` and `StackFile.load`.
        """
        if not NAME.fullmatch(stack):
            raise CredfleetError(
                code="stack-name-invalid",
                place=f"stack {stack!r}",
                problem="a stack's name is 1 to 100 letters, digits, hyphens, underscores and periods",
                fix="give its name alone, as in Pulumi.NAME.yaml",
            )
        within = project_dir if shut_in else None
        project = Project.load(_own(project_dir / "Pulumi.yaml", within).parent)
        stack_file = StackFile.load(_own(project.stack_file(stack), within), project.name)
        found = cls(project, stack, stack_file, backend_dir)
        if not stack_file.path.exists() and not (
            backend_dir and any(map(Path.exists, _kept_as(found.state_file)))
        ):
            raise CredfleetError(
                code="stack-unknown",
                place=str(stack_file.path),
                problem=f"there is no stack {stack}: neither this file nor a state of that name",
                fix="correct the name, or create the file (it may be empty)",
            )
        return found

    @property
    def state_file(self) -> Path:
        """The file of its state in a file backend, whether it exists or not.

        Raises CredfleetError `backend-unsupported` if the backend is not a folder.
        """
        return (
            require_folder(self.backend_dir) / ".pulumi" / "stacks" / self.project.name / f"{self.stack}.json"
        )

    def unlock(self, passphrase: str | None = None, public: Path | None = None) -> PassphraseCrypter:
        """Return the crypter of its values; takes about 0.3 s.

        passphrase: by default that of the environment. public: the file of a public passphrase, if the
        environment has none. Raises CredfleetError `stack-unsupported`, `salt-unreadable` if values are
        encrypted without a salt; and as `find_passphrase` and `PassphraseCrypter.open`.
        """
        self.stack_file.refuse_unsupported()
        if passphrase is None:
            passphrase = find_passphrase(self.stack, public)
        salt = self.stack_file.salt
        if not salt and (sealed := self.read()[0].sealed):
            raise CredfleetError(
                code="salt-unreadable",
                place="encryptionsalt",
                problem=f"it is missing, and {len(sealed)} values are encrypted under one",
                fix="restore the line from version control; nothing encrypted can be read without it",
            )
        if not salt:
            return PassphraseCrypter.new(passphrase)
        return PassphraseCrypter.open(salt, passphrase, name_source(public))

    def read(self, decrypt: Callable[[str], str] | None = None) -> tuple[ProgramConfig, tuple[Fault, ...]]:
        """Return the configuration for a program, and its faults; values stay sealed without `decrypt`."""
        return read_config(self.project, self.stack_file, decrypt)

    def deployment(self) -> Mapping[str, Any]:
        """Return the deployment in its state, with secrets encrypted; empty if there is none.

        Raises CredfleetError as `state_file` and `deployment_in`.
        """
        found = next(filter(Path.exists, _kept_as(self.state_file)), None)
        fix = f"restore it from {self.state_file.name}.bak beside it"
        return deployment_in(found.read_bytes(), str(found), fix) if found else {}


def _kept_as(state_file: Path) -> tuple[Path, ...]:
    """Return the possible files of a state: compressed if PULUMI_DIY_BACKEND_GZIP is set."""
    return state_file, state_file.with_name(f"{state_file.name}.gz")


def _own(file: Path, within: Path | None) -> Path:
    if within and not file.resolve().is_relative_to(within.resolve()):
        raise CredfleetError(
            code="file-elsewhere",
            place=str(file),
            problem="it leads out of the project, and its writer must not choose what is read",
            fix="put the file itself there",
        )
    return file


def find_backend(default: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of the backend, from PULUMI_BACKEND_URL or the default; None if not a folder."""
    url = environment.get("PULUMI_BACKEND_URL")
    if not url:
        return default
    parts = urlsplit(url)
    return Path(f"{parts.netloc}{parts.path}").expanduser().absolute() if parts.scheme == "file" else None


def require_folder(backend: Path | None) -> Path:
    """Return the folder of a backend; raises CredfleetError `backend-unsupported` if it has none."""
    if backend is None:
        raise CredfleetError(
            code="backend-unsupported",
            place="PULUMI_BACKEND_URL",
            problem="it names no folder, and the sandbox keeps states in one",
            fix="run `unset PULUMI_BACKEND_URL`, then this again; the Pulumi CLI takes every backend",
        )
    return backend
