"""Resources that had other names: the engine takes what the state has under those for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pulumi


def aliases(names: Iterable[str], form: str = "{}") -> Sequence[pulumi.Alias]:
    """Return the aliases of a resource that had other names below the same parent. form: of its names."""
    return [pulumi.Alias(name=form.format(name)) for name in names]


def names_of(holders: Iterable[str]) -> Sequence[str]:
    """Return the claims that were held so, as `tenant/slot`.

    All are needed: the engine lets children follow an alias of their parent only where that is followed now.
    """
    return ["/".join(each.rsplit("/", 2)[1:]) for each in holders]
