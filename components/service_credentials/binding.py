"""Formats derived from a credentials object: source Secret, binding Secret, `VCAP_SERVICES`.

One input, three outputs, without resources in between; the program and the command line use the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from components import go_json
from components.errors import CredfleetError, Problem
from components.go_json import JsonValue, Numbers

SERVICE_INSTANCE_GUID: Final = "korifi.cloudfoundry.org/service-instance-guid"
"""Label of a source Secret: the ID of its service instance."""

OPAQUE: Final = "Opaque"

BINDINGS_ROOT: Final = "/bindings"
"""Root directory of bindings (`SERVICE_BINDING_ROOT`) of a workload that sets no other."""

VCAP_KEY: Final = "VCAP_SERVICES"
"""The only key of a binding's environment Secret."""


def source_secret(instance: str, *, legacy: bool) -> str:
    """Return the name of the source Secret; a legacy Secret already has the name of its instance."""
    return f"{instance}-migrated" if legacy else instance


VCAP_FILE: Final = "/etc/cf-system/vcap_services"
"""Path of VCAP_SERVICES as a file, set in `VCAP_SERVICES_FILE_PATH` (CF RFC 0030)."""


def app_secret(app: str) -> str:
    """Return the name of the Secret with VCAP_SERVICES of all bindings of an application."""
    return f"{app}-vcap-services"


def environment_secret(binding: str) -> str:
    """Return the name of the Secret with VCAP_SERVICES of a binding."""
    return f"{binding}-env"


DEFAULT_TYPE: Final = "user-provided"

CREDENTIALS_KEY: Final = "credentials"
"""The only key of a source Secret."""

TYPE_KEY: Final = "type"

SECRET_TYPE: Final = "servicebinding.io/"  # noqa: S105 - the name of a type


@dataclass(frozen=True, slots=True)
class ServiceCredentials:
    """Parsed credentials object. Its repr contains no value.

    `members`: None for the credentials `null`. `remarks`: changes made by parsing, for `conformity.judge`.
    """

    members: Mapping[str, JsonValue] | None = field(repr=False)
    remarks: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInstance:
    """Service instance bound to an application, as named in `VCAP_SERVICES`.

    `label`: its group. `binding_name`: name of the binding, if set.
    """

    instance_guid: str
    instance_name: str
    binding_guid: str
    binding_name: str | None = None
    tags: tuple[str, ...] = ()
    label: str = DEFAULT_TYPE


def read_credentials_object(text: bytes, *, numbers: Numbers = Numbers.FLOAT) -> ServiceCredentials:
    """Parse credentials: a JSON object, or `null` for none.

    Raises CredfleetError, code `credentials-invalid`, with the key path in the credentials as place.
    """
    document = go_json.read(text, numbers)
    if document.value is not None and not isinstance(document.value, dict):
        raise CredfleetError(
            code="credentials-invalid",
            place="credentials",
            problem="they are JSON, but not an object, so they have no keys to become entries",
            fix="give a JSON object, {} for no credentials at all",
        )
    return ServiceCredentials(document.value, document.remarks)


def source_data(credentials: ServiceCredentials) -> Mapping[str, bytes]:
    """Return the data of the source Secret (type Opaque): the whole object under one key."""
    return {CREDENTIALS_KEY: go_json.write(_json(credentials)).encode()}


def binding_type(credentials: ServiceCredentials) -> str:
    """Return the type of the binding Secret; `user-provided` if `type` is missing or not a string."""
    given = (credentials.members or {}).get(TYPE_KEY)
    return SECRET_TYPE + (given if isinstance(given, str) else DEFAULT_TYPE)


def binding_data(credentials: ServiceCredentials) -> Mapping[str, bytes]:
    """Return the data of the binding Secret: one entry per top-level key, and a default `type`.

    A string is stored as its characters, anything else as JSON text; nested keys stay nested.
    """
    members = {TYPE_KEY: DEFAULT_TYPE, **(credentials.members or {})}
    texts = {key: value if isinstance(value, str) else go_json.write(value) for key, value in members.items()}
    return {key: text.encode() for key, text in texts.items()}


def vcap_services(bindings: Iterable[tuple[BoundInstance, ServiceCredentials]]) -> bytes:
    """Return the value of `VCAP_SERVICES` for an application with these bindings.

    Grouped by label and ordered like Korifi's builder: labels by their bytes, bindings by their ids, which is
    the order of the API server.
    """
    groups: dict[str, list[str]] = {}
    for bound, credentials in sorted(bindings, key=lambda each: each[0].binding_guid):
        groups.setdefault(bound.label, []).append(_vcap_entry(bound, credentials))
    told = (f"{go_json.write(label)}:[{','.join(groups[label])}]" for label in sorted(groups))
    return f"{{{','.join(told)}}}".encode()


def _vcap_entry(bound: BoundInstance, credentials: ServiceCredentials) -> str:
    return go_json.write_struct(
        {
            "label": bound.label,
            "name": bound.instance_name if bound.binding_name is None else bound.binding_name,
            "tags": [*bound.tags],
            "instance_guid": bound.instance_guid,
            "instance_name": bound.instance_name,
            "binding_guid": bound.binding_guid,
            "binding_name": bound.binding_name,
            "credentials": _json(credentials),
            "syslog_drain_url": None,
            "volume_mounts": [],
        }
    )


def _json(credentials: ServiceCredentials) -> JsonValue:
    return None if credentials.members is None else dict(credentials.members)
