"""Threads that read the same at the same time: how often it is read, and how fresh what they get is."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from queue import Queue
from threading import Event

import pytest

from components.account_pool.core.kubernetes_api import SingleFlight

ASKERS = 8


class SlowServer:
    """Answers a question by its number among all, when the test lets it."""

    def __init__(self) -> None:
        self.asked = Queue[str]()
        self.let_answer = Queue[None]()
        self._numbers = count()

    def __call__(self, query: str) -> str:
        number = next(self._numbers)
        self.asked.put(query)
        self.let_answer.get()
        return f"{query} {number}"


class Question(str):
    """Equal to any of the same text; tells when it was looked up, which every asker does first."""

    def __init__(self, _: str) -> None:
        self.heard = Event()

    def __hash__(self) -> int:
        self.heard.set()
        return super().__hash__()


def test_who_asks_while_one_is_under_way_gets_an_answer_asked_for_later():
    server = SlowServer()
    reading = SingleFlight(server)
    with ThreadPoolExecutor(ASKERS) as threads:
        first = threads.submit(reading, "free")
        server.asked.get()
        later = [threads.submit(reading, "free") for _ in range(ASKERS - 1)]
        for _ in range(ASKERS):
            server.let_answer.put(None)
        assert first.result() == "free 0"
        assert "free 0" not in [future.result() for future in later]


def test_all_who_wait_share_the_next_answer():
    server = SlowServer()
    reading = SingleFlight(server)
    with ThreadPoolExecutor(ASKERS) as threads:
        first = threads.submit(reading, "free")
        server.asked.get()
        questions = [Question("free") for _ in range(ASKERS - 1)]
        waiting = [threads.submit(reading, question) for question in questions]
        for question in questions:
            question.heard.wait()
        server.let_answer.put(None)
        first.result()
        server.asked.get()
        server.let_answer.put(None)
        assert {future.result() for future in waiting} == {"free 1"}


def test_different_questions_do_not_wait_for_each_other():
    server = SlowServer()
    reading = SingleFlight(server)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(reading, query) for query in ("free", "mine")]
        assert {server.asked.get(), server.asked.get()} == {"free", "mine"}
        server.let_answer.put(None)
        server.let_answer.put(None)
        assert {future.result().split()[0] for future in asked} == {"free", "mine"}


def test_one_who_asks_alone_is_answered_at_once_each_time():
    server = SlowServer()
    reading = SingleFlight(server)
    for number in range(3):
        server.let_answer.put(None)
        assert reading("free") == f"free {number}"


def test_a_failure_reaches_who_asked_and_the_next_one_asks_again():
    answers = iter([ZeroDivisionError(), "fine"])

    def ask(_: str) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    reading = SingleFlight(ask)
    with pytest.raises(ZeroDivisionError):
        reading("free")
    assert reading("free") == "fine"
