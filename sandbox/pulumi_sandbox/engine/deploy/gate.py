"""A lock for planning: many plan side by side, one may plan alone."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Gate:
    """Whoever is in alone sees no half-made plans; whoever waits to be alone keeps newcomers out."""

    def __init__(self) -> None:
        self._inside = 0
        self._alone = asyncio.Lock()
        self._empty = asyncio.Event()
        self._empty.set()

    async def enter(self) -> None:
        """Come in together with others."""
        if self._alone.locked():
            async with self._alone:
                self._come()
        else:
            self._come()

    def _come(self) -> None:
        self._inside += 1
        self._empty.clear()

    def leave(self) -> None:
        """Go out again."""
        self._inside -= 1
        if not self._inside:
            self._empty.set()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Hold the gate with nobody else inside."""
        async with self._alone:
            await self._empty.wait()
            yield
