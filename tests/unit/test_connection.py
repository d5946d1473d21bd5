"""The connection to the cluster: what it sends of the user's token, and which kubeconfigs it refuses."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from components import cluster_target, connection
from components.connection import TOKEN_SECONDS, ClusterTarget, Connection, NoReply, Reply, connect
from components.errors import ClusterError
from tests.support.cases import cases, table, tabled

BELOW = "https://server/k8s/clusters/one"


class TokenSource:
    """A client whose token changes each time it is asked, and which keeps the headers that were sent."""

    def __init__(self, host: str = "https://server/", proxy: str | None = None) -> None:
        self.asked = 0
        self.sent: list[str] = []
        self.urls: list[str] = []
        self.answer: Mapping[str, Any] = {"status": 200, "data": b"{}"}
        self.configuration = SimpleNamespace(host=host, auth_settings=self._settings)
        manager = SimpleNamespace(proxy=proxy, urlopen=self._request)
        manager.connection_from_url = self._all
        self.rest_client = SimpleNamespace(pool_manager=manager)

    def _all(self, _server: str) -> SimpleNamespace:
        return self.rest_client.pool_manager

    def _settings(self) -> dict[str, Any]:
        self.asked += 1
        return {"BearerToken": {"value": f"Bearer {self.asked}"}}

    def _request(self, _method: str, url: str, *, headers: dict[str, str], **_: Any) -> SimpleNamespace:
        self.urls.append(url)
        self.sent.append(headers["Authorization"])
        return SimpleNamespace(**self.answer, headers={})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_calls_that_follow_each_other_share_a_token(clock: SimpleNamespace):
    source = TokenSource()
    made = Connection(cast("Any", source))
    for _ in range(3):
        made.call("GET", "/version")
    clock.now += TOKEN_SECONDS - 1
    made.call("GET", "/version")
    assert source.sent == ["Bearer 1"] * 4


def test_a_token_the_client_renewed_is_used_half_a_minute_later(clock: SimpleNamespace):
    source = TokenSource()
    made = Connection(cast("Any", source))
    made.call("GET", "/version")
    clock.now += TOKEN_SECONDS
    made.call("GET", "/version")
    assert source.sent == ["Bearer 1", "Bearer 2"]


@pytest.mark.parametrize(
    ("proxy", "asked"), [(None, "/k8s/clusters/one/version"), ("http://proxy", f"{BELOW}/version")]
)
def test_a_server_below_a_path_is_asked_there_through_a_proxy_too(proxy: str | None, asked: str):
    source = TokenSource(BELOW, proxy)
    Connection(cast("Any", source)).call("GET", "/version")
    assert source.urls == [asked]


def holding(token: str) -> TokenSource:
    source = TokenSource()
    source.configuration.auth_settings = lambda: {"BearerToken": {"value": f"Bearer {token}"}}
    return source


def test_blanks_around_a_token_are_not_sent():
    source = holding("hunter2\n")
    Connection(cast("Any", source)).call("GET", "/version")
    assert source.sent == ["Bearer hunter2"]


@pytest.mark.parametrize("token", ["", " \n", "hunter2\nhunter2", "hunter2\r\n X: y", "hunter2é", "hunter2→"])
def test_a_token_that_no_header_bears_is_told_without_its_text(token: str):
    with pytest.raises(ClusterError) as refused:
        Connection(cast("Any", holding(token))).call("GET", "/version")
    assert refused.value.code == "misconfigured"
    assert "hunter2" not in str(refused.value)


def test_what_the_library_of_http_says_of_a_value_is_not_quoted():
    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("Invalid header value b'hunter2'")

    source = TokenSource()
    source.rest_client.pool_manager.urlopen = refuse
    with pytest.raises(NoReply) as silence:
        Connection(cast("Any", source)).call("GET", "/version")
    assert str(silence.value) == "ValueError"


@tabled("path, status, data, is_api_server")
def test_absence_that_is_not_said_as_an_api_server_does_is_no_answer(
    path: str, status: int, data: str, is_api_server: bool
):
    source = TokenSource()
    source.answer = {"status": status, "data": data.encode()}
    made = Connection(cast("Any", source))
    if is_api_server:
        assert made.call("GET", path).status == status
    else:
        with pytest.raises(NoReply, match="is no API server"):
            made.call("GET", path)


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: one, user: me}}]
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1", certificate-authority-data: CA}}]
users:
  - name: me
    user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "false", interactiveMode: Never}}
"""
HOST = '"https://127.0.0.1:1"'


