"""What the provider needs of an API server, and what it can hear back."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol, TypeAlias

from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers import contract
from pulumi_sandbox.providers.kubernetes.kinds import Kind

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Query: TypeAlias = Mapping[str, str]
Pause: TypeAlias = Callable[[float], None]
"""Wait so many seconds; raises SandboxError `cancelled` when the run is being stopped."""

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
NO_QUERY: Final[Query] = {}


class Api(Protocol):
    """One cluster, seen by one user."""

    @property
    def place(self) -> str:
        """Name the cluster for people: its address."""
        ...

    @property
    def default_namespace(self) -> str:
        """Return the namespace of objects that name none."""
        ...

    def find(self, api_version: str, kind: str) -> Kind | None:
        """Find out how the server serves a kind; None when it does not, at this moment."""
        ...

    def send(
        self,
        method: Method,
        path: str,
        *,
        query: Query = NO_QUERY,
        body: Value = None,
        content_type: str = JSON,
    ) -> Properties:
        """Make one request and return the answer's JSON object.

        Raises ApiRefusedError when the server answered with an error; SandboxError `cluster-unreachable`
        when it did not answer.
        """
        ...


class ApiRefusedError(contract.RefusedError):
    """The API server's own answer to a request it did not fulfil."""

    def __init__(self, status: int, answer: Properties) -> None:
        message = answer.get("message")
        super().__init__(status, message if isinstance(message, str) else "")
        self.reason = str(answer.get("reason", ""))
        details = answer.get("details")
        causes = details.get("causes") if isinstance(details, dict) else None
        self.causes = tuple(c for c in causes if isinstance(c, dict)) if isinstance(causes, list) else ()

    @property
    def is_field_conflict(self) -> bool:
        """Whether another manager owns a field that was to be changed."""
        return any(cause.get("reason") == "FieldManagerConflict" for cause in self.causes)
