"""How the Secrets of accounts are called that tenants bring along themselves.

The name is the account's, not its tenant's: of two that bring one account, the API server refuses the
second, though neither may see what is in the pool.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from components.account_pool.core.identity import cloud_account
from components.account_pool.core.model import account_key

BROUGHT_NAME: Final = "brought-"
"""What they begin with, so that none takes the name of an account that a stack will declare."""


def brought_name(account_type: str, account_id: str) -> str:
    """Return the name of the Secret of an account."""
    return _named(*cloud_account(account_type, account_id))


def former_name(tenant: str, account_type: str, account_id: str) -> str:
    """Return the name that a tenant's account got from earlier versions."""
    return _named(tenant, account_type, account_key(account_id))


def _named(*parts: str) -> str:
    return BROUGHT_NAME + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]
