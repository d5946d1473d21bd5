"""Claim of an account as a dynamic resource: check, diff, create, read, update, delete by the protocol.

The path of this module and its class names are stored in the state of every stack that claims and must not
change. Import-pure: the provider's process and every program with a claim import this module. It handles no
credentials: a claim names a Secret, without its data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from pulumi import Input, Output
from pulumi.dynamic import CheckFailure
from pulumi.output import Unknown

from components.account_pool.core.model import ClaimRequest, Partition, Policy, tenant_label
from components.account_pool.core.pool import Pool
from components.account_pool.core.records import Claimed, Fence
from components.account_pool.forecast import forecast
from components.account_pool.forecast.evacuation import slot_of
from components.account_pool.forecast.forecast import ForecastInput
from components.account_pool.forecast.skipping import LEFT_TO_OTHERS, SKIPPED, in_words, reason_of, skips
from components.connection import DENIED_BY_POLICY, ClusterTarget
from components.dynamic import (
    IDENTITY,
    WARNING,
    DynamicProvider,
    DynamicResource,
    Properties,
    is_called_otherwise,
    log,
)
from components.errors import CredfleetError, LostMember, NotAllowed, PoolError, held_by_another_state

T = TypeVar("T")

LOST: Final = "Lost"
"""Phase of a claim whose account or record was deleted, replaced or relabelled manually."""

_WAITING: Final = frozenset({"skipped", "doomed"})
"""Inputs of a claim that was forecast to get no account when it was last declared."""

_FOLLOWED_SECONDS: Final = 3.0
_EVERY_SECONDS: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class AccountClaimArgs:
    """Arguments of `AccountClaim`.

    `namespace`: of the pool. `type`: hyperscaler type. `slot`: one of several accounts of the tenant, or the
    consumer's id on a shared account. `partition`: values of the pool's partition keys; a missing key selects
    members without it. `holder`: the consumer, the same string in every run. `release_policy`, `limit`: None
    means the pool's. `pool_policy`, `pool_limit`: the pool's settings, if the claiming program declares the
    pool. `spill`: take one more account when those of the slot are full; None means no. `required`: fail
    instead of being skipped. `generation`: of the slot; filled in by the provider
    (docs/adr/0008-evacuation-by-generations.md). `forecast`: of the claim (`ClaimForecast`); None if the pool
    was not read. `state`: state id of the stack. `takes_over`: take over what another state holds under this
    name. `previously`: its holders under former names of its tenant or slot.
    """

    namespace: Input[str] = field(metadata=IDENTITY)
    tenant: Input[str] = field(metadata=IDENTITY)
    type: Input[str] = field(metadata=IDENTITY)
    slot: Input[str] = field(default="0", metadata=IDENTITY)
    partition: Input[Mapping[str, Input[str]]] = field(
        default_factory=dict[str, Input[str]], metadata=IDENTITY
    )
    shared: Input[bool] = field(default=False, metadata=IDENTITY)
    holder: Input[str]
    release_policy: Input[str] | None = None
    limit: Input[int] | None = None
    pool_policy: Input[str] | None = field(default=None, compare=False)
    pool_limit: Input[int] | None = field(default=None, compare=False)
    spill: Input[bool] | None = None
    required: Input[bool] | None = field(default=None, compare=False)
    generation: Input[int] | None = field(default=None, metadata=IDENTITY)
    forecast: Input[ForecastInput | None] | None = field(default=None, compare=False)
    state: Input[str | None] | None = field(default=None, compare=False)
    takes_over: Input[bool] | None = field(default=None, compare=False)
    previously: Input[Sequence[str]] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, request: ClaimRequest, namespace: Input[str]) -> AccountClaimArgs:
        """Return the inputs of a request; inverse of `_request`."""
        return cls(
            namespace=namespace,
            tenant=request.tenant,
            type=request.type,
            slot=request.slot,
            partition=request.partition,
            shared=request.shared,
            holder=request.holder,
            release_policy=None if request.policy is None else str(request.policy),
            limit=request.limit,
            spill=request.spill or None,
            required=request.required or None,
            previously=request.previously or None,
        )


class AccountClaimProvider(DynamicProvider):
    """Claims, moves and releases through the pool. A lost account is reported as a change.

    A new claim that cannot be served is skipped, unless it is required, and retried when it could be served.
    """

    args = AccountClaimArgs
    outputs = (
        "secretName",
        "accountId",
        "memberUid",
        "record",
        "recordUid",
        "sequence",
        "reused",
        "phase",
        "skipped",
    )
    refreshed = ("releasePolicy", "limit")
    named_by = ("record",)

    def prepare(self, inputs: Properties, _olds: Properties) -> Properties:
        """Convert limits from float to int, and add the bad parts of the forecast.

        `skipped`: lets a preview know what will be skipped; `doomed`: why the update will fail here.
        """
        limits = {key: inputs[key] for key in ("limit", "poolLimit")}
        whole = {k: int(v) for k, v in limits.items() if isinstance(v, float) and v.is_integer()}
        is_waiting = not _olds or not _WAITING.isdisjoint(_olds)
        state = {"state": _olds.get("state") or inputs.get("state")}  # constant, whatever stack it moves to
        generation = {"generation": _generation(inputs, _olds)}
        expected = (is_waiting and _forecast(inputs)) or {}
        bad = {key: expected[key] for key in _WAITING & expected.keys()}
        return {**inputs, **whole, **state, **generation, **bad}

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Reject what no pool could serve."""
        yield from _failures(inputs)
        yield from _meaningless(inputs)
        yield from _held_elsewhere(inputs, _olds)

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Return whether the account was lost, or the pool's policy or limit changed.

        A skipped claim is stale if it could be served, would fail, or would be skipped for another reason.
        """
        expected = _forecast(news)
        if olds.get("phase") == SKIPPED:
            return expected is not None and _code(expected) != _code(olds)
        return (
            olds.get("phase") == LOST
            or (expected is not None and _is_lost(expected, news) and not self._is_held(olds, news))
            or self._is_agreed_otherwise(olds, news)
        )

    def _is_held(self, olds: Properties, news: Properties) -> bool:
        """Return whether this state holds it now; a refresh compares with what was read before the claim."""
        if "doomed" in (_forecast(news) or {}):
            return False
        try:
            record = Pool.record(ClusterTarget.parse(self.cluster_of_pool), olds["namespace"], olds["record"])
        except CredfleetError:
            return False
        holder = olds["holder"]
        return (
            record is not None
            and holder in record.holders
            and record.states.get(holder) in (None, news.get("state"))
        )

    def _is_agreed_otherwise(self, olds: Properties, news: Properties) -> bool:
        """Return whether the record differs from the declared pool's policy or limit; read only then."""
        policy, limit = _policy(news), _limit(news)
        if news.get("poolPolicy") is None or (policy, limit) == (_policy(olds), _limit(olds)):
            return False
        try:
            record = Pool.record(ClusterTarget.parse(self.cluster_of_pool), olds["namespace"], olds["record"])
        except CredfleetError:
            return olds.get("poolPolicy") is not None
        if record is None or policy is None or (record.policy, record.limit) == (policy, limit or None):
            return False
        for line in forecast.terms_lines(record, policy, limit or None):
            log(line)
        return True

    def create_resource(self, props: Properties) -> Properties:
        """Claim, or record why the claim is skipped."""
        return self._in_pool(props, lambda pool: _claimed_or_skipped(pool, props))

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Update the claim's names, policy and limit; claim if it was skipped."""
        if olds.get("phase") == SKIPPED:
            return {"skipped": None, **self.create_resource(news)}

        def move(pool: Pool) -> Claimed:
            record = olds["record"]
            if is_called_otherwise(olds, news):
                named = pool.move(_request(news), record, olds["holder"])
                record = record if named is None else named.record
            moved = pool.update(
                record,
                olds["holder"],
                new_holder=news["holder"],
                policy=_policy(news),
                limit=_limit(news),
                state=news.get("state"),
                takes_over=bool(news.get("takesOver")),
            )
            former = olds.get("secretName")
            return pool.claim(replace(_request(news), former=former)) if moved is None else moved

        return {**_outputs(self._in_pool(news, move)), "reused": olds.get("reused", True)}

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return the present values of the claim; without its account, phase Lost."""
        if props.get("phase") == SKIPPED:
            return {}

        def look(pool: Pool) -> Properties | None:
            try:
                claimed = pool.read(props["record"], props["holder"], member=props.get("secretName"))
            except LostMember:
                return {"phase": LOST}
            if claimed is None:
                return {"phase": LOST}  # the state keeps the account, which is claimed again
            outputs = {**_outputs(claimed), "reused": props.get("reused", True)}
            return {**_drifted(pool, props, claimed), **outputs}

        return self._in_pool(props, look)

    def delete_resource(self, _id: str, props: Properties) -> None:
        """Release, unless this holder has claimed again since, as a replacement does."""
        if props.get("phase") == SKIPPED:
            return
        fence = Fence(props["recordUid"], int(props["sequence"]), props.get("state"))
        self._in_pool(props, lambda pool: pool.release(props["record"], props["holder"], fence=fence))

    def _in_pool(self, props: Properties, act: Callable[[Pool], T]) -> T:
        """Run an operation in the pool, and write its Events, also of rejections, before returning.

        A denial by an admission policy is retried for a while: the same update might have changed the policy.
        """
        pool = Pool.open(ClusterTarget.parse(self.cluster_of_pool), props["namespace"])
        until = time.monotonic() + _FOLLOWED_SECONDS
        with pool.flushed():
            while True:
                try:
                    return act(pool)
                except NotAllowed as refusal:
                    if DENIED_BY_POLICY not in refusal.problem or time.monotonic() >= until:
                        raise
                time.sleep(_EVERY_SECONDS)


class AccountClaim(DynamicResource[AccountClaimArgs]):
    """Claim of a tenant on an account. Outputs: the name of its Secret, its id, and facts of the claim.

    `secret_name`: in the pool's namespace. `account_id`: at its cloud, if the pool owner set it. `skipped`:
    why it has no account, {code, place, cause, mend}; None or unknown for a claim that has one or might get
    one.
    """

    provider = AccountClaimProvider

    namespace: Output[str]
    secret_name: Output[str]
    account_id: Output[str | None]
    skipped: Output[Mapping[str, str] | None]


def _failures(inputs: Properties) -> Iterator[CheckFailure]:
    for key in ("namespace", "tenant", "type", "slot", "holder"):
        if not isinstance(inputs[key], str | Unknown) or not inputs[key]:
            yield CheckFailure(key, f"a claim names its {key}, as a text that is not empty")
    policies = [str(policy) for policy in Policy]
    if not isinstance(inputs["releasePolicy"], Unknown) and inputs["releasePolicy"] not in (None, *policies):
        yield CheckFailure("releasePolicy", f"the policies are {', '.join(policies)}")
    limit = inputs["limit"]
    if not isinstance(limit, Unknown) and limit is not None and (not isinstance(limit, int) or limit < 0):
        yield CheckFailure(
            "limit", "it counts consumers, so it is a whole number; 0 means the pool's own limit"
        )


def _meaningless(inputs: Properties) -> Iterator[CheckFailure]:
    """Yield failures for inputs that are invalid in any pool, with the protocol's messages."""
    tenant, account_type, partition = inputs["tenant"], inputs["type"], inputs["partition"]
    if isinstance(tenant, str) and tenant:
        try:
            tenant_label(tenant)
        except CredfleetError as error:
            yield CheckFailure("tenant", str(error))
    if isinstance(account_type, str) and account_type and isinstance(partition, dict):
        known = {key: value for key, value in partition.items() if isinstance(value, str)}
        try:
            Partition.of(account_type, known, known)
        except CredfleetError as error:
            yield CheckFailure("partition" if error.place.startswith("partition") else "type", str(error))


