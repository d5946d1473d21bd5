"""The roster of a pool: refuses, already in a preview, to take away members that are in use.

Only a dynamic resource's check sees old and new inputs together (decision 13). It looks at metadata, writes
nothing, and every Secret of the pool depends on it. On the way it tells what the stack's claims can expect
(decision 21). The path of this module and the names of its classes are written into the state of stacks;
they never move. Import-pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pulumi import Input, Output, ResourceOptions, RunError
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

from components.account_pool import forecast
from components.account_pool.declared import Declaration, DeclaredMember, is_touched, refusals
from components.account_pool.model import ClaimRequest
from components.account_pool.outlook import Census, outlook, vacancies
from components.account_pool.pool import Pool
from components.connection import ClusterTarget
from components.dynamic import Properties, compared, kept, tell
from components.errors import CredfleetError, Problem

_DECLARED: Final = ("namespace", "partitionKeys", "members", "allowDestroy")
_INPUTS: Final = (*_DECLARED, "claims")


class PoolRosterProvider(ResourceProvider):
    """Compares what was declared with what is declared now; one instance serves all threads."""

    _cluster: str | None = None

    def configure(self, req: ConfigureRequest) -> None:
        """Learn which cluster is meant from `credfleet:cluster`."""
        self._cluster = req.config.get("cluster")

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse what members in use would lose; tell what claims can expect.

        A cluster that cannot be seen is no reason to refuse a preview: `update` looks again.
        """
        inputs = {key: news.get(key) for key in _INPUTS}
        see = cache(self._census)
        try:
            failures = [CheckFailure("", _line(problem)) for problem in _problems(_olds, inputs, see)]
            _forecast(_olds, inputs, see)
        except CredfleetError as error:
            for line in forecast.unseen_lines(str(inputs["namespace"]), str(error)):
                tell(line)
            failures = []
        return CheckResult(inputs, failures)

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare what is declared; claims are here for the forecast only."""
        return compared(_olds, _news, _DECLARED)

    def create(self, props: Properties) -> CreateResult:
        """Remember what is declared."""
        return CreateResult("roster", kept(props, _INPUTS))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what was declared: nothing of it is in the cluster."""
        return ReadResult(id_, kept(props, _INPUTS), kept(props, _INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Look once more, now that it counts; nothing in the cluster has changed yet."""
        try:
            problems = list(_problems(_olds, _news, self._census))
        except CredfleetError as error:
            raise RunError(f"what is in use is unknown: {error}") from None
        if problems:
            raise RunError("; ".join(map(_line, problems)))
        return UpdateResult(kept(_news, _INPUTS))

    def delete(self, _id: str, _props: Properties) -> None:
        """Nothing to delete; the seal watches over the pool's end."""

    def _census(self, namespace: str) -> Census:
        return Pool.census(ClusterTarget.parse(self._cluster), namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRosterArgs:
    """What a stack declares of a pool, and the claims it makes; everything is known before an update."""

    declaration: Declaration
    claims: Sequence[ClaimRequest] = ()


class PoolRoster(Resource, module="credfleet", name="PoolRoster"):
    """The members a stack declares. Everything that holds their credentials depends on it."""

    namespace: Output[str]
    members: Output[Mapping[str, Any]]

    def __init__(self, name: str, args: PoolRosterArgs, opts: ResourceOptions | None = None) -> None:
        declared = args.declaration
        props: dict[str, Input[Any]] = {
            "namespace": declared.namespace,
            "partitionKeys": sorted(declared.partition_keys),
            "members": {name: _as_property(one) for name, one in declared.members.items()},
            "allowDestroy": declared.allow_destroy,
            "claims": [_claim_as_property(claim) for claim in args.claims],
        }
        super().__init__(PoolRosterProvider(), name, props, opts)


def _problems(olds: Properties, news: Properties, see: Callable[[str], Census]) -> Iterator[Problem]:
    old, new = _declaration(olds), _declaration(news)
    if old is not None and new is not None and is_touched(old, new):
        yield from refusals(old, new, see(old.namespace))


def _forecast(olds: Properties, news: Properties, see: Callable[[str], Census]) -> None:
    declared, claims = _declaration(news), _claims(news)
    if declared is None or not claims:
        return
    census = declared.with_census(see(declared.namespace))
    leaving = [claim for claim in _claims(olds) if claim not in claims]
    expected = outlook(census, claims, declared.partition_keys, leaving)
    for line in forecast.lines(expected, vacancies(census, claims, declared.partition_keys)):
        tell(line)


def _line(problem: Problem) -> str:
    return f"{problem.place}: {problem.cause}\n→ {problem.mend}"


def _as_property(member: DeclaredMember) -> Properties:
    owner = {} if member.tenant is None else {"tenant": member.tenant}
    return {
        **owner,
        "type": member.type,
        "accountId": member.account_id,
        "labels": dict(member.labels),
        "annotations": dict(member.annotations),
    }


def _claim_as_property(claim: ClaimRequest) -> Properties:
    return {
        "tenant": claim.tenant,
        "type": claim.type,
        "slot": claim.slot,
        "partition": dict(claim.partition),
        "shared": claim.shared,
        "holder": claim.holder,
    }


def _declaration(props: Properties) -> Declaration | None:
    """Read a declaration back; None when there was none, as at the first update."""
    if not props.get("namespace"):
        return None
    return Declaration(
        namespace=props["namespace"],
        partition_keys=tuple(props.get("partitionKeys") or ()),
        members={
            name: DeclaredMember(
                type=one["type"],
                account_id=one["accountId"],
                tenant=one.get("tenant"),
                labels=one.get("labels") or {},
                annotations=one.get("annotations") or {},
            )
            for name, one in (props.get("members") or {}).items()
        },
        allow_destroy=bool(props.get("allowDestroy")),
    )


def _claims(props: Properties) -> list[ClaimRequest]:
    return [
        ClaimRequest(
            tenant=one["tenant"],
            type=one["type"],
            slot=one["slot"],
            partition=one.get("partition") or {},
            shared=bool(one.get("shared")),
            holder=one["holder"],
        )
        for one in props.get("claims") or ()
    ]
