"""A secret that is there before the stack has made it: somebody else's, which is never taken over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from components.errors import PullSecretError
from components.import_command import Importer
from components.secret_manager import secret_name


@dataclass(frozen=True, slots=True)
class Existing:
    """A secret that was found, by its id; labels: what says whose it is."""

    project: str
    secret_id: str
    labels: Mapping[str, str]

    def refusal(self, resource: Importer) -> PullSecretError:
        """Say that it is not overwritten, whose it is, and how to make it the stack's resource."""
        name = secret_name(self.project, self.secret_id)
        owner = ", ".join(f"{key}={value}" for key, value in sorted(self.labels.items())) or "none"
        return PullSecretError(
            code="secret-taken",
            place=name,
            cause=f"it exists and this stack has not made it, so it is not overwritten; its labels: {owner}",
            mend=f"delete it if nobody reads it, or make it this stack's: {resource.command(name)}",
        )
