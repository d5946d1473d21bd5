"""Sources of composed Secrets, in the cluster or in Secret Manager, and who can read them.

Inputs and outputs contain none of their data. A namespace can name its own Secrets, those that their owner
shares with it by an annotation, and those of accounts that its tenant has claimed.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from components.errors import ProjectionError, SecretManagerError
from components.labels import PREFIX
from components.naming import is_gcp_region
from components.projection.model import (
    COMPOSED,
    JsonObject,
    SecretRef,
    Wanted,
    annotations_of,
    data_of,
    encode,
    render_secret,
)

if TYPE_CHECKING:
    from components.secret_manager import SecretManager

_VERSION: Final = re.compile(
    r"projects/[a-z0-9-]+(/locations/(?P<location>[a-z0-9-]+))?/secrets/[A-Za-z0-9_-]{1,255}"
    r"/versions/([1-9][0-9]*|[A-Za-z][A-Za-z0-9_-]{0,62})"
)
SHARED_WITH: Final = f"{PREFIX}shared-with"
"""Annotation of a Secret: namespaces, comma-separated, whose configuration can refer to it."""


def names_version(text: str) -> bool:
    """Return whether a string is the full name of a version or alias in Google Secret Manager."""
    found = _VERSION.fullmatch(text)
    return found is not None and (found["location"] is None or is_gcp_region(found["location"]))


@dataclass(frozen=True, slots=True)
class Source:
    """Secret and one of its keys; without a key, the JSON object of all its keys.

    `namespace`, `name`: in a program, perhaps outputs. `place`: of the reference in the configuration.
    `labels`: of an account, which prove that it is still the tenant's; None for any other Secret. `declared`:
    whether the stack writes it, so that it might not exist in a preview. `version`: full name of a version in
    Google Secret Manager, instead of a Secret.
    """

    namespace: Any = None
    name: Any = None
    place: str = ""
    key: str | None = None
    labels: Mapping[str, str] | None = None
    declared: bool = False
    version: str | None = None

    @property
    def properties(self) -> dict[str, Any]:
        """The source as an input of a dynamic resource."""
        given = {each: getattr(self, each) for each in self.__slots__}
        return {each: value for each, value in given.items() if value is not None}

    @property
    def ref(self) -> SecretRef | None:
        """Its Secret, once known; None for Secret Manager."""
        return SecretRef(str(self.namespace), str(self.name)) if self.version is None else None

    def payload(self, manager: Callable[[str | None], SecretManager]) -> bytes:
        """Return the value of the version; raises SecretManagerError with the place.

        `manager`: opens Secret Manager, for a location or globally.
        """
        named = _VERSION.fullmatch(self.version or "")
        try:
            return manager(named and named["location"]).access(self.version or "").content
        except SecretManagerError as error:
            raise SecretManagerError.of(error, error.code, f"{self.place} ({self.version})") from None

    def content(self, secret: JsonObject | None, reader: str) -> bytes:
        """Return the value for a reading namespace; raises ProjectionError if it is not allowed or invalid.

        A Secret of others that is not shared is reported like a missing one.
        """
        if secret is None or not self._may_read(secret, reader):
            if self.namespace == reader or self.labels is not None:
                raise self._unusable("it is not there", "create it, or correct the reference")
            raise self._unusable(
                f"it is not there, or not shared with namespace {reader}",
                f"let its owner annotate it: {SHARED_WITH}: {reader}; or correct the reference",
            )
        data = data_of(secret)
        if self.key is None:
            texts = {key: self._text(key, value) for key, value in data.items()}
            return json.dumps(texts, ensure_ascii=False).encode()
        if self.key not in data:
            raise self._unusable(
                f"it has no key {self.key}", f"add it, or name one of {', '.join(sorted(data)) or 'its keys'}"
            )
        return base64.b64decode(data[self.key])

    def _may_read(self, secret: JsonObject, reader: str) -> bool:
        metadata = secret["metadata"]
        if self.labels is not None:
            own = metadata.get("labels") or {}
            return all(own.get(key) == value for key, value in self.labels.items())
        shared = (metadata.get("annotations") or {}).get(SHARED_WITH, "")
        return self.namespace == reader or reader in (name.strip() for name in shared.split(","))

    def _text(self, key: str, value: str) -> str:
        try:
            return base64.b64decode(value).decode()
        except UnicodeDecodeError:
            raise self._unusable(
                f"its key {key} is not UTF-8, and an object of its keys holds only text",
                "name the one key that is meant: NAMESPACE/NAME/KEY",
            ) from None

    def _unusable(self, problem: str, fix: str) -> ProjectionError:
        return ProjectionError(
            code="source-unusable", place=f"{self.place} (Secret {self.ref})", problem=problem, fix=fix
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition(Wanted):
    """Secret that was composed from sources. `content`: its values by key.

    `source`: the first of them; None for a version in Secret Manager. `origin`: name of either.
    """

    TAKEN = (
        "it exists, and no reference to another Secret made it, so it is not overwritten",
        "delete it if it is not in use; if this stack wrote it of an entry of credentials, take the"
        " entry it is of out, run an update, and put it back with the reference; without a gap it goes by"
        " handOver: true beside the entry, and an update before",
    )

    origin: str
    type: str = "Opaque"
    content: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])

    def data(self, source: JsonObject) -> Mapping[str, str]:
        """Return the data of the target, base64-encoded: already composed from all sources."""
        del source
        return encode(self.content)

    def bears(self, target: JsonObject, /) -> bool:
        """Return whether a target has the labels and annotations, written by any owner."""
        labels, annotations = target["metadata"].get("labels") or {}, annotations_of(target)
        return {**labels, **self.labels} == labels and {**annotations, **self.annotations} == annotations

    def body(self, data: Mapping[str, str]) -> JsonObject:
        """Render the target."""
        noted = {**self.annotations, COMPOSED: "true"}
        return render_secret(
            self.target, self.owner, self.origin, data, type_=self.type, labels=self.labels, annotations=noted
        )
