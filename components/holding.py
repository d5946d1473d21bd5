"""Under which name a running program holds accounts, and owns what it writes."""

from __future__ import annotations

import pulumi

from components.naming import HELD_AS, stack_holder


def current_holder(tenant: str, slot: str = "0") -> str:
    """Return who holds a claim of the running program: its stack, or the one it came of, for a slot.

    tenant: or the section of the configuration, and slot: its entry, for what else it writes.
    """
    stack = pulumi.Config("credfleet").get(HELD_AS) or pulumi.get_stack()
    return stack_holder(pulumi.get_organization(), pulumi.get_project(), stack, tenant, slot)


def takes_over() -> bool:
    """Whether the stack says that what is held in its name is its own, whatever state claimed it."""
    return pulumi.Config("credfleet").get(HELD_AS) == pulumi.get_stack()


holder_here = current_holder  # its former name, for one release
