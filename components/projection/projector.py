"""Writes, reads and removes projections: read the source, map its keys, write the target, inside the cluster.

Every decision is made on what is there at that moment, and every write says what it replaces; so a run that
was killed, or whose answer was lost, is finished by the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from components.projection.errors import ProjectionError
from components.projection.model import JsonObject, Projection, SecretRef, Written, digest

_ATTEMPTS: Final = 5


class Secrets(Protocol):
    """Secrets of a cluster, whole. A method that writes answers None when it was not done, or nobody knows.

    All raise ProjectionError when the server does not allow it or cannot be reached.
    """

    def get(self, ref: SecretRef) -> JsonObject | None:
        """Read one; None when there is none."""
        ...

    def create(self, body: JsonObject) -> JsonObject | None:
        """Create one; None when the name is taken."""
        ...

    def replace(self, body: JsonObject) -> JsonObject | None:
        """Write one over the resourceVersion in it."""
        ...

    def delete(self, body: JsonObject) -> bool:
        """Delete this very one."""
        ...


class Projector:
    """Carries out projections in one cluster."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def write(self, wanted: Projection) -> Written:
        """Make the target what it should be. Raises ProjectionError, also for a target that is not ours."""
        for _ in range(_ATTEMPTS):
            source = self._source(wanted)
            data = wanted.plan.apply(_data(source), _place(wanted.source))
            target = self._secrets.get(wanted.target)
            if target is None:
                written = self._secrets.create(wanted.body(data))
            elif not wanted.owns(target):
                raise foreign(wanted)
            elif _data(target) == data:
                written = target
            else:
                written = self._secrets.replace(_replaced(target, wanted.body(data)))
            if written is not None:
                return Written(digest(written, data), str(source["metadata"]["resourceVersion"]))
        raise ProjectionError(
            code="contended",
            place=_place(wanted.target),
            cause=f"others changed it {_ATTEMPTS} times while it was written",
            mend="see who else writes it, then run again",
        )

    def digest(self, wanted: Projection) -> str | None:
        """Tell the digest of what is in the target; None when it is gone, or somebody else's."""
        target = self._secrets.get(wanted.target)
        return digest(target, _data(target)) if target is not None and wanted.owns(target) else None

    def is_current(self, wanted: Projection, known: str) -> bool:
        """Whether a target with this digest is what the source makes it now."""
        target, source = self._secrets.get(wanted.target), self._secrets.get(wanted.source)
        if target is None or source is None or not wanted.owns(target):
            return False
        try:
            data = wanted.plan.apply(_data(source), _place(wanted.source))
        except ProjectionError:
            return False
        return digest(target, data) == known

    def is_foreign(self, wanted: Projection) -> bool:
        """Whether the target's place is taken by a Secret somebody else wrote."""
        target = self._secrets.get(wanted.target)
        return target is not None and not wanted.owns(target)

    def remove(self, wanted: Projection) -> None:
        """Delete the target if it is ours; one that is gone, or somebody else's by now, is left alone."""
        for _ in range(_ATTEMPTS):
            target = self._secrets.get(wanted.target)
            if target is None or not wanted.owns(target) or self._secrets.delete(target):
                return

    def _source(self, wanted: Projection) -> JsonObject:
        source = self._secrets.get(wanted.source)
        if source is None:
            raise ProjectionError(
                code="source-missing",
                place=_place(wanted.source),
                cause=f"it is gone, so nothing can be delivered to {wanted.target}",
                mend="refresh the stack: its claim may have lost the account",
            )
        labels = source["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in wanted.source_labels.items()):
            raise ProjectionError(
                code="source-not-owned",
                place=_place(wanted.source),
                cause=f"it is somebody else's by now, so it is not delivered to {wanted.target}",
                mend="refresh the stack: its claim has lost the account",
            )
        return source


def foreign(wanted: Projection) -> ProjectionError:
    """Say that a target belongs to somebody else."""
    return ProjectionError(
        code="target-taken",
        place=_place(wanted.target),
        cause="it exists and this claim did not write it, so it is not overwritten",
        mend="deliver to another name under deliverTo, or delete that Secret",
    )


def _place(ref: SecretRef) -> str:
    return f"Secret {ref}"


def _data(secret: JsonObject) -> Mapping[str, str]:
    return secret.get("data") or {}


def _replaced(target: JsonObject, body: JsonObject) -> JsonObject:
    """Put our data and annotations into a target, keeping what others have noted on it."""
    metadata = target["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **body["metadata"]["annotations"]}
    return {**target, "metadata": {**metadata, "annotations": annotations}, "data": body["data"]}
