"""Which namespaces may use a store of the whole cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from components.secret_stores.model import Condition, LabelSelector, Refusal, Requirement

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label by which conditions know a namespace's name."""

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_NOT_ALIKE = re.compile(r"\(\?(?:[=!>(]|<[=!]|P=|#)|[*+?}]\+|\\[1-9Z]|\[\[:")
"""What Python's regular expressions and Go's (RE2), which ESO uses, do not both know."""


def condition_objections(conditions: Iterable[Condition]) -> Iterator[Refusal]:
    """Find what keeps conditions from being accepted: regular expressions that are none."""
    for index, condition in enumerate(conditions):
        for position, pattern in enumerate(condition.namespace_regexes):
            if not _is_regex(pattern):
                yield Refusal(
                    f"spec.conditions[{index}].namespaceRegexes[{position}] is no regular expression that Go"
                    " (RE2) and Python read alike",
                    "correct it, such as ^tenant-",
                )


def allows(conditions: Iterable[Condition], name: str, labels: Mapping[str, str]) -> bool | Refusal:
    """Tell whether a namespace meets any of the conditions; an empty list takes all.

    A condition that makes no sense refuses everybody, whatever the others say.
    """
    conditions = tuple(conditions)
    for refusal in (*condition_objections(conditions), *_requirement_faults(conditions)):
        return refusal
    return not conditions or any(_meets(condition, name, labels) for condition in conditions)


def _meets(condition: Condition, name: str, labels: Mapping[str, str]) -> bool:
    selector = condition.namespace_selector
    return (
        (selector is not None and _selects(selector, labels))
        or labels.get(NAME_LABEL) in condition.namespaces
        or any(re.search(pattern, name) for pattern in condition.namespace_regexes)
    )


def _selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    return selector.match_labels.items() <= labels.items() and all(
        _holds(requirement, labels) for requirement in selector.match_expressions
    )


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case _:
            return value is None


def _requirement_faults(conditions: Iterable[Condition]) -> Iterator[Refusal]:
    for index, condition in enumerate(conditions):
        selector = condition.namespace_selector or LabelSelector()
        for position, requirement in enumerate(selector.match_expressions):
            place = f"spec.conditions[{index}].namespaceSelector.matchExpressions[{position}]"
            if requirement.operator not in _OPERATORS:
                yield Refusal(f"{place}.operator is none that Kubernetes knows", f"use {_listed()}")
            elif requirement.operator in ("In", "NotIn") and not requirement.values:
                yield Refusal(f"{place} compares with no value", "add values")
            elif requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
                yield Refusal(f"{place} asks for a key only, so its values would be ignored", "remove values")


def _listed() -> str:
    return f"{', '.join(_OPERATORS[:-1])} or {_OPERATORS[-1]}"


def _is_regex(pattern: str) -> bool:
    if _NOT_ALIKE.search(pattern) is not None:
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
