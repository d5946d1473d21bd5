"""Writes, reads and removes projections: read the source, map its keys, write the target in the cluster.

Every decision uses the present objects, and every write names what it replaces. The next run therefore
completes a run that was killed or lost an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from components.errors import ProjectionError, contended
from components.projection.kubernetes_secrets import KubernetesSecrets, open_secrets
from components.projection.model import (
    INCARNATION,
    JsonObject,
    SecretRef,
    Wanted,
    WrittenCopy,
    annotations_of,
    data_of,
    digest,
    is_handed_over,
    is_owned,
    is_replaced,
)

_ATTEMPTS: Final = 5
_ELSEWHERE: Final[JsonObject] = {"metadata": {"resourceVersion": ""}}


class Projector:
    """Projector in one cluster.

    `get_source`: returns a source, None if not found; by default, sources are Secrets of the same cluster.
    """

    def __init__(
        self, secrets: KubernetesSecrets, get_source: Callable[[SecretRef], JsonObject | None] | None = None
    ) -> None:
        self._secrets, self._get_source = secrets, get_source or secrets.get

    def write(self, wanted: Wanted, mark: Callable[[JsonObject], JsonObject] | None = None) -> WrittenCopy:
        """Write the target. Raises ProjectionError, also for a target of another owner.

        `mark`: returns the target with its labels and annotations, instead of `dress`; might raise
        ProjectionError.
        """
        mark = mark or wanted.dress
        for _ in range(_ATTEMPTS):
            source = self._source(wanted)
            data = wanted.data(source)
            body = wanted.body(data)
            if wanted.incarnation:
                body["metadata"]["annotations"] |= {INCARNATION: wanted.incarnation}
            target = self._secrets.get(wanted.target)
            if target is None:
                written = self._secrets.create(mark(body))
            elif not _is_writable(target, wanted):
                raise wanted.foreign(target)
            elif (target.get("type") or body["type"]) != body["type"]:
                self._secrets.create(mark(body), rehearsed=True)
                self._secrets.delete(target)  # the type of a Secret is immutable
                written = None
            elif (changed := mark(_replaced(target, body))) == {**target, "data": data_of(target)}:
                written = target
            else:
                written = self._secrets.replace(changed)
            if written is not None:
                version = str(source["metadata"]["resourceVersion"])
                return WrittenCopy(digest(written, data), version, str(source.get("type", "")))
        raise contended(ProjectionError, wanted.target.place, "it", _ATTEMPTS)

    def digest(self, wanted: Wanted) -> str | None:
        """Return the digest of the target; None if it is missing or has another owner.

        Empty if a label or an annotation is missing, so that a refresh reports this, too.
        """
        target = self._secrets.get(wanted.target)
        if target is None or not is_owned(target, wanted.owner):
            return None
        return digest(target, data_of(target)) if wanted.bears(target) else ""

    def is_current(self, wanted: Wanted, known: str) -> bool:
        """Return whether a target with this digest matches its present source."""
        target = self._secrets.get(wanted.target)
        source = _ELSEWHERE if wanted.source is None else self._get_source(wanted.source)
        if target is None or source is None or not is_owned(target, wanted.owner):
            return False
        if is_replaced(target, wanted.incarnation) or not wanted.bears(target):
            return False
        try:
            data = wanted.data(source)
            return data_of(target) == data and digest(target, data) == known
        except ProjectionError:
            return False

    def taken(self, wanted: Wanted) -> ProjectionError | None:
        """Return the error that another owner wrote the target, or None."""
        target = self._secrets.get(wanted.target)
        if target is None or _is_writable(target, wanted):
            return None
        return wanted.foreign(target)

    def unfit(self, wanted: Wanted) -> ProjectionError | None:
        """Return why the target cannot be made from its present source, or None."""
        try:
            wanted.data(self._source(wanted))
        except ProjectionError as error:
            return error
        return None

    def remove(self, wanted: Wanted) -> bool:
        """Delete the target if it is ours; otherwise leave it.

        False if a later incarnation of its owner has written it. Raises ProjectionError.
        """
        for _ in range(_ATTEMPTS):
            target = self._secrets.get(wanted.target)
            if target is None or not is_owned(target, wanted.owner):
                return True
            if is_replaced(target, wanted.incarnation):
                return False
            if self._secrets.delete(target):
                return True
        raise contended(ProjectionError, wanted.target.place, "it", _ATTEMPTS)

    def _source(self, wanted: Wanted) -> JsonObject:
        source = _ELSEWHERE if wanted.source is None else self._get_source(wanted.source)
        if source is None:
            raise wanted.missing()
        return source


def open_projector(cluster: str | None, sources: str | None = None) -> Projector:
    """Open a projector; `sources`: cluster of the sources, if another one. Raises as `open_secrets`."""
    return Projector(open_secrets(cluster), None if sources is None else open_secrets(sources).get)


def _is_writable(target: JsonObject, wanted: Wanted) -> bool:
    is_its_own = any(is_owned(target, owner) for owner in (wanted.owner, *wanted.previously))
    return is_its_own or is_handed_over(target, wanted.owner)


def _replaced(target: JsonObject, body: JsonObject) -> JsonObject:
    """Return the target with our data and annotations, and others' annotations kept."""
    noted = {key: text for key, text in annotations_of(target).items() if key != INCARNATION}
    metadata = {**target["metadata"], "annotations": {**noted, **annotations_of(body)}}
    return {**target, "metadata": metadata, "data": body["data"]}
