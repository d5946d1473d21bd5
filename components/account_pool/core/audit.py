"""Audit trail: every claim, release and rejection is recorded as a Kubernetes Event.

Records are deleted on release; Events keep who held which account and when. Each names the user who wrote it
(`reportingInstance`). The pool's admission policy enforces that this is the real author, that the author is
allowed to do what the Event reports, and that Events are immutable. Without the policy, anyone could write
one. A background thread writes Events after the operation; a lost Event never fails the operation. Code that
ends the process calls `flush` first, so that no Event is lost.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from queue import Queue
from threading import Lock, Thread
from typing import Final

from components.account_pool.core.calls import ApiRefusal, Create, Kind, PoolApi, Refused
from components.account_pool.core.model import JsonObject

COMPONENT: Final = "credfleet-claims"


class Journal:
    """Background writer of the Events of one namespace, in order."""

    def __init__(self, api: PoolApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._waiting: Queue[JsonObject] = Queue()
        self._lock = Lock()
        self._writer: Thread | None = None
        self._refused = False

    def note(
        self,
        name: str,
        reason: str,
        message: str,
        *,
        kind: str = "Secret",
        uid: str = "",
        warning: bool = False,
    ) -> None:
        """Queue an Event for an object, with a one-word reason and a one-line message; does not block.

        `uid`: of the object; empty if unknown.
        """
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {"apiVersion": "v1", "kind": kind, "namespace": self._namespace, "name": name}
        event: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{uuid.uuid4().hex[:16]}", "namespace": self._namespace},
            "involvedObject": {**about, **({"uid": uid} if uid else {})},
            "reason": reason,
            "message": message[:1024],
            "type": "Warning" if warning else "Normal",
            "action": reason,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        with self._lock:
            if self._writer is None:
                self._writer = Thread(target=self._write_all, name="credfleet-events", daemon=True)
                self._writer.start()
        self._waiting.put(event)

    def flush(self, seconds: float) -> bool:
        """Wait until every queued Event is written or dropped; return False on timeout."""
        with self._waiting.all_tasks_done:
            return self._waiting.all_tasks_done.wait_for(lambda: not self._waiting.unfinished_tasks, seconds)

    def _write_all(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                if not self._refused:
                    answer = self._api(Create(Kind.EVENT, event))
                    self._refused = isinstance(answer, Refused) and answer.why is ApiRefusal.FORBIDDEN
            finally:
                self._waiting.task_done()
