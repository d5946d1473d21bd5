"""Roster of a pool: rejects updates that take away members in use, even in a preview.

Only the check of a dynamic resource sees old and new inputs together (`components/dynamic.py`). It reads
metadata and writes nothing; every Secret of the pool depends on it. The path of this module and its class
names are stored in the state of stacks and must not change. Import-pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from pulumi import Output, RunError
from pulumi.dynamic import CheckFailure

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import Consumer, keeping
from components.account_pool.core.declared import (
    Declaration,
    DeclaredMember,
    is_touched,
    list_new_twins,
    narrowed_all,
    refusals,
)
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.pool import Pool
from components.account_pool.core.rebirth import find_lost
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast import forecast
from components.cluster_target import ClusterTarget, typed_options
from components.dynamic import DynamicProvider, DynamicResource, Properties, log
from components.errors import CredfleetError, Misconfigured, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRosterArgs:
    """Pool as a stack declares it; all values are known before an update.

    The pool's capacity is not compared with the former inputs, but with the pool's present settings.
    `elsewhere`: another stack declares the pool, and this one only claims; None if this one declares it.
    `consumers`: name → permissions, compared with the pool's ConfigMap. `owner`: holder id of the stack, the
    same string in every run. `renamed`: former tenant name → new name. `made`: members whose Secrets an
    update saw. `lost`: members without Secrets whose accounts were declared before → their former names. The
    provider fills in both.
    """

    namespace: str
    partition_keys: Sequence[str]
    members: Mapping[str, Properties]
    allow_destroy: bool
    labels: Mapping[str, str] | None = None
    elsewhere: bool | None = None
    shared_capacity: int | None = field(default=None, compare=False)
    consumers: Mapping[str, Properties] | None = field(default=None, compare=False)
    owner: str | None = field(default=None, compare=False)
    renamed: Mapping[str, str] | None = field(default=None, compare=False)
    made: Sequence[str] | None = field(default=None, compare=False)
    lost: Mapping[str, str] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, declared: Declaration, owner: str, *, elsewhere: bool = False) -> PoolRosterArgs:
        """Return the inputs for a declaration."""
        said = declared.settings
        return cls(
            namespace=declared.namespace,
            partition_keys=sorted(said.partition_keys),
            members={name: _member_properties(one) for name, one in declared.members.items()},
            allow_destroy=declared.allow_destroy,
            labels=said.scheme.names or None,
            elsewhere=elsewhere or None,
            shared_capacity=said.scheme.shared_capacity,
            consumers={one.name: one.render() for one in said.consumers} or None,
            owner=owner,
            renamed=declared.renamed or None,
        )


class PoolRosterProvider(DynamicProvider):
    """Compares the former and the new declaration."""

    args = PoolRosterArgs
    outputs = ("state",)

    def prepare(self, inputs: Properties, olds: Properties) -> Properties:
        """Add which members have Secrets and which lost them; neither if the pool cannot be read."""
        old, new, made = _declaration(olds), _declaration(inputs), olds.get("made") or ()
        if old is None or new is None or old.namespace != new.namespace or not new.members:
            return inputs
        try:
            snapshot = Pool.snapshot(ClusterTarget.parse(self.cluster_of_pool), new.namespace)
        except CredfleetError:
            return {**inputs, "made": made or None}
        seen = sorted(new.members.keys() & {*made, *(member.name for member in snapshot.members)})
        return {**inputs, "made": seen or None, "lost": dict(find_lost(old, new, snapshot)) or None}

    def is_stale(self, _olds: Properties, news: Properties) -> bool:
        """Return whether members must be recreated, which the program must know."""
        return bool(news.get("lost"))

    def failures(self, inputs: Properties, olds: Properties) -> Sequence[CheckFailure]:
        """Reject changes that take away members in use.

        An unreachable cluster does not fail a preview, because the update checks again. A pool that was read
        and is invalid does.
        """
        see = cache(self._census)
        try:
            problems = [*_problems(olds, inputs, see), *self._narrowed(inputs, see)]
            failures = [CheckFailure("", self._advice(problem, inputs)) for problem in problems]
            _tell_who_keeps(inputs, see)
            if inputs.get("elsewhere"):
                self._refuse_other_words(inputs, see)
            self._warn_of_another_stack(olds, inputs)
        except Misconfigured as error:
            return [CheckFailure("", str(error))]
        except CredfleetError as error:
            for line in forecast.unseen_lines(str(inputs["namespace"]), str(error)):
                log(line)
            return ()
        return failures

    def _warn_of_another_stack(self, olds: Properties, news: Properties) -> None:
        """Warn about a pool of another stack, on whose namespace the update would fail halfway."""
        namespace = str(news["namespace"])
        if _declaration(olds) is not None or news.get("elsewhere"):
            return
        if Pool.settings_of(ClusterTarget.parse(self.cluster_of_pool), namespace) is not None:
            log(
                f"warning: namespace {namespace} holds a pool that this stack did not make, and a pool has"
                f" one stack: claim from it by accountPool: {{from: {{namespace: {namespace}}}}}, or name"
                " another namespace. Importing what is there makes this stack its owner, which deletes it at"
                " its destroy"
            )

    def _narrowed(self, news: Properties, see: Callable[[str], PoolSnapshot]) -> Iterator[Problem]:
        """Yield problems if the new default capacity is too small for accounts in use."""
        if news.get("sharedCapacity") is None:
            return
        capacity = int(news["sharedCapacity"])
        said = Pool.settings_of(ClusterTarget.parse(self.cluster_of_pool), str(news["namespace"]))
        former = said and said.scheme.shared_capacity
        if former is not None and capacity < former:
            yield from narrowed_all(former, capacity, see(str(news["namespace"])))

    def _refuse_other_words(self, inputs: Properties, see: Callable[[str], PoolSnapshot]) -> None:
        """Raise Misconfigured if the other stack declares no pool, or one with other label names."""
        namespace = str(inputs["namespace"])
        settings = Pool.settings_of(ClusterTarget.parse(self.cluster_of_pool), namespace)
        if settings is None and not see(namespace).members:
            raise Misconfigured(
                place="credfleet:accountPool.from.namespace",
                problem=f"namespace {namespace} has no pool, so nothing could be claimed",
                fix="run `up` in the stack that declares the pool, or name the namespace that it names",
            )
        settings = settings or PoolConfigMap()
        if dict(settings.scheme.names) != (inputs.get("labels") or {}):
            named = ", ".join(f"{name}: {key}" for name, key in settings.scheme.names.items())
            raise Misconfigured(
                place="credfleet:accountPool.labels",
                problem=f"pool {namespace} calls the labels of its accounts {named or 'as credfleet does'}",
                fix="say the same under accountPool.labels as the stack that declares the pool",
            )

    def name(self, _state: Properties) -> str:
        """Return the constant name of a roster."""
        return "roster"

    def create_resource(self, _props: Properties) -> Properties:
        """Create the state id of this roster, before anything is claimed with it."""
        return {"state": uuid.uuid4().hex}

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Check again before the update; nothing in the cluster has changed yet."""
        try:
            problems = [*_problems(olds, news, cache(self._census))]
        except CredfleetError as error:
            raise RunError(f"what is in use is unknown: {error}") from None
        if problems:
            raise RunError("; ".join(self._advice(problem, news) for problem in problems))
        return {} if olds.get("state") else self.create_resource(news)

    def _advice(self, problem: Problem, props: Properties) -> str:
        typed = typed_options(stack=self.stack_of(props))
        return ClusterTarget.parse(self.cluster_of_pool).advise(_line(problem), typed)

    def _census(self, namespace: str) -> PoolSnapshot:
        snapshot = Pool.snapshot(ClusterTarget.parse(self.cluster_of_pool), namespace)
        for problem in snapshot.problems:
            log(f"warning: {_line(problem)}")
        return snapshot


