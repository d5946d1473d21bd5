"""The Roles of a stack's identities as manifests, to be applied by an administrator of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from components.account_pool.admission.roles import Right
from operations.bootstrap.rights import CLUSTER, Identity, Rights

_GROUP: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Subject:
    """Who an identity is to the cluster."""

    kind: Literal["Group", "User"]
    name: str


def manifests(
    names: Mapping[Identity, str], subjects: Mapping[Identity, Subject], rights: Mapping[Identity, Rights]
) -> Iterator[dict[str, Any]]:
    """Yield a Role and its binding for each identity and each place where it has rights. names: of Roles."""
    for identity, places in rights.items():
        for place, those in places.items():
            yield from _granted(names[identity], subjects[identity], place, those)


def as_text(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return manifests as YAML."""
    import yaml

    return str(yaml.safe_dump_all(documents, sort_keys=False, default_flow_style=None, width=110))


def _granted(name: str, subject: Subject, place: str, rights: Iterable[Right]) -> Iterator[dict[str, Any]]:
    kind = "ClusterRole" if place == CLUSTER else "Role"
    metadata = {"name": name} | ({"namespace": place} if place != CLUSTER else {})
    head = {"apiVersion": f"{_GROUP}/v1"}
    yield {**head, "kind": kind, "metadata": {**metadata}, "rules": [_rule(right) for right in rights]}
    yield {
        **head,
        "kind": f"{kind}Binding",
        "metadata": {**metadata},
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [{"apiGroup": _GROUP, "kind": subject.kind, "name": subject.name}],
    }


def _rule(right: Right) -> Mapping[str, Sequence[str]]:
    verbs = [str(verb) for verb in right.verbs]
    rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": verbs}
    return {**rule, "resourceNames": [*right.names]} if right.names else rule
