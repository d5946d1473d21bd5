"""The claim of an account as a dynamic resource: check, diff, create, read, update, delete over the protocol.

The path of this module and the names of its classes are written into the state of every stack that claims;
they never move. Import-pure: this module is imported again in the provider's process, and by every program
that draws a claim. No credential ever passes here: a claim says which Secret, never what is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import pulumi
from pulumi import Input, Output, ResourceOptions
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)
from pulumi.output import Unknown

from components.account_pool.errors import LostMember
from components.account_pool.model import Claimed, ClaimRequest, Fence, Partition, Policy, tenant_label
from components.account_pool.pool import Pool
from components.connection import ClusterTarget
from components.dynamic import Properties, compared, kept, shortened
from components.errors import CredfleetError

T = TypeVar("T")

LOST: Final = "Lost"
"""Phase of a claim whose account was deleted, replaced or relabelled by hand."""

_IDENTITY: Final = ("namespace", "tenant", "type", "slot", "partition", "shared")
_FACTS: Final = ("holder", "releasePolicy", "limit")
_INPUTS: Final = (*_IDENTITY, *_FACTS)
_OUTPUTS: Final = (
    "secretName",
    "accountId",
    "memberUid",
    "record",
    "recordUid",
    "sequence",
    "reused",
    "phase",
)


class AccountClaimProvider(ResourceProvider):
    """A thin shell over the pool; one instance serves all threads of the provider's process."""

    _cluster: str | None = None

    def configure(self, req: ConfigureRequest) -> None:
        """Learn which cluster is meant from `credfleet:cluster`."""
        self._cluster = req.config.get("cluster")

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Normalise the inputs, and refuse what no pool could serve."""
        inputs = {key: news.get(key) for key in _INPUTS}
        inputs["slot"] = inputs["slot"] or "0"
        inputs["partition"] = inputs["partition"] or {}
        inputs["shared"] = inputs["shared"] or False
        if isinstance(inputs["limit"], float) and inputs["limit"].is_integer():
            inputs["limit"] = int(inputs["limit"])
        return CheckResult(inputs, list(_failures(inputs)))

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; a claim that lost its account is a change, so that `up` says so."""
        return compared(
            _olds, _news, _INPUTS, identity=_IDENTITY, otherwise=lambda: _olds.get("phase") == LOST
        )

    def create(self, props: Properties) -> CreateResult:
        """Claim; run again after any failure it finishes what was begun."""
        claimed = self._in_pool(props, lambda pool: pool.claim(_request(props)))
        return CreateResult(claimed.record, {**kept(props, _INPUTS), **_outputs(claimed)})

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what is there; a claim that is gone has no id, one without its account has phase Lost."""

        def look(pool: Pool) -> ReadResult:
            try:
                claimed = pool.read(id_, props["holder"], member=props.get("secretName"))
            except LostMember:
                return ReadResult(
                    id_, {**kept(props, _INPUTS + _OUTPUTS), "phase": LOST}, kept(props, _INPUTS)
                )
            if claimed is None:
                return ReadResult("", {})
            facts = {**kept(props, _INPUTS), **_drifted(pool, props, claimed)}
            outputs = {**_outputs(claimed), "reused": props.get("reused", True)}
            return ReadResult(id_, {**facts, **outputs}, facts)

        return self._in_pool(props, look)

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Move the facts of the claim: its holder's name, its policy, its limit."""

        def move(pool: Pool) -> Claimed:
            claimed = pool.update(
                _id,
                _olds["holder"],
                new_holder=_news["holder"],
                policy=_policy(_news),
                limit=_limit(_news),
            )
            return pool.claim(_request(_news)) if claimed is None else claimed

        outputs = _outputs(self._in_pool(_news, move))
        return UpdateResult({**kept(_news, _INPUTS), **outputs, "reused": _olds.get("reused", True)})

    def delete(self, _id: str, _props: Properties) -> None:
        """Release, unless this holder has claimed again since, as a replacement has."""
        fence = Fence(_props["recordUid"], int(_props["sequence"]))
        self._in_pool(_props, lambda pool: pool.release(_id, _props["holder"], fence=fence))

    def _in_pool(self, props: Properties, act: Callable[[Pool], T]) -> T:
        """Act in the pool; before the host answers, the Events of it are written, a refusal's as well."""
        with shortened():
            pool = Pool.open(ClusterTarget.parse(self._cluster), props["namespace"])
            try:
                return act(pool)
            finally:
                pool.flush()


