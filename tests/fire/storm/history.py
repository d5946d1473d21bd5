"""What a pool was at every instant, by the changes of its objects in their order, and what is wrong then.

Every change bears the revision of the store, which is one for all kinds of objects; so the changes of two
watches, put in order, show each state that was. What has to hold in each is written here by itself, from the
promises of docs/account-pool.md.
"""

from __future__ import annotations

import heapq
import json
import re
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

TOKEN = "credfleet.io/claim-token"
ALIVE = "alive"
WIPED = "wiped."
"""What the name of a ConfigMap begins with that each step of a wipe of an account writes."""
_KEY = re.compile(r"sentinel-account-\d+-\d+")


@dataclass(frozen=True, order=True)
class Change:
    """One object after one write; `after` is None when it was deleted."""

    revision: int
    kind: str
    name: str
    after: Mapping[str, Any] | None = field(compare=False)


@dataclass(frozen=True)
class Claim:
    """What a claim's record said."""

    token: str
    member: str
    slot: tuple[str, str, str]
    holders: tuple[str, ...]


def changes_in(file: Path) -> Iterator[Change]:
    """Read what one watch wrote down, a line each."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            seen = json.loads(line)
            yield Change(seen["revision"], seen["kind"], seen["name"], seen["after"])


@dataclass
class History:
    """A pool, change by change. quotas: what holders begin with → accounts at most."""

    quotas: Mapping[str, int]
    wrong: list[str] = field(default_factory=list[str])
    changes: int = 0
    bound: int = 0
    wiped: int = 0
    most: dict[str, int] = field(default_factory=dict[str, int])
    _bound: dict[str, Claim] = field(default_factory=dict[str, Claim])
    _tokens: dict[str, str] = field(default_factory=dict[str, str])

    def replay(self, *watched: Iterable[Change]) -> History:
        """Go through all changes in their order, and note what is wrong after each."""
        for change in heapq.merge(*watched):
            self.changes += 1
            if change.kind == "secrets":
                self._member(change)
            elif change.name.startswith(WIPED):
                self.wiped += 1
            else:
                self._record(change)
            self.wrong += [f"revision {change.revision}: {each}" for each in self._faults(change)]
        return self

    @property
    def having(self) -> int:
        """How many claims are bound after the last change."""
        return len(self._bound)

    def _member(self, change: Change) -> None:
        token = ((change.after or {}).get("annotations") or {}).get(TOKEN)
        if token is None:
            self._tokens.pop(change.name, None)
        else:
            self._tokens[change.name] = token

    def _record(self, change: Change) -> None:
        data = (change.after or {}).get("data") or {}
        if data.get("phase") != "Bound":
            self._bound.pop(change.name, None)
            return
        token = f"{change.name}.{(change.after or {})['uid']}.{data['attempt']}"
        slot = (data["partition"], data["tenant"], data["slot"])
        self.bound += change.name not in self._bound
        self._bound[change.name] = Claim(token, data["member"], slot, tuple(json.loads(data["holders"])))

    def _faults(self, change: Change) -> Iterator[str]:
        wiped = change.name.removeprefix(WIPED)
        if wiped != change.name and wiped in self._tokens:
            yield f"account {wiped} is wiped while it carries {self._tokens[wiped]}"
        touched = [claim for name, claim in self._bound.items() if change.name in (name, claim.member)]
        for claim in touched:
            owners = [each.slot for each in self._bound.values() if each.member == claim.member]
            if len(owners) > 1:
                yield f"account {claim.member} has two owners: {owners}"
            having = [each.member for each in self._bound.values() if each.slot == claim.slot]
            if len(having) > 1:
                yield f"slot {claim.slot} has two accounts: {having}"
            if self._tokens.get(claim.member) != claim.token:
                yield f"account {claim.member} does not carry the claim of {claim.slot}"
        if change.kind == "configmaps":
            yield from self._exceeded()

    def _exceeded(self) -> Iterator[str]:
        having: dict[str, int] = defaultdict(int)
        for claim in self._bound.values():
            for prefix in self.quotas:
                having[prefix] += any(each.startswith(prefix) for each in claim.holders)
        for prefix, count in having.items():
            self.most[prefix] = max(self.most.get(prefix, 0), count)
            if count > self.quotas[prefix]:
                yield f"{prefix} has {count} accounts, and may have {self.quotas[prefix]}"


@dataclass
class Keys:
    """Which keys are alive, and which Secrets have them, change by change.

    The cloud of an account is ConfigMap ACCOUNT, with the keys that are alive. What is kept beside an account
    while its key is rotated is used by nothing.
    """

    wrong: list[str] = field(default_factory=list[str])
    alive: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    held: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    changed: int = 0
    revoked: int = 0

    def replay(self, *watched: Iterable[Change]) -> Keys:
        """Go through all changes in their order, and note which Secret has a key then that is not alive."""
        for change in sorted(chain(*watched)):
            data = (change.after or {}).get("data") or {}
            name = change.name.rpartition("/")[2]
            if change.kind == "configmaps" and ALIVE in data:
                before, self.alive[name] = self.alive.get(name, set()), {*data[ALIVE].split()}
                self.revoked += len(before - self.alive[name])
                touched = self.held
            elif change.kind == "secrets" and not name.endswith(".other-key"):
                texts = (b64decode(value).decode(errors="ignore") for value in data.values())
                before, now = (
                    self.held.get(change.name),
                    {key for text in texts for key in _KEY.findall(text)},
                )
                self.held[change.name] = now
                self.changed += before not in (None, set(), now)
                touched = {change.name: now}
            else:
                continue
            known = set[str]().union(*self.alive.values())
            self.wrong += (
                f"revision {change.revision}: {each} has {key}, which is not alive"
                for each, keys in touched.items()
                for key in keys - known
            )
        return self
