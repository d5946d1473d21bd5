"""What a shell is offered for the option --stack. Imports next to nothing, since a person waits for it."""

from __future__ import annotations

from pathlib import Path


def stacks(incomplete: str) -> list[str]:
    """Return the stacks of the project around here."""
    here = Path.cwd()
    project = next((each for each in (here, *here.parents) if (each / "Pulumi.yaml").is_file()), here)
    names = (each.name.split(".", 1)[1].removesuffix(".yaml") for each in project.glob("Pulumi.*.yaml"))
    return sorted(name for name in names if name.startswith(incomplete))
