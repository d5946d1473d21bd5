"""Where this project keeps what belongs to its sandbox, its policies and its stacks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from components.errors import CredfleetError
from operations.stack.at_rest import StackAtRest, find_backend
from operations.stack.passphrase import find_passphrase


class Folders:
    """The folder of a Pulumi project (absolute), and the places below it.

    Removing `sandbox` forgets everything.
    """

    def __init__(self, project: Path) -> None:
        self.project = project
        self.sandbox = project / ".sandbox"
        self.control_plane = self.sandbox / "control-plane"
        self.clouds = self.sandbox / "clouds"  # what cloud services' emulators keep, and their certificate
        self.backend = self.sandbox / "backend"  # in the layout of the Pulumi CLI's file backend
        self.pulumi_home = self.sandbox / "pulumi"  # PULUMI_HOME: there the CLI finds every provider
        self.report = self.sandbox / "report.html"
        self.dev_passphrase = project / "stacks" / "dev" / "passphrase"  # public on purpose

    @classmethod
    def find(cls, start: Path) -> Folders:
        """Return the folders of the project that `start` lies in, as the Pulumi CLI finds it.

        Raises CredfleetError `no-project` when there is none.
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
        """Return the file that remembers which cluster the resources of a stack are on."""
        return self.sandbox / f"{stack}.cluster.json"

    @property
    def policy_packs(self) -> tuple[Path, ...]:
        """The project's own policy pack, if it has one."""
        pack = self.project / "policies"
        return (pack,) if (pack / "PulumiPolicy.yaml").is_file() else ()

    def policy_config(self, stack: str) -> Path | None:
        """Return what a stack's environment says to the project's own policy pack, if anything."""
        config = self.project / "policies" / "config" / f"{stack}.json"
        return config if config.is_file() else None

    def public_passphrase(self, stack: str) -> Path | None:
        """Return the file of a stack's passphrase if anybody may read it: no stack's but that of `dev`."""
        return self.dev_passphrase if stack == "dev" else None

    def is_public_given(self, environment: Mapping[str, str]) -> bool:
        """Whether the passphrase that the environment gives is that of stack `dev`, wherever it is from."""
        try:
            given = find_passphrase("dev", environment=environment)
        except CredfleetError:
            return False
        public = self.dev_passphrase
        return public.is_file() and given == public.read_text(encoding="utf-8").strip()

    def existing(self, stack: str) -> Path:
        """Return the file of what the sandbox's cluster has before the first update of a stack, if any."""
        return self.project / "stacks" / stack / "existing.yaml"


def stack_of(folders: Folders, stack: str, environment: Mapping[str, str] = os.environ) -> StackAtRest:
    """Read what the files say of a stack of the project; its state is that of PULUMI_BACKEND_URL, if named.

    Raises CredfleetError as `StackAtRest.find`.
    """
    backend = find_backend(folders.backend, environment)
    return StackAtRest.find(folders.project, stack, backend_dir=backend)


def stack_here(stack: str) -> StackAtRest:
    """Read what the files say of a stack of the project here; raises as `Folders.find` and `stack_of`."""
    return stack_of(Folders.find(Path.cwd()), stack)
