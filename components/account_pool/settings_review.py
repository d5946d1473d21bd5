"""Checks of a pool's settings across entries: references, and values that must be unique."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Final

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import is_within
from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.judgement import judge
from components.account_pool.core.model import Partition, account_key, tenant_label
from components.account_pool.member_data import data_fault
from components.account_pool.members_file import ExistingMember
from components.account_pool.rules import Fault, Pool, Ruleset
from components.account_pool.settings import AccountPool, Member, Slot
from components.config.document import nearest
from components.config.section import Dangling, Problems, ReviewContext
from components.credentials import Credentials
from components.errors import Problem
from components.labels import EU_ACCESS, HYPERSCALERS, hyperscaler_of
from components.naming import GUID, config_path

_ID_FORMS: Final = {"aws": r"(?<![0-9])[0-9]{12}(?![0-9])", "azure": GUID, "gcp": r"(?<=^projects/)[^/]+"}
"""Cloud → pattern of its account ids, which also finds an id inside other text.

An account has one spelling, so that two Secrets cannot hold it under two spellings.
"""

_NUMBER: Final = re.compile(r"['=]?[-\d\s.,]{9,}'?")
"""A number that was probably meant as twelve digits."""
_ROUNDED: Final = re.compile(r"\d([.,]\d+)?E\+\d+", re.IGNORECASE)
_LONGEST_ID: Final = 128


@dataclass(frozen=True, slots=True)
class Stated:
    """Names in the configuration, including those of invalid entries.

    A reference to an invalid entry is not another fault. `rows`: places of the members from files.
    """

    tenants: Collection[str]
    members: Collection[str]
    partition_keys: Collection[str]
    rows: Mapping[str, str]


_UNNAMED: Final = "no cloud, member, slot or consumer has"

PROTECTED: Final = (
    "it is one of accountPool.protected, which are never given out",
    "leave the account out of the pool",
)
"""Problem and fix for a member that is a protected account."""


def review_pool(
    pool: AccountPool, existing: Sequence[ExistingMember], stated: Stated, context: ReviewContext
) -> Problems:
    """Check rules, limits, members and references; for another stack's pool, only the rules."""
    for fault in pool.read_rules()[1]:
        yield Problem(config_path("accountPool", "rules", fault.rule or 0), fault.problem, fault.fix)
    if pool.from_ is not None:
        return
    strange = {*pool.labels.names.values()} & {*pool.partition_keys}
    for key in sorted(strange):
        yield Problem(
            config_path("accountPool", "partitionKeys"),
            f"{key} is what accountPool.labels calls another key, which would be two parts of the pool",
            f"name {EU_ACCESS}, under which accounts with label {pool.labels.eu_access} are asked for",
        )
    if pool.labels.eu_access != EU_ACCESS and EU_ACCESS not in stated.partition_keys:
        yield Problem(
            config_path("accountPool", "labels", "euAccess"),
            f"{EU_ACCESS} is not a partition key, so accounts under EU access would be given to anybody",
            f"add {EU_ACCESS} to accountPool.partitionKeys",
        )
    if pool.bringers and not pool.admission_policy:
        yield Problem(
            config_path("accountPool", "bringers"),
            "without the admission policy an identity that may bring an account may make any of the pool",
            "add accountPool.admissionPolicy: true",
        )
    types = {member.type for member in chain(pool.members.values(), existing)}
    named = _list_types(pool, types, context)
    for name in pool.limits:
        if name != "default" and _is_misspelt(name, named):
            yield Problem(
                config_path("accountPool", "limits", name),
                f"{_UNNAMED} type {name}, so the limit would never count",
                nearest(name, {*named, "default"}),
            )
    keys = stated.partition_keys if context.whole("accountPool.partitionKeys") else None
    for index, held in enumerate(pool.hold):
        place = config_path("accountPool", "hold", index, "partition")
        yield from _unknown_partitions(place, held.partition, keys)
    for key, commands in (("cleaning", pool.cleaning), ("keys", pool.keys)):
        yield from _review_commands(key, commands, named, context)
    yield from _review_new_keys(pool, types)
    yield from _review_consumers(pool, keys)
    for name, member in pool.members.items():
        yield from _review_member(name, member, keys, stated, context)
    yield from review_identities(pool.members, existing, stated.rows)
    yield from review_protected(pool.config_map, pool.members, existing)


