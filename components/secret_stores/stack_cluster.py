"""The stack's own cluster, as stores need it: credentials of selectors, tokens, namespace labels."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from components.connection import MERGE_PATCH, ClusterTarget, NoReply, Reply, connect, served_kinds
from components.errors import StoreError
from components.http_answers import HttpOutcome

if TYPE_CHECKING:
    from components.secret_stores.model import CaSelector, SecretSelector, ServiceAccountSelector

_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_MANAGER: Final = "credfleet-stores"

TOKEN_SECONDS: Final = 600
"""Shortest lifetime of a token that the API server allows."""


class StackCluster:
    """One cluster, as the deployer. Methods raise StoreError, and ClusterError for an unexpected cluster."""

    def __init__(self, target: ClusterTarget) -> None:
        self.target = target

    def secret(self, selector: SecretSelector) -> bytes:
        """Read the Secret key that a selector names."""
        place = f"Secret {selector.namespace}/{selector.name}"
        body = self._get(_path(selector.namespace, "secrets", selector.name), place)
        return base64.b64decode(_value(body.get("data") or {}, selector.key, place))

    def certificates(self, selector: CaSelector) -> str:
        """Read certificates from the Secret or ConfigMap that a selector names."""
        place = f"{selector.type} {selector.namespace}/{selector.name}"
        body = self._get(_path(selector.namespace, f"{selector.type.lower()}s", selector.name), place)
        value = _value(body.get("data") or {}, selector.key or "ca.crt", place)
        return base64.b64decode(value).decode() if selector.type == "Secret" else value

    def token(self, account: ServiceAccountSelector) -> str:
        """Request a token of a ServiceAccount (TokenRequest); nothing is stored in the cluster."""
        place = f"ServiceAccount {account.namespace}/{account.name}"
        spec: dict[str, Any] = {"expirationSeconds": TOKEN_SECONDS}
        if account.audiences:
            spec["audiences"] = list(account.audiences)
        path = _path(account.namespace, "serviceaccounts", account.name)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        made = self._answered(self._call("POST", f"{path}/token", place, body=body), place)
        return str(made["status"]["token"])

    def labels(self, namespace: str) -> Mapping[str, str] | None:
        """Read the labels of a namespace; None if it does not exist."""
        found = self.found(f"/api/v1/namespaces/{quote(namespace, safe='')}", f"Namespace {namespace}")
        return None if found is None else found["metadata"].get("labels") or {}

    def mark(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Read the metadata of a Secret, as {metadata}, without its data; None if not found."""
        return self.found(_path(namespace, "secrets", name), f"Secret {namespace}/{name}", _METADATA)

    def found(self, path: str, place: str, accept: str = "application/json") -> Mapping[str, Any] | None:
        """Read an object; None if it or its kind is not found."""
        reply = self._call("GET", path, place, accept=accept)
        return None if reply.answer is HttpOutcome.ABSENT else self._answered(reply, place)

    def merge(self, path: str, place: str, body: Mapping[str, Any]) -> None:
        """Merge-patch an object; ignored if it is not found."""
        reply = self._call(
            "PATCH", f"{path}?fieldManager={_MANAGER}", place, body=body, content_type=MERGE_PATCH
        )
        if reply.answer is not HttpOutcome.ABSENT:
            self._answered(reply, place)

    def served(self, group_version: str) -> frozenset[str]:
        """Return the kinds that the API server serves for a group and version."""
        return frozenset(served_kinds(lambda path: self._get(path, group_version), group_version))

    def _get(self, path: str, place: str) -> Mapping[str, Any]:
        return self._answered(self._call("GET", path, place), place)

    def _call(self, method: str, path: str, place: str, **given: Any) -> Reply:
        try:
            return connect(self.target).patient.call(method, path, **given)
        except NoReply as silence:
            raise StoreError(
                code="unreachable",
                place=place,
                problem=f"the API server does not answer ({silence})",
                fix="run again once it does",
            ) from None

    @staticmethod
    def _answered(reply: Reply, place: str) -> Mapping[str, Any]:
        code, problem, fix = "unreachable", f"the API server refused: {reply.reason}", "run again"
        if reply.answer is HttpOutcome.DONE:
            return reply.body
        if reply.answer is HttpOutcome.ABSENT:
            code, problem = "absent", "it is not there, and a provider logs in with it"
            fix = "make it, or correct the selector"
        elif reply.answer is HttpOutcome.NOT_ALLOWED:
            code, problem = "not-allowed", f"the API server does not allow it: {reply.text}"
            fix = "give the identity that runs this the right to read it"
        raise StoreError(code=code, place=place, problem=problem, fix=fix)


def _path(namespace: str | None, resource: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(str(namespace), safe='')}/{resource}/{quote(name, safe='')}"


def _value(data: Mapping[str, str], key: str | None, place: str) -> str:
    """Return the value of a key; the key can be omitted if there is only one."""
    if key is None and len(data) == 1:
        return next(iter(data.values()))
    if key is not None and key in data:
        return data[key]
    raise StoreError(
        code="absent",
        place=place,
        problem=f"it has no key {key}" if key else "the selector gives no key, and it has not exactly one",
        fix=f"name one of its keys: {', '.join(sorted(data)) or 'there are none'}",
    )
