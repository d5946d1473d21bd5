"""What runs an operation: its calls, its pauses, its time; and the Events that tell of it afterwards."""

import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event, get_ident
from typing import Any

import pytest

from components.account_pool.core import driver as driving
from components.account_pool.core import pool_operator as live
from components.account_pool.core import protocol
from components.account_pool.core.audit import Journal
from components.account_pool.core.calls import ApiRefusal, Kind, Pause, Refused, Result, Steps, Unknown
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.driver import Driver
from components.account_pool.core.keys import POOL_STATE
from components.account_pool.core.model import ClaimRequest, JsonObject
from components.account_pool.core.pool_operator import PoolOperator
from components.errors import Misconfigured, NotAllowed, Unreachable
from components.http_answers import LONGEST_PAUSE_SECONDS, jitter
from tests.support.memory_pool import Claims, MemoryServer


class Flaky(MemoryServer):
    """Answers each call only after it failed so many times."""

    def __init__(self, failures: int, answer: Result) -> None:
        super().__init__()
        self.add_member("m0")
        self._failures = failures
        self._left = failures
        self._answer = answer

    def get(self, kind: Kind, name: str) -> Result:
        if self._left:
            self._left -= 1
            return self._answer
        self._left = self._failures
        return super().get(kind, name)


def test_a_read_that_gets_no_answer_is_asked_again_after_a_pause() -> None:
    slept: list[float] = []
    flaky = Flaky(3, Unknown("connection reset"))
    claimed = Driver(flaky, "pool", sleep=slept.append).run(protocol.claim(Claims("a", "h").wanted), 60)
    assert claimed.secret_name == "m0"
    assert len(slept) == 3


def test_pauses_grow_but_never_beyond_a_second() -> None:
    assert all(0 <= jitter(attempt) <= LONGEST_PAUSE_SECONDS for attempt in range(200))
    assert all(jitter(0) <= 0.005 for _ in range(100))


def test_a_pause_is_at_least_as_long_as_the_server_wishes() -> None:
    slept: list[float] = []
    busy = Flaky(2, Unknown("HTTP 429", retry_after=3.0))
    Driver(busy, "pool", sleep=slept.append).run(protocol.claim(Claims("a", "h").wanted), 60)
    assert slept == [3.0, 3.0]


class Homeless(MemoryServer):
    """A pool whose namespace is gone by the time that a claim is written."""

    def create(self, kind: Kind, body: JsonObject) -> Result:
        if kind is Kind.RECORD:
            return Refused(ApiRefusal.ABSENT, 'namespaces "p" not found')
        return super().create(kind, body)


def test_claim_whose_namespace_is_gone_ends_at_once() -> None:
    homeless = Homeless()
    homeless.add_member("m0")
    with pytest.raises(Misconfigured, match="is gone, or is being deleted, so nothing can be created in it"):
        Driver(homeless, "pool").run(protocol.claim(Claims("a", "h").wanted), 60)


def test_the_callers_time_ends_an_operation_and_the_last_failure_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(driving.time, "monotonic", lambda: next(clock))
    deaf = Flaky(1000, Unknown("no route to host"))
    with pytest.raises(Unreachable, match="no route to host"):
        Driver(deaf, "pool p", sleep=lambda _seconds: None).run(protocol.claim(Claims("a", "h").wanted), 30)


