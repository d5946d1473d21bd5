"""Judges resources by a policy, with the inputs wrapped as the host of the pack wraps them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import pytest
import secret_values
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from late_reading import Late
from pack import POLICIES
from pulumi.runtime.proto import analyzer_pb2 as proto
from pulumi_policy import (
    EnforcementLevel,
    PolicyProviderResource,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
    policy,
)
from pulumi_policy.deserialize import deserialize_properties, serialize_properties
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy
from secret_values import Sightings, declared_secrets

from tests.support import stacks
from tests.support.recorder import Recorder, record
from tests.support.stacks import ROOT

UNKNOWN: Final = UNKNOWN_STRING_VALUE
"""How a value that only the update knows comes over the wire."""

OPTIONS: Final = cast("PolicyResourceOptions", None)
_PROVIDER: Final = PolicyProviderResource("pulumi:providers:x", {}, "urn:provider", "x")


def secret(value: Any) -> dict[str, Any]:
    """Mark a value as secret, as it comes over the wire."""
    return {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": value}


def with_each_part(value: Any, instead: Any) -> Iterator[Any]:
    """Yield the value once for each part of it, with something else instead of that part."""
    if isinstance(value, dict) and value == secret(value.get("value")):
        yield from map(secret, (instead, *with_each_part(value["value"], instead)))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: part} for part in (instead, *with_each_part(item, instead)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            parts = (instead, *with_each_part(item, instead))
            yield from ([*value[:index], part, *value[index + 1 :]] for part in parts)


class NotApplicableError(Exception):
    """The policy has nothing to say about a resource of this type."""


class _Args(ResourceValidationArgs):
    def not_applicable(self, reason: str | None = None) -> NoReturn:
        raise NotApplicableError(reason)


def judge(
    policy: ResourceValidationPolicy,
    type_: str,
    inputs: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    *,
    urn: str = "urn:x",
) -> list[str]:
    """Return the violations of a policy, each cut at its fix. Raises NotApplicableError."""
    found: list[str] = []
    args = _Args(type_, _as_sent(inputs), urn, "x", OPTIONS, None, config)
    policy.validate(args, lambda message, _urn: found.append(message))
    return _cut(found)


def remedied(
    policy: ResourceValidationPolicy, type_: str, inputs: Mapping[str, Any], urn: str = "urn:x"
) -> Mapping[str, Any] | None:
    """Return the inputs a policy makes of these, as they come over the wire, or None when it leaves them."""
    props = unknown_checking_proxy(deserialize_properties(dict(inputs), proxy_secrets=True))
    fixed = policy.remediate(_Args(type_, props, urn, "x", OPTIONS, None))
    return None if fixed is None else serialize_properties(cast("Mapping[str, Any]", fixed))


def judge_stack(
    policy: StackValidationPolicy,
    resources: Sequence[tuple[str, Mapping[str, Any]]],
    config: Mapping[str, Any] | None = None,
    *,
    backwards: bool = False,
    sources: Mapping[int, Mapping[str, int]] | None = None,
) -> list[tuple[str, str]]:
    """Return the violations among resources, given by type and properties: place in the list, sentence.

    The stack and components of credfleet have no provider. backwards: the last of them comes first.
    sources: place → property → place of whose output it is made.
    """
    found: list[tuple[str, str]] = []
    declared = [
        PolicyResource(
            type_,
            _as_sent(inputs),
            str(index),
            "x",
            OPTIONS,
            None if type_.startswith(("pulumi:", "credfleet:")) else _PROVIDER,
            None,
            [],
            {},
        )
        for index, (type_, inputs) in enumerate(resources)
    ]
    for place, made in (sources or {}).items():
        for key, source in made.items():
            declared[place].property_dependencies[key] = [declared[source]]
    policy.validate(
        StackValidationArgs(declared[:: -1 if backwards else 1], config),
        lambda message, urn: found.append((str(urn), message)),
    )
    return list(zip((urn for urn, _ in found), _cut([message for _, message in found]), strict=True))


def _as_sent(inputs: Mapping[str, Any]) -> Any:
    message = Struct()
    message.update(inputs)
    return Late(message)


def _cut(messages: Sequence[str]) -> list[str]:
    assert all("\n→ " in message for message in messages), "every violation says how to fix it"
    return [message.partition("\n→ ")[0] for message in messages]


def objections(environment: str, recorder: Recorder) -> list[tuple[str, object]]:
    """Return all that the pack has against what a program registered, as an environment configures it.

    Gives rule and violation.
    """
    config = ROOT / "policies" / "config" / f"{environment}.json"
    said: Mapping[str, Any] = json.loads(config.read_text(encoding="utf-8"))
    registered = [one for one in recorder.registrations if not one.read_id]
    declared = [(one.type, MessageToDict(one.request.object)) for one in registered]
    put_out = [(urn.split("::")[2].rpartition("$")[2], each) for urn, each in recorder.put_out.items()]
    ends = [*declared, *((type_, MessageToDict(each)) for type_, each in put_out)]
    found: list[tuple[str, object]] = []
    with pytest.MonkeyPatch.context() as patched:
        secrets = declared_secrets(recorder.config, recorder.secret_keys)
        patched.setattr(secret_values._OF_THE_STACK, "sightings", Sightings(secrets))  # pyright: ignore[reportPrivateUsage]
        for policy in POLICIES:
            given = said.get(policy.name, {})
            given = given if isinstance(given, dict) else {}
            if isinstance(policy, StackValidationPolicy):
                found += [(policy.name, each) for each in judge_stack(policy, ends, given)]
            elif isinstance(policy, ResourceValidationPolicy):
                for urn, (type_, inputs) in enumerate(declared):
                    with suppress(NotApplicableError):
                        found += [
                            (policy.name, each) for each in judge(policy, type_, inputs, given, urn=str(urn))
                        ]
    return found


def record_dev(backend: Path) -> Recorder:
    """Record the stack `dev` as it is in the repository, its credentials decrypted, in a preview."""
    values, secret_keys = stacks.dev(backend)
    return record(
        stacks.program, config=values, secret_keys=secret_keys, preview=True, calls=stacks.NO_ENTRIES
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the engine asks of the host of the pack for a program, and the host, in this process."""

    host: Any
    requests: Sequence[proto.AnalyzeRequest]
    stack: proto.AnalyzeStackRequest

    @classmethod
    def of(cls, recorder: Recorder) -> "Asked":
        """Make what is asked of what a program registered."""
        host = vars(policy)["_PolicyAnalyzerServicer"](
            "credfleet", "0", [*POLICIES], EnforcementLevel.MANDATORY
        )
        told = proto.AnalyzerStackConfigureRequest(
            config=recorder.config, config_secret_keys=recorder.secret_keys
        )
        host.ConfigureStack(told, None)
        by_urn = {one.urn: one for one in recorder.registrations}
        requests: list[proto.AnalyzeRequest] = []
        for one in recorder.registrations:
            its = by_urn.get(one.provider.rpartition("::")[0])
            provider = its and proto.AnalyzerProviderResource(
                type=its.type, urn=its.urn, name=its.name, properties=its.request.object
            )
            requests.append(
                proto.AnalyzeRequest(
                    type=one.type,
                    urn=one.urn,
                    name=one.name,
                    properties=one.request.object,
                    provider=provider,
                )
            )
        stack = proto.AnalyzeStackRequest(
            resources=[
                proto.AnalyzerResource(
                    type=one.type,
                    urn=one.urn,
                    name=one.name,
                    properties=one.properties,
                    provider=one.provider if one.HasField("provider") else None,
                )
                for one in requests
            ]
        )
        return cls(host, requests, stack)

    def judge_each(self) -> Sequence[tuple[proto.AnalyzeResponse, proto.RemediateResponse]]:
        """Ask for each resource as the engine does."""
        return [(self.host.Analyze(one, None), self.host.Remediate(one, None)) for one in self.requests]

    def judge_stack(self) -> proto.AnalyzeResponse:
        """Ask at the end, for all."""
        return self.host.AnalyzeStack(self.stack, None)
