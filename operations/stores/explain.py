"""`credfleet stores explain`: who reads which credential through a store, as files say; nothing is asked."""

from collections.abc import Sequence
from typing import Any

from components.secret_stores.explain import Explanation, explain
from components.secret_stores.model import SecretStore
from operations.cli.answer import Answer
from operations.cli.tables import Column, Table
from operations.stores.documents import read


def explained(files: Sequence[str], callers: Sequence[str]) -> Answer:
    """Return what each store comes to for each caller; raises as `documents.read`.

    Without callers a store is validated as ESO does: from its own namespace, or from none.
    """
    documents = read(files)
    told = [
        explain(store, caller, documents.around)
        for store in documents.stores
        for caller in dict.fromkeys(callers) or [store.namespace if isinstance(store, SecretStore) else ""]
    ]
    columns = (
        Column("Store", names=True),
        "Caller",
        "Ready",
        Column("Provider", leaves=2),
        Column("Reads", leaves=1),
        Column("Why", folds=True),
    )
    table = Table("Secret stores", columns, [_row(each) for each in told])
    return Answer([_as_document(each) for each in told], [table if told else "The files hold no store."])


def _as_document(each: Explanation) -> dict[str, Any]:
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
