"""Names and labels derived from a cluster's id, and the maximum length of the id for each.

Names are never shortened: two ids with the same name would share a pull secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from components.errors import Problem
from components.naming import (
    LABEL_VALUE_LIMIT,
    NAMESPACE_LIMIT,
    OBJECT_NAME_LIMIT,
    is_namespace,
    is_object_name,
)

_SECRET_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
_CLUSTER_ID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}?|\}")
_REFUSED_IN_LABELS = re.compile(r"[^a-z0-9_-]")
"""Google also accepts letters of other scripts; HyperFleet does not."""

SAME_FOR_ALL: Final[Mapping[str, str]] = {
    "managed-by": "hyperfleet",
    "adapter": "pullsecret",
    "resource-type": "pull-secret",
    "hyperfleet-version": "v1",
}
"""Labels that HyperFleet sets on all its entries."""

OWN: Final = (*SAME_FOR_ALL, "cluster-id", "cluster-name")
"""Keys of all labels that HyperFleet sets on its entries."""


@dataclass(frozen=True, slots=True)
class Name:
    """Name derived from a cluster's id or region. `limit`: maximum length in the service."""

    what: str
    template: str
    limit: int

    def of(self, cluster_id: str, region: str = "") -> str:
        """Return the name for a cluster."""
        return self.template.replace("{region}", region).replace("{id}", cluster_id)

    def in_region(self, region: str) -> Name:
        """Return the name with the region filled in."""
        return replace(self, template=self.template.replace("{region}", region))

    @property
    def is_of_one_cluster(self) -> bool:
        """Whether the name is unique to each cluster."""
        return "{id}" in self.template

    @property
    def longest_id(self) -> int:
        """Maximum length of the id."""
        return self.limit - len(self.of(""))


SECRET: Final = Name("the secret in Secret Manager", "hyperfleet-{id}-pull-secret", 255)
CLUSTER_LABEL: Final = Name("the label cluster-id", "{id}", 63)
NAMESPACE: Final = Name("the cluster's namespace", "clusters-{id}", NAMESPACE_LIMIT)
CLUSTER_SECRET: Final = Name("the Secret in the cluster", "{id}-pull-secret", OBJECT_NAME_LIMIT)
DERIVED: Final = (SECRET, CLUSTER_LABEL, NAMESPACE, CLUSTER_SECRET)


def template_problems(name: Name, place: str) -> Iterator[Problem]:
    """Yield why a template produces no valid name for its Kubernetes kind."""
    fits, usual = (
        (is_namespace, NAMESPACE) if name.limit == NAMESPACE_LIMIT else (is_object_name, CLUSTER_SECRET)
    )
    fix = f"write it such as {usual.template}"
    strange = {*_PLACEHOLDER.findall(name.template)} - {"{id}", "{region}"}
    if strange or name.template.count("{id}") > 1:
        yield Problem(place, "it must contain {id} once, and no other placeholder but {region}", fix)
    elif not fits(name.of("0", "0")):
        yield Problem(place, f"Kubernetes takes no such name for {name.what}", fix)


def job(generation: int) -> Name:
    """Return the name of HyperFleet's Job for a generation, which is also a label of its pods."""
    return Name("HyperFleet's Job", f"pullsecret-{{id}}-gen{generation}", LABEL_VALUE_LIMIT)


def secret_id_problems(explicit: str, place: str) -> Iterator[Problem]:
    """Yield why Secret Manager would reject an explicit id."""
    if not _SECRET_ID.fullmatch(explicit):
        yield Problem(
            place,
            "Secret Manager takes 1 to 255 letters, digits, - and _, and would refuse it",
            f"correct it, or leave it out for {SECRET.template}",
        )


def cluster_id_problems(cluster_id: str, place: str, names: Sequence[Name] = DERIVED) -> Iterator[Problem]:
    """Yield why names derived from a cluster's id would be rejected: characters, then exceeded limits."""
    if not cluster_id:
        yield Problem(
            place, "it is empty, so nothing can be named after the cluster", "give the cluster's id"
        )
        return
    if not _CLUSTER_ID.fullmatch(cluster_id):
        yield Problem(
            place,
            "it becomes a namespace and a label, which take lower-case letters, digits, and - between them",
            "give the id as HyperFleet has it, such as cls-0123456789ab",
        )
    for name in names:
        yield from _length_problems(name, cluster_id, place)


def job_problems(cluster_id: str, generation: int, place: str) -> Iterator[Problem]:
    """Yield why HyperFleet could not run its own Job for the cluster; credfleet does not need it."""
    yield from _length_problems(job(generation), cluster_id, place)


def _length_problems(name: Name, cluster_id: str, place: str) -> Iterator[Problem]:
    if name.is_of_one_cluster and len(cluster_id) > name.longest_id:
        yield Problem(
            place,
            f"it has {len(cluster_id)} characters, and {name.what} ({name.template}) has room for"
            f" {name.longest_id}",
            "give the id as HyperFleet has it, or a shorter one to a new cluster",
        )


def secret_labels(cluster_id: str, cluster_name: str | None = None) -> dict[str, str]:
    """Return the labels of a cluster's secret; `cluster-name` is omitted without its name.

    The name is adapted, since it is only informative. The id is not: a cluster's secrets are found and
    deleted by it. Raises ValueError for an id that is not a valid label value.
    """
    if not cluster_id or label_value(cluster_id) != cluster_id:
        raise ValueError("the id of a cluster is a label value as it stands")
    named = {} if cluster_name is None else {"cluster-name": label_value(cluster_name)}
    return {**SAME_FOR_ALL, "cluster-id": cluster_id, **named}


def is_pull_secret(labels: Mapping[str, str]) -> bool:
    """Return whether labels are those of a cluster's secret."""
    return SAME_FOR_ALL.items() <= labels.items()


def label_value(text: str) -> str:
    """Convert a string to a label value: lower case, `-` for invalid characters, truncated."""
    return _REFUSED_IN_LABELS.sub("-", text.lower())[: CLUSTER_LABEL.limit]
