"""What the pack saves the host changes no answer: all that is asked for stack dev, with and without it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import late_reading
import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from late_reading import UNKNOWN, Late
from pack import POLICIES
from pulumi.runtime.proto.analyzer_pb2 import AnalyzeRequest
from pulumi_policy import ResourceValidationPolicy, StackValidationPolicy
from pulumi_policy.deserialize import deserialize_properties
from pulumi_policy.proxy import UnknownValueError, unknown_checking_proxy
from stack_config import STACK_CONFIG

from components.seals import UNSEEN
from tests.support.policies import (
    UNKNOWN as UNKNOWN_TEXT,
)
from tests.support.policies import (
    Asked,
    NotApplicableError,
    judge,
    judge_stack,
    record_dev,
    remedied,
    secret,
)

RULES = [one for one in POLICIES if isinstance(one, ResourceValidationPolicy)]
STACK_RULES = [one for one in POLICIES if isinstance(one, StackValidationPolicy)]
SPOILT: Sequence[Mapping[str, Any]] = [
    {},
    {"type": "kubernetes.io/service-account-token", "stringData": {"a": "b"}},
    {"stringData": secret({"a": UNKNOWN_TEXT}), "automountServiceAccountToken": True},
    {"metadata": UNKNOWN_TEXT, "data": {"password": "hunter-2-hunter-2"}, "flags": [UNKNOWN_TEXT]},
    {"apiVersion": secret("v1"), "kind": "ConfigMap", "data": {"password": "hunter-2-hunter-2"}},
    {"apiVersion": UNKNOWN_TEXT, "kind": "Secret", "data": secret({"password": "hunter-2-hunter-2"})},
    {"data": {"password": f"{UNSEEN}-1"}, "spec": {"containers": [{"env": [{"name": UNSEEN}]}]}},
    {"secretData": "in-plaintext", "labels": {"resource-type": "pull-secret"}},
    {"member": "allUsers", "principalType": "User", "subject": "x", "conditions": []},
]
"""What breaks rules, laid over what a resource of stack dev says."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    others = STACK_CONFIG.values, STACK_CONFIG.secret_keys
    yield Asked.of(record_dev(tmp_path_factory.mktemp("backend")))
    STACK_CONFIG.tell(*others)


def spoilt(asked: Asked) -> Iterator[AnalyzeRequest]:
    """Yield one resource of each type of stack dev, as it is and broken in each way."""
    for request in {one.type: one for one in asked.requests}.values():
        for changes in SPOILT:
            changed = AnalyzeRequest.FromString(request.SerializeToString())
            changed.properties.update(changes)
            yield changed


def by_proxies(held: Any, key: Any) -> Any:
    """Read a value as the host has policies read it: through its proxies, which raise at what is unknown."""
    try:
        value = held[key]
    except UnknownValueError:
        return UNKNOWN
    if isinstance(value, Mapping):
        return {each: by_proxies(value, each) for each in value}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [by_proxies(value, index) for index in range(len(value))]
    return value


def test_each_resource_gets_the_answers_of_every_rule_asked_alone(asked: Asked) -> None:
    broken = set[str]()
    for request in spoilt(asked):
        inputs, alone, remedies = MessageToDict(request.properties), dict[str, list[str]](), list[str]()
        for rule in RULES:
            with suppress(NotApplicableError):
                alone[rule.name] = judge(rule, request.type, inputs, urn=request.urn)
        for rule in RULES if request.type.startswith(("kubernetes:core", "gcp:")) else ():
            with suppress(NotApplicableError):
                remedies += [rule.name] if remedied(rule, request.type, inputs) else []

        answer, remedy = asked.host.Analyze(request, None), asked.host.Remediate(request, None)

        told = [
            (one.policyName, one.message.partition("\n")[2].partition("\n→ ")[0])
            for one in answer.diagnostics
        ]
        assert told == [(name, each) for name, found in alone.items() for each in found]
        assert {one.policy_name for one in answer.not_applicable} == {one.name for one in RULES} - set(alone)
        assert [one.policyName for one in remedy.remediations] == remedies
        assert len(remedy.remediations) + len(remedy.not_applicable) <= 2
        assert not late_reading._LATELY.found  # pyright: ignore[reportPrivateUsage]
        broken.update(name for name, _ in told)
    assert len(broken) >= 8


def test_what_rules_read_is_what_they_would_read_through_the_proxies_of_the_host(asked: Asked) -> None:
    for request in spoilt(asked):
        sent = MessageToDict(request.properties)
        proxies = unknown_checking_proxy(deserialize_properties(sent))
        message = Struct.FromString(request.properties.SerializeToString())

        assert Late(message).plain == {key: by_proxies(proxies, key) for key in proxies}


def test_the_stack_gets_the_answers_of_every_rule_asked_alone(asked: Asked) -> None:
    asked.judge_each()
    sent = [(one.type, MessageToDict(one.properties)) for one in asked.requests]

    told = [(one.policyName, one.urn) for one in asked.judge_stack().diagnostics]

    assert told == [(rule.name, urn) for rule in STACK_RULES for urn, _ in judge_stack(rule, sent)]
