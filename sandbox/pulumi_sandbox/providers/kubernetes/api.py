"""What requests to an API server are made of, and its refusals."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers import contract

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Query: TypeAlias = Mapping[str, str]
Pause: TypeAlias = Callable[[float], None]
"""Wait so many seconds; raises SandboxError `cancelled` when the run is being stopped."""

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
NO_QUERY: Final[Query] = {}


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
        return any(problem.get("reason") == "FieldManagerConflict" for problem in self.causes)
