"""Pools with every label, annotation, value and state that the room knows, and what is said of their claims.

Drawn are labels in credfleet's words and in Kyma's, hand-made ones, records in every phase, and tokens of
claims that live, are gone or came back from a backup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from components.account_pool.core.calls import Kind, PoolApi
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    INTERNAL,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import ClaimRequest, Partition, Phase, Policy, record_name
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.records import Claimed, Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import AccountUse, status_of
from components.account_pool.core.tokens import Token
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.account_pool.forecast.explanation import explain
from components.errors import Exhausted, Misconfigured, PoolError
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME
from tests.support.memory_pool import KEB, POOL, MemoryServer

KEYS = ("eu-access",)
SETTINGS = PoolConfigMap(KEYS)
NAMES = ("m0", "m1", "m2", "m3")

LABELS = st.fixed_dictionaries(
    {},
    optional={
        TENANT_NAME: st.sampled_from(["", "acme", "acme", "globex"]),
        POOL_STATE: st.sampled_from(["dirty", "cleaning", "quarantined", "strange"]),
        "eu-access": st.sampled_from(["true", "true", "false", ""]),
        INTERNAL: st.just("true"),
        SHARED: st.sampled_from(["true", "true", "yes"]),
        **{key: st.sampled_from(["true", "false"]) for key in ("dirty", "shared")},
        **{key: st.just("true") for key in ("cleaning", "quarantined", "tenantName", "euAccess", "internal")},
    },
)
NOTES = st.fixed_dictionaries(
    {},
    optional={
        CLAIM_ORIGIN: st.sampled_from(["pool", "owner", "retained", "strange"]),
        CLAIM_POLICY: st.sampled_from([*map(str, Policy), "strange"]),
        TENANT_ID: st.sampled_from(["acme", "globex"]),
        SHARED_CAPACITY: st.sampled_from(["0", "1", "2", "3", "many"]),
        STATE_REASON: st.just("why"),
    },
)
FEW_LABELS = LABELS.map(lambda labels: dict(list(labels.items())[:2]))


@dataclass(frozen=True)
class Made:
    """A claim's record. carried: whether the member it names shall carry it, as far as its labels let it."""

    tenant: str
    slot: str
    eu: bool
    shared: bool
    member: str
    phase: Phase
    policy: Policy
    holders: tuple[str, ...]
    limit: int | None
    carried: bool

    @property
    def partition(self) -> Partition:
        return Partition("aws", (("eu-access", "true" if self.eu else None),), self.shared)

    @property
    def name(self) -> str:
        return record_name(self.partition, self.tenant, self.slot)


RECORDS = st.builds(
    Made,
    tenant=st.sampled_from(["acme", "globex"]),
    slot=st.sampled_from(["0", "1"]),
    eu=st.booleans(),
    shared=st.booleans(),
    member=st.sampled_from(NAMES),
    phase=st.sampled_from(Phase),
    policy=st.sampled_from(Policy),
    holders=st.sampled_from([(), ("h1",), ("h2",), ("h1", "h2")]),
    limit=st.sampled_from([None, None, 1, 2]),
    carried=st.booleans(),
)


