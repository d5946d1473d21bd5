"""Conditions: the namespaces that can use a ClusterSecretStore."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from components.errors import Problem
from components.importing import IMPORT_LOCK
from components.labels import TENANT
from components.naming import is_label_key, is_label_value, tenant_label
from components.secret_stores.model import Condition, LabelSelector, Requirement

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Label that holds the name of a namespace."""


def namespace_labels(tenants: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Return the labels that the stack sets on namespaces, by namespace. `tenants`: name → namespace."""
    return {namespace: {TENANT: tenant_label(name)} for name, namespace in tenants.items()}


_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def condition_objections(conditions: Iterable[Condition]) -> Iterator[Problem]:
    """Yield problems of conditions: invalid labels and regular expressions."""
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
                f"{place}.{where} requires a label that is invalid on a namespace",
                "write up to 63 letters, digits and, inside, '-', '_' and '.'; a key may have a prefix/",
            )


def allows(
    conditions: Iterable[Condition], name: str, labels: Mapping[str, str], *, whole: bool = True
) -> bool | Problem | None:
    """Return whether a namespace meets any condition; an empty list admits all.

    `whole`: `labels` are complete; otherwise the result is None if it depends on unknown labels. Returns the
    Problem of an invalid condition, which rejects every namespace.
    """
    conditions = tuple(conditions)
    for refusal in (*condition_objections(conditions), *requirement_faults(conditions)):
        return refusal
    return not conditions or _any(_meets(condition, name, labels, whole=whole) for condition in conditions)


def _meets(condition: Condition, name: str, labels: Mapping[str, str], *, whole: bool) -> bool | None:
    selector = condition.namespace_selector
    if labels.get(NAME_LABEL) in condition.namespaces or any(
        is_found(pattern, name) for pattern in condition.namespace_regexes
    ):
        return True
    return selector is not None and _selects(selector, labels, whole=whole)


def _any(held: Iterable[bool | None]) -> bool | None:
    """Return whether any is True; None if that depends on unknown ones."""
    found = {*held}
    return True if True in found else None if None in found else False


def _selects(selector: LabelSelector, labels: Mapping[str, str], *, whole: bool) -> bool | None:
    asked = [
        Requirement(key=key, operator="In", values=(value,)) for key, value in selector.match_labels.items()
    ]
    asked.extend(selector.match_expressions)
    failed = _any(
        None if not whole and each.key not in labels else not _holds(each, labels) for each in asked
    )
    return None if failed is None else not failed


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
    """Yield problems of expressions that cannot be evaluated for any labels."""
    for index, condition in enumerate(conditions):
        selector = condition.namespace_selector or LabelSelector()
        for position, requirement in enumerate(selector.match_expressions):
            place = f"spec.conditions[{index}].namespaceSelector.matchExpressions[{position}]"
            if requirement.operator not in _OPERATORS:
                problem = f"{place}.operator is not an operator of Kubernetes"
                yield Problem(f"{place}.operator", problem, "use In, NotIn, Exists or DoesNotExist")
            elif requirement.operator in ("In", "NotIn") and not requirement.values:
                yield Problem(place, f"{place} compares with no value", "add values")
            elif requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
                yield Problem(
                    place, f"{place} checks for a key only, so its values would be ignored", "remove values"
                )


def regex_objections(place: str, pattern: str) -> Iterator[Problem]:
    """Yield a problem if a pattern is not valid RE2, the syntax that Google and ESO use."""
    if _search(pattern, "") is None:
        yield Problem(
            place,
            f"{place} is not a regular expression of RE2, which has no look-around and no references",
            "correct it, such as ^tenant-",
        )


def is_found(pattern: str, text: str) -> bool:
    """Return whether a pattern matches anywhere in a string; an invalid one never matches."""
    return _search(pattern, text) is True


def _search(pattern: str, text: str) -> bool | None:
    found = _matcher().eval(data={"text": text, "pattern": pattern}).value()
    return found if isinstance(found, bool) else None


@cache
def _matcher() -> Any:
    """Return a compiled CEL program, because `matches` in CEL is RE2."""
    with IMPORT_LOCK:
        from cel_expr_python import cel

    types: dict[str, Any] = dict.fromkeys(("text", "pattern"), cel.Type.STRING)
    return cel.NewEnv(variables=types).compile("text.matches(pattern)")