class PoolRoster(DynamicResource[PoolRosterArgs]):
    """Members that a stack declares. All resources with their credentials depend on it."""

    provider = PoolRosterProvider

    owner: Output[str | None]
    state: Output[str | None]
    made: Output[Sequence[str] | None]
    lost: Output[Mapping[str, str] | None]


def _problems(olds: Properties, news: Properties, see: Callable[[str], PoolSnapshot]) -> Iterator[Problem]:
    """Yield what users of members would lose, and new members that exist under another name."""
    old, new = _declaration(olds), _declaration(news)
    if new is None:
        return
    if old is not None and is_touched(old, new):
        yield from refusals(old, new, see(old.namespace))
    known = {} if old is None or old.namespace != new.namespace else old.members
    if not new.members.items() <= known.items():
        yield from list_new_twins(known, new, see(new.namespace))


def _tell_who_keeps(news: Properties, see: Callable[[str], PoolSnapshot]) -> None:
    """Warn about claims that new consumers would not be granted, while the pool names other consumers."""
    if news.get("consumers") and not news.get("elsewhere"):
        snapshot, named = see(str(news["namespace"])), sorted(news["consumers"].items())
        consumers = tuple(Consumer.parse(name, said) for name, said in named)
        for line in keeping(snapshot.records, consumers) if snapshot.consumers != consumers else ():
            log(f"warning: {line}")


def _line(problem: Problem) -> str:
    return f"{problem.place}: {problem.problem}\n→ {problem.fix}"


def _member_properties(member: DeclaredMember) -> Properties:
    owner = {} if member.tenant is None else {"tenant": member.tenant}
    return {
        **owner,
        "type": member.type,
        "accountId": member.account_id,
        "labels": dict(member.labels),
        "annotations": dict(member.annotations),
    }


def _declaration(props: Properties) -> Declaration | None:
    """Parse a declaration; None if there was none, as in the first update."""
    if not props.get("namespace"):
        return None
    return Declaration(
        namespace=props["namespace"],
        settings=PoolConfigMap(
            tuple(props.get("partitionKeys") or ()), scheme=LabelScheme(props.get("labels") or {})
        ),
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
        renamed=props.get("renamed") or {},
    )
