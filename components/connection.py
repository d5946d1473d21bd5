"""One pool of kept-alive connections to the stack's cluster, with raw JSON.

The official client handles configuration, authentication, token refresh and proxies. Its typed layer is not
used, because it would cost more than the call. Import-pure: the client is imported by the first connection.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from components import cluster_target
from components.cluster_target import ClusterTarget, configuration_of, load_certificates
from components.errors import ClusterError, CredfleetError, NoReply, NotSignedIn
from components.http_answers import FIRST_ANSWER_SECONDS, PATIENCE_SECONDS, HttpOutcome, answer_of, pause
from components.importing import IMPORT_LOCK

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

in_pod = cluster_target.in_pod  # former name, kept for one release

RECORDED: Final = "CREDFLEET_RECORDED_CLUSTER"
"""Variable that names a file of recorded answers; the process reads it instead of calling a server."""

_KEPT: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
)
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation in which kubectl stores whole objects, including Secrets."""

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 20.0
CONNECTIONS: Final = 64
MERGE_PATCH: Final = "application/merge-patch+json"
DENIED_BY_POLICY: Final = "ValidatingAdmissionPolicy"
"""Text in a denial by an admission policy. The API server applies a changed policy about a second late."""
_TERMINATING: Final = "NamespaceTerminating"
_UNAUTHENTICATED: Final = 401
_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
TOKEN_SECONDS: Final = 30.0
"""How long a token is reused. Asking the client for one costs half as much as a call.
The client itself renews its token one minute before it expires."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of the API server: the HTTP status, and the JSON object.

    `retry_after`: seconds that it asks to wait. `date`: time of the answer, by its clock.
    """

    status: int
    body: dict[str, Any]
    retry_after: float = 0.0
    date: str = ""

    @property
    def text(self) -> str:
        """The server's message about a failure."""
        return str(self.body.get("message") or f"HTTP {self.status}")

    @property
    def reason(self) -> str:
        """The server's reason for a failure, which quotes no values."""
        return str(self.body.get("reason") or f"HTTP {self.status}")

    @property
    def answer(self) -> HttpOutcome:
        """Meaning of the status."""
        return answer_of(self.status)

    @property
    def lacks_namespace(self) -> bool:
        """Whether it reports that the namespace of an object to create is missing or being deleted."""
        causes = (self.body.get("details") or {}).get("causes") or ()
        return self.answer is HttpOutcome.ABSENT or any(each.get("reason") == _TERMINATING for each in causes)


def served_kinds(get: Callable[[str], Mapping[str, Any]], version: str) -> Mapping[str, str]:
    """Return the kinds that an API server serves for a group and version, each with its plural.

    `get`: returns the object at a path. Groups are read first, because the answer for a group that is not
    served is no JSON object.
    """
    path = "/api/v1" if version == "v1" else f"/apis/{version}"
    if version != "v1":
        groups = get("/apis").get("groups") or ()
        if not any(version == each["groupVersion"] for group in groups for each in group["versions"]):
            return {}
    listed = get(path).get("resources") or ()
    return {str(each["kind"]): str(each["name"]) for each in listed if "/" not in each["name"]}


class Untrusted(NoReply):
    """No call was made: the server's certificate is not signed by a trusted CA."""


class Connection:
    """Connection to one API server as one user; thread-safe.

    `sign_in`: returns how the user signs in again; without it, a 401 is an ordinary answer.
    """

    server: str = ""
    """Address of the API server."""

    def __init__(self, client: ApiClient, sign_in: Callable[[], str] | None = None) -> None:
        self._client, self._sign_in = client, sign_in
        self.server = str(client.configuration.host).rstrip("/")
        manager = client.rest_client.pool_manager
        self._send: Callable[..., Any]
        if manager.proxy is None:
            # The manager would look up the connection for each call, which costs a sixth of it.
            self._send = manager.connection_from_url(self.server).urlopen
            self._root = urlsplit(self.server).path
        else:
            self._send, self._root = manager.urlopen, self.server
        self._token: str | None = None
        self._token_until = 0.0

    @cached_property
    def patient(self) -> Connection:
        """The same connection with retries, for calls that are safe to repeat."""
        return _PatientConnection(self)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> Reply:
        """Make one HTTP call, without retry: the caller decides about a lost write.

        Raises NoReply; NotSignedIn; ClusterError if the user's token cannot be sent.
        """
        import urllib3

        headers = {"Accept": accept, "User-Agent": "credfleet"}
        if (token := self._current_token()) is not None:
            headers["Authorization"] = token
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            response = self._send(
                method,
                self._root + path,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                retries=False,
                redirect=False,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS),
            )
            answered = response.data
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            said = _innermost(error)
            raise (Untrusted if _UNTRUSTED in said else NoReply)(said) from None
        if response.status == _UNAUTHENTICATED and self._sign_in is not None:
            raise NotSignedIn(server=self.server, fix=self._sign_in())
        return _reply(path, response.status, answered, response.headers)

    def find(self, path: str) -> dict[str, Any] | None:
        """Return the object at a path; None if it is not found or must not be read. Raises as `call`."""
        reply = self.call("GET", path)
        return reply.body if reply.answer is HttpOutcome.DONE else None

    def _current_token(self) -> str | None:
        if time.monotonic() >= self._token_until:
            bearer = self._client.configuration.auth_settings().get("BearerToken")
            self._token = _header_of(str(bearer["value"]), self.server) if bearer else None
            self._token_until = time.monotonic() + TOKEN_SECONDS
        return self._token


