"""All that a command on a stack needs: project, stack file, encryption, state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.program_config import (
    Fault,
    ProgramConfig,
    program_config,
    read_config,
)
from pulumi_sandbox.engine.project.project_file import NAME, Project
from pulumi_sandbox.engine.project.stack_file import StackFile
from pulumi_sandbox.engine.state.store import Store, state_path
from pulumi_sandbox.errors import SandboxError


@dataclass(frozen=True, slots=True)
class StackAtRest:
    """What the files say of a stack, whoever encrypts it; no key is needed."""

    project: Project
    stack: str
    stack_file: StackFile

    @classmethod
    def find(cls, project_dir: Path, stack: str, *, backend_dir: Path, shut_in: bool = False) -> StackAtRest:
        """Read the files. shut_in: nobody trusts them, so that none may be a link to elsewhere, or lie there.

        Raises SandboxError `stack-name-invalid`; `stack-unknown`, when neither configuration nor state has
        this name; `file-elsewhere`; and what `Project.load` and `StackFile.load` raise.
        """
        if not NAME.fullmatch(stack):
            raise SandboxError(
                code="stack-name-invalid",
                place=f"stack {stack!r}",
                cause="a stack's name is 1 to 100 letters, digits, hyphens, underscores and periods",
                mend="give its name alone, as in Pulumi.NAME.yaml",
            )
        within = project_dir if shut_in else None
        project = Project.load(_own(project_dir / "Pulumi.yaml", within).parent)
        stack_file = StackFile.load(_own(project.stack_files / f"Pulumi.{stack}.yaml", within), project.name)
        if not stack_file.path.exists() and not state_path(backend_dir, project.name, stack).exists():
            raise SandboxError(
                code="stack-unknown",
                place=str(stack_file.path),
                cause=f"there is no stack {stack}: neither this file nor a state of that name",
                mend="correct the name, or create the file (it may be empty)",
            )
        return cls(project, stack, stack_file)

    def unlock(self, passphrase: str | None = None, public: Path | None = None) -> PassphraseCrypter:
        """Return what encrypts and decrypts its values; takes about 0.3 s.

        passphrase: absent means that of the environment. public: the file of a passphrase that anybody may
        read, where the environment names none.
        Raises SandboxError `stack-unsupported`, `salt-unreadable` where values are encrypted and no salt is
        there; and as `find_passphrase` and `PassphraseCrypter.open`.
        """
        self.stack_file.refuse_unsupported()
        if passphrase is None:
            passphrase = find_passphrase(self.stack, public)
        salt = self.stack_file.salt
        if not salt and (sealed := self.read()[0].sealed):
            raise SandboxError(
                code="salt-unreadable",
                place="encryptionsalt",
                cause=f"it is missing, and {len(sealed)} values are encrypted under one",
                mend="restore the line from version control; nothing encrypted can be read without it",
            )
        return PassphraseCrypter.open(salt, passphrase) if salt else PassphraseCrypter.new(passphrase)

    def read(self, crypter: PassphraseCrypter | None = None) -> tuple[ProgramConfig, tuple[Fault, ...]]:
        """Return what a program would be given, and what is wrong with it; without a crypter, sealed."""
        return read_config(self.project, self.stack_file, crypter)


def _own(file: Path, within: Path | None) -> Path:
    if within and not file.resolve().is_relative_to(within.resolve()):
        raise SandboxError(
            code="file-elsewhere",
            place=str(file),
            cause="it leads out of the project, and whoever wrote that is not to choose what is read",
            mend="put the file itself there",
        )
    return file


@dataclass(frozen=True, slots=True)
class Workspace(StackAtRest):
    """A stack of a project, with its key and its state."""

    crypter: PassphraseCrypter
    store: Store

    @classmethod
    def open(
        cls,
        project_dir: Path,
        stack: str,
        *,
        backend_dir: Path,
        passphrase: str | None = None,
        public_passphrase: Path | None = None,
    ) -> Workspace:
        """Open a stack; takes about 0.3 s, for the key; nothing is written.

        Raises as `StackAtRest.find` and `StackAtRest.unlock`.
        """
        found = StackAtRest.find(project_dir, stack, backend_dir=backend_dir)
        crypter = found.unlock(passphrase, public_passphrase)
        store = Store(backend_dir, found.project.name, stack, crypter)
        return cls(found.project, stack, found.stack_file, crypter, store)

    def beside(self, stack: str, stack_file: StackFile) -> Workspace:
        """Return another stack of the project, encrypted with the same key."""
        store = self.store.beside(stack)
        return replace(self, stack=stack, stack_file=stack_file, store=store)

    def config(self) -> ProgramConfig:
        """Return what the program is given; raises what `program_config` does."""
        return program_config(self.project, self.stack_file, self.crypter)


def find_passphrase(
    stack: str, public: Path | None = None, environment: Mapping[str, str] = os.environ
) -> str:
    """Return the passphrase of a stack.

    It is what PULUMI_CONFIG_PASSPHRASE says, or what the file holds that PULUMI_CONFIG_PASSPHRASE_FILE names,
    or the public one.
    Raises SandboxError `passphrase-missing`.
    """
    passphrase = environment.get("PULUMI_CONFIG_PASSPHRASE")
    if passphrase is not None:
        return passphrase
    named = environment.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    path = Path(named) if named else public
    if path and path.is_file():
        return path.read_text(encoding="utf-8").strip()
    raise SandboxError(
        code="passphrase-missing",
        place=str(path) if named else f"stack {stack}",
        cause="this file is not there" if named else "its secrets are encrypted, and no passphrase is given",
        mend="set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE to a file that holds it",
    )


def find_backend(default: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the backend: that of PULUMI_BACKEND_URL (`file://…`), else the default.

    Raises SandboxError `backend-unsupported`, for a URL of any other kind.
    """
    url = environment.get("PULUMI_BACKEND_URL")
    if not url:
        return default
    parts = urlsplit(url)
    if parts.scheme != "file":
        raise SandboxError(
            code="backend-unsupported",
            place="PULUMI_BACKEND_URL",
            cause=f"the embedded engine keeps states in directories, not in {parts.scheme or 'this'}",
            mend="set it to file:///PATH, or use the Pulumi CLI",
        )
    return Path(f"{parts.netloc}{parts.path}").expanduser().absolute()
