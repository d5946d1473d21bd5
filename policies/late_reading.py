"""Makes the policy host read properties lazily, and only call policies for the type of a resource.

The host converts all properties of a resource, and the whole configuration of its provider, to dicts for each
of 50 policies, most of them for other types. It also reads the stack's configuration twice for each resource,
for policies that ask Pulumi for it; none here does. Remedies may change their arguments, so each gets a copy.
The host hides from checks which values are secret, though the same message says so; they can be read from it
here.
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
"""Wire format of values that only the update knows."""


class _Unknown:
    """A value that is known only during the update; it equals no string or number, and is empty."""

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()


class Late:
    """Properties as the host passes them to a policy, read from their message on first access."""

    def __init__(self, message: Struct) -> None:
        self.message = message
        self.touched = Touched()

    @cached_property
    def kind(self) -> tuple[str | None, str | None]:
        """The known `apiVersion` and `kind`, which tell the type of a Kubernetes object."""
        return self._text("apiVersion"), self._text("kind")

    def _text(self, key: str) -> str | None:
        if key not in self.message.fields:
            return None
        return known_text(deserialize_properties({key: MessageToDict(self.message.fields[key])})[key])

    @cached_property
    def plain(self) -> Mapping[str, Any]:
        """The properties for checks: secrets unmarked, and UNKNOWN for values known only in the update.

        All checks share this object; access to a part that cannot be read is recorded in `touched`.
        """
        return plain(deserialize_properties(MessageToDict(self.message)), self.touched)

    @property
    def marked(self) -> Mapping[str, Any]:
        """The properties as the host passes them to a remedy, with secrets inside `Secret`."""
        return with_secrets(deserialize_properties(MessageToDict(self.message), proxy_secrets=True))

    def copy(self) -> dict[str, Any]:
        """Return an environment's configuration of a policy, which the host also reads from a message."""
        return MessageToDict(self.message)


def known_text(value: Any) -> str | None:
    """Return a text, secret or not; None if it is unknown or not a text."""
    text = value.value if isinstance(value, Secret) else value
    return text if isinstance(text, str) and text not in UNKNOWN_TEXTS else None


class Touched(list[None]):
    """Not empty once a rule accessed a part that cannot be read, so that its result does not count."""


class _Sealed(dict[str, Any]):
    """An object with placeholders for unknown values, which records each access."""

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
    """Replace unknown values by UNKNOWN; access to objects with hidden secrets is recorded in `touched`."""
    if isinstance(value, dict):
        found = {key: plain(item, touched) for key, item in value.items()}
        sealed = any(hides(each) for pair in found.items() for each in pair if isinstance(each, str))
        return _Sealed(found, touched) if sealed else found
    if isinstance(value, list):
        return [plain(item, touched) for item in value]
    return UNKNOWN if isinstance(value, str) and value in UNKNOWN_TEXTS else value


def with_secrets(value: Any) -> Any:
    """Convert the host's arguments of a remedy to plain dicts and lists, with secrets inside `Secret`."""
    if isinstance(value, Secret):
        return Secret(with_secrets(value.value))
    if isinstance(value, Mapping):
        # The items of the host's proxy would be secrets without their mark.
        held = value if isinstance(value, dict) else value["__target"]
        return {key: with_secrets(item) for key, item in held.items()}
    if isinstance(value, list):
        return [with_secrets(item) for item in value]
    return value


class _Lately(threading.local):
    def __init__(self) -> None:
        self.found: dict[int, Late] = {}


_LATELY: Final = _Lately()
"""Properties read so far for the current request, by the `id()` of their message."""


def _late(message: Struct) -> Late:
    """Return the properties already created from this message for an earlier policy, or create them."""
    found = _LATELY.found.get(id(message))
    if found is None:
        found = _LATELY.found[id(message)] = Late(message)
    return found


def _deserialized(late: Late, proxy_secrets: bool = False) -> Any:
    return deserialize_properties(MessageToDict(late.message), proxy_secrets) if proxy_secrets else late


def _proxied(props: Any) -> Any:
    return props if isinstance(props, Late) else proxy.unknown_checking_proxy(props)


class TypedPolicy(ResourceValidationPolicy):
    """A policy that declares the types of the resources that it judges."""

    def __init__(self, types: Sequence[str], *given: Any, **named: Any) -> None:
        """Create the policy for these types, in which `*` matches anything."""
        super().__init__(*given, **named)
        self.types = tuple(types)


@lru_cache(maxsize=4096)
def resource_type(called: str, version: str | None, kind: str | None) -> str:
    """Return a resource's type; that of a Kubernetes object comes from its inputs, not from its token."""
    if version is None or kind is None or not called.startswith("kubernetes:"):
        return called
    meant = f"kubernetes:{version if '/' in version else f'core/{version}'}:{kind}"
    return called if called == f"{meant}Patch" else meant


@lru_cache(maxsize=4096)
def is_one_of(type_: str, types: tuple[str, ...]) -> bool:
    """Return whether a type matches one of the patterns, in which `*` stands for anything."""
    return any(fnmatchcase(type_, one) for one in types)


@lru_cache(maxsize=4096)
def _of_other_types(policies: tuple[Policy, ...], type_: str) -> Sequence[TypedPolicy]:
    return [one for one in policies if isinstance(one, TypedPolicy) and not is_one_of(type_, one.types)]


def _by_type(
    answer: Callable[..., Any], is_asked: Callable[[EnforcementLevel, TypedPolicy], bool]
) -> Callable[..., Any]:
    """Make the host report policies for other types as not applicable without calling them."""

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
    """Make the host of this process read properties lazily and select policies by type."""
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
