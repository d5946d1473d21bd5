"""Dynamic resources that reject changes ASO cannot handle: another subscription, or early loss of trust.

ASO rejects every operation on a resource whose subscription differs from its credential's, even deletion, and
does not retry; and it runs with the settings of its start (docs/compatibility.md). Only the check of a
dynamic resource sees the former inputs. The path of this module and its class names are stored in the state
of stacks and must not change. Import-pure.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote

from pulumi import Input
from pulumi.dynamic import CheckFailure

from components.aso_credentials import keys
from components.aso_credentials.model import Unfit, client_secret_of, faults_of
from components.connection import ClusterTarget, NoReply, connect
from components.dynamic import IDENTITY, DynamicProvider, DynamicResource, Properties, is_unknown
from components.errors import CredfleetError, ProjectionError
from components.projection.provider import CompositionArgs, CompositionProvider, Rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPinArgs:
    """Secret, namespace/name, and the subscription of its credential.

    `allow_change`: allow this update to change it. `place`: configuration path of the credential, for
    messages.
    """

    secret: Input[str] = field(metadata=IDENTITY)
    subscription_id: str
    allow_change: bool = False
    place: str


class SubscriptionPinProvider(DynamicProvider):
    """Compares the former with the present subscription, and writes nothing."""

    args = SubscriptionPinArgs
    named_by = ("secret",)

    def failures(self, inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
        """Reject another subscription for an existing Secret, unless it is allowed."""
        before, now, secret = olds.get("subscriptionId"), inputs["subscriptionId"], inputs["secret"]
        if not before or is_unknown(inputs) or inputs["allowChange"] or olds.get("secret") != secret:
            return
        if str(before).lower() != str(now).lower():
            yield CheckFailure(
                "subscriptionId",
                f"{inputs['place']}: Secret {secret} opens subscription {before}; with {now} instead, ASO"
                " could neither change nor delete any more what it made in the former one\n→ keep the"
                " subscription, or remove its resources first and set allowSubscriptionChange: true",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoProjectionArgs(CompositionArgs):
    """Credential whose secret part is in the cluster.

    `recipe`: {plain, proofs, settings, strict}: values that are not secret, by key; the keys of the sources;
    plain keys that are not part of a credential; and the mode of the operator.
    """


class AsoProjectionProvider(CompositionProvider):
    """Writes an ASO credential from secrets in the cluster."""

    args = AsoProjectionArgs

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises ProjectionError for what ASO would reject."""
        data = {key: str(text).encode() for key, text in recipe["plain"].items()}
        proofs = dict(zip(recipe["proofs"], contents, strict=True))
        try:
            if keys.CLIENT_SECRET in proofs:
                proofs[keys.CLIENT_SECRET] = client_secret_of(proofs[keys.CLIENT_SECRET]).encode()
        except Unfit as unfit:
            faults = [str(unfit)]
        else:
            judged = {key: data[key] for key in data.keys() - recipe["settings"]} | proofs
            faults = [*faults_of(judged, strict=recipe["strict"])]
        for fault in faults:
            raise ProjectionError(
                code="credential-unfit", place=places[0], problem=fault, fix="correct the Secret it names"
            )
        return "Opaque", {**data, **proofs}


class AsoProjection(DynamicResource[AsoProjectionArgs]):
    """ASO credential that follows secrets in the cluster."""

    provider = AsoProjectionProvider


class SubscriptionPin(DynamicResource[SubscriptionPinArgs]):
    """Subscription of a credential. The resource that writes its Secret depends on it."""

    provider = SubscriptionPinProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPinArgs:
    """Configuration of the operator, and what identities trust.

    `account`: ServiceAccount of the operator. `trusted`: `MODE ISSUER ACCOUNT`, first the present
    configuration, then the former one while it is still trusted; empty without identities. `allow_change`:
    allow this update to remove trust without a check. `place`: configuration path.
    """

    namespace: str = field(metadata=IDENTITY)
    account: str
    trusted: Sequence[str] = field(default_factory=list[str])
    allow_change: bool = False
    place: str


class OperatorPinProvider(DynamicProvider):
    """Compares the operator's configuration with the former one and the running operator; writes nothing."""

    args = OperatorPinArgs
    named_by = ("namespace",)

    def failures(self, inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
        """Reject removing trust that the operator might still need."""
        before, now = list(olds.get("trusted") or []), inputs["trusted"]
        lost = [each for each in before if each not in now]
        if not (lost and now) or inputs["allowChange"]:
            return
        place = f"{inputs['place']}.operator"
        if now[0] not in before:
            mode, issuer, account = lost[0].split()
            yield CheckFailure(
                "trusted",
                f"{place}: the running operator proves itself as before until it is restarted, and no check"
                " would trust it any more\n→ add formerly: {workloadIdentityMode: "
                f"{mode}, issuer: {issuer}, serviceAccount: {account}}}, and leave it out again in an update"
                " after its restart",
            )
        elif (doubt := self._unseen(inputs)) is not None:
            yield CheckFailure(
                "trusted",
                f"{place}.formerly: {doubt}, so its former proof is still needed\n→ restart it (kubectl"
                f" rollout restart deployment --namespace {inputs['namespace']}) and run again, or set"
                " allowTrustChange: true",
            )

    def _unseen(self, inputs: Properties) -> str | None:
        """Return why the operator is not known to run as configured; None if it is."""
        mode, issuer, _ = inputs["trusted"][0].split()
        namespace = quote(inputs["namespace"], safe="")
        try:
            connection = connect(ClusterTarget.parse(self.cluster)).patient
            settings = connection.find(f"/api/v1/namespaces/{namespace}/secrets/{keys.GLOBAL_SETTINGS}") or {}
            pods = (connection.find(f"/api/v1/namespaces/{namespace}/pods") or {}).get("items") or []
            published = (connection.find("/.well-known/openid-configuration") or {}).get("issuer")
        except (CredfleetError, NoReply):
            return "the cluster does not show how the operator runs"
        said = (settings.get("data") or {}).get(keys.WORKLOAD_IDENTITY_MODE)
        if mode != ("strict" if said == base64.b64encode(b"strict").decode() else "relaxed"):
            return f"the operator's settings do not say {mode} yet"
        if published != issuer:
            return f"the API server's tokens are issued by {published}, not by {issuer}"
        if not were_started_since(pods, inputs["account"], settings):
            return f"no operator of ServiceAccount {inputs['account']} was started since its settings changed"
        return None


class OperatorPin(DynamicResource[OperatorPinArgs]):
    """Configuration of the operator. The resource that writes its settings depends on it."""

    provider = OperatorPinProvider


Json: TypeAlias = Mapping[str, Any]


def were_started_since(pods: Iterable[Json], account: str, settings: Json) -> bool:
    """Return whether the operator runs, and all its pods started after the last write of its settings.

    `account`: its ServiceAccount, which identifies its pods.
    """
    metadata = settings.get("metadata", {})
    written = max(
        str(metadata.get("creationTimestamp") or ""),
        *(str(entry.get("time") or "") for entry in metadata.get("managedFields") or []),
        "",
    )
    started = [
        str(status.get("state", {}).get("running", {}).get("startedAt") or "")
        for pod in pods
        if pod.get("spec", {}).get("serviceAccountName") == account
        for status in pod.get("status", {}).get("containerStatuses") or [{}]
    ]
    return bool(written and started) and min(started) >= written