@dataclass(frozen=True, kw_only=True)
class AccountClaimArgs:
    """What a consumer asks for.

    namespace: of the pool. type: hyperscaler type. slot: one of several accounts of the tenant, or the
    consumer's id on a shared account. partition: values of the pool's partition keys, an absent key means
    members without it.
    holder: the consumer, the same text whenever the program runs. release_policy, limit: None means the
    pool's.
    """

    namespace: Input[str]
    tenant: Input[str]
    type: Input[str]
    holder: Input[str]
    slot: Input[str] = "0"
    partition: Input[Mapping[str, Input[str]]] = field(default_factory=dict[str, Input[str]])
    shared: Input[bool] = False
    release_policy: Input[str] | None = None
    limit: Input[int] | None = None


class AccountClaim(Resource, module="credfleet", name="AccountClaim"):
    """An account a tenant has: the name of the Secret with its credential, and the facts of the claim."""

    namespace: Output[str]
    record: Output[str]
    sequence: Output[int]
    reused: Output[bool]
    phase: Output[str]

    @property
    def secret_name(self) -> Output[str]:
        """Name of the Secret of the account, in the pool's namespace."""
        return pulumi.get(self, "secretName")

    @property
    def account_id(self) -> Output[str | None]:
        """Id of the account at its cloud, if the pool owner said it."""
        return pulumi.get(self, "accountId")

    @property
    def member_uid(self) -> Output[str]:
        """Uid of the Secret, which changes when somebody replaces it."""
        return pulumi.get(self, "memberUid")

    @property
    def record_uid(self) -> Output[str]:
        """Uid of the claim's record: with `sequence`, which claim a release means."""
        return pulumi.get(self, "recordUid")

    def __init__(self, name: str, args: AccountClaimArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(
            AccountClaimProvider(),
            name,
            {
                "namespace": args.namespace,
                "tenant": args.tenant,
                "type": args.type,
                "slot": args.slot,
                "partition": args.partition,
                "shared": args.shared,
                "holder": args.holder,
                "releasePolicy": args.release_policy,
                "limit": args.limit,
                **dict.fromkeys(_OUTPUTS),
            },
            opts,
        )


def _failures(inputs: Properties) -> Iterator[CheckFailure]:
    """Everything wrong with the inputs that are known already."""
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
    yield from _meaningless(inputs)


def _meaningless(inputs: Properties) -> Iterator[CheckFailure]:
    """Tell what no pool could make sense of, in the protocol's words."""
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


def _request(props: Properties) -> ClaimRequest:
    return ClaimRequest(
        tenant=props["tenant"],
        type=props["type"],
        slot=props["slot"],
        partition=props["partition"],
        shared=props["shared"],
        holder=props["holder"],
        policy=_policy(props),
        limit=_limit(props),
    )


def _policy(props: Properties) -> Policy | None:
    text = props.get("releasePolicy")
    return None if text is None else Policy(text)


def _limit(props: Properties) -> int | None:
    return int(props["limit"]) if props.get("limit") else None


def _drifted(pool: Pool, props: Properties, claimed: Claimed) -> Properties:
    """Tell the facts as they are now, where they are not what the inputs mean."""
    drifted: Properties = {}
    if (_policy(props) or pool.settings.policy) != claimed.policy:
        drifted["releasePolicy"] = str(claimed.policy)
    if (_limit(props) or pool.settings.limit_for(claimed.type)) != claimed.limit:
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