def _review_new_keys(pool: AccountPool, types: Collection[str]) -> Problems:
    """Check that keys can be changed between tenants, and that the API server enforces it."""
    place = config_path("accountPool", "newKeys")
    if pool.new_keys and not pool.admission_policy:
        yield Problem(
            place,
            "without the admission policy nothing keeps an account from being free with its old key",
            "add accountPool.admissionPolicy: true",
        )
    for name in pool.new_keys:
        for type_ in sorted(each for each in types if name in (each, hyperscaler_of(each))) or [name]:
            if not {type_, hyperscaler_of(type_)} & pool.keys.keys():
                yield Problem(
                    place,
                    f"no program changes the key of an account of type {type_}, so none would be free again",
                    f"add one to accountPool.keys, such as {{{name}: [key-programs/{name}.py]}}",
                )


def _list_types(pool: AccountPool, types: Collection[str], context: ReviewContext) -> set[str]:
    """Return the clouds, and all types that are named somewhere. `types`: of members."""
    of_slots = {slot.type for slot in context.accounts.values() if slot.type}
    of_consumers = {name for one in pool.consumers.values() for name in (*one.types, *one.quotas)}
    return {*HYPERSCALERS, *types, *of_slots, *of_consumers}


def _is_misspelt(name: str, named: Collection[str]) -> bool:
    """Return whether no account can have a type: imported or brought ones can have any type of a cloud."""
    return name not in named and hyperscaler_of(name) is None


def _review_commands(
    key: str, commands: Mapping[str, Sequence[str]], named: Collection[str], context: ReviewContext
) -> Problems:
    for name, command in commands.items():
        program = context.root / command[0]
        if "/" in command[0] and not (program.is_file() and os.access(program, os.X_OK)):
            yield Problem(
                config_path("accountPool", key, name, 0),
                f"{command[0]} is not a program that can be run, so its first run would fail",
                "correct the path (relative to Pulumi.yaml), or make it executable",
            )
        if _is_misspelt(name, named):
            yield Problem(
                config_path("accountPool", key, name),
                f"{_UNNAMED} type {name}, so its program would never run",
                nearest(name, named),
            )


def _review_consumers(pool: AccountPool, keys: Collection[str] | None) -> Problems:
    for name, consumer in pool.consumers.items():
        place = config_path("accountPool", "consumers", name)
        for holder in consumer.holders:
            for other, one in pool.consumers.items():
                if other != name and any(is_within(holder, prefix) for prefix in one.holders):
                    problem = f"{holder} is within the holders of {other}, and a holder has one consumer"
                    yield Problem(f"{place}.holders", problem, "give each holder to one of the two")
        for index, partition in enumerate(consumer.partitions):
            yield from _unknown_partitions(f"{place}.partitions[{index}]", partition, keys)
        for account_type in consumer.quotas if consumer.types else ():
            if account_type not in consumer.types:
                yield Problem(
                    config_path("accountPool", "consumers", name, "quotas", account_type),
                    f"its types do not name {account_type}, so the quota would never count",
                    nearest(account_type, consumer.types),
                )


def review_accounts(
    tenants: Mapping[str, Mapping[str, Slot]],
    pool: AccountPool | None,
    existing: Sequence[ExistingMember],
    stated: Stated,
    context: ReviewContext,
) -> Problems:
    """Check that each requested account could be claimed. `tenants`: name → slot → claim."""
    supply = None if pool is None else _Supply.of(pool, existing, stated, context)
    for name, accounts in tenants.items():
        if supply is None and accounts and context.whole("accountPool"):
            yield Problem(
                config_path("tenants", name, "accounts"),
                "there is no accountPool to claim them from",
                "add accountPool with members or with from, another stack's pool; or remove the accounts",
            )
        elif supply is not None:
            for slot, account in accounts.items():
                place = config_path("tenants", name, "accounts", slot)
                whole = context.whole(place.removeprefix(config_path("")))
                yield from _review_account(place, name, account, supply, whole=whole)