@dataclass(frozen=True)
class Spoken:
    """A pool in its own words, and the API that shows it in credfleet's."""

    server: MemoryServer
    scheme: LabelScheme

    @property
    def api(self) -> PoolApi:
        return self.scheme.over(self.server)

    @property
    def settings(self) -> PoolConfigMap:
        return PoolConfigMap(KEYS, scheme=self.scheme)

    @property
    def pool(self) -> PoolOperator:
        return PoolOperator(self.server, POOL, self.settings)

    def copy(self) -> Spoken:
        return replace(self, server=self.server.copy())

    def reworded(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the labels as this pool has them; a dirty account only says that it is."""
        said = self.scheme.labels(labels)
        if self.scheme.dirty is not None and said.get(POOL_STATE) == "dirty":
            del said[POOL_STATE]
            said[self.scheme.dirty] = "true"
        return said


TOKENS = st.sampled_from(["", "", "", "dead attempt", "gone record", "restored record", "no token"])


@st.composite
def pools(draw: st.DrawFn) -> Spoken:
    server = MemoryServer()
    spoken = Spoken(server, draw(st.sampled_from([LabelScheme(), KEB])))
    tokens: dict[str, list[Token]] = {name: [] for name in NAMES}
    former: dict[str, list[Token]] = {name: [] for name in NAMES}
    records = draw(st.lists(RECORDS, max_size=3, unique_by=lambda made: made.name))
    for made in records:
        body = Record(
            name=made.name,
            uid="",
            resource_version="",
            tenant=made.tenant,
            partition=made.partition,
            slot=made.slot,
            member=made.member,
            member_uid="",
            attempt=2,
            phase=made.phase,
            policy=made.policy,
            limit=made.limit,
            holders=dict.fromkeys(made.holders, 1),
        ).render(POOL)
        server.create(Kind.RECORD, body)
        record = server.record(made.name)
        assert record is not None
        if made.carried:
            tokens[made.member].append(record.token)
        else:
            former[made.member].append(replace(record.token, uid="before"))
    for name in NAMES[: draw(st.integers(0, len(NAMES)))]:
        labels, notes = draw(st.one_of(FEW_LABELS, LABELS)), draw(NOTES)
        left = {
            "dead attempt": [replace(token, attempt=1) for token in tokens[name]],
            "restored record": former[name],
            "gone record": [Token("claim-0", "u", 1)],
            "no token": ["no token"],
        }.get(draw(TOKENS), [])
        texts = [str(token) for token in (*tokens[name], *left)]
        if texts and draw(st.booleans()):
            holder = next((made for made in records if made.member == name), None)
            labels |= {} if holder is None or holder.shared else {TENANT_NAME: holder.tenant}
        if texts:
            notes[CLAIM_TOKEN] = texts[0]
            notes[SHARED_CLAIMS] = json.dumps(dict.fromkeys(texts, "x")) if texts != ["no token"] else "[]"
        said = spoken.reworded({HYPERSCALER_TYPE: "aws", **labels})
        metadata = {"name": name, "labels": said, "annotations": notes}
        server.create(Kind.MEMBER, {"metadata": metadata})
    return spoken


REQUESTS = st.builds(
    ClaimRequest,
    tenant=st.sampled_from(["acme", "globex", "initech"]),
    type=st.just("aws"),
    slot=st.sampled_from(["0", "1"]),
    partition=st.sampled_from([{}, {"eu-access": "true"}]),
    shared=st.booleans(),
    holder=st.sampled_from(["h1", "h3"]),
)


def disagreements(snapshot: PoolSnapshot, request: ClaimRequest, ended: Claimed | PoolError) -> list[str]:
    """Return in what forecast, explanation and status of a pool were wrong about a claim made then."""
    (expected,) = forecast_claims(snapshot, [request], KEYS)
    told = explain(snapshot, request, KEYS)
    standings = {each.secret_name: each.standing for each in status_of(snapshot, SETTINGS).accounts}
    taken = [each.member for each in told.candidates if each.taken]
    wrong = {
        "the explanation expects something else": told.expected != expected,
        "the explanation leaves members out": {each.member for each in told.candidates} != set(standings),
    }
    if isinstance(ended, Claimed):
        was_held = expected.kind is ForecastKind.HELD
        standing = standings.get(ended.secret_name)
        wrong |= {
            "the explanation names another": taken != [ended.secret_name],
            "the forecast names another": expected.member not in (None, ended.secret_name),
            "the forecast foresaw no success": expected.refusal is not None,
            "the status calls it misconfigured": standing is AccountUse.MISCONFIGURED and not was_held,
        }
    else:
        foreseen = ForecastKind.EXHAUSTED if _says_none_left(ended) else ForecastKind.REFUSED
        wrong |= {
            "the explanation names one": taken != [],
            "the forecast foresaw another end": expected.kind is not foreseen,
        }
    return [what for what, is_wrong in wrong.items() if is_wrong]


def _says_none_left(refused: PoolError) -> bool:
    is_of_pool = isinstance(refused, Misconfigured) and "no other is free" in refused.problem
    return isinstance(refused, Exhausted) or is_of_pool
