"""User-assigned identities and the credentials that federate them."""

import re
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from pulumi_sandbox.services.cloud.resource_manager.groups import document, located, tags_of
from pulumi_sandbox.services.cloud.resource_manager.ids import PathKind, ResourceId
from pulumi_sandbox.services.cloud.resource_manager.refusals import ArmRefusal, bad_request
from pulumi_sandbox.services.cloud.resource_manager.store import Document, ResourceStore

TENANT: Final = "00000000-0000-4000-8000-0000000000bb"
"""The directory of every identity that is made here."""

FEDERATION_LIMIT: Final = 20
"""Credentials of one identity."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{2,119}")


def identity(id_: ResourceId, present: Document | None, body: Document) -> Document:
    """Return an identity as it is to be kept: a new one gets a client id and a principal id."""
    _check_name(id_)
    location = located(id_, present, body, "InvalidResourceLocation")
    new = {"tenantId": TENANT, "principalId": str(uuid4()), "clientId": str(uuid4())}
    properties = present["properties"] if present else new
    return document(id_, present, properties, location=location, tags=tags_of(body))


def federation(store: ResourceStore, id_: ResourceId, present: Document | None, body: Document) -> Document:
    """Return a federated credential as it is to be kept: 20 per identity, each (issuer, subject) once.

    Whether the subject ever matches a token is not looked at, here as in Azure.
    """
    _check_name(id_)
    given: Any = body.get("properties")
    properties = _checked_federation(given if isinstance(given, dict) else {})
    others = [
        other for other in store.of(PathKind.FEDERATION, f"{id_.identity}/") if other["id"].lower() != id_.key
    ]
    if present is None and len(others) >= FEDERATION_LIMIT:
        raise bad_request(
            f"Too many federated identity credentials: a managed identity has {FEDERATION_LIMIT} at most."
        )
    wanted = properties["issuer"], properties["subject"]
    if any((other["properties"]["issuer"], other["properties"]["subject"]) == wanted for other in others):
        raise ArmRefusal(
            409, "Conflict", "Issuer and subject combination already exists for this Managed Identity."
        )
    return document(id_, present, properties)


def _checked_federation(given: dict[str, Any]) -> dict[str, Any]:
    issuer, subject, audiences = given.get("issuer"), given.get("subject"), given.get("audiences")
    if not isinstance(subject, str) or not subject:
        raise bad_request("Property 'subject' must be a text.")
    if urlsplit(str(issuer).strip()).scheme != "https":
        raise bad_request("Property 'issuer' must be an https URL.")
    if not isinstance(audiences, list) or len(audiences) != 1 or not audiences[0]:
        raise bad_request("Property 'audiences' must have exactly one value.")
    return {"issuer": issuer, "subject": subject, "audiences": audiences}


def _check_name(id_: ResourceId) -> None:
    if not _NAME.fullmatch(id_.name):
        raise bad_request(f"The name '{id_.name}' must match {_NAME.pattern}.", "InvalidResourceName")
