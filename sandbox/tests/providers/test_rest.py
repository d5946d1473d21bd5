"""Requests against a service that answers as it is told, over a real socket."""

import socket
import struct
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Thread

import pytest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.providers.rest import Rest, Retries, ServiceRefusedError

NEVER = Retries(())


def answer(status: int, body: str = "{}", headers: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n{body}"
    ).encode()


@contextmanager
def answering(*answers: bytes | None) -> Generator[str]:
    """Serve the answers in turn, one connection each; None resets the connection instead."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for each in answers:
                connection, _ = listening.accept()
                connection.recv(65536)
                if each is None:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    connection.sendall(each)
                connection.close()

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join(timeout=5)


def rest(url: str, retries: Retries, pause: Callable[[float], None] = lambda _: None) -> Rest:
    return Rest("Cloud", lambda: url, "a-token", retries, pause)


@pytest.mark.parametrize("lost", [None, b""], ids=["reset", "closed"])
def test_a_lost_answer_is_asked_for_again_where_that_is_told(lost: bytes | None):
    with answering(lost, answer(200)) as url:
        assert rest(url, Retries((0,), lost=frozenset({"POST"}))).ask("write", "x", "POST") == {}
    with answering(lost) as url, pytest.raises(SandboxError, match="its answer was lost"):
        rest(url, NEVER).ask("write", "x", "POST")


def test_a_refusal_carries_the_services_words_and_its_name_of_the_error():
    for body in (
        '{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "no"}}',
        '{"error": {"code": "PERMISSION_DENIED", "message": "no"}}',
    ):
        with answering(answer(403, body)) as url, pytest.raises(ServiceRefusedError) as refused:
            rest(url, NEVER).ask("read", "x", "GET")
        assert (refused.value.status, refused.value.reason) == (403, "PERMISSION_DENIED")
        assert refused.value.problem == "the service refused to read it (403 PERMISSION_DENIED): no"


def test_an_answer_that_is_no_json_is_told_by_its_status():
    with answering(answer(404, "<html>")) as url, pytest.raises(ServiceRefusedError, match="HTTP status 404"):
        rest(url, NEVER).ask("read", "x", "GET")


def test_a_refusal_after_the_last_attempt_is_final():
    retries = Retries((0,), statuses=frozenset({503}))
    with answering(answer(503), answer(503)) as url, pytest.raises(ServiceRefusedError):
        rest(url, retries).ask("read", "x", "GET")


def test_a_token_is_in_no_error():
    with pytest.raises(SandboxError) as unreachable:
        rest("http://127.0.0.1:1/", Retries((0,) * 99, lost=frozenset({"GET"}))).ask("read", "x", "GET")
    assert unreachable.value.code == "service-unreachable"
    assert "a-token" not in str(unreachable.value)
