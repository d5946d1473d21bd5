"""Clients are imported where they are used, by one thread at a time.

They import each other in circles. Two threads of a provider's process that enter such a circle at different
ends would wait for each other, and Python rather hands one of them a module that is not whole yet.
"""

from __future__ import annotations

from threading import RLock
from typing import Final

IMPORT_LOCK: Final = RLock()
"""Held while a client is imported."""
