"""Which stack of which project is deployed, and what its program is given."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi_sandbox.engine.project.program_config import ProgramConfig
from pulumi_sandbox.protocol import urns

ORGANIZATION: Final = "organization"
"""What the CLI calls the organization of a stack in a file backend."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a deployment takes place: Pulumi.yaml is in `directory`, what is run in `program`."""

    project: str
    stack: str
    config: ProgramConfig
    directory: Path
    program: Path
    preview: bool

    @property
    def root(self) -> str:
        """The URN of the stack itself."""
        name = f"{self.project}-{self.stack}"
        return urns.make(self.stack, self.project, "", urns.ROOT_STACK_TYPE, name)
