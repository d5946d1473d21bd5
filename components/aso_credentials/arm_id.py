"""What is read in ids of Azure: the subscription of one, whether it is a scope of roles."""

from __future__ import annotations

import re
from typing import Final

from components.naming import GUID

GROUP: Final = r"[-\w.()]{0,89}[-\w()]"
"""A resource group's name, as a pattern."""

SCOPE_FIX: Final = (
    "write /subscriptions/ID, with the resource group behind it where that is enough, or"
    " /providers/Microsoft.Management/managementGroups/NAME"
)
_SEGMENT: Final = r"(?!\.\.?(?:/|$))[^/\s<>%&?#\\]+"
_SCOPE: Final = re.compile(
    rf"/subscriptions/{GUID}(/resourceGroups/(?u:{GROUP}))?(/providers/{_SEGMENT}(/{_SEGMENT}/{_SEGMENT})+)*"
    r"|/providers/Microsoft\.Management/managementGroups/[-\w.()]{1,90}(?<!\.)",
    re.IGNORECASE | re.ASCII,
)


def is_scope(text: str) -> bool:
    """Whether a role is assigned there: in a subscription, in what is in one, or in a management group.

    Never in the whole tenant, which holds subscriptions of others, now or later.
    """
    return _SCOPE.fullmatch(text) is not None


def subscription_of(arm_id: str) -> str | None:
    """Return the subscription in an ARM id, None for a tenant-level one. Raises ValueError for no ARM id."""
    parts = arm_id.removeprefix("/").removesuffix("/").split("/")
    if not arm_id.startswith("/") or len(parts) % 2 or not all(parts):
        raise ValueError("an ARM id is a slash and pairs of names: /subscriptions/ID/resourceGroups/NAME")
    match parts[0].lower():
        case "subscriptions":
            return parts[1]
        case "providers":
            return None
        case _:
            raise ValueError("an ARM id begins with /subscriptions/ or /providers/")
