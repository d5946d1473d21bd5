"""Base model of the configuration, and its field types with their rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from components.durations import DURATION, moment
from components.labels import HYPERSCALER_TYPE, PREFIX, SHARED, TENANT_NAME
from components.naming import is_label_key, is_label_value, is_namespace, is_object_name, matching

CONFIG_ERROR: Final = "unfit"
"""Type of a pydantic error that contains a problem and a fix written by credfleet."""

_WORD: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,126}[A-Za-z0-9])?"
_UNFILLED = re.compile(r"\$\(|\$\{|\{\{")
_FILE_NAME = re.compile(r"[-a-z0-9.]{1,253}")
_TAKEN = re.compile(r"(credfleet|external-secrets)\.io/|^(hyperscaler-type|tenant-name|eu-access|shared)$")
_NOTED = re.compile(r"(credfleet|external-secrets)\.io/|^kubectl\.kubernetes\.io/last-applied-configuration$")
_RESERVED_LABELS: Final = frozenset({HYPERSCALER_TYPE, TENANT_NAME, SHARED.removeprefix(PREFIX)})


class ConfigModel(BaseModel):
    """A part of the configuration: unknown keys are errors, nothing changes later, no error shows a value."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True
    )


def named_in(text: str) -> str:
    """Return a reference for messages; empty if it is neither a name nor a path."""
    parts = (part for part in text.split("/") if part not in ("", ".", ".."))
    return text if all(map(matching(_WORD), parts)) else ""


def config_error(problem: str, fix: str) -> PydanticCustomError:
    """Return the error that a validator raises."""
    return PydanticCustomError(CONFIG_ERROR, "{problem}", {"problem": problem, "fix": fix})


def must(test: Callable[[str], object], problem: str, fix: str) -> AfterValidator:
    """Return a validator for strings that must pass a test; `problem` and `fix` describe a failure."""

    def check(text: str) -> str:
        if not test(text):
            raise config_error(problem, fix)
        return text

    return AfterValidator(check)


Flag: TypeAlias = Annotated[bool, Strict()]
"""true or false. pydantic alone would also accept strings such as "yes"."""

Count: TypeAlias = Annotated[int, Strict(), Field(ge=0, lt=2**63)]
Positive: TypeAlias = Annotated[int, Strict(), Field(ge=1, lt=2**63)]


def is_of_the_cluster(namespace: str) -> bool:
    """Return whether Kubernetes reserves a namespace."""
    return namespace == "default" or namespace.startswith("kube-")


NO_DURATION: Final = "it is not a duration", "write such as 1h, 90s or 1h30m"
Duration: TypeAlias = Annotated[str, must(DURATION.fullmatch, *NO_DURATION)]


def _is_moment(text: str) -> bool:
    try:
        moment(text)
    except (ValueError, OverflowError):
        return False
    return True


