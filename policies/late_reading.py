"""Lets the host read what is judged once, when a policy looks into it, and ask policies of its type alone.

A pack of 50 policies has the properties of a resource, and the whole configuration of its provider, turned
into dicts 50 times, most of them for policies of other types. The configuration of the stack is read twice
for each resource, for policies that ask Pulumi for it: none of these does. A remedy may change what it is
given, so it is given its own. The host tells checks nothing of marks, which are in the same message; who
looks for them finds them there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto.analyzer_pb2 import PolicyNotApplicable
from pulumi_policy import EnforcementLevel, Policy, ResourceValidationPolicy, Secret, policy, proxy
from pulumi_policy.deserialize import deserialize_properties

from components.seals import hides

_POLICIES: Final = "_PolicyAnalyzerServicer__policies"
_LEVEL: Final = "_get_enforcement_level"

UNKNOWN_TEXTS: Final = frozenset(text for name, text in vars(proxy).items() if name.startswith("UNKNOWN_"))
"""How values that only the update knows come over the wire."""


class _Unknown:
    """A value that only the update knows; it is not a string, no number and empty."""

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()


class Late:
    """Properties as the host hands them to a policy, read from their message once one looks."""

    def __init__(self, message: Struct) -> None:
        self.message = message
        self.touched = Touched()

    @cached_property
    def kind(self) -> tuple[str | None, str | None]:
        """The `apiVersion` and `kind` that are known, by which an object of Kubernetes says what it is."""
        return self._text("apiVersion"), self._text("kind")

    def _text(self, key: str) -> str | None:
        if key not in self.message.fields:
            return None
        return known_text(deserialize_properties({key: MessageToDict(self.message.fields[key])})[key])

    @cached_property
    def plain(self) -> Mapping[str, Any]:
        """The properties as checks get them: without marks, and UNKNOWN where only the update knows.

        All checks are given the same; what one looks into that cannot be read is noted in `touched`.
        """
        return plain(deserialize_properties(MessageToDict(self.message)), self.touched)

    @property
    def marked(self) -> Mapping[str, Any]:
        """The properties as the host hands them to a remedy, what is secret inside `Secret`."""
        return with_secrets(deserialize_properties(MessageToDict(self.message), proxy_secrets=True))

    def copy(self) -> dict[str, Any]:
        """Return what an environment says to a policy, which the host reads from a message as well."""
        return MessageToDict(self.message)


def known_text(value: Any) -> str | None:
    """Return a text, marked or not; None for what is unknown or no text."""
    text = value.value if isinstance(value, Secret) else value
    return text if isinstance(text, str) and text not in UNKNOWN_TEXTS else None


class Touched(list[None]):
    """Not empty once a rule has looked into what cannot be read: then it did not decide."""


class _Sealed(dict[str, Any]):
    """An object in which something stands in for what is unknown; it notes who looks into it."""

    def __init__(self, items: Mapping[str, Any], touched: Touched) -> None:
        super().__init__(items)
        self.touched = touched


def _noting(name: str) -> Any:
    def look(self: _Sealed, *words: Any) -> Any:
        self.touched.append(None)
        return getattr(super(_Sealed, self), name)(*words)

    return look


for _method in ("__getitem__", "__contains__", "__iter__", "get", "items", "keys", "values"):
    setattr(_Sealed, _method, _noting(_method))


def plain(value: Any, touched: Touched) -> Any:
    """Put UNKNOWN for what is unknown; what holds unseen secrets notes in `touched` who looks into it."""
    if isinstance(value, dict):
        found = {key: plain(item, touched) for key, item in value.items()}
        sealed = any(hides(each) for pair in found.items() for each in pair if isinstance(each, str))
        return _Sealed(found, touched) if sealed else found
    if isinstance(value, list):
        return [plain(item, touched) for item in value]
    return UNKNOWN if isinstance(value, str) and value in UNKNOWN_TEXTS else value


def with_secrets(value: Any) -> Any:
    """Turn what the host passes to a remedy into plain dicts and lists, with secrets inside `Secret`."""
    if isinstance(value, Secret):
        return Secret(with_secrets(value.value))
    if isinstance(value, Mapping):
        # Through its items, the host's proxy would hand out secrets unmarked.
        held = value if isinstance(value, dict) else value["__target"]
        return {key: with_secrets(item) for key, item in held.items()}
    if isinstance(value, list):
        return [with_secrets(item) for item in value]
    return value


class _Lately(threading.local):
    def __init__(self) -> None:
        self.found: dict[int, Late] = {}


_LATELY: Final = _Lately()
"""What one request is judged by, by where in memory its messages are."""


def _late(message: Struct) -> Late:
    """Return what was made of this very message for the policy before, or make it."""
    found = _LATELY.found.get(id(message))
    if found is None:
        found = _LATELY.found[id(message)] = Late(message)
    return found


def _deserialized(late: Late, proxy_secrets: bool = False) -> Any:
    return deserialize_properties(MessageToDict(late.message), proxy_secrets) if proxy_secrets else late


def _proxied(props: Any) -> Any:
    return props if isinstance(props, Late) else proxy.unknown_checking_proxy(props)


class TypedPolicy(ResourceValidationPolicy):
    """A policy that says of which types the resources are that it judges."""

    def __init__(self, types: Sequence[str], *given: Any, **named: Any) -> None:
        """Take what any policy takes, and the types; a `*` in one stands for anything."""
        super().__init__(*given, **named)
        self.types = tuple(types)


@lru_cache(maxsize=4096)
def resource_type(called: str, version: str | None, kind: str | None) -> str:
    """Return what a resource is: an object of Kubernetes is what its inputs say, whatever it is called."""
    if version is None or kind is None or not called.startswith("kubernetes:"):
        return called
    meant = f"kubernetes:{version if '/' in version else f'core/{version}'}:{kind}"
    return called if called == f"{meant}Patch" else meant


@lru_cache(maxsize=4096)
def is_one_of(type_: str, types: tuple[str, ...]) -> bool:
    """Whether a type is one of these; a `*` in one stands for anything."""
    return any(fnmatchcase(type_, one) for one in types)


@lru_cache(maxsize=4096)
def _of_other_types(policies: tuple[Policy, ...], type_: str) -> Sequence[TypedPolicy]:
    return [one for one in policies if isinstance(one, TypedPolicy) and not is_one_of(type_, one.types)]


def _by_type(
    answer: Callable[..., Any], is_asked: Callable[[EnforcementLevel, TypedPolicy], bool]
) -> Callable[..., Any]:
    """Have the host say of policies of other types that they do not apply, without a call to each."""

    def answer_by_type(own: Any, request: Any, context: Any) -> Any:
        type_ = resource_type(request.type, *_late(request.properties).kind)
        policies: Sequence[Policy] = vars(own)[_POLICIES]
        others = _of_other_types(tuple(policies), type_)
        left_out = [one for one in others if is_asked(getattr(own, _LEVEL)(one), one)]
        host = copy(own)
        vars(host)[_POLICIES] = [one for one in policies if one not in left_out]
        try:
            response = answer(host, request, context)
        finally:
            _LATELY.found.clear()
        response.not_applicable.extend(PolicyNotApplicable(policy_name=one.name) for one in left_out)
        return response

    return answer_by_type


def _configure_nothing(_: Any) -> None: ...


def read_late() -> None:
    """Have the host of this process read late from now on, and judge by type."""
    host: Any = policy
    host.json_format = SimpleNamespace(MessageToDict=_late)
    host.deserialize_properties = _deserialized
    host.unknown_checking_proxy = _proxied
    servicer = vars(host)["_PolicyAnalyzerServicer"]
    servicer.Analyze = _by_type(servicer.Analyze, lambda level, _: level is not EnforcementLevel.DISABLED)
    servicer.Remediate = _by_type(
        servicer.Remediate,
        lambda level, one: level is EnforcementLevel.REMEDIATE and one.has_remediation(),
    )
    servicer._configure_runtime_settings = _configure_nothing
