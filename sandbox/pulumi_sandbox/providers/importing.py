"""How clients of servers are imported, where calls come from many threads."""

from importlib import import_module
from threading import Lock
from typing import Final

_ALONE: Final = Lock()


def import_alone(*clients: str) -> None:
    """Import clients one after the other.

    Their modules import each other in circles: two threads that import them at once wait for each other, or
    one finds half a module.
    """
    with _ALONE:
        for client in clients:
            import_module(client)
