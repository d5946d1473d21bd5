"""What all parts of one running deployment share: its mode, its voice, and whether it still goes on."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any, Final, TypeVar

from pulumi_sandbox.engine.model.diff import NO_DIFFERENCE, Diff
from pulumi_sandbox.engine.model.events import (
    Diagnostic,
    Event,
    Op,
    Operation,
    Outcome,
    PolicyViolation,
    Severity,
    Sink,
    StdoutLine,
    Step,
    StepFinished,
    StepPlanned,
    StepStarted,
    Summary,
)
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.redaction import Redactor, texts_of
from pulumi_sandbox.protocol.values import Properties, Value, contains_unknown, equal

_T = TypeVar("_T")
_R = TypeVar("_R", bound="Resource | None")

_LOGICAL: Final = frozenset({"same", "create", "update", "delete", "replace", "read", "discard", "import"})
"""The steps a summary counts: the halves of a replacement count as one `replace`.

What was read counts where it changed.
"""


class Unfulfilled(Exception):  # noqa: N818 - no error: why was told already
    """A resource that is not as the program wants it: its step failed, or waits for one that did."""

    def __init__(self, urn: str) -> None:
        super().__init__(urn)
        self.urn = urn


class Stopped(Exception):  # noqa: N818 - no error: the way a stop travels up
    """The deployment goes no further; why was told already."""


class Control:
    """One deployment on its way. It stops at the first error: no new step begins, those under way end.

    One that `goes_on` stops for no step that failed, only for what nobody can go on from.
    """

    def __init__(
        self,
        operation: Operation,
        *,
        preview: bool,
        goes_on: bool,
        sink: Sink,
        secrets: Iterable[str],
        parallel: int,
    ) -> None:
        self.operation: Final = operation
        self.preview: Final = preview
        self.goes_on: Final = goes_on
        self.failed = False
        self.cancelled = False
        self.steps: list[StepPlanned | StepFinished] = []
        self.violations: list[PolicyViolation] = []
        self._sink = sink
        self._secrets = set(secrets)
        self._open = set[str]()
        self._unsearched: list[Value] = []
        self._redactor: Redactor | None = None
        self._stopping = asyncio.Event()
        self._slots = asyncio.Semaphore(parallel)
        self._under_way: set[asyncio.Task[Any]] = set()
        self._waiting: set[asyncio.Future[None]] = set()
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()

    @property
    def stopping(self) -> bool:
        """Whether no new step may begin."""
        return self._stopping.is_set()

    def emit(self, event: Event) -> None:
        """Hand an event to the sink."""
        self._sink.handle(event)

    def learn(self, value: Value) -> None:
        """Keep the secrets in a value out of all texts to come.

        Values are searched when the next text comes: most deployments have many values and few texts.
        """
        self._unsearched.append(value)

    def kept(self, *, before: Properties, now: Properties) -> Properties:
        """Return outputs as an update records them: what hangs on a failed step stays as it was."""
        if self.preview:
            return now
        known = {key: value for key, value in now.items() if not contains_unknown(value)}
        return {key: known.get(key, before.get(key)) for key in now if key in known or key in before}

    def redacted(self, text: str) -> str:
        """Return a text without the secrets known so far."""
        if self._unsearched or self._redactor is None:
            for value in self._unsearched:
                secret, in_the_open = texts_of(value)
                self._secrets |= secret
                self._open |= in_the_open
            self._unsearched.clear()
            self._redactor = Redactor(self._secrets, self._open)
        return self._redactor(text)

    def say(self, severity: Severity, message: str, urn: str = "") -> None:
        """Emit a message for a person."""
        self.emit(Diagnostic(severity, self.redacted(message), urn))

    def warn(self, urn: str, message: str) -> None:
        """Emit a warning about a resource."""
        self.say("warning", message, urn)

    def printed(self, line: str) -> None:
        """Emit what the program printed."""
        self.emit(StdoutLine(self.redacted(line)))

    def flaw(self, message: str, urn: str = "") -> None:
        """Emit an error that spoils the deployment's result, but does not stop it."""
        self.failed = True
        self.say("error", message, urn)

    def stop(self) -> Stopped:
        """Begin no new step; return what to raise. The reason was told already."""
        self._stopping.set()
        for left in self._waiting:
            if not left.done():
                left.set_result(None)
        return Stopped()

    def fail(self, message: str, urn: str = "") -> Stopped:
        """Emit an error and stop; return what to raise."""
        self.flaw(message, urn)
        return self.stop()

    def fail_unless_stopping(self, message: str, urn: str = "") -> Stopped:
        """Stop for an error that is a mere consequence when the deployment is stopping already.

        Then it is unsaid.
        """
        return self.stop() if self.stopping else self.fail(message, urn)

    def cancel(self) -> None:
        """Stop because the user wants it."""
        self.cancelled = True
        self.stop()

    def objected(self, violation: PolicyViolation) -> None:
        """Emit what a policy has to say; a mandatory objection spoils the result."""
        violation = replace(violation, message=self.redacted(violation.message))
        self.failed |= violation.level == "mandatory"
        self.violations.append(violation)
        self.emit(violation)

    def check(self) -> None:
        """Raise Stopped when the deployment has stopped."""
        if self.stopping:
            raise Stopped

    async def serve(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Do a piece of work for the program; when the deployment stops, leave without waiting for it.

        Raises Stopped when it stops; the work goes on to its own end, `drained` waits for that.
        """
        if self.stopping:
            raise Stopped
        task = asyncio.create_task(work())
        self._under_way.add(task)
        left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(left)

        def done(task: asyncio.Task[_T]) -> None:
            self._under_way.discard(task)
            _ = task.cancelled() or task.exception()
            if not left.done():
                left.set_result(None)

        task.add_done_callback(done)
        try:
            await left
        finally:
            self._waiting.discard(left)
        if not task.done():
            raise Stopped
        return task.result()

    def abandon(self) -> None:
        """Break off all work under way; calls that were begun stay recorded as pending."""
        for task in self._under_way:
            task.cancel()

    async def drained(self) -> None:
        """Wait until no work is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def stopped(self) -> None:
        """Wait until the deployment stops."""
        await self._stopping.wait()

    async def step(
        self,
        op: Op,
        old: Resource | None,
        new: Resource | None,
        action: Callable[[], Awaitable[_R]],
        diff: Diff = NO_DIFFERENCE,
        *,
        announce: bool = True,
    ) -> _R:
        """Take a step, as one of at most `parallel`, and tell of it; its end only if `announce`.

        Raises Stopped when the deployment has stopped before the step's turn came.
        """
        async with self._slots:
            self.check()
            if not self.preview:
                self.emit(StepStarted(_step(op, old, new, diff)))
            began = time.monotonic()
            try:
                result = await action()
            except Exception as error:
                if not self.preview and not isinstance(error, Stopped):
                    why = self.redacted(str(error) or type(error).__name__)
                    self._tell(StepFinished(_step(op, old, new, diff), time.monotonic() - began, why))
                raise
        if announce:
            self.tell(op, old, result, diff, seconds=time.monotonic() - began)
        return result

    def tell(
        self,
        op: Op,
        old: Resource | None,
        new: Resource | None,
        diff: Diff = NO_DIFFERENCE,
        *,
        seconds: float = 0.0,
    ) -> None:
        """Emit a step that took no call, or is done."""
        step = _step(op, old, new, diff)
        self._tell(StepPlanned(step) if self.preview else StepFinished(step, seconds))
        is_news = op != "read" or (old and new and not equal(old.outputs, new.outputs))
        if op in _LOGICAL and is_news and not urns.is_default_provider(step.urn):
            self._counts[op] += 1

    def refuse(self, op: Op, old: Resource, message: str) -> None:
        """Tell of a step that may not be taken, which stops no other one and is in no summary."""
        step = _step(op, old, None, NO_DIFFERENCE)
        if not self.preview:
            self.emit(StepStarted(step))
        self._tell(StepPlanned(step) if self.preview else StepFinished(step, 0.0, message))
        self.flaw(message, old.urn)

    def count_anew(self) -> None:
        """Leave what was done so far out of the summary."""
        self._counts.clear()

    def summary(self) -> Summary:
        """Return how it went."""
        outcome: Outcome = "cancelled" if self.cancelled else "failed" if self.failed else "succeeded"
        return Summary(self.operation, dict(self._counts), time.monotonic() - self._began, outcome)

    def _tell(self, event: StepPlanned | StepFinished) -> None:
        self.steps.append(event)
        self.emit(event)


def _step(op: Op, old: Resource | None, new: Resource | None, diff: Diff) -> Step:
    return Step.of(op, old, new, keys=diff.replaces, detailed_diff=diff.detailed)
