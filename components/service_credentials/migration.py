"""Migration of a legacy Secret: to the present source format of its instance, or to VCAP_SERVICES.

Until Korifi 0.12, an instance was one flat Secret with its name and type `servicebinding.io/<type>`. That
Secret stays, as do the bindings that refer to it (docs/compatibility.md).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from components.errors import ProjectionError
from components.projection.model import (
    PROJECTED_BY,
    JsonObject,
    SecretRef,
    Wanted,
    data_of,
    encode,
    render_secret,
)
from components.service_credentials.binding import (
    OPAQUE,
    SECRET_TYPE,
    SERVICE_INSTANCE_GUID,
    VCAP_KEY,
    BoundInstance,
    ServiceCredentials,
    source_data,
    vcap_services,
)

CORE: Final = "api/v1"
READERS: Final[Mapping[str, Sequence[str]]] = {
    CORE: ("pods",),
    "apis/apps/v1": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "apis/batch/v1": ("jobs", "cronjobs"),
    "apis/korifi.cloudfoundry.org/v1alpha1": ("cfserviceinstances", "cfservicebindings"),
}
"""Group and version → kinds that can refer to a Secret in their namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration(Wanted):
    """Secret to derive from a legacy one.

    `instance_guid`: label of a source. `bound`: binding whose VCAP_SERVICES to write; None for the source.
    """

    source: SecretRef
    instance_guid: str
    bound: BoundInstance | None = None

    def data(self, source: JsonObject) -> dict[str, str]:
        """Return the target's data from the legacy Secret's.

        Raises ProjectionError for a Secret of another type, and for a value that is not a string.
        """
        if not str(source.get("type")).startswith(SECRET_TYPE):
            raise ProjectionError(
                code="not-legacy",
                place=self.source.place,
                problem=f"its type is {source.get('type')}, and a legacy instance is of {SECRET_TYPE}<type>",
                fix="leave out `legacy: true`, or name the instance after its legacy Secret",
            )
        credentials = ServiceCredentials(
            {key: self._text(key, value) for key, value in data_of(source).items()}
        )
        if self.bound is None:
            return encode(source_data(credentials))
        return encode({VCAP_KEY: vcap_services([(self.bound, credentials)])})

    def body(self, data: Mapping[str, str]) -> JsonObject:
        """Return the target, to be written."""
        return self.dress(render_secret(self.target, self.owner, self.source, data))

    def dress(self, target: JsonObject) -> JsonObject:
        """Label a target that is a source with the id of its instance."""
        metadata = target["metadata"]
        labels = {**(metadata.get("labels") or {}), SERVICE_INSTANCE_GUID: self.instance_guid}
        return target if self.bound is not None else {**target, "metadata": {**metadata, "labels": labels}}

    def missing(self) -> ProjectionError:
        """Return the error for a missing legacy Secret."""
        return ProjectionError(
            code="legacy-missing",
            place=self.source.place,
            problem=f"it is not there, so {self.target} cannot be made from it",
            fix="put it back, name the instance after it, or give the credentials by credentialsFrom",
        )

    def foreign(self, target: JsonObject, /) -> ProjectionError:
        """Return the error for a target of another owner or type."""
        annotations = target["metadata"].get("annotations") or {}
        if target.get("type") != OPAQUE:
            problem = f"it exists with type {target.get('type')}, not {OPAQUE}, so it is not overwritten"
        else:
            whose = annotations.get(PROJECTED_BY, "another owner")
            problem = f"it exists and is of {whose}, not of {self.owner}, so it is not overwritten"
        fix = "delete it if it is not in use any more, then run again"
        return ProjectionError(code="target-taken", place=self.target.place, problem=problem, fix=fix)

    def _text(self, key: str, value: str) -> str:
        try:
            return base64.b64decode(value).decode()
        except UnicodeDecodeError:
            raise ProjectionError(
                code="value-unfit",
                place=f"{self.source.place}, key {key}",
                problem="its value is not UTF-8, and JSON holds only text",
                fix="replace the value by text, such as its base64",
            ) from None
