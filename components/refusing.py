"""Hooks that refuse to make a resource, in a preview too, after a look at a cluster.

While the engine waits for a hook, every thread of the event loop's executor may wait in RegisterResource for
that answer. So looks have threads of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pulumi

_LOOKS: Final = ThreadPoolExecutor(4, thread_name_prefix="credfleet-hook")


def refusing(name: str, refuse: Callable[[pulumi.ResourceHookArgs], None]) -> pulumi.ResourceHook:
    """Return a hook around what raises RunError for a resource that must not be made, and may block."""

    async def look(args: pulumi.ResourceHookArgs) -> None:
        await asyncio.get_running_loop().run_in_executor(_LOOKS, refuse, args)

    return pulumi.ResourceHook(name, look, pulumi.ResourceHookOptions(on_dry_run=True))
