"""Waiting inside a provider, so that it ends when the run is being stopped."""

from __future__ import annotations

import threading

from pulumi_sandbox.errors import SandboxError


class Patience:
    """All waits of one provider; one cancellation ends them all, the later ones too."""

    def __init__(self, place: str) -> None:
        """Take the name of what is waited for."""
        self._place = place
        self._stopped = threading.Event()

    def wait(self, seconds: float) -> None:
        """Wait so long.

        Raises SandboxError `cancelled`, when the run is being stopped.
        """
        if self._stopped.wait(seconds):
            raise SandboxError(
                code="cancelled",
                place=self._place,
                cause="the run is being stopped while this service is waited for",
                mend="run again: what was written so far is recorded",
            )

    def cancel(self) -> None:
        """End every wait with an error."""
        self._stopped.set()
