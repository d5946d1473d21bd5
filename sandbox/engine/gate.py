"""A lock for planning: many plan side by side, one may plan alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Gate:
    """Whoever is in alone sees no half-made plans; whoever waits to be alone keeps newcomers out."""

    def __init__(self) -> None:
        """Nobody is in."""
        self._inside = 0
        self._alone = asyncio.Lock()
        self._empty = asyncio.Condition()

    @asynccontextmanager
    async def shared(self) -> AsyncGenerator[None]:
        """Be inside together with others."""
        async with self._alone:
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            async with self._empty:
                self._empty.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Be inside with nobody else."""
        async with self._alone:
            async with self._empty:
                await self._empty.wait_for(lambda: not self._inside)
            yield
