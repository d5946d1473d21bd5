"""Lets the host read what is judged once, when a policy looks into it; it would for every policy again.

A pack of 50 policies has the properties of a resource, and the whole configuration of its provider, turned
into dicts 50 times, most of them for policies of other types. A remedy may change what it is given, so it is
given its own. The host tells checks nothing of marks, which are in the same message; who looks for them finds
them there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from pulumi_policy import policy
from pulumi_policy.deserialize import deserialize_properties
from pulumi_policy.proxy import unknown_checking_proxy

_KEPT: Final = 2
"""A resource and its provider: what one request is judged by."""


class Late(Mapping[str, Any]):
    """Properties as the host hands them to a policy, each read from their message when that looks."""

    def __init__(self, message: Struct) -> None:
        self.message = message
        self._read: dict[str, Mapping[str, Any]] = {}

    @property
    def marked(self) -> Mapping[str, Any]:
        """The properties as the host hands them to a remedy, what is secret inside `Secret`."""
        return deserialize_properties(MessageToDict(self.message), proxy_secrets=True)

    def __getitem__(self, key: str) -> Any:
        if key not in self.message.fields:
            raise KeyError(key)
        if key not in self._read:
            value = MessageToDict(self.message.fields[key])
            self._read[key] = unknown_checking_proxy(deserialize_properties({key: value}))
        return self._read[key][key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.message.fields)

    def __len__(self) -> int:
        return len(self.message.fields)

    def copy(self) -> dict[str, Any]:
        """Return what an environment says to a policy, which the host reads from a message as well."""
        return MessageToDict(self.message)


class _Lately(threading.local):
    def __init__(self) -> None:
        self.found: list[Late] = []


_LATELY: Final = _Lately()


def _late(message: Struct) -> Late:
    """Return what was made of this very message for the policy before, or begin again."""
    found = next((each for each in _LATELY.found if each.message is message), None)
    if found is None:
        found = Late(message)
        _LATELY.found = [found, *_LATELY.found[: _KEPT - 1]]
    return found


def _deserialized(late: Late, proxy_secrets: bool = False) -> Any:
    return deserialize_properties(MessageToDict(late.message), proxy_secrets) if proxy_secrets else late


def _proxied(props: Any) -> Any:
    return props if isinstance(props, Late) else unknown_checking_proxy(props)


def read_late() -> None:
    """Have the host of this process read late from now on."""
    host: Any = policy
    host.json_format = SimpleNamespace(MessageToDict=_late)
    host.deserialize_properties = _deserialized
    host.unknown_checking_proxy = _proxied
