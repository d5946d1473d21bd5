"""When the genuine provider asks Google again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulumi_sandbox.providers.rest import Loss, Method, Retries, ServiceRefusedError

_STATUSES: Final = frozenset({429, 500, 502, 503})
_DELAYS: Final = (0.5, 1, 2, 4, 8, 10, 10, 10)
"""The genuine provider's steps; it goes on for twenty minutes, which nobody waits for in a sandbox."""


def _after_refusal(refusal: ServiceRefusedError) -> Sequence[float]:
    return _DELAYS if refusal.status in _STATUSES else ()


def _after_loss(method: Method, loss: Loss) -> Sequence[float]:
    """Repeat what is lost, but after a connection closed without an answer only readings.

    It hides whether the request was served, so a version may have been added that nobody recorded.
    """
    repeated = loss in ("reset", "timeout") or (loss == "closed" and method == "GET")
    return _DELAYS if repeated else ()


RETRIES: Final = Retries(_after_refusal, _after_loss)