def _reply(path: str, status: int, sent: bytes, headers: Mapping[str, str]) -> Reply:
    """Parse an answer; an error status, perhaps of a proxy, counts even without a JSON object.

    Objects of an API server below /api and /apis have a kind, as does its answer for an object that is not
    found; for groups it does not serve, it answers plain text.
    """
    try:
        body: Any = json.loads(sent or b"{}")
    except (ValueError, RecursionError):
        body = None
    is_object = isinstance(body, dict) and ("kind" in body or not path.startswith("/api"))
    outcome = answer_of(status)
    is_own = outcome is HttpOutcome.DONE or (outcome is HttpOutcome.ABSENT and path.startswith("/api/"))
    if is_own and not is_object:
        raise NoReply(f"what answers HTTP {status} there is no API server")
    asked = headers.get("Retry-After", "")  # a date, which no API server sends, is ignored
    retry_after = float(asked) if asked.isdecimal() else 0.0
    return Reply(status, body if isinstance(body, dict) else {}, retry_after, headers.get("Date", ""))


def _header_of(value: str, server: str) -> str:
    """Return the Authorization header; files with a token often end with a newline."""
    scheme, _, token = value.partition(" ")
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ClusterError(
            code="misconfigured",
            place=server,
            problem="its user's token is empty, or has characters that no header may have; nothing was sent",
            fix="give the token on one line of printable characters, or sign in again",
        )
    return f"{scheme} {token}"


def _innermost(error: BaseException) -> str:
    """Return the message of an OS error; of others only the type: their text might quote the request."""
    wrapped = (each for each in error.args if isinstance(each, BaseException))  # as in urllib3's TLS errors
    if (cause := error.__cause__ or next(wrapped, None)) is not None:
        return _innermost(cause)
    return str(error.args[-1]) if error.args and isinstance(error, OSError) else type(error).__name__


class _PatientConnection(Connection):
    """Repeats each call until it is answered, or the timeout is over.

    Its calls must be safe to repeat: reads, applies, and writes that name what they create, replace or
    delete. If only the answer was lost, the repeated write is a conflict, and its caller reads again.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection, self.server = connection, connection.server
        self._limit = FIRST_ANSWER_SECONDS

    @cached_property
    def patient(self) -> Connection:
        return self

    def call(self, method: str, path: str, **given: Any) -> Reply:
        """Call until there is a final answer; raises as `Connection.call`.

        After a timeout, further calls do not wait until the server answers again.
        """
        began = time.monotonic()
        for attempt in count():
            reply, silence = None, NoReply()
            try:
                reply = self._connection.call(method, path, **given)
            except Untrusted:
                raise
            except NoReply as error:
                silence = error
            is_settled = reply is not None and reply.answer is not HttpOutcome.UNREACHABLE
            if reply is not None and (is_settled or self._limit):
                self._limit = PATIENCE_SECONDS
            if reply is not None and is_settled:
                return reply
            seconds = pause(attempt, reply.retry_after if reply else 0.0)
            if time.monotonic() + seconds > began + self._limit:
                self._limit = 0.0
                if reply is None:
                    raise silence
                return reply
            time.sleep(seconds)
        raise AssertionError


class Recording(Connection):
    """Connection that records the answers to reads."""

    def __init__(self, connection: Connection) -> None:
        """Record calls of this connection."""
        self._connection, self.server = connection, connection.server
        self.answers: dict[str, Any] = {}

    def call(self, method: str, path: str, **given: Any) -> Reply:
        """Make a call, and record the answer."""
        reply = self._connection.call(method, path, **given)
        if method == "GET":
            self.answers[path] = {"status": reply.status, "body": _without_bytes(reply.body)}
        return reply


class RecordedCluster(Connection):
    """Answers from a record; a claim's record is also found in recorded lists."""

    server = "the cluster as it was recorded"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        """Use recorded answers by path."""
        self._answers = answers

    def call(self, method: str, path: str, **_given: Any) -> Reply:
        """Return the recorded answer. Raises ClusterError if there is none."""
        known = self._answers.get(path) if method == "GET" else None
        if known is not None:
            return Reply(known["status"], known["body"])
        collection, _, name = path.rpartition("/")
        listed = [each["body"] for asked, each in self._answers.items() if asked.startswith(f"{collection}?")]
        if method != "GET" or not listed:
            raise ClusterError(
                code="unreachable",
                place=path.partition("?")[0],
                problem="this is a review without keys: no cluster is asked, and the record does not say",
                fix="preview with the cluster to know",
            )
        for item in (item for body in listed for item in body.get("items") or ()):
            if item["metadata"]["name"] == name:
                return Reply(200, item)
        return Reply(404, {"reason": "NotFound"})


