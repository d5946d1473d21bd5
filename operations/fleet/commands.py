"""`credfleet fleet`: how all stacks of a project stand."""

from __future__ import annotations

from operations.cli.answer import Answer
from operations.cli.command import command, group

app = group("See all stacks of the project together.", "credfleet fleet status")


@command(
    app,
    "credfleet fleet status",
    "credfleet fleet status --output json",
    "PULUMI_BACKEND_URL=file:///srv/states credfleet fleet status",
)
def status() -> Answer:
    """Show each stack's tenants, accounts, last update, failures, and whether its files changed since.

    States and files alone are read: no key is used, no cluster is asked.

    Exit code 1 when a stack failed, or cannot be read.
    """
    from operations.fleet.status import fleet_status

    return fleet_status()
