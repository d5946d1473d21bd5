"""Holder ids and owners of a program, and former names of its resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pulumi

from components.naming import HELD_AS, stack_holder


def current_holder(tenant: str, slot: str = "0") -> str:
    """Return the holder id of the stack, or of `credfleet:heldAs`, for a tenant and slot.

    For other objects, `tenant` is the section of the configuration, and `slot` its entry.
    """
    stack = pulumi.Config("credfleet").get(HELD_AS) or pulumi.get_stack()
    return stack_holder(pulumi.get_organization(), pulumi.get_project(), stack, tenant, slot)


def takes_over() -> bool:
    """Return whether the stack takes over what is held in its name, whatever state claimed it."""
    return pulumi.Config("credfleet").get(HELD_AS) == pulumi.get_stack()


def known_as(name: str, former: Iterable[str]) -> pulumi.ResourceOptions:
    """Return options with aliases for a renamed resource, and for its descendants that are named after it.

    Each gets its own aliases: a child inherits those of its parent only until the parent was updated.
    """
    names = [*former]

    def aliased(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        rest = args.name.removeprefix(name)
        if not args.name.startswith(name) or rest[:1] not in ("", "-", "/"):
            return None
        aliases = [pulumi.Alias(name=f"{each}{rest}") for each in names]
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(aliases=aliases))
        return pulumi.ResourceTransformationResult(args.props, opts)

    return pulumi.ResourceOptions(transformations=[aliased] if names else None)


def names_of(holders: Iterable[str]) -> Sequence[str]:
    """Return the claims of these holder ids as `tenant/slot`."""
    return ["/".join(each.rsplit("/", 2)[1:]) for each in holders]


holder_here = current_holder  # former name, kept for one release
