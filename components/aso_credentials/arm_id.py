"""The one thing ASO reads in an id of Azure Resource Manager to guard a resource: its subscription."""

from __future__ import annotations


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
