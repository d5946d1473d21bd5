"""Where in the program a resource is declared, as the state says it: `project:///__main__.py#12`.

The rules are the genuine engine's: sandbox/docs/engine-facts.md, source positions.
"""

import os.path
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

_UNESCAPED: Final = "/$&+,:;=@~"


class Told(Protocol):
    """What an SDK tells of a place in a source file; line and column begin at 1, 0 is not known."""

    @property
    def uri(self) -> str:
        """The file."""
        ...

    @property
    def line(self) -> int:
        """The line in it."""
        ...

    @property
    def column(self) -> int:
        """The column in that."""
        ...


def source_position(told: Told, project: Path) -> str:
    """Return a place relative to the folder of Pulumi.yaml; empty where it is none in a file."""
    uri = urlsplit(told.uri)
    file = unquote(uri.path)
    if uri.scheme != "file" or not os.path.isabs(file) or told.line < 0 or told.column < 0:
        return ""
    column = f",{told.column}" if told.column else ""
    path = quote(os.path.relpath(file, project), safe=_UNESCAPED)
    return f"project:///{path}#{told.line}{column}"
