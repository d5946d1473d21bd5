"""Label names of a pool, and an API that translates them to and from credfleet's keys.

Kyma's pools carry the same facts under other labels (docs/compatibility.md). This component uses one set of
keys; selectors, answers and patches are translated. Such a pool is used as it is: claims write under the
pool's own labels, and Kyma sees them. What Kyma has no label for (tokens, cleaning, quarantine) is written
under credfleet's keys. Records and Events belong to credfleet and are not translated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from components.account_pool.core.calls import Call, Found, Get, Kind, ListPage, Page, Patch, PoolApi, Result
from components.account_pool.core.keys import INTERNAL, POOL_STATE, SHARED_CAPACITY, STATE_BEFORE
from components.account_pool.core.model import JsonObject, State, written_at
from components.labels import EU_ACCESS, HYPERSCALER_TYPE, SHARED, TENANT_NAME

NAMED: Final[Mapping[str, str]] = {
    "type": HYPERSCALER_TYPE,
    "tenant": TENANT_NAME,
    "shared": SHARED,
    "euAccess": EU_ACCESS,
    "internal": INTERNAL,
}
"""Labels that a pool can rename: name in the settings → the label's own key."""

DIRTY: Final = "dirty"
"""Name in the settings of the label that is `true` on a dirty account; credfleet itself uses a state."""

_FLAGS: Final = frozenset({SHARED, EU_ACCESS, INTERNAL})
_TRUE: Final = "true"
_STATE: Final = "<state>"
"""Placeholder for the key of the state where the key of the dirty label must not be added."""


