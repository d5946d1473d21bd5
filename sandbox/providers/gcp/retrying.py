"""When the genuine provider asks Google again."""

from __future__ import annotations

from typing import Final

from sandbox.providers.rest import Loss, Method, RefusedError, Retries

_STATUSES: Final = frozenset({429, 500, 502, 503})


def _is_temporary(refusal: RefusedError) -> bool:
    return refusal.status in _STATUSES


def _may_be_repeated(method: Method, loss: Loss) -> bool:
    """Tell whether a request without an answer is made again.

    A connection closed before the answer hides whether the request was served; only reads are repeated then,
    so a version may have been added that nobody recorded.
    """
    return loss in ("reset", "timeout") or (loss == "closed" and method == "GET")


RETRIES: Final = Retries(
    delays=(0.5, 1, 2, 4, 8, 10, 10, 10),
    refusals=_is_temporary,
    losses=_may_be_repeated,
)
"""The genuine provider's steps; it goes on for twenty minutes, which nobody waits for in a sandbox."""
