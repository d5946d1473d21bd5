"""How Resource Manager refuses: an HTTP status and a code of the service that was asked."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse

_ON_DEMAND: Final[Mapping[int, str]] = {
    401: "AuthenticationFailed",
    403: "AuthorizationFailed",
    404: "ResourceNotFound",
    409: "Conflict",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}


class ArmRefusal(Exception):  # noqa: N818 - the service is whole; a request is refused
    """A request that is refused."""

    def __init__(self, status: int, code: str, message: str) -> None:
        """Keep the HTTP status, the code by which clients tell refusals apart, and what is wrong."""
        super().__init__(status, code, message)
        self.status = status
        self.code = code
        self.message = message

    def response(self) -> JSONResponse:
        """Return the answer as Resource Manager writes it."""
        error = {"code": self.code, "message": self.message}
        return JSONResponse({"error": error}, status_code=self.status)


def bad_request(message: str, code: str = "BadRequest") -> ArmRefusal:
    """Refuse what can never be right."""
    return ArmRefusal(400, code, message)


def on_demand(status: int) -> JSONResponse:
    """Refuse with an HTTP status because a fault says so."""
    code = _ON_DEMAND.get(status, "InternalServerError")
    return ArmRefusal(status, code, f"The sandbox was asked to answer {status}.").response()
