"""A stack of the program under the genuine Pulumi CLI, on the tests' API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.fleet_project import FleetProject, Ran

ACCOUNTS = tuple(f"aws-{n}" for n in range(1, 5))


@dataclass(frozen=True)
class SlotStack:
    """A stack whose tenants have a claim and a copy in each of their slots."""

    project: FleetProject
    held_as: Mapping[str, str] = field(default_factory=dict[str, str])

    def declare(
        self,
        accounts: int,
        tenants: Mapping[str, Sequence[str]],
        *,
        required: Sequence[str] = (),
        services: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the stack's file. tenants: name → slots. required: tenants whose claims are."""
        names = ACCOUNTS[:accounts]
        self.project.configure(
            credentials={
                "service": '{"user":"u","password":"sentinel-s"}',
                **{name: f'{{"secretAccessKey":"sentinel-{name}"}}' for name in names},
            },
            tenants={
                tenant: {
                    "namespace": f"{self.project.pool}-{tenant}",
                    "accounts": {
                        slot: {
                            "type": "aws",
                            "deliverTo": {"name": "account"},
                            **({"required": True} if tenant in required else {}),
                        }
                        for slot in slots
                    },
                }
                for tenant, slots in tenants.items()
            },
            pool={
                "allowDestroy": True,
                "members": {
                    name: {"type": "aws", "accountId": f"{n:012}", "credentialsFrom": name}
                    for n, name in enumerate(names)
                },
            },
            services=services,
            further={"credfleet:heldAs": self.held_as["heldAs"]} if self.held_as else None,
        )

    def pulumi(self, *words: str) -> Ran:
        """Run a command of the CLI."""
        return self.project.pulumi(*words)

    def preview(self, *words: str) -> Ran:
        """Preview."""
        return self.pulumi("preview", *words)

    def up(self, *words: str) -> Ran:
        """Update, after a preview."""
        return self.pulumi("up", "--yes", *words)

    def renamed(self, name: str) -> SlotStack:
        """Rename the stack."""
        self.pulumi("stack", "rename", name).quiet()
        return replace(self, project=replace(self.project, stack=name))
