"""Seal of a pool: while an account is in use, nothing of the pool is deleted.

It depends on everything in the pool, so a destroy deletes it first, which fails if a tenant would lose an
account; otherwise it also unlocks the namespace (`namespace_manifests`). The path of this module and its
class names are stored in the state of stacks and must not change. Import-pure.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from pulumi import Input, RunError

from components.account_pool.core.declared import KEEP_COPIES, describe_lost, list_blocked
from components.account_pool.core.keys import UNSEALED
from components.account_pool.core.pool import Pool
from components.connection import DENIED_BY_POLICY, MERGE_PATCH, ClusterTarget, NoReply, connect
from components.dynamic import IDENTITY, WARNING, DynamicProvider, DynamicResource, Properties, log
from components.errors import CredfleetError, NotAllowed, Unreachable, first_named
from components.http_answers import HttpOutcome

_TAKEN_UP_SECONDS: Final = 20.0
"""Longest time an API server takes to apply a changed admission policy; it checks once a second."""
_EVERY_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSealArgs:
    """`namespace`: of the pool. `allow_destroy`: dirty accounts can be deleted uncleaned."""

    namespace: Input[str] = field(metadata=IDENTITY)
    allow_destroy: Input[bool] = False


class PoolSealProvider(DynamicProvider):
    """Acts only when destroying becomes allowed, or the pool is deleted."""

    args = PoolSealArgs
    named_by = ("namespace",)

    def create_resource(self, props: Properties) -> Properties:
        """Lock the namespace, which an interrupted destroy might have unlocked."""
        _annotate(ClusterTarget.parse(self.cluster), str(props["namespace"]), None)
        return {}

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Wait until the API server's policies allow deleting accounts, which might follow immediately."""
        if news["allowDestroy"] and not olds.get("allowDestroy"):
            target, namespace = ClusterTarget.parse(self.cluster), str(news["namespace"])
            kept = next(list_blocked(Pool.snapshot(target, namespace), namespace, allow_destroy=False), None)
            if kept is not None:
                _await_permission(target, namespace, kept[0])
        return {}

    def delete_resource(self, _id: str, props: Properties) -> None:
        """Allow deleting the pool, unless an account is blocked, or only the cluster has a credential."""
        namespace, may_be_thrown_away = str(props["namespace"]), bool(props.get("allowDestroy"))
        target = ClusterTarget.parse(self.cluster)
        try:
            snapshot = Pool.snapshot(target, namespace)
        except CredfleetError as error:
            raise RunError(f"what is in use is unknown: {error}") from None
        in_use = list(list_blocked(snapshot, namespace, allow_destroy=may_be_thrown_away))
        lost = describe_lost(snapshot)
        fixes = [] if may_be_thrown_away or not lost else [f"{lost}: {KEEP_COPIES}"]
        if in_use:
            fixes = [first_named([f"{name}: {reason}" for name, reason in in_use], "; "), *fixes]
        if fixes:
            why = "is in use" if in_use else "has credentials that are nowhere else"
            said = "\n→ ".join((f"pool {namespace} {why}, nothing of it was deleted", *fixes))
            raise RunError(target.advise(said))
        if lost:
            log(f"{WARNING}pool {namespace}: {lost}: it goes with the pool, as accountPool.allowDestroy says")
        _annotate(target, namespace, "true")


def _annotate(target: ClusterTarget, namespace: str, unsealed: str | None) -> None:
    """Set on a namespace, if it exists, whether it can be deleted."""
    body = {"metadata": {"annotations": {UNSEALED: unsealed}}}
    place, path = f"Namespace {namespace}", f"/api/v1/namespaces/{quote(namespace, safe='')}"
    try:
        reply = connect(target).patient.call("PATCH", path, body=body, content_type=MERGE_PATCH)
    except NoReply as silence:
        raise Unreachable(place=place, last=str(silence)) from None
    if reply.answer not in (HttpOutcome.DONE, HttpOutcome.ABSENT):
        raise NotAllowed(
            place=place,
            problem=f"annotation {UNSEALED} was not changed: {reply.text}",
            fix="let the identity of this update patch namespaces, then run it again",
        )


def _await_permission(target: ClusterTarget, namespace: str, member: str) -> None:
    """Wait until no admission policy denies deleting an account; other policies are ignored."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets/{quote(member, safe='')}?dryRun=All"
    until = time.monotonic() + _TAKEN_UP_SECONDS
    while time.monotonic() < until:
        with suppress(NoReply):
            if DENIED_BY_POLICY not in connect(target).call("DELETE", path).text:
                return
        time.sleep(_EVERY_SECONDS)


class PoolSeal(DynamicResource[PoolSealArgs]):
    """Guard that a destroy deletes before everything else of the pool."""

    provider = PoolSealProvider
