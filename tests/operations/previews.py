"""Makes previews, as the CLI's digest, small enough to read."""

import json
from typing import Any

FLEET = "credfleet:index:Fleet"
CLAIM = "pulumi-python:dynamic/credfleet:AccountClaim"
SECRET = "kubernetes:core/v1:Secret"
NAMESPACE = "kubernetes:core/v1:Namespace"


def urn(name: str, *types: str) -> str:
    return f"urn:pulumi:dev::credfleet::{'$'.join((FLEET, *types))}::{name}"


def tenants(name: str) -> str:
    return urn(name, "credfleet:index:TenantAccounts")


def step(op: str, name: str, *types: str, parent: str = "", **more: Any) -> dict[str, Any]:
    """Return a step; `old` and `new` are inputs, and leave out what its op has not."""
    full = urn(name, *types)
    states = {
        f"{which}State": {"urn": full, "type": types[-1], "parent": parent, "inputs": more.pop(which, {})}
        for which, absent in (("old", "create"), ("new", "delete"))
        if op != absent
    }
    return {"op": op, "urn": full, "detailedDiff": None, **states, **more}


def claim(op: str, tenant: str, slot: str, **more: Any) -> dict[str, Any]:
    return step(
        op,
        f"{tenant}/{slot}",
        "credfleet:index:TenantAccounts",
        CLAIM,
        parent=tenants(tenant),
        **{"new": {"type": "aws"}, **more},
    )


def said(message: str, severity: str = "info", about: str = "") -> dict[str, Any]:
    return {"message": f"{message}\n", "severity": severity} | ({"urn": about} if about else {})


def digest(*steps: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"steps": steps, "changeSummary": {"same": 3}, **more}).encode()