def drawn(text: str = KUBECONFIG, *, replace: tuple[str, str] = ("", ""), **of: str) -> bytes:
    """Return a kubeconfig: a text, one with something else in it, or one of a cluster and its user."""
    if not of:
        return text.replace(*replace, 1).encode()
    server, more, user = of.get("server", HOST), of.get("more", ""), of.get("user", "{token: hunter2}")
    return f"""\
current-context: here
contexts: [{{name: here, context: {{cluster: one, user: me}}}}]
clusters: [{{name: one, cluster: {{server: {server}, {more}}}}}]
users: [{{name: me, user: {user}}}]
""".encode()


UNUSABLE: dict[str, Any] = {
    **table(__file__, "UNUSABLE"),
    "nested": ({"text": "[" * 5000}, "nested more than"),
    "long label": ({"server": f"https://{'hunter2' * 10}.x"}, "is not an address"),
}


@pytest.mark.filterwarnings("ignore:SOCKS support")
@cases("content, problem", UNUSABLE)
def test_a_kubeconfig_that_cannot_be_used_is_an_error_of_ours_without_its_text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    content: dict[str, Any],
    problem: str,
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "gone"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "kubeconfig"
    file.write_bytes(b"\xff\xfe" if content == {} else drawn(**content))
    with pytest.raises(ClusterError) as refused:
        connect(ClusterTarget(kubeconfig=str(file)))
    assert problem in refused.value.problem
    assert "hunter2" not in str(refused.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("name", "problem"), [("nowhere", "there is no such file"), (".", "cannot be read")])
def test_a_kubeconfig_that_is_not_there_is_told_in_our_words_with_what_was_looked_for(
    tmp_path: Path, name: str, problem: str
) -> None:
    with pytest.raises(ClusterError) as refused:
        connect(ClusterTarget(kubeconfig=str(tmp_path / name)))
    assert problem in refused.value.problem
    assert str(tmp_path / name) in refused.value.place


@tabled("said, is_there, expected")
def test_a_pod_s_own_cluster_is_meant_where_no_kubeconfig_leads_out_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: dict[str, str], is_there: bool, expected: bool
):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**said, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    if is_there:
        (tmp_path / ".kube").mkdir()
        (tmp_path / ".kube" / "config").touch()
    assert cluster_target.in_pod() is expected


class Answering(Connection):
    """Answers one after the other; None is silence."""

    def __init__(self, *answers: Reply | None) -> None:
        self.answers = [*answers]

    def call(self, *_asked: Any, **_given: Any) -> Reply:
        answer = self.answers.pop(0)
        if answer is None:
            raise NoReply("connection reset")
        return answer


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


@pytest.fixture
def elapsed(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: time.now, sleep=time.sleep))
    return time


DONE = Reply(200, {})


@pytest.mark.parametrize("passing", [None, Reply(429, {}), Reply(500, {}), Reply(503, {})])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_patient_connection_repeats_what_passes(elapsed: Time, method: str, passing: Reply | None) -> None:
    assert Answering(passing, passing, DONE).patient.call(method, "/version") is DONE
    assert len(elapsed.slept) == 2


@pytest.mark.parametrize(("wished", "waited"), [(3.0, 3.0), (600.0, 10.0)])
def test_patient_connection_waits_as_long_as_the_server_wishes(
    elapsed: Time, wished: float, waited: float
) -> None:
    Answering(Reply(429, {}, wished), DONE).patient.call("GET", "/version")
    assert elapsed.slept == [waited]


def test_patient_connection_gives_up_and_then_asks_once(elapsed: Time) -> None:
    patient = Answering(DONE, *[Reply(503, {})] * 1000).patient
    patient.call("GET", "/version")
    assert patient.call("GET", "/version").status == 503
    assert 20 < elapsed.now <= 30
    waited = elapsed.now
    assert patient.call("GET", "/version").status == 503
    assert elapsed.now == waited


def test_patient_connection_waits_two_seconds_for_a_server_never_heard(elapsed: Time) -> None:
    with pytest.raises(NoReply, match="connection reset"):
        Answering(*[None] * 1000).patient.call("GET", "/version")
    assert 1 < elapsed.now <= 2