@dataclass(frozen=True, slots=True)
class LabelScheme:
    """Label names of one pool. `names`: entry of `NAMED` or `DIRTY` → key of the label in this pool.

    `shared_capacity`: capacity of shared accounts without an annotation.
    """

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    shared_capacity: int | None = None

    @property
    def renamed(self) -> Mapping[str, str]:
        """Key of credfleet → key of the pool, for those that differ."""
        return {own: self.names[name] for name, own in NAMED.items() if self.names.get(name, own) != own}

    @property
    def dirty(self) -> str | None:
        """Label that is `true` on a dirty account; None if the pool has none."""
        return self.names.get(DIRTY)

    def over(self, api: PoolApi) -> PoolApi:
        """Return an API that shows the pool under credfleet's keys."""
        if self == LabelScheme():
            return api

        def translated(call: Call) -> Result:
            match call:
                case ListPage(Kind.MEMBER, selector):
                    return api(replace(call, selector=self.selector(selector)))
                case Patch(Kind.MEMBER, _, body):
                    return api(replace(call, body=self.written(body)))
                case _:
                    return api(call)

        return show_each(translated, self.read)

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the labels that a declared account has in this pool."""
        return {self.renamed.get(key, key): value for key, value in labels.items()}

    def read(self, body: JsonObject) -> JsonObject:
        """Translate an account's metadata to credfleet's keys; `unfit` is why that is impossible."""
        metadata: JsonObject = body["metadata"]
        given: Mapping[str, str] = metadata.get("labels") or {}
        notes: Mapping[str, str] = metadata.get("annotations") or {}
        renamed, dirty = self.renamed, self.dirty
        known = {*renamed, *renamed.values(), dirty}
        labels = {key: value for key, value in given.items() if key not in known}
        labels |= {own: given[theirs] for own, theirs in renamed.items() if theirs in given}
        if SHARED in renamed and labels.get(SHARED) == "false":
            del labels[SHARED]
        if given.get(dirty or "") == _TRUE:
            labels.setdefault(POOL_STATE, str(State.DIRTY))
            if labels[POOL_STATE] == State.QUARANTINED:  # marked dirty since: no cleaner has run
                notes = {STATE_BEFORE: str(State.DIRTY), **notes}
        if self.shared_capacity is not None and SHARED in labels:
            notes = {SHARED_CAPACITY: str(self.shared_capacity), **notes}
        unfit = next(self._unfit(given, labels), "")
        since = written_at(metadata, POOL_STATE if POOL_STATE in given else dirty or "")
        told = {"labels": labels, "annotations": notes, "unfit": unfit, "stateSince": since}
        return {**body, "metadata": {**metadata, **told}}

    def _unfit(self, given: Mapping[str, str], labels: Mapping[str, str]) -> Iterator[str]:
        for own, theirs in self.renamed.items():
            if own in given:
                yield f"label {own} means nothing in this pool, which calls it {theirs}"
            if own in _FLAGS & set(labels) and labels[own] != _TRUE:
                yield f"{theirs} is {labels[own]!r}; it is `true` or absent"
            if own not in _FLAGS and labels.get(own) == "":
                yield f"{theirs} is empty, which is ambiguous"
        dirty = given.get(self.dirty or "", _TRUE)
        if dirty != _TRUE:
            yield f"{self.dirty} is {dirty!r}; it is `true` or absent"

    def written(self, patch: JsonObject) -> JsonObject:
        """Translate a patch to the pool's keys."""
        metadata: JsonObject = patch["metadata"]
        given: Mapping[str, str | None] = metadata.get("labels") or {}
        labels: dict[str, str | None] = {self.renamed.get(key, key): each for key, each in given.items()}
        if self.dirty is not None and POOL_STATE in given:
            state = given[POOL_STATE]
            if state is None or state == State.DIRTY:
                labels |= {POOL_STATE: None, self.dirty: state and _TRUE}
        return {**patch, "metadata": {**metadata, "labels": labels}}

    def selector(self, selector: str) -> str:
        """Translate a selector to the pool's keys; it selects at least what the original selects."""
        return ",".join(each for term in selector.split(",") for each in self._terms(term))

    def _terms(self, term: str) -> Iterable[str]:
        key, equals, value = term.removeprefix("!").partition("=")
        theirs = self.renamed.get(key, key)
        if key == POOL_STATE and self.dirty is not None:
            return [f"!{key}", f"!{self.dirty}"] if term.startswith("!") else []
        if term.startswith("!"):
            return [f"{theirs}!={_TRUE}" if theirs != key == SHARED else f"!{theirs}"]
        return [theirs + equals + value]

    def expressions(self, manifest: JsonObject) -> JsonObject:
        """Return a manifest whose CEL expressions use the pool's keys instead of credfleet's.

        A key appears in quotes: after `?` where it is looked up, otherwise in a list of keys.
        """
        text = json.dumps(manifest)
        if self.dirty is not None:
            said = rf"(variables\.(?:old|new)Labels)\[\?'{re.escape(POOL_STATE)}'\]"
            dirty = rf"\1[?'{self.dirty}']"
            word = rf"{dirty}.optMap(word, word == '{_TRUE}' ? '{State.DIRTY}' : word)"
            either = rf"\1[?'{POOL_STATE}'].or({word})"
            text = re.sub(said, either, text)
            # Combined with another state, the dirty label is an ordinary label.
            below = f"{_STATE} in variables.oldLabels && {_STATE} in variables.newLabels"
            listed = rf"key in (\[[^]]*)'{re.escape(POOL_STATE)}'([^]]*\])"
            text = re.sub(listed, rf"key in ({below} ? \1{_STATE}\2 : \1{_STATE}, '{self.dirty}'\2)", text)
            text = re.sub(rf"(?<!\?)'{re.escape(POOL_STATE)}'", rf"'{POOL_STATE}', '{self.dirty}'", text)
            # Combined with a quarantine, it means the same as the previous state, and no step removes it.
            quarantined = rf"\1Labels[?{_STATE}].orValue('') == '{State.QUARANTINED}'"
            marked = rf"{quarantined} && \1Labels[?'{self.dirty}'].orValue('') == '{_TRUE}'"
            noted = rf"(variables\.(?:old|new))Annotations\[\?'{re.escape(STATE_BEFORE)}'\]"
            before = rf"\g<0>.or({marked} ? optional.of('{State.DIRTY}') : optional.none())"
            text = re.sub(noted, before, text)
            text = text.replace(_STATE, f"'{POOL_STATE}'")
        for own, theirs in self.renamed.items():
            text = text.replace(f"'{own}'", f"'{theirs}'")
        if self.shared_capacity is not None:
            said = f"[?'{SHARED_CAPACITY}'].orValue('')"
            text = text.replace(said, said.replace("''", f"'{self.shared_capacity}'"))
        return json.loads(text)


def show_each(api: PoolApi, show: Callable[[JsonObject], JsonObject]) -> PoolApi:
    """Return an API that applies `show` to each account of the underlying one."""

    def shown(call: Call) -> Result:
        answer = api(call)
        if call.kind is Kind.MEMBER and isinstance(call, Get | ListPage | Patch):
            match answer:
                case Found(body):
                    return Found(show(body))
                case Page(items, cursor):
                    return Page(tuple(map(show, items)), cursor)
                case _:
                    pass
        return answer

    return shown
