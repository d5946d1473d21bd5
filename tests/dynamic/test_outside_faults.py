"""Every method of every dynamic provider fails in our words, whatever goes wrong outside of it.

It does not prove that the words are the best ones; the files of the providers do.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from pulumi.dynamic import ResourceProvider

from components.dynamic import DynamicProvider, camel_case
from tests.support.cases import table
from tests.support.dynamic_host import ROOT, Host, Properties, Recorded, dynamic_host
from tests.support.outside_faults import FAULTS, QUOTED, TOKEN, outside

FROZEN: Final = Path(__file__).with_name("frozen_paths.txt").read_text().split()
METHODS: Final = ("check", "diff", "create", "read", "update", "delete")


RESOURCES: Final[Mapping[str, tuple[Properties, Properties, Properties]]] = table(__file__, "RESOURCES")
"""Of each class: inputs, the outputs of a state, and what of the inputs an update changes."""


def classes() -> dict[str, type[DynamicProvider]]:
    split = (each.partition(":") for each in FROZEN)
    return {name: getattr(importlib.import_module(module), name) for module, _, name in split}


def said(call: Callable[[], Any]) -> list[str]:
    """Return what a call failed with, or what a check refused."""
    try:
        answer = call()
    except grpc.RpcError as error:
        return [str(error.details())]
    return [f"pulumi.errors.RunError: {each}" for each in answer] if isinstance(answer, list) else []


OFTEN: Final = ("no file", "401", "403 of a proxy", "a page", "refused")
"""One of each kind; `make genuine` has them all."""


@pytest.mark.parametrize(
    "fault", [each if each in OFTEN else pytest.param(each, marks=pytest.mark.life) for each in FAULTS]
)
def test_methods_with_a_fault_outside_fail_in_our_words(fault: str, tmp_path: Path) -> None:
    path = f"{ROOT / 'tests/support/impatient'}:{ROOT}"
    with (
        outside(fault, tmp_path) as config,
        dynamic_host(config, {"PYTHONPATH": path}) as host,
        ThreadPoolExecutor(16) as calling,
    ):
        calls = {
            (name, method): calling.submit(said, call)
            for name in RESOURCES
            for method, call in calls_of(name, host, config["pullSecrets"]["hyperfleet"]["apiUrl"]).items()
        }
        told = {of: call.result() for of, call in calls.items()}
    assert {of: text for of, texts in told.items() for text in texts if not is_in_our_words(text)} == {}
    if fault.startswith("401"):
        advice = "run `kubectl config set-credentials u --kubeconfig "
        for name in LOOKS_IN_CHECK:
            (text,) = told[name, "check"]
            assert text.startswith("pulumi.errors.RunError: not-signed-in: "), name
            assert advice in text, name


def calls_of(name: str, host: Host, server: str) -> Mapping[str, Callable[[], Any]]:
    """Return a call of each method of a class."""
    inputs, outputs, change = RESOURCES[name]
    inputs = {**inputs, **({"apiUrl": server} if "apiUrl" in inputs else {})}
    of = host.provider(classes()[name]())
    inputs = full(classes()[name], inputs)
    old, news = Recorded("id", inputs, {**inputs, **outputs}), {**inputs, **change}
    return {
        "check": lambda: of.refusals(news, inputs),
        "diff": lambda: of.diff_unchecked(old, old.inputs),
        "create": lambda: of.create_unchecked(inputs),
        "read": lambda: of.refresh(old),
        "update": lambda: of.update_unchecked(old, news),
        "delete": lambda: of.delete(old),
    }


def is_in_our_words(text: str) -> bool:
    """Return whether a failure has our shape, and nothing of a traceback, a token or an answer."""
    foreign = ("Traceback", "RunError: defect", TOKEN, QUOTED)
    return (
        text.startswith("pulumi.errors.RunError: ")
        and "\n→ " in text
        and not any(each in text for each in foreign)
    )


LOOKS_IN_CHECK: Final = frozenset(RESOURCES) - {
    "AccountKeyProvider",
    "AccountClaimProvider",  # its roster looks
    "PoolSealProvider",
    "SubscriptionPinProvider",
    "PullSecretRetentionProvider",
    "PullSecretStartProvider",
    "PullSecretStatusProvider",
    "PullSecretVerificationProvider",
}
"""Classes whose check asks the cluster."""


def full(of: type[DynamicProvider], inputs: Properties) -> Properties:
    """Return inputs with the defaults that a check fills in, without its look at anything outside."""
    defaults = {
        camel_case(each.name): each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(of.args)
        if each.default is not MISSING or each.default_factory is not MISSING
    }
    return {**defaults, **inputs}


def test_every_frozen_class_has_its_case_and_overrides_no_method_of_the_host() -> None:
    assert sorted(RESOURCES) == sorted(classes())
    for each in classes().values():
        for method in ("configure", *METHODS):
            assert getattr(each, method) is getattr(DynamicProvider, method)
            assert getattr(DynamicProvider, method) is not getattr(ResourceProvider, method)
