"""The audit trail: every claim, release and refusal leaves a Kubernetes Event.

Records vanish on release; Events tell who had what, and when. Each bears the name of the user who wrote it
(`reportingInstance`); the pool's admission policy holds that it is the writer's, who may do what the Event
tells, and that it never changes. Where there is no policy, anybody may have written it.

They are written by a thread of their own, once the operation is over and off its critical path; a lost Event
never fails an operation. What ends the process calls `flush` before it answers, so that none is lost to a
kill.
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
    """Writes what happens in one namespace as Events, in order, in the background."""

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
        """Remember something: about which object, in one word, and in one line; returns at once.

        uid: of the object; empty when it is not known.
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
        """Wait until everything noted is written or given up; False when the time was over first."""
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
