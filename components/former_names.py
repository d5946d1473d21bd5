"""Resources that had other names: the engine takes what the state has under those for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pulumi


def known_as(name: str, former: Iterable[str]) -> pulumi.ResourceOptions:
    """Return the options of a resource that had other names, and of all below it that is named after it.

    Each has aliases of its own: those of a parent count for its children only until the parent was updated.
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
    """Return the claims that were held so, as `tenant/slot`."""
    return ["/".join(each.rsplit("/", 2)[1:]) for each in holders]
