"""`credfleet stores explain`: who reads which credential through a store, as files say; nothing is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from components.secret_stores.explain import Explanation, explain
from components.secret_stores.model import SecretStore
from operations.cli.answer import print_json, print_table
from operations.stores.documents import read


def show(files: Sequence[str], callers: Sequence[str], *, as_json: bool) -> None:
    """Tell what each store comes to for each caller; raises as `store_documents.read`.

    Without callers a store is validated as ESO does: from its own namespace, or from none.
    """
    documents = read(files)
    told = [
        explain(store, caller, documents.around)
        for store in documents.stores
        for caller in dict.fromkeys(callers) or [store.namespace if isinstance(store, SecretStore) else ""]
    ]
    if as_json:
        print_json([_as_json(each) for each in told])
        return
    if not told:
        typer.echo("The files hold no store.")
        return
    columns = ("Store", "Caller", "Ready", "Provider", "Reads", "Why")
    print_table("Secret stores", columns, [_row(each) for each in told])


def _as_json(each: Explanation) -> dict[str, Any]:
    return {
        "store": each.store,
        "caller": each.caller,
        "admitted": each.admitted,
        "provider": each.provider,
        "referent": each.referent,
        "selectors": dict(each.selectors),
        "ready": str(each.ready),
        "reason": each.reason,
    }


def _row(each: Explanation) -> tuple[str, ...]:
    reads = ", ".join(f"{path} in {namespace}" for path, namespace in each.selectors.items())
    return (
        each.store,
        each.caller or "(none)",
        str(each.ready),
        each.provider or "",
        f"{reads} (by caller)" if each.referent and reads else reads,
        each.reason or "",
    )
