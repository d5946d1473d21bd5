"""The stack's own cluster, as far as stores need it: credentials that selectors name, tokens, labels."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from components.connection import ClusterTarget, NoReply, Reply, connect
from components.errors import StoreError
from components.http_answers import Answer

if TYPE_CHECKING:
    from components.secret_stores.model import CaSelector, SecretSelector, ServiceAccountSelector

TOKEN_SECONDS: Final = 600
"""The shortest life the API server gives a token."""


class StackCluster:
    """One cluster, as whoever runs the stack. Methods raise StoreError, and ClusterError for another one."""

    def __init__(self, target: ClusterTarget) -> None:
        self._target = target

    @property
    def target(self) -> ClusterTarget:
        """Which cluster it is."""
        return self._target

    def secret(self, selector: SecretSelector) -> bytes:
        """Read the key of a Secret that a selector names."""
        place = f"Secret {selector.namespace}/{selector.name}"
        body = self._get(_path(selector.namespace, "secrets", selector.name), place)
        return base64.b64decode(_value(body.get("data") or {}, selector.key, place))

    def certificates(self, selector: CaSelector) -> str:
        """Read certificates from the Secret or ConfigMap a selector names."""
        place = f"{selector.type} {selector.namespace}/{selector.name}"
        body = self._get(_path(selector.namespace, f"{selector.type.lower()}s", selector.name), place)
        value = _value(body.get("data") or {}, selector.key or "ca.crt", place)
        return base64.b64decode(value).decode() if selector.type == "Secret" else value

    def token(self, account: ServiceAccountSelector) -> str:
        """Have a token made for a ServiceAccount (TokenRequest); nothing is stored in the cluster."""
        place = f"ServiceAccount {account.namespace}/{account.name}"
        spec: dict[str, Any] = {"expirationSeconds": TOKEN_SECONDS}
        if account.audiences:
            spec["audiences"] = list(account.audiences)
        path = _path(account.namespace, "serviceaccounts", account.name)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self._answered(self._call("POST", f"{path}/token", place, body), place)["status"]["token"])

    def labels(self, namespace: str) -> Mapping[str, str]:
        """Read the labels of a namespace; one that is not there yet has none."""
        place = f"Namespace {namespace}"
        reply = self._call("GET", f"/api/v1/namespaces/{quote(namespace, safe='')}", place)
        if reply.answer is Answer.ABSENT:
            return {}
        return self._answered(reply, place)["metadata"].get("labels") or {}

    def served(self, group_version: str) -> frozenset[str]:
        """Name the kinds that the API server serves of a group and version."""
        reply = self._call("GET", f"/apis/{group_version}", group_version)
        if reply.answer is Answer.ABSENT:
            return frozenset()
        return frozenset(str(each["kind"]) for each in self._answered(reply, group_version)["resources"])

    def _get(self, path: str, place: str) -> Mapping[str, Any]:
        return self._answered(self._call("GET", path, place), place)

    def _call(self, method: str, path: str, place: str, body: Mapping[str, Any] | None = None) -> Reply:
        try:
            return connect(self._target).call(method, path, body=body)
        except NoReply as silence:
            raise StoreError(
                code="unreachable",
                place=place,
                cause=f"the API server does not answer ({silence})",
                mend="run again once it does",
            ) from None

    @staticmethod
    def _answered(reply: Reply, place: str) -> Mapping[str, Any]:
        if reply.answer is Answer.DONE:
            return reply.body
        if reply.answer is Answer.ABSENT:
            cause, mend = (
                "it is not there, and a provider logs in with it",
                "make it, or correct the selector",
            )
            raise StoreError(code="absent", place=place, cause=cause, mend=mend)
        if reply.answer is Answer.NOT_ALLOWED:
            raise StoreError(
                code="not-allowed",
                place=place,
                cause=f"the API server does not allow it: {reply.text}",
                mend="let whoever runs this read it",
            )
        cause = f"the API server refused: {reply.reason}"
        raise StoreError(code="unreachable", place=place, cause=cause, mend="run again")


def _path(namespace: str | None, resource: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(str(namespace), safe='')}/{resource}/{quote(name, safe='')}"


def _value(data: Mapping[str, str], key: str | None, place: str) -> str:
    """Find a key; the only one there is needs no name."""
    if key is None and len(data) == 1:
        return next(iter(data.values()))
    if key is not None and key in data:
        return data[key]
    raise StoreError(
        code="absent",
        place=place,
        cause=f"it has no key {key}" if key else "the selector gives no key, and it has not exactly one",
        mend=f"name one of its keys: {', '.join(sorted(data)) or 'there are none'}",
    )
