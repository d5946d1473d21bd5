"""Reads what a pool's Events add up to, and moves the checkpoint; Events are asked for as metadata only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from components.account_pool.audit import COMPONENT
from components.account_pool.model import JsonObject
from components.connection import Connection, NoReply, Reply
from components.errors import ClusterError
from components.http_answers import Answer
from operations.pool.totals import KEPT, Totals

CHECKPOINT: Final = "credfleet-pool-metrics"
_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_EXPIRED: Final = 410
_UID: Final = "uid"
"""In the checkpoint: its own uid."""


@dataclass(frozen=True, slots=True)
class Read:
    """The checkpoint as it was read, None without one, and what it is with all Events since."""

    checkpoint: JsonObject | None
    before: Totals | None
    now: Totals


def _is_restored(checkpoint: JsonObject) -> bool:
    """Whether it came back from a backup: what Prometheus saw since would be told a second time."""
    uid = checkpoint["metadata"]["uid"]
    return (checkpoint.get("data") or {}).get(_UID, uid) != uid


class Counters:
    """The counters of one pool."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace

    def read(self, now: datetime) -> Read:
        """Return what was counted; where nobody counts yet, it begins now. Raises ClusterError."""
        found = self._ask("GET", f"configmaps/{CHECKPOINT}", Answer.ABSENT)
        body = None if found.answer is Answer.ABSENT else found.body
        before = None if body is None or _is_restored(body) else Totals.parse(body.get("data") or {})
        events, version = self._events()
        if before is not None:
            return Read(body, before, before.and_after(events, version, now))
        lost = body is not None and bool(body.get("data"))
        return Read(body, None, Totals(version, now, now, gaps=int(lost)))

    def fold(self, read: Read) -> None:
        """Move the checkpoint, where that is worth a write; another who came first did the same.

        Raises ClusterError.
        """
        before, now = read.before, read.now
        if before and before.counts == now.counts and now.folded - before.folded < KEPT / 4:
            return
        data = now.render()
        if read.checkpoint is None:
            body = {"metadata": {"name": CHECKPOINT}, "data": data}
            self._ask("POST", "configmaps", Answer.CONFLICT, body)
        else:
            signed = {**data, _UID: read.checkpoint["metadata"]["uid"]}
            body = {**read.checkpoint, "data": signed}
            self._ask("PUT", f"configmaps/{CHECKPOINT}", Answer.CONFLICT, body)

    def _events(self) -> tuple[list[JsonObject], int]:
        """LIST the Events of the pool, all of one version."""
        asked = f"events?fieldSelector={quote(f'reportingComponent={COMPONENT}')}&limit=500"
        while True:
            items: list[JsonObject] = []
            cursor, version = "", 0
            while True:
                page = self._ask("GET", asked + (f"&continue={quote(cursor)}" if cursor else ""))
                if page.status == _EXPIRED:
                    break
                metadata: dict[str, Any] = page.body["metadata"]
                items += page.body.get("items") or ()
                version = version or int(metadata["resourceVersion"])
                cursor = str(metadata.get("continue") or "")
                if not cursor:
                    return items, version

    def _ask(
        self, method: str, path: str, also: Answer | None = None, body: Mapping[str, Any] | None = None
    ) -> Reply:
        """Make a call; also: what it may come to besides done. Raises ClusterError."""
        where = f"/api/v1/namespaces/{self._namespace}/{path}"
        accept = _LIST if path.startswith("events") else "application/json"
        place = f"{path.partition('?')[0]} of {self._namespace}"
        try:
            reply = self._connection.call(method, where, body=body, accept=accept)
        except NoReply as silence:
            raise ClusterError(
                code="unreachable",
                place=place,
                cause=f"the API server does not answer ({silence}), so nothing is counted",
                mend="wait for it; what happened meanwhile is counted then",
            ) from None
        if reply.answer in (Answer.DONE, also) or reply.status == _EXPIRED:
            return reply
        raise ClusterError(
            code="not-allowed" if reply.answer is Answer.NOT_ALLOWED else "unreachable",
            place=place,
            cause=f"the API server refuses it: {reply.text}",
            mend="give this user the Role of deploy/exporter.yaml, which says what counting needs",
        )