@dataclass(frozen=True, slots=True)
class _Supply:
    """Accounts that can be claimed. `rules`, `keys`: None if one is invalid. `whole`: all members are valid.

    `bringing`: tenants that can bring accounts.
    """

    rules: Ruleset | None
    keys: Collection[str] | None
    members: Sequence[Member | ExistingMember]
    whole: bool
    limits: PoolConfigMap
    bringing: Collection[str]

    @classmethod
    def of(
        cls, pool: AccountPool, existing: Sequence[ExistingMember], stated: Stated, context: ReviewContext
    ) -> _Supply:
        rules, faults = pool.read_rules()
        return cls(
            rules=None if faults or not context.whole("accountPool.rules") else rules,
            keys=None
            if pool.from_ or not context.whole("accountPool.partitionKeys")
            else stated.partition_keys,
            members=(*pool.members.values(), *existing),
            whole=len(pool.members) == len(stated.members)
            and context.whole("accountPool.members")
            and all(member.tenant in (None, *stated.tenants) for member in pool.members.values()),
            limits=pool.config_map,
            bringing=pool.bringers.keys(),
        )

    def serves(self, tenant: str, pool: Pool, partition: Mapping[str, str]) -> bool:
        """Return whether a member could serve the tenant, or the tenant can bring one."""
        if tenant in self.bringing and not pool.shared:
            return True
        values = tuple((key, partition.get(key)) for key in sorted(self.keys or ()))
        asked, owner = Partition(pool.type, values, pool.shared), tenant_label(tenant)
        return any(
            judge(each.as_member(""), asked, owner).takes
            for member in self.members
            for each in _declared(member)
        )


def _declared(member: Member | ExistingMember) -> Iterable[DeclaredMember]:
    """Return the member as declared; a row might be dedicated or shared, which rows do not state."""
    if isinstance(member, Member):
        return (member.declared,)
    return (member.declared(), member.declared(shared_capacity=1))


def _review_account(place: str, tenant: str, account: Slot, supply: _Supply, *, whole: bool) -> Problems:
    if account.plan is not None and (supply.rules is None or not whole):
        return
    choice = account.pool(supply.rules or Ruleset(()))
    if isinstance(choice, Fault):
        yield Problem(place, choice.problem, choice.fix)
        return
    is_for_aso = account.deliver_to is not None and account.deliver_to.aso_credential is not None
    if is_for_aso and hyperscaler_of(choice.type) != "azure":
        problem = (
            f"the account is of type {choice.type}, and Azure Service Operator opens Azure accounts only"
        )
        fix = "give deliverTo the name of a copy instead"
        yield Problem(f"{place}.deliverTo.asoCredential", problem, fix)
    limit = account.limit or supply.limits.limit_for(choice.type)
    is_full_never = supply.keys is not None and not limit
    if account.spill and (choice.shared or is_full_never):
        yield Problem(
            f"{place}.spill",
            "the account is shared, and has a capacity instead"
            if choice.shared
            else "no limit says when the account is full, so nothing would ever spill",
            "leave it out" if choice.shared else "give limit here, or accountPool.limits for the type",
        )
    partition = account.partition_in(choice)
    if supply.keys is None:
        return
    strange = [*_unknown_partitions(f"{place}.partition", partition, supply.keys)]
    yield from strange
    if strange or not supply.whole or supply.serves(tenant, choice, partition):
        return
    kind = f"shared {choice.type}" if choice.shared else choice.type
    asked = ", ".join((kind, *(f"{key}={value}" for key, value in partition.items())))
    types = ", ".join(sorted({member.type for member in supply.members})) or "none"
    yield Problem(
        place,
        f"no member ({asked}) is there for it, so the claim could never succeed",
        f"add a member, name the CSV of imported ones in accountPool.membersFrom, or ask for one of: {types}",
    )