@pytest.mark.parametrize(
    ("patience", "told"), [(None, "does not answer after 30 s"), (2.0, "does not answer after 2 s")]
)
def test_a_cluster_that_was_never_heard_of_is_given_up_and_nothing_was_begun(
    monkeypatch: pytest.MonkeyPatch, patience: float | None, told: str
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(driving.time, "monotonic", lambda: next(clock))
    dead = Flaky(1000, Unknown("connection refused"))
    driver = Driver(dead, "pool p", sleep=lambda _seconds: None)
    with pytest.raises(Unreachable, match=f"{told} .connection refused.; nothing was begun") as raised:
        driver.run(protocol.claim(Claims("a", "h").wanted), 30, patience=patience)
    assert "finished" not in raised.value.fix
    assert not list(dead.records)


def test_a_cluster_that_was_heard_of_has_all_the_time_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(driving.time, "monotonic", lambda: next(clock))
    slow = Flaky(3, Unknown("connection reset"))
    driver = Driver(slow, "pool p", sleep=lambda _seconds: None)
    assert driver.run(protocol.claim(Claims("a", "h").wanted), 60, patience=8).secret_name == "m0"


class Mute(MemoryServer):
    """Carries writes to accounts out and says nothing."""

    def patch(self, kind: Kind, name: str, body: JsonObject) -> Result:
        super().patch(kind, name, body)
        return Unknown("connection reset")

    def get(self, kind: Kind, name: str) -> Result:
        return Unknown("connection reset") if self.record_count else super().get(kind, name)

    @property
    def record_count(self) -> int:
        return len(list(self.records))


def test_what_was_begun_is_said_to_be_finished_by_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(driving.time, "monotonic", lambda: next(clock))
    mute = Mute()
    mute.add_member("m0")
    with pytest.raises(Unreachable, match="not finished after 30 s") as raised:
        Driver(mute, "p", sleep=lambda _seconds: None).run(protocol.claim(Claims("a", "h").wanted), 30)
    assert "what was begun is finished by the next run" in raised.value.fix
    assert mute.record_count == 1


def test_what_the_server_does_not_allow_is_not_asked_again() -> None:
    refusing = Flaky(1000, Refused(ApiRefusal.FORBIDDEN, 'User "u" cannot get resource "configmaps"'))
    with pytest.raises(NotAllowed, match="cannot get resource"):
        Driver(refusing, "pool").run(protocol.claim(Claims("a", "h").wanted), 60)


def test_the_answer_of_a_pause_is_nothing() -> None:
    def steps() -> Steps[object]:
        return (yield Pause(0))

    assert Driver(MemoryServer(), "pool", sleep=lambda _seconds: None).run(steps(), 60) is None


ODD = {
    "slot ''": ClaimRequest("a", "aws", slot=""),
    "slot ' 1'": ClaimRequest("a", "aws", slot=" 1"),
    "holder ''": ClaimRequest("a", "aws", holder=""),
    "holder 'h '": ClaimRequest("a", "aws", holder="h "),
}


@pytest.mark.parametrize("place", ODD)
def test_a_slot_or_holder_that_could_be_spelt_two_ways_is_refused(place: str) -> None:
    with pytest.raises(Misconfigured, match=place):
        PoolOperator(MemoryServer(), "pool", PoolConfigMap()).claim(ODD[place])


class Slow(MemoryServer):
    """Writes Events only when it is let."""

    def __init__(self, answer: Result | None = None) -> None:
        super().__init__()
        self.let = Event()
        self.asked = 0
        self._answer = answer

    def create(self, kind: Kind, body: JsonObject) -> Result:
        if kind is not Kind.EVENT:
            return super().create(kind, body)
        self.asked += 1
        self.let.wait(10)
        return self._answer or super().create(kind, body)


HAPPENING = ("m0", "Claimed", "claimed for tenant a")


def test_events_are_written_aside_and_flush_waits_for_them() -> None:
    slow = Slow()
    journal = Journal(slow, "pool")
    journal.note(*HAPPENING)
    journal.note(*HAPPENING)
    assert not journal.flush(0)
    slow.let.set()
    assert journal.flush(10)
    assert slow.asked == 2


def test_whoever_may_not_write_events_is_not_asked_for_a_second_one() -> None:
    forbidding = Slow(Refused(ApiRefusal.FORBIDDEN, "no"))
    forbidding.let.set()
    journal = Journal(forbidding, "pool")
    for _ in range(3):
        journal.note(*HAPPENING)
    assert journal.flush(10)
    assert forbidding.asked == 1


def test_an_event_that_fails_fails_no_claim() -> None:
    failing = Slow(Unknown("connection reset"))
    failing.let.set()
    failing.add_member("m0")
    pool = PoolOperator(failing, "pool", PoolConfigMap())
    assert pool.claim(ClaimRequest("a", "aws")).secret_name == "m0"
    assert pool.flush(10)


class SecondIsInterrupted(ThreadPoolExecutor):
    """Whoever hands work to it presses Ctrl-C meanwhile, when the first has begun."""

    begun: Future[Any] | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.begun:
            raise KeyboardInterrupt
        self.begun = super().submit(fn, *args, **kwargs)
        return self.begun


@pytest.mark.parametrize("hands", [ThreadPoolExecutor, SecondIsInterrupted])
def test_a_ctrl_c_ends_the_cleaners_that_run_whenever_it_comes(
    monkeypatch: pytest.MonkeyPatch, hands: type[ThreadPoolExecutor]
) -> None:
    server, stopped, waiting = MemoryServer(), Event(), Event()
    for name in ("m0", "m1"):
        server.add_member(name, {POOL_STATE: "dirty"})
    ends: list[bool] = []

    def awaited(futures: list[Future[Any]], seconds: float) -> object:
        waiting.set()
        return wait(futures, seconds)

    def wipe(_member: object) -> None:
        if hands is ThreadPoolExecutor:
            waiting.wait(60)
            # A signal that another thread takes interrupts no wait, as one that comes right before the wait.
            signal.pthread_kill(get_ident(), signal.SIGINT)
        ends.append(stopped.wait(60))
        raise KeyboardInterrupt

    monkeypatch.setattr(live, "ThreadPoolExecutor", hands)
    monkeypatch.setattr(live, "wait", awaited)
    with pytest.raises(KeyboardInterrupt):
        PoolOperator(server, "pool", PoolConfigMap()).clean("k", wipe, stop=stopped.set)
    assert ends == [True]
