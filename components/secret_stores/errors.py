"""The errors of carrying a consumer out. None ever holds a value of a secret."""

from __future__ import annotations

from components.errors import CredfleetError


class StoreError(CredfleetError):
    """What keeps a consumer from reading from its store, or pushing to it.

    Codes: refused (by the rule of references, before any call); no-client; not-allowed; unreachable;
    misconfigured; absent; taken; contended; not-ready.
    """