def _without_bytes(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a list or object; of a Secret only the metadata."""
    if "items" in body:
        items = [_without_bytes(each) for each in body["items"] or ()]
        return {"kind": body.get("kind"), "metadata": {}, "items": items}
    metadata = body.get("metadata") or {}
    kept = {key: metadata[key] for key in _KEPT if key in metadata}
    noted = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != _APPLIED}
    is_config_map = body.get("kind") in (None, "ConfigMap")
    data = {"data": body["data"]} if is_config_map and "data" in body else {}
    return {
        **{key: body[key] for key in ("apiVersion", "kind") if key in body},
        **data,
        "metadata": {**kept, **({"annotations": noted} if noted else {})},
    }


def refuse_unasked(error: type[CredfleetError], place: str, what: str) -> None:
    """Raise this error in a keyless review, which calls no cloud. `what`: preview with it instead."""
    if RECORDED in os.environ:
        problem = "this is a review without keys, and no cloud is asked"
        raise error(code="unreachable", place=place, problem=problem, fix=f"preview with the {what} to know")


_connections: dict[ClusterTarget, Connection] = {}
_connecting = Lock()


def connect(target: ClusterTarget) -> Connection:
    """Open this process's connection to a cluster, and verify the cluster's uid.

    Raises ClusterError (other cluster, no usable kubeconfig, unreadable uid), NotSignedIn, NoReply.
    """
    if file := os.environ.get(RECORDED):
        return _recorded(Path(file))
    with _connecting:
        if target not in _connections:
            connection = _opened(target)
            if target.uid is not None:
                _verify(connection, target.uid)
            _connections[target] = connection
        return _connections[target]


@cache
def _recorded(file: Path) -> RecordedCluster:
    return RecordedCluster(json.loads(file.read_text("utf-8")))


def record(target: ClusterTarget) -> Recording:
    """Record the answers of the connection to a cluster from now on; raises as `connect`."""
    recording = Recording(connect(target))
    with _connecting:
        _connections[target] = recording
    return recording


def reach(target: ClusterTarget, fix: str) -> Connection:
    """Open the connection as `connect` does, for callers that require an answer.

    Calls are repeated. `fix`: advice if none comes. Raises ClusterError, which includes code `unreachable`.
    """
    try:
        return connect(target).patient
    except NoReply as silence:
        raise silence.as_error(fix) from None


def _opened(target: ClusterTarget) -> Connection:
    """Create the connection; the libraries check addresses and certificates only here, or at a call."""
    with IMPORT_LOCK:
        from kubernetes.client import ApiClient

    configuration = configuration_of(target)
    configuration.connection_pool_maxsize = CONNECTIONS
    try:
        connection = Connection(ApiClient(configuration), target.sign_in_again)
    except (ValueError, TypeError, AttributeError, ImportError):
        problem = (
            "the address of its cluster or of its proxy (proxy-url, HTTPS_PROXY) is invalid,"
            " or the proxy speaks SOCKS, for which PySocks is not installed"
        )
        raise target.misconfigured(problem) from None
    try:
        load_certificates(configuration)
    except OSError:
        problem = "a certificate or a key that it names is not PEM, or the key has a passphrase"
        raise target.misconfigured(problem) from None
    return connection


def _verify(connection: Connection, uid: str) -> None:
    reply = connection.patient.call("GET", "/api/v1/namespaces/kube-system")
    if reply.answer is not HttpOutcome.DONE:
        raise ClusterError(
            code="not-allowed",
            place=connection.server,
            problem=f"the stack means the cluster with uid {uid}, this one does not tell its own:"
            f" {reply.text}",
            fix="let this user get namespace kube-system, or leave uid out of credfleet:cluster",
        )
    found = str(reply.body["metadata"]["uid"])
    if found != uid:
        raise ClusterError(
            code="wrong-cluster",
            place=connection.server,
            problem=f"this is the cluster with uid {found}, the stack means {uid}; nothing was written",
            fix="point KUBECONFIG to the cluster this stack means, or correct credfleet:cluster",
        )
