"""What ASO does not survive is refused already in a preview: another subscription, trust that goes too early.

ASO refuses every resource that was made in another subscription than its credential names, deletion included,
and never tries again; and it runs with the settings it was started with (docs/compatibility.md). Only a
dynamic resource's check sees what was before. The path of this module and the names of its classes are
written into the state of stacks; they never move. Import-pure.
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
    """A Secret, namespace/name, and the subscription it opens.

    allow_change: let this update change it. place: of the credential in the configuration, for messages.
    """

    secret: Input[str] = field(metadata=IDENTITY)
    subscription_id: str
    allow_change: bool = False
    place: str


class SubscriptionPinProvider(DynamicProvider):
    """Compares the subscription of before with that of now, and writes nothing."""

    args = SubscriptionPinArgs
    named_by = ("secret",)

    def failures(self, inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
        """Refuse another subscription for a Secret that is there, unless it is allowed."""
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
    """A credential whose secrets are in the cluster.

    recipe: {plain, proofs, settings, strict}: what is not secret, key → text; the keys that the sources
    become; those of the plain ones that are no part of a credential; and how
    the operator runs.
    """


class AsoProjectionProvider(CompositionProvider):
    """Writes a credential of ASO, of secrets that are in the cluster."""

    args = AsoProjectionArgs

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises ProjectionError for what ASO would not take."""
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
    """A credential of ASO that follows secrets that are in the cluster."""

    provider = AsoProjectionProvider


class SubscriptionPin(DynamicResource[SubscriptionPinArgs]):
    """The subscription of a credential. What writes its Secret depends on it."""

    provider = SubscriptionPinProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPinArgs:
    """How the operator runs, and what identities trust.

    account: the ServiceAccount it runs as. trusted: `MODE ISSUER ACCOUNT`, first of how it runs, then of how
    it ran, while that is trusted as well; none without identities. allow_change: let this update take trust
    away unseen. place: in the configuration.
    """

    namespace: str = field(metadata=IDENTITY)
    account: str
    trusted: Sequence[str] = field(default_factory=list[str])
    allow_change: bool = False
    place: str


class OperatorPinProvider(DynamicProvider):
    """Compares how the operator is said to run with before, and looks at how it does; writes nothing."""

    args = OperatorPinArgs
    named_by = ("namespace",)

    def failures(self, inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
        """Refuse that a trust goes while the operator may still need it."""
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
        """Return what keeps the operator from having been seen to run as it is said to; None when it was."""
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
    """How the operator runs. What writes its settings depends on it."""

    provider = OperatorPinProvider


Json: TypeAlias = Mapping[str, Any]


def were_started_since(pods: Iterable[Json], account: str, settings: Json) -> bool:
    """Whether the operator runs, and each of its pods was started after its settings were last written.

    account: the ServiceAccount it runs as, by which its pods are known.
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
