"""How the Secrets of accounts are called that tenants bring along themselves: the same each time."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from components.account_pool.core.model import account_key

BROUGHT_NAME: Final = "brought-"
"""What they begin with, so that nobody takes the name of an account that a stack is to declare."""


def brought_name(tenant: str, account_type: str, account_id: str) -> str:
    """Return the name of the Secret of a tenant's account."""
    digest = hashlib.sha256(json.dumps([tenant, account_type, account_key(account_id)]).encode())
    return BROUGHT_NAME + digest.hexdigest()[:20]
