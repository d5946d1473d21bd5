"""How a provider is asked within this process: the calls of its protocol by name, and how it refuses one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from google.protobuf.message import Message

from pulumi_sandbox.protocol.stubs import provider_pb2

Call: TypeAlias = Callable[[Any], Message]
"""Answers a message of the protocol by another one, and may take its time."""

Calls: TypeAlias = Mapping[str, Call]


class CallRefusedError(Exception):
    """The answer to a call that was not fulfilled; `partial` is what there is, if it was done by half."""

    def __init__(self, text: str, partial: provider_pb2.ErrorResourceInitFailed | None = None) -> None:
        super().__init__(text)
        self.partial = partial
