"""Which members whoever declares them may not remove, rename, replace, retype or disown (decision 13)."""

from __future__ import annotations

from components.account_pool.model import Member, State


def blocked_reason(member: Member, *, allow_destroy: bool = False) -> str | None:
    """Tell why a member must stay as it is, or None when it may go. An owner's label alone does not block.

    allow_destroy: a stack for throw-away pools lets dirty members go without cleaning.
    """
    if member.tokens:
        owner = f" by tenant {member.tenant}" if member.tenant else ""
        return f"it is claimed{owner}; release the claim first"
    if member.state == State.CLEANING:
        return "it is being cleaned; wait until it is done"
    if member.state == State.DIRTY and not allow_destroy:
        return (
            "its last tenant's resources may still be in it; clean it, or run `credfleet pool decommission`"
        )
    return None
