"""JSON from and to Google's own messages, so that every field's name and form is Google's."""

from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from pulumi_sandbox.services.cloud.secret_manager.refusals import invalid

M = TypeVar("M", bound=Message)


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


def shown(message: Message, *, enums_as_numbers: bool = False) -> dict[str, Any]:
    """Return a message as JSON, unset fields left out."""
    return json_format.MessageToDict(message, use_integers_for_enums=enums_as_numbers)
