"""The locations of a project's sandbox, policies and stacks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from components.errors import CredfleetError
from operations.stack.at_rest import StackAtRest, find_backend
from operations.stack.passphrase import find_passphrase


class Folders:
    """The folder of a Pulumi project (absolute), and the paths in it.

    Removing `sandbox` deletes all local state.
    """

    def __init__(self, project: Path) -> None:
        self.project = project
        self.sandbox = project / ".sandbox"
        self.control_plane = self.sandbox / "control-plane"
        self.clouds = self.sandbox / "clouds"  # data and certificate of the cloud emulators
        self.backend = self.sandbox / "backend"  # in the layout of the Pulumi CLI's file backend
        self.pulumi_home = self.sandbox / "pulumi"  # PULUMI_HOME, where the CLI finds every provider
        self.report = self.sandbox / "report.html"
        self.dev_passphrase = project / "stacks" / "dev" / "passphrase"  # public on purpose

    @classmethod
    def find(cls, start: Path) -> Folders:
        """Return the folders of the project that contains `start`, found as the Pulumi CLI does.

        Raises CredfleetError `no-project` if there is none.
        """
        here = start.resolve()
        for folder in (here, *here.parents):
            if (folder / "Pulumi.yaml").is_file():
                return cls(folder)
        raise CredfleetError(
            code="no-project",
            place=str(here),
            problem="neither this folder nor one above it has a Pulumi.yaml",
            fix="change to the checkout of the project",
        )

    def clusters(self, stack: str) -> Path:
        """Return the file that records the cluster of a stack's resources."""
        return self.sandbox / f"{stack}.cluster.json"

    @property
    def policy_packs(self) -> tuple[Path, ...]:
        """The project's own policy pack, if it has one."""
        pack = self.project / "policies"
        return (pack,) if (pack / "PulumiPolicy.yaml").is_file() else ()

    def policy_config(self, stack: str) -> Path | None:
        """Return the file that configures the project's policy pack for a stack, if it exists."""
        config = self.project / "policies" / "config" / f"{stack}.json"
        return config if config.is_file() else None

    def public_passphrase(self, stack: str) -> Path | None:
        """Return the file of a stack's passphrase if it is public, which only that of `dev` is."""
        return self.dev_passphrase if stack == "dev" else None

    def is_public_given(self, environment: Mapping[str, str]) -> bool:
        """Return whether the environment's passphrase is the public one of stack `dev`, from any source."""
        try:
            given = find_passphrase("dev", environment=environment)
        except CredfleetError:
            return False
        public = self.dev_passphrase
        return public.is_file() and given == public.read_text(encoding="utf-8").strip()

    def existing(self, stack: str) -> Path:
        """Return the file of objects that the sandbox's cluster has before a stack's first update."""
        return self.project / "stacks" / stack / "existing.yaml"


def stack_of(folders: Folders, stack: str, environment: Mapping[str, str] = os.environ) -> StackAtRest:
    """Read a stack of the project from its files; its state is in PULUMI_BACKEND_URL, if set.

    Raises CredfleetError as `StackAtRest.find`.
    """
    backend = find_backend(folders.backend, environment)
    return StackAtRest.find(folders.project, stack, backend_dir=backend)


def stack_here(stack: str) -> StackAtRest:
    """Read a stack of the project here from its files; raises as `Folders.find` and `stack_of`."""
    return stack_of(Folders.find(Path.cwd()), stack)
