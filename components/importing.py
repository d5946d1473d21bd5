"""Lock for lazy imports of client libraries: one thread imports at a time.

These libraries have import cycles. If two threads entered a cycle at different modules, they could deadlock,
or Python could hand one of them a partially initialized module.
"""

from __future__ import annotations

from threading import RLock
from typing import Final

IMPORT_LOCK: Final = RLock()
"""Held during the import of a client library."""
