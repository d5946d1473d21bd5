"""What the Secrets of a service are called, and the words on and in them."""

from __future__ import annotations

from typing import Final

SERVICE_INSTANCE_GUID: Final = "korifi.cloudfoundry.org/service-instance-guid"
"""Label of a source Secret: the id of its instance."""

OPAQUE: Final = "Opaque"

BINDINGS_ROOT: Final = "/bindings"
"""Root of the directories of bindings, `SERVICE_BINDING_ROOT`, for a workload that names no other."""

VCAP_KEY: Final = "VCAP_SERVICES"
"""The one key of a binding's environment Secret."""


def source_secret(instance: str, *, legacy: bool) -> str:
    """Return the name of the source Secret; the name of a legacy instance is taken by the Secret it was."""
    return f"{instance}-migrated" if legacy else instance


VCAP_FILE: Final = "/etc/cf-system/vcap_services"
"""Where an application finds VCAP_SERVICES as a file; `VCAP_SERVICES_FILE_PATH` names it (CF RFC 0030)."""


def app_secret(app: str) -> str:
    """Return the name of the Secret that holds VCAP_SERVICES over all bindings of an application."""
    return f"{app}-vcap-services"


def environment_secret(binding: str) -> str:
    """Return the name of the Secret that holds VCAP_SERVICES of a binding."""
    return f"{binding}-env"
