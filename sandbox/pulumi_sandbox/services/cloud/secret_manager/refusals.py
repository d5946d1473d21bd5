"""How Google refuses: a canonical status, the HTTP status that goes with it, a message without a payload."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse

HTTP: Final[Mapping[str, int]] = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}

_ON_DEMAND: Final[Mapping[int, str]] = {code: status for status, code in reversed(HTTP.items())}


class GcpRefusal(Exception):  # noqa: N818 - the service is whole; a request is refused
    """A request that is refused."""

    def __init__(self, status: str, message: str) -> None:
        """Keep a canonical status (a key of `HTTP`) and what is wrong."""
        super().__init__(status, message)
        self.status = status
        self.message = message

    def response(self) -> JSONResponse:
        """Return the answer as Google writes it."""
        code = HTTP[self.status]
        error = {"code": code, "message": self.message, "status": self.status}
        return JSONResponse({"error": error}, status_code=code)


def invalid(message: str) -> GcpRefusal:
    """Refuse what can never be right."""
    return GcpRefusal("INVALID_ARGUMENT", message)


def not_kept(what: str) -> GcpRefusal:
    """Refuse what this stand-in would silently forget."""
    return GcpRefusal("UNIMPLEMENTED", f"This stand-in does not keep {what}.")


def stale(what: str) -> GcpRefusal:
    """Refuse a write whose etag is not the present one."""
    return GcpRefusal("FAILED_PRECONDITION", f"The etag provided does not match the current etag of {what}.")


def on_demand(code: int) -> JSONResponse:
    """Refuse with an HTTP status because a fault says so."""
    return GcpRefusal(_ON_DEMAND.get(code, "INTERNAL"), f"The sandbox was asked to answer {code}.").response()
