"""Steps on the settings of a pool: read them, add the uid, and hold the pool.

A stack recreates lost settings and accounts, but not what operators set by commands. A second ConfigMap
therefore keeps a copy. Its holds apply until a claimer or an operator has added the uid to the settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, Final, cast

from components.account_pool.core.calls import Create, Kind, Pause, Replace, Steps
from components.account_pool.core.config_map import (
    CONFIG_MAP,
    PoolConfigMap,
    consumers_of,
    has_pool_uid,
    holds_of,
    with_pool_uid,
)
from components.account_pool.core.holds import Holds, describe_hold
from components.account_pool.core.keys import CUT, STATE_BEFORE, STATE_REASON
from components.account_pool.core.model import JsonObject, Member, State
from components.account_pool.core.selection import MEMBERS, RECORDS
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.steps import list_all, read, write
from components.documents import read_json
from components.errors import Misconfigured, NotAllowed

COPY_OF_HOLDS: Final = "credfleet-holds"
_QUARANTINED: Final = "quarantined"


def see(settings: JsonObject | None) -> Steps[PoolSnapshot]:
    """Read every member, then every record, then the operators' holds. `settings`: the pool's ConfigMap."""
    members = yield from list_all(Kind.MEMBER, MEMBERS)
    records = yield from list_all(Kind.RECORD, RECORDS)
    copy = yield from _read_copy()
    seen = PoolSnapshot.of(members, records, _merge_holds(settings, copy), consumers_of(settings))
    return replace(seen, quarantines=quarantines_of((copy or {}).get("data") or {}))


def read_holds(settings: JsonObject | None) -> Steps[Holds]:
    """Return the holds of a pool. `settings`: its ConfigMap, or None."""
    is_signed = settings is not None and has_pool_uid(settings)
    return holds_of(settings) if is_signed else _merge_holds(settings, (yield from _read_copy()))


def _merge_holds(settings: JsonObject | None, copy: JsonObject | None) -> Holds:
    holds = holds_of(settings)
    if settings is not None and has_pool_uid(settings):
        return holds
    return replace(holds, said={**holds_of(copy).said, **holds.said})


def _read_copy() -> Steps[JsonObject | None]:
    with suppress(NotAllowed):  # an identity without this right can neither claim nor declare accounts
        return (yield from read(Kind.RECORD, COPY_OF_HOLDS))
    return None


def sign_settings() -> Steps[PoolConfigMap]:
    """Read ConfigMap `credfleet-pool`, and add its uid if missing; without one, use the defaults.

    An identity that can only read or clean leaves the uid to the first claimer.
    """
    while True:
        body = yield from read(Kind.RECORD, CONFIG_MAP)
        settings = PoolConfigMap() if body is None else PoolConfigMap.parse(body)
        settings = replace(settings, holds=(yield from read_holds(body)))
        try:
            if body is None or has_pool_uid(body) or (yield from sign(body, settings.holds)) is not None:
                return settings
        except NotAllowed:
            return settings


def sign(body: JsonObject, holds: Holds) -> Steps[JsonObject | None]:
    """Write the operators' holds and the uid into a pool's ConfigMap; None on conflict."""
    held = {**body, "data": holds.write(body.get("data") or {})}
    return (yield from write(Replace(Kind.RECORD, held if has_pool_uid(held) else with_pool_uid(held))))


def note_hold(namespace: str, scope: str, reason: str) -> Steps[Holds]:
    """Write a hold, then its copy, each at the resourceVersion it was read with."""
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        body = yield from read(Kind.RECORD, CONFIG_MAP)
        if body is None:
            raise Misconfigured(
                place=f"pool {namespace}",
                problem=f"it has no ConfigMap {CONFIG_MAP}, so nothing can say that it is held",
                fix="declare accountPool in a stack and run `up`",
            )
        holds = yield from read_holds(body)
        if not reason and scope in holds.declared:
            raise NotAllowed(
                place=f"pool {namespace}",
                problem=describe_hold(scope, holds.declared[scope]),
                fix=holds.fix(scope, namespace),
            )
        after = holds.said_of(scope, reason)
        if (yield from sign(body, after)) is not None and (yield from _copy(namespace, after.write)):
            return after
    raise AssertionError


def note_quarantine(namespace: str, member: Member) -> Steps[None]:
    """Update the copy of an operator's quarantine of an account: add it, or remove it if it ended."""
    why = {
        key: text
        for key in (STATE_REASON, STATE_BEFORE, CUT)
        if (text := member.annotations.get(key)) is not None
    }

    def noted(data: Mapping[str, str]) -> dict[str, str]:
        others = {name: each for name, each in quarantines_of(data).items() if name != member.name}
        here = others | ({member.name: why} if member.state == State.QUARANTINED else {})
        rest = {key: text for key, text in data.items() if key != _QUARANTINED}
        return {**rest, **({_QUARANTINED: json.dumps(here, sort_keys=True)} if here else {})}

    for attempt in count():
        if (yield from _copy(namespace, noted)):
            return
        yield Pause(attempt)


def quarantines_of(data: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the quarantine annotations of accounts, by account name, from the copy."""
    return cast("dict[str, Any]", read_json(data.get(_QUARANTINED, "{}")))


def _copy(namespace: str, change: Callable[[Mapping[str, str]], dict[str, str]]) -> Steps[bool]:
    """Update the copy of the operators' settings; False on conflict."""
    with suppress(NotAllowed):  # an operator with an older Role still works; `doctor` reports what it lacks
        found = yield from read(Kind.RECORD, COPY_OF_HOLDS)
        before = {} if found is None else found.get("data") or {}
        after = change(before)
        if after == before:
            return True
        metadata = {"name": COPY_OF_HOLDS, "namespace": namespace}
        body = found or {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        call = (Create if found is None else Replace)(Kind.RECORD, {**body, "data": after})
        return (yield from write(call)) is not None
    return True
