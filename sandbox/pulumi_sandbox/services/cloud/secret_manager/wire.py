"""JSON from and to Google's own messages, so that every field's name and form is Google's."""

import json
import re
from typing import Any, Final, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from pulumi_sandbox.services.cloud.secret_manager.refusals import invalid

M = TypeVar("M", bound=Message)

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}|[A-Za-z0-9_-]*={0,2}")


def read(text: bytes, message: M, *, confidential: bool = False) -> M:
    """Fill a message from a request's body; an empty body is an empty message.

    confidential: the body may hold a payload, so a refusal does not quote what was wrong with it.

    Raises Refusal INVALID_ARGUMENT.
    """
    try:
        json_format.Parse(text or b"{}", message)
    except (json_format.ParseError, UnicodeDecodeError) as error:
        reason = "" if confidential else f" {error}"
        raise invalid(f"Invalid JSON payload received.{reason}") from None
    return message


def check_base64(text: bytes) -> None:
    """Refuse a payload that is not base64, of either alphabet: the parser of messages drops what is none.

    Raises Refusal INVALID_ARGUMENT, which quotes nothing.
    """
    try:
        document: Any = json.loads(text or b"{}")
        data = document["payload"]["data"]
    except (KeyError, TypeError, ValueError):
        return
    if not isinstance(data, str) or not _BASE64.fullmatch(data) or len(data.rstrip("=")) % 4 == 1:
        raise invalid("Invalid value at 'payload.data' (TYPE_BYTES), Base64 decoding failed.")


def shown(message: Message, *, enums_as_numbers: bool = False) -> dict[str, Any]:
    """Return a message as JSON, unset fields left out."""
    return json_format.MessageToDict(message, use_integers_for_enums=enums_as_numbers)
