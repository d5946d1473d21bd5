"""A stack's file that declares nothing and does not say so: it was cut off, and would count as whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from components.config.places import locate
from components.documents import Unreadable, read_file
from components.errors import Problem
from components.stack_config.stack import NAMESPACE, Settings

_DECLARES_NOTHING: Final = frozenset(f"{NAMESPACE}{key}" for key in ("cluster", "credentials", "heldAs"))
SILENCE: Final = Problem(
    "configuration",
    f"the file has no key of {NAMESPACE}… that declares anything: the next update would delete all that the"
    " stack had",
    "restore it from version control; a stack that declares nothing says so: config: {}, or beside other keys"
    " credfleet:tenants: {}",
)


def declares(keys: Iterable[str]) -> bool:
    """Whether one of these full keys declares something, be it that there is nothing: `{}`."""
    return any(key.startswith(NAMESPACE) and key not in _DECLARES_NOTHING for key in keys)


def find_problems(settings: Settings, file: Path, project: str) -> Sequence[Problem]:
    """Refuse settings that declare nothing, unless the file that they are of says that there is nothing.

    Only the file tells: in the values, the defaults of Pulumi.yaml look like what is said.
    """
    if settings.tenants or settings.tenants_from or settings.account_pool or settings.sections:
        return ()
    if not file.is_file() or (said := _config(file)) == {}:
        return ()
    keys = map(str, said) if isinstance(said, dict) else ()
    full = (key if ":" in key else f"{project}:{key}" for key in keys)
    return () if declares(full) else locate([SILENCE], file)


def _config(file: Path) -> Any:
    """Return what a file has below `config`; of one that cannot be read nothing is said."""
    try:
        data = read_file(file).data
    except Unreadable:
        return {}
    return data.get("config") if isinstance(data, dict) else None
