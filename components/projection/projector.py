"""Writes, reads and removes projections: read the source, map its keys, write the target, inside the cluster.

Every decision is made on what is there at that moment, and every write says what it replaces; so a run that
was killed, or whose answer was lost, is finished by the next.
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
    """Carries out projections in one cluster.

    get_source: returns a source, None when there is none; absent, sources are Secrets of the same cluster.
    """

    def __init__(
        self, secrets: KubernetesSecrets, get_source: Callable[[SecretRef], JsonObject | None] | None = None
    ) -> None:
        self._secrets, self._get_source = secrets, get_source or secrets.get

    def write(self, wanted: Wanted, mark: Callable[[JsonObject], JsonObject] | None = None) -> WrittenCopy:
        """Make the target what it should be. Raises ProjectionError, also for a target that is not ours.

        mark: returns it with its labels and annotations, instead of `dress`; may raise ProjectionError.
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
                self._secrets.delete(target)  # the type of a Secret never changes
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
        """Return the digest of what is in the target; None if it is gone, or another owner's.

        Empty for one that lacks a label or an annotation: so a refresh tells that, too.
        """
        target = self._secrets.get(wanted.target)
        if target is None or not is_owned(target, wanted.owner):
            return None
        return digest(target, data_of(target)) if wanted.bears(target) else ""

    def is_current(self, wanted: Wanted, known: str) -> bool:
        """Whether a target with this digest is what the source makes it now."""
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
        """Return the error that another owner wrote the target; None if none did."""
        target = self._secrets.get(wanted.target)
        if target is None or _is_writable(target, wanted):
            return None
        return wanted.foreign(target)

    def unfit(self, wanted: Wanted) -> ProjectionError | None:
        """Return why the target cannot be made from its source as it is now."""
        try:
            wanted.data(self._source(wanted))
        except ProjectionError as error:
            return error
        return None

    def remove(self, wanted: Wanted) -> bool:
        """Delete the target if it is ours; one that is gone, or another owner's by now, is left alone.

        False for one that a later incarnation of its owner's has written since. Raises ProjectionError.
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
    """Open a projector on that cluster; sources: another one, where these are. Raises as `open_secrets`."""
    return Projector(open_secrets(cluster), None if sources is None else open_secrets(sources).get)


def _is_writable(target: JsonObject, wanted: Wanted) -> bool:
    is_its_own = any(is_owned(target, owner) for owner in (wanted.owner, *wanted.previously))
    return is_its_own or is_handed_over(target, wanted.owner)


def _replaced(target: JsonObject, body: JsonObject) -> JsonObject:
    """Put our data and annotations into a target, keeping what others have noted on it."""
    noted = {key: text for key, text in annotations_of(target).items() if key != INCARNATION}
    metadata = {**target["metadata"], "annotations": {**noted, **annotations_of(body)}}
    return {**target, "metadata": metadata, "data": body["data"]}
