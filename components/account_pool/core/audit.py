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
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Final

from components.account_pool.core.calls import ApiRefusal, Kind, PoolApi, Refused
from components.account_pool.core.model import JsonObject

COMPONENT: Final = "credfleet-claims"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What is worth remembering: about which object, in one word, in one line, and whether it is a warning.

    uid: of the object; empty when it is not known.
    """

    kind: str
    name: str
    uid: str
    reason: str
    message: str
    warning: bool = False

    def event(self, namespace: str, now: datetime) -> JsonObject:
        """Render the Event of this happening."""
        moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{self.name}.{uuid.uuid4().hex[:16]}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": self.kind,
                "namespace": namespace,
                "name": self.name,
                **({"uid": self.uid} if self.uid else {}),
            },
            "reason": self.reason,
            "message": self.message[:1024],
            "type": "Warning" if self.warning else "Normal",
            "action": self.reason,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }


class Journal:
    """Writes happenings of one namespace as Events, in order, in the background."""

    def __init__(self, api: PoolApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._waiting: SimpleQueue[AuditEvent] = SimpleQueue()
        self._open = 0
        self._all_written = Condition()
        self._writer: Thread | None = None
        self._refused = False

    def note(self, happening: AuditEvent) -> None:
        """Remember it; returns at once."""
        with self._all_written:
            self._open += 1
            if self._writer is None:
                self._writer = Thread(target=self._write_all, name="credfleet-events", daemon=True)
                self._writer.start()
        self._waiting.put(happening)

    def flush(self, seconds: float) -> bool:
        """Wait until everything noted is written or given up; False when the time was over first."""
        with self._all_written:
            return self._all_written.wait_for(lambda: self._open == 0, seconds)

    def _write_all(self) -> None:
        while True:
            happening = self._waiting.get()
            try:
                if not self._refused:
                    event = happening.event(self._namespace, datetime.now(UTC))
                    answer = self._api.create(Kind.EVENT, event)
                    self._refused = isinstance(answer, Refused) and answer.why is ApiRefusal.FORBIDDEN
            finally:
                with self._all_written:
                    self._open -= 1
                    self._all_written.notify_all()