Moment: TypeAlias = Annotated[
    str, must(_is_moment, "it is not a time", "write such as 2027-01-31 or 2027-01-31T12:00:00Z, in quotes")
]
NamespaceName: TypeAlias = Annotated[
    str,
    must(
        lambda text: is_namespace(text) and not is_of_the_cluster(text),
        "it is not a namespace of a fleet: Kubernetes takes up to 63 of a-z, 0-9 and, inside, '-',"
        " and keeps default and kube-… to itself",
        "choose a name such as tenant-acme",
    ),
]
ObjectName: TypeAlias = Annotated[
    str,
    must(
        is_object_name,
        "Kubernetes takes no such name: it wants up to 253 of a-z, 0-9 and, inside, '-' and '.'",
        "rename it, such as aws-1",
    ),
]
Name: TypeAlias = Annotated[
    str,
    must(
        matching(_WORD),
        "references are made of this name, so it has up to 128 letters, digits and, inside, '-', '_' and '.'",
        "rename it, such as acme",
    ),
]
FormerNames: TypeAlias = Annotated[tuple[Name, ...], Field(description="Former names, oldest first.")]
PoolType: TypeAlias = Annotated[
    str,
    must(
        lambda text: is_label_value(text) and text == text.lower(),
        "types are compared exactly and are lower-case label values of up to 63 characters",
        "write it in lower case, such as aws or gcp_cf-sa30",
    ),
]
LabelKey: TypeAlias = Annotated[
    str,
    must(
        is_label_key,
        "Kubernetes takes no such key of a label: up to 63 characters, bare or behind a domain and '/'",
        "write it such as tenantName",
    ),
]
PartitionKey: TypeAlias = Annotated[
    str,
    must(
        lambda text: is_label_key(text) and text not in _RESERVED_LABELS and not text.startswith(PREFIX),
        f"a partition key is a label the pool owner writes; {PREFIX}…, "
        f"{', '.join(sorted(_RESERVED_LABELS))} belong to the pool",
        "choose another key, such as eu-access",
    ),
]
_NO_OWN_LABEL: Final = (
    "it is a label of credfleet, accounts or External Secrets Operator",
    "choose another key",
)
OwnLabel: TypeAlias = Annotated[LabelKey, must(lambda text: not _TAKEN.search(text), *_NO_OWN_LABEL)]
_NO_VALUE: Final = "it is not a label value", "write up to 63 letters, digits and, inside, '-', '_' and '.'"
LabelValue: TypeAlias = Annotated[str, must(lambda text: not text or is_label_value(text), *_NO_VALUE)]
_NO_OWN_NOTE: Final = "it is of credfleet, kubectl or External Secrets Operator", "choose another key"
OwnAnnotation: TypeAlias = Annotated[LabelKey, must(lambda text: not _NOTED.search(text), *_NO_OWN_NOTE)]
PartitionValue: TypeAlias = Annotated[
    str,
    must(
        lambda text: is_label_value(text) and text != "false",
        "it is not a partition value: a label value of up to 63 characters; leaving the key out means false",
        'give a value such as "true", or leave the key out',
    ),
]
Region: TypeAlias = Annotated[
    str,
    must(
        matching("[a-z0-9][-a-z0-9]*"),
        "a region has a-z, 0-9 and '-' only, and may become part of a pool's type",
        "write it such as europe-west1 or cf-eu11",
    ),
]
Text: TypeAlias = Annotated[
    str,
    must(
        lambda text: text and text == text.strip() and text.isprintable() and not _UNFILLED.search(text),
        "it is empty, has blanks at its ends, invisible characters, or $(…), ${…} or {{…}} unfilled",
        "write it without them",
    ),
]
ClusterUid: TypeAlias = Annotated[
    str,
    must(
        matching("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        "must be the uid of the cluster's namespace kube-system",
        "take it from: kubectl get namespace kube-system -o jsonpath={.metadata.uid}",
    ),
]
FilePath: TypeAlias = Annotated[
    str,
    must(
        lambda text: bool(text) and text.isprintable() and not PurePath(text).name.startswith("{"),
        "it is not a path of a file; what a file holds, such as a kubeconfig, would be in plaintext here",
        "give the path of the file",
    ),
]
FileName: TypeAlias = Annotated[
    str,
    must(
        lambda text: _FILE_NAME.fullmatch(text) is not None and text.strip(".") != "",
        "it becomes a directory that applications look for: up to 253 of a-z, 0-9, '-' and '.'",
        "rename it, such as orders-db",
    ),
]


def refused_if(holds: Callable[[Any], object], problem: str, fix: str) -> Any:
    """Return a validator for an entry for which this must not hold."""

    def check(entry: Any) -> Any:
        if holds(entry):
            raise config_error(problem, fix)
        return entry

    return model_validator(mode="after")(check)


def optional(description: str, default: object = None) -> Any:
    """Return an optional field of an entry."""
    return Field(default=default, description=description)


def as_named(given: object) -> object:
    """Convert an entry that is only a name to a map."""
    return {"name": given} if isinstance(given, str) else given


def exactly_one(problem: str, fix: str, *fields: str) -> Any:
    """Return a validator for an entry that must have exactly one of these fields."""
    return refused_if(lambda entry: sum(bool(getattr(entry, each)) for each in fields) != 1, problem, fix)


def first_name(name: str, previously: Sequence[str]) -> str:
    """Return the name from which ids and objects were created: it stays the same after a rename."""
    return previously[0] if previously else name


def called_first(key: str, form: str = "{}") -> Any:
    """Return a validator that keeps the object's name after a rename of its entry. `key`: of that name."""

    def read(cls: type, given: Any) -> Any:  # noqa: ARG001 - pydantic takes it for a class method by this name
        former = given.get("previously") if isinstance(given, dict) else None
        if isinstance(former, list | tuple) and former and given.get(key) is None:
            return {**given, key: form.format(former[0])}
        return given

    return model_validator(mode="before")(read)