def _review_member(
    name: str, member: Member, keys: Collection[str] | None, stated: Stated, context: ReviewContext
) -> Problems:
    place = config_path("accountPool", "members", name)
    if member.tenant is not None and member.tenant not in stated.tenants and context.whole("tenants"):
        problem = f"{member.tenant} is not a tenant, so no claim would ever get its account"
        yield Dangling(f"{place}.tenant", problem, nearest(member.tenant, stated.tenants))
    yield from _unknown_partitions(f"{place}.partition", member.partition, keys)
    place, source = f"{place}.credentialsFrom", member.credentials_from
    if source.account is not None or (source.in_secret and source.in_secret[0] == context.pool):
        problem = "the credential of another account of the pool opens no second one"
        yield Problem(place, problem, "name an entry of credentials, a Secret elsewhere, or a gcpSecret")
        return
    yield from context.review_source(place, source, str(context.pool))
    known = source.entry is not None and source.entry in context.credentials.names
    if known and (fault := credential_fault(str(source.entry), context.credentials)) is not None:
        yield Problem(place, *fault)


def credential_fault(name: str, credentials: Credentials) -> tuple[str, str] | None:
    """Return why a credential cannot be the data of a member's Secret, and the fix."""
    shape = credentials.shape(name)
    return None if shape is None else data_fault(f"credential {name}", shape)


def review_identities(
    members: Mapping[str, Member],
    existing: Sequence[ExistingMember],
    rows: Mapping[str, str] = MappingProxyType({}),
) -> Problems:
    """Reject two members with the same name or account. `rows`: places of members from files."""
    accounts: dict[str, str] = {}
    for name, member in members.items():
        place = config_path("accountPool", "members", name)
        yield from _claim_account(accounts, place, member)
    places = {name: rows.get(name, config_path("accountPool", "members", name)) for name in members}
    for row in existing:
        first = places.setdefault(row.name, row.place)
        if first != row.place:
            problem = f"{row.name} is named by {first} already, and a name is of one account"
            yield Problem(f"{row.place} name", problem, "remove one of the two", row.at)
            continue
        yield from _claim_account(accounts, row.place, row)


def review_protected(
    settings: PoolConfigMap, members: Mapping[str, Member], rows: Iterable[ExistingMember]
) -> Problems:
    """Reject accounts that are never given out."""
    for name, member in members.items():
        if settings.protects(member.account_id):
            yield Problem(config_path("accountPool", "members", name, "accountId"), *PROTECTED)
    for row in rows:
        if settings.protects(row.account_id):
            yield Problem(f"{row.place} accountId", *PROTECTED, row.at)


def _claim_account(accounts: dict[str, str], place: str, member: Member | ExistingMember) -> Problems:
    at = member.at if isinstance(member, ExistingMember) else None
    own = f"{place} accountId" if at else f"{place}.accountId"
    first = accounts.setdefault(account_key(member.account_id), place)
    if first != place:
        yield Problem(
            own,
            f"{first} has the same account, so two tenants would be given one account",
            "keep one of the two members",
            at,
        )
    elif fault := _id_fault(member):
        yield Problem(own, *fault, at)


def _id_fault(member: Member | ExistingMember) -> tuple[str, str] | None:
    """Return why an account id is of another cloud or has a wrong format, and the fix."""
    id_, cloud = member.account_id, hyperscaler_of(member.type)
    if _ROUNDED.fullmatch(id_):
        return (
            "its accountId was rounded by a spreadsheet",
            "write all digits; there, format the column as text",
        )
    forms = [name for name, form in _ID_FORMS.items() if re.fullmatch(form, id_)]
    if forms and cloud is not None and cloud not in forms:
        return f"its type is of {cloud}, and its accountId of {forms[0]}", "correct one of the two"
    bare = re.search(_ID_FORMS[cloud], id_) if cloud in _ID_FORMS else None
    if bare is not None and bare[0] != id_:
        return f"its accountId has something around {bare[0]}", f"write {bare[0]} alone, in quotes"
    if cloud == "aws" and not forms and _NUMBER.fullmatch(id_):
        return "its type is of aws, whose accounts have 12 digits", "copy the digits alone, in quotes"
    if len(id_) > _LONGEST_ID:
        return f"its accountId has more than {_LONGEST_ID} characters, as that of no cloud has", "correct it"
    return None


def _unknown_partitions(place: str, partition: Iterable[str], keys: Collection[str] | None) -> Problems:
    """Reject keys that the pool does not have; `keys`: None if unknown."""
    for key in partition:
        if keys is not None and key not in keys:
            yield Dangling(
                place,
                f"{key} is not a partition key of the pool, so it would choose nothing",
                f"{nearest(key, keys)} Or add it to accountPool.partitionKeys.",
            )
