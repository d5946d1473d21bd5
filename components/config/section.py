"""Section of a stack's configuration: the part of one component, and what it can refer to.

A component defines its section in `<component>/settings.py`; `components/stack_config/stack.py` composes the
sections. This module imports no component, so that all of them can import it.
"""

from __future__ import annotations

import difflib
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, TypeAlias

from components.config.document import nearest
from components.config.field_types import ConfigModel, named_in
from components.credentials import KEY, Credentials
from components.errors import Problem
from components.naming import config_path
from components.projection.settings import CredentialSource, Delivery

Problems: TypeAlias = Iterator[Problem]

Written: TypeAlias = tuple[str, str, str]
"""Namespace and name of a Secret, and the place in the configuration that declares it."""

_NEARLY: Final = 0.85
"""Similarity from which one name counts as a misspelling of another."""


@dataclass(frozen=True, slots=True)
class Dangling(Problem):
    """Reference to something that does not exist. Several with one problem are one mistake."""


@dataclass(frozen=True, slots=True)
class Account:
    """Claimed account of a tenant, which other sections refer to as `tenant/slot`.

    `namespace`: the tenant's. `type`: None if the pool's rules choose none. `delivery`: its copy in that
    namespace, or None.
    """

    namespace: str
    type: str | None
    delivery: Delivery | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewContext:
    """The rest of the configuration, for the review of a section.

    `tenants`: name → namespace. `namespaces`: those that components can write to. `pool`: namespace of the
    account pool, None without one. `root`: directory of Pulumi.yaml. `faulty`: places of invalid, removed
    parts. `confined`: place of an entry in a tenant's file → that tenant's namespace.
    """

    tenants: Mapping[str, str]
    namespaces: Collection[str]
    accounts: Mapping[str, Account]
    pool: str | None
    credentials: Credentials
    root: Path
    faulty: tuple[str, ...] = ()
    confined: Mapping[str, str] = field(default_factory=dict[str, str])

    def whole(self, *keys: str) -> bool:
        """Return whether nothing was removed below these keys, so that references to them can be checked."""
        places = tuple(config_path(key) for key in keys)
        return not any(place.startswith(places) for place in self.faulty)

    def slip_of(self, namespace: str) -> str | None:
        """Return the allowed namespace that a misspelt one resembles, if any."""
        near = difflib.get_close_matches(namespace, self.namespaces, n=1, cutoff=_NEARLY)
        return near[0] if near and namespace not in self.namespaces else None

    def review_namespace(
        self,
        place: str,
        namespace: str,
        fix: str = "name a tenant's, or list it in cluster.existingNamespaces if it is there already",
    ) -> Problems:
        """Reject a namespace that components cannot write to, and suggest a similar one."""
        if namespace not in self.namespaces and self.whole("tenants", "cluster"):
            problem = f"{namespace} is not a tenant's namespace, and the stack declares no other ones"
            meant = self.slip_of(namespace)
            yield Dangling(place, problem, f"did you mean {meant}? else {fix}" if meant else fix)

    def review_credential(self, place: str, name: str) -> Problems:
        """Reject a reference to an unknown credential, and suggest a similar one."""
        if name not in self.credentials.names and self.whole(KEY):
            problem = f"{named_in(name) or 'what stands there'} is not an entry of credentials"
            yield Dangling(place, problem, nearest(name, self.credentials.names))

    def review_source(self, place: str, source: CredentialSource, reader: str) -> Problems:
        """Reject a credential source that does not exist, or that a namespace must not read.

        Whether a Secret exists, and is shared with the namespace, is checked in the cluster.
        """
        if source.entry is not None:
            yield from self.review_credential(place, source.entry)
        elif source.account is not None:
            account = self.accounts.get(source.account)
            if account is None:
                if self.whole("tenants", "accountPool"):
                    named = named_in(source.account) or "what stands there"
                    problem = f"{named} is not an account that a tenant claims"
                    yield Dangling(place, problem, nearest(source.account, self.accounts))
            elif account.namespace != reader:
                problem = f"account {source.account} is of namespace {account.namespace}, not of {reader}"
                yield Problem(place, problem, "name an account of the same tenant")
        elif source.in_secret is not None and source.in_secret[0] == self.pool:
            problem = "the Secrets of the account pool are claimed, and never read past their claim"
            yield Problem(place, problem, "give {account: TENANT/SLOT}")


class Section(ConfigModel):
    """What one room reads of the configuration, under the key KEY."""

    KEY: ClassVar[str]

    @classmethod
    def place(cls, *segments: str | int) -> str:
        """Return the configuration path of something in the section."""
        return config_path(cls.KEY, *segments)

    @abstractmethod
    def review(self, context: ReviewContext) -> Problems:
        """Yield problems across parts of the section: references, contents, conflicts."""

    @abstractmethod
    def written(self) -> Iterator[Written]:
        """Yield every Secret that the stack writes for the section, including existing ones."""

    def sources(self) -> Iterator[tuple[str, CredentialSource]]:
        """Yield every external reference of the section, after its configuration path."""
        yield from ()

    def warnings(self, credentials: Credentials) -> Problems:  # noqa: ARG002 - for those that read some
        """Yield warnings of an update, after `review` found no problem."""
        yield from ()


def review_written(
    secrets: Iterable[Written], sources: Iterable[tuple[str, CredentialSource]] = ()
) -> Problems:
    """Reject a Secret that is written twice, since each update would overwrite the other's keys.

    Also reject a Secret of the stack as a source of a credential, which would be one update behind.
    """
    first: dict[tuple[str, str], str] = {}
    for namespace, name, place in secrets:
        owner = first.setdefault((namespace, name), place)
        if owner != place:
            problem = f"its Secret {namespace}/{name} is also that of {owner}"
            yield Problem(place, problem, "rename one of the two")
    for place, source in sources:
        named = source.in_secret and first.get(source.in_secret[:2])
        if named:
            problem = f"Secret {source.secret} is written by {named} of this very stack"
            yield Problem(
                place, problem, "name what that is made of: an entry of credentials, or {account: …}"
            )
