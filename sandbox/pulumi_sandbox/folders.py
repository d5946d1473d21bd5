"""Where a project lies and where its sandbox keeps things: everything below `.sandbox` in the project."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pulumi_sandbox.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Folders:
    """A Pulumi project's folder (absolute) and the places of its sandbox."""

    project: Path

    @classmethod
    def find(cls, start: Path) -> Self:
        """Return the folders of the project that `start` lies in, as the Pulumi CLI finds it.

        Raises SandboxError `no-project` when there is none.
        """
        here = start.resolve()
        for folder in (here, *here.parents):
            if (folder / "Pulumi.yaml").is_file():
                return cls(folder)
        raise SandboxError(
            code="no-project",
            place=str(here),
            cause="neither this folder nor one above it has a Pulumi.yaml",
            mend="change to the checkout of the project",
        )

    @property
    def sandbox(self) -> Path:
        """The folder that holds all the others; removing it forgets everything."""
        return self.project / ".sandbox"

    @property
    def control_plane(self) -> Path:
        """State and logs of the API server."""
        return self.sandbox / "control-plane"

    @property
    def clouds(self) -> Path:
        """What the cloud services' stand-ins keep, their certificate and their logs."""
        return self.sandbox / "clouds"

    @property
    def backend(self) -> Path:
        """States of the stacks, in the layout of the Pulumi CLI's file backend."""
        return self.sandbox / "backend"

    def clusters(self, stack: str) -> Path:
        """Return the file that remembers which cluster the resources of a stack are on."""
        return self.sandbox / f"{stack}.cluster.json"
