"""The labels of a secret in Secret Manager, by which others find it and see whose it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LIMIT: Final = 63
_REFUSED = re.compile(r"[^a-z0-9_-]")
"""Google takes letters of other scripts too; HyperFleet does not."""

_SAME_FOR_ALL: Final[Mapping[str, str]] = {
    "managed-by": "hyperfleet",
    "adapter": "pullsecret",
    "resource-type": "pull-secret",
    "hyperfleet-version": "v1",
}

OWN: Final = (*_SAME_FOR_ALL, "cluster-id", "cluster-name")
"""The labels that HyperFleet's own entries have."""


def secret_labels(cluster_id: str, cluster_name: str | None = None) -> dict[str, str]:
    """Return the labels of a cluster's secret; without its name, there is no label `cluster-name`.

    A name is made fit, since it only tells people which cluster is meant. An id is not: a cluster's secrets
    are found and deleted by it. Raises ValueError for an id that is not fit as it stands.
    """
    if not cluster_id or label_value(cluster_id) != cluster_id:
        raise ValueError("the id of a cluster is a label value as it stands")
    named = {} if cluster_name is None else {"cluster-name": label_value(cluster_name)}
    return {**_SAME_FOR_ALL, "cluster-id": cluster_id, **named}


def is_pull_secret(labels: Mapping[str, str]) -> bool:
    """Whether labels are those of a cluster's secret."""
    return _SAME_FOR_ALL.items() <= labels.items()


def label_value(text: str) -> str:
    """Make a text a label's value: lower case, `-` for what Google would refuse, cut at the end."""
    return _REFUSED.sub("-", text.lower())[:_LIMIT]