def _held_elsewhere(inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
    """Reject a new claim whose name is already held, unless by this state.

    `held`: holding state; empty if none is recorded, as in claims of older versions.
    """
    held = (_forecast(inputs) or {}).get("held")
    if olds or held is None or inputs.get("takesOver"):
        return
    state = inputs.get("state")
    if held == state or (not held and not isinstance(state, str)):
        return
    error = held_by_another_state(str(inputs["tenant"]), str(inputs["slot"]), str(inputs["holder"]))
    yield CheckFailure("", str(error))


def _forecast(props: Properties) -> ForecastInput | None:
    """Return the forecast of the claim; None if the pool was not read, as in older states."""
    known = props.get("forecast")
    return known if isinstance(known, Mapping) else None


def _is_lost(expected: ForecastInput, news: Properties) -> bool:
    """Return whether the pool, as read in this run, no longer holds the claimed account for this state."""
    held = expected.get("held")
    return held is None or "doomed" in expected or bool(held and held != news.get("state"))


def _code(props: Mapping[str, Any]) -> str | None:
    """Return the code of the reason why a claim is skipped, or None."""
    return (props.get("skipped") or {}).get("code")


def _generation(inputs: Properties, olds: Properties) -> int | None:
    """Return the generation of the slot from the forecast, otherwise the former one; None for the first."""
    known = (_forecast(inputs) or {}).get("generation", olds.get("generation"))
    return int(known or 0) or None


def _claimed_or_skipped(pool: Pool, props: Properties) -> Properties:
    """Claim, unless the forecast gives the free accounts to other claims, as the preview reported.

    A holder with another account is replacing it, and must not lose it by a skip.
    """
    request, expected = _request(props), _forecast(props) or {}
    if _code(expected) in LEFT_TO_OTHERS:
        return _skipped(pool, request, expected["skipped"])
    try:
        return _outputs(_moved(pool, request) or pool.claim(request))
    except PoolError as refusal:
        if not skips(type(refusal), required=request.required) or any(
            request.holder in record.holders for record in pool.records()
        ):
            raise
        why = reason_of(refusal)
        if _code(expected) != why["code"]:
            log(f"{WARNING}{props['tenant']}/{props['slot']}: skipped: {in_words(why)}")
        return _skipped(pool, request, why)


def _moved(pool: Pool, request: ClaimRequest) -> Claimed | None:
    """Return the claim if it had another name that no state records."""
    for holder in request.previously:
        if (moved := pool.move(request, pool.record_of(request.under(holder)), holder)) is not None:
            return moved
    return None


def _skipped(pool: Pool, request: ClaimRequest, why: Mapping[str, str]) -> Properties:
    nothing = dict.fromkeys(("secretName", "accountId", "memberUid", "recordUid", "sequence"))
    return {**nothing, "record": pool.record_of(request), "reused": False, "phase": SKIPPED, "skipped": why}


def _request(props: Properties) -> ClaimRequest:
    return ClaimRequest(
        tenant=props["tenant"],
        type=props["type"],
        slot=slot_of(props["slot"], int(props.get("generation") or 0)),
        partition=props["partition"],
        shared=props["shared"],
        holder=props["holder"],
        policy=_policy(props),
        limit=_limit(props),
        spill=bool(props.get("spill")),
        required=bool(props.get("required")),
        state=props.get("state"),
        takes_over=bool(props.get("takesOver")),
        previously=tuple(props.get("previously") or ()),
    )


def _policy(props: Properties) -> Policy | None:
    text = props.get("releasePolicy") or props.get("poolPolicy")
    return None if text is None else Policy(text)


def _limit(props: Properties) -> int | None:
    """Return the effective limit: 0 means no limit, None means that of the pool's ConfigMap."""
    stated = props.get("limit") or (props.get("poolLimit") or 0 if props.get("poolPolicy") else None)
    return None if stated is None else int(stated)


def _drifted(pool: Pool, props: Properties, claimed: Claimed) -> Properties:
    """Return the present values that differ from the inputs."""
    drifted: Properties = {}
    if (_policy(props) or pool.settings.policy) != claimed.policy:
        drifted["releasePolicy"] = str(claimed.policy)
    limit = _limit(props)
    if ((pool.settings.limit_for(claimed.type) if limit is None else limit) or None) != claimed.limit:
        drifted["limit"] = claimed.limit
    return drifted


def _outputs(claimed: Claimed) -> Properties:
    return {
        "secretName": claimed.secret_name,
        "accountId": claimed.account_id,
        "memberUid": claimed.member_uid,
        "record": claimed.record,
        "recordUid": claimed.record_uid,
        "sequence": claimed.sequence,
        "reused": claimed.reused,
        "phase": str(claimed.phase),
    }
