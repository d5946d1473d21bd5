"""Which namespaces may use a store of the whole cluster."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from components.errors import Problem
from components.naming import is_label_key, is_label_value
from components.secret_stores.model import Condition, LabelSelector, Requirement

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label by which conditions know a namespace's name."""

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_PARTS: Final = re.compile(
    r"\\.|\[\^?\]?(?:\[:.*?:\]|\\.|[^\]\\])*\]|\(\?(?:P?<[^>=!]*>|<[=!]|P=|[a-zA-Z-]+[:)]?|.)|\{\d*(?:,\d*)?\}|.",
    re.DOTALL,
)
"""What a regular expression is made of, as far as Go and Python differ over it."""

_IN_SET: Final = r"\[(?:[^\\]|\\.)*?"
_ONLY_PYTHON: Final = re.compile(
    r"\\[1-9ZuUN\x80-\U0010ffff]|\(\?(?:[=!>(#]|<[=!]|P=|P<.*[^\x00-\x7f].*|[a-zA-Z-]*[aLux][a-zA-Z-]*[:)])"
    rf"|\{{,\d+\}}|{_IN_SET}\\[b1-9uUN\x80-\U0010ffff].*\]",
    re.DOTALL,
)
_ONLY_GO: Final = re.compile(
    rf"\\[pPzQEC]|{_IN_SET}(?:\[:|\\[pPzQEC]).*\]|\(\?(?:<.*|[a-zA-Z-]*U[a-zA-Z-]*[:)])", re.DOTALL
)
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_COUNT: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_MOST_REPEATS: Final = 1000
"""How often Go repeats a part at most, the repeats around it counted in."""


def condition_objections(conditions: Iterable[Condition]) -> Iterator[Problem]:
    """Find what keeps conditions from being accepted: labels and expressions that make no sense for all."""
    for index, condition in enumerate(conditions):
        yield from _label_objections(f"spec.conditions[{index}].namespaceSelector", condition)
        for position, pattern in enumerate(condition.namespace_regexes):
            place = f"spec.conditions[{index}].namespaceRegexes[{position}]"
            yield from regex_objections(place, pattern)


def _label_objections(place: str, condition: Condition) -> Iterator[Problem]:
    selector = condition.namespace_selector or LabelSelector()
    asked = [
        *((f"matchLabels.{key}", key, (value,)) for key, value in selector.match_labels.items()),
        *(
            (f"matchExpressions[{index}]", each.key, each.values)
            for index, each in enumerate(selector.match_expressions)
        ),
    ]
    for where, key, values in asked:
        if not is_label_key(key) or not all(value == "" or is_label_value(value) for value in values):
            yield Problem(
                f"{place}.{where}",
                f"{place}.{where} asks for a label that Kubernetes takes on no namespace",
                "write up to 63 letters, digits and, inside, '-', '_' and '.'; a key may have a prefix/",
            )


def allows(conditions: Iterable[Condition], name: str, labels: Mapping[str, str]) -> bool | Problem:
    """Whether a namespace meets any of the conditions; an empty list takes all.

    A condition that makes no sense refuses everybody, whatever the others say.
    """
    conditions = tuple(conditions)
    for refusal in (*condition_objections(conditions), *requirement_faults(conditions)):
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


def requirement_faults(conditions: Iterable[Condition]) -> Iterator[Problem]:
    """Find expressions that no labels could ever be compared by."""
    for index, condition in enumerate(conditions):
        selector = condition.namespace_selector or LabelSelector()
        for position, requirement in enumerate(selector.match_expressions):
            place = f"spec.conditions[{index}].namespaceSelector.matchExpressions[{position}]"
            if requirement.operator not in _OPERATORS:
                yield Problem(
                    f"{place}.operator", f"{place}.operator is none that Kubernetes knows", f"use {_listed()}"
                )
            elif requirement.operator in ("In", "NotIn") and not requirement.values:
                yield Problem(place, f"{place} compares with no value", "add values")
            elif requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
                yield Problem(
                    place, f"{place} asks for a key only, so its values would be ignored", "remove values"
                )


def _listed() -> str:
    return f"{', '.join(_OPERATORS[:-1])} or {_OPERATORS[-1]}"


def regex_objections(place: str, pattern: str) -> Iterator[Problem]:
    """Judge a pattern as ESO does, which is written in Go (RE2), and as this program, written in Python."""
    parts: list[str] = _PARTS.findall(pattern)
    if any(map(_ONLY_PYTHON.fullmatch, parts)) or any(map(_is_possessive, parts, parts[1:])):
        yield Problem(place, f"{place} is read otherwise by Go (RE2), or not at all", "do without it")
    elif any(map(_ONLY_GO.fullmatch, parts)) or any(map(_FLAGS.fullmatch, parts[1:])):
        yield Problem(
            place,
            f"{place} says what only Go's regular expressions (RE2) can, and Python reads it here",
            "write the characters out, such as [a-z0-9]",
        )
    else:
        try:
            with warnings.catch_warnings():  # a Python to come may read [a&&b] otherwise, and warns of it
                warnings.simplefilter("ignore", FutureWarning)
                re.compile(pattern)
        except re.error:
            yield Problem(place, f"{place} is no regular expression", "correct it, such as ^tenant-")
            return
        if _repeats(parts) > _MOST_REPEATS:
            yield Problem(
                place,
                f"{place} repeats a part more than {_MOST_REPEATS} times, and Go (RE2) does not",
                "repeat it less",
            )


def _is_possessive(part: str, following: str) -> bool:
    return following == "+" and (part in ("*", "+", "?") or _COUNT.fullmatch(part) is not None)


def _repeats(parts: Iterable[str]) -> int:
    """Return how often the part that is repeated most is, of a pattern that makes sense."""
    groups, last = [1], 1
    for part in parts:
        if count := _COUNT.fullmatch(part):
            last *= int(count[2] or count[1])
        elif part == ")":
            last = groups.pop()
        elif part not in ("*", "+", "?"):
            last = 1
        if part.startswith("(") and not _FLAGS.fullmatch(part):
            groups.append(1)
        groups[-1] = max(groups[-1], last)
    return groups[0]
