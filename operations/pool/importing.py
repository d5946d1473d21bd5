"""`credfleet pool import`: creates Secrets for a CSV's accounts, with values from files or standard input.

Values never appear in arguments, messages or results, and are sent to the API server only.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from components.account_pool.core.consumers import stack_of
from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.identity import brought_name, cloud_account, find_other, former_name
from components.account_pool.core.model import Member as PoolMember
from components.account_pool.core.model import Partition, tenant_label
from components.account_pool.core.pool import OPERATOR
from components.account_pool.core.rebirth import Marks, marks_of_records
from components.account_pool.members_file import ExistingMember, differences, read_members_file
from components.account_pool.settings import Member
from components.account_pool.settings_review import (
    PROTECTED,
    credential_fault,
    review_identities,
    review_protected,
)
from components.config.document import explain, nearest
from components.connection import MERGE_PATCH, Connection, HttpOutcome, NoReply, Reply, connect
from components.credentials import Credentials
from components.documents import read_json
from components.durations import has_ended
from components.errors import (
    ConfigurationError,
    CredfleetError,
    Misconfigured,
    NotAllowed,
    Problem,
    Unreachable,
)
from components.projection.model import JsonObject, data_of
from operations.cli.answer import CommandResult
from operations.cli.inputs import STANDARD_INPUT, place_of, read_bytes, unreadable
from operations.cli.tables import Column, Table
from operations.pool.claims import partition

if TYPE_CHECKING:
    from components.account_pool.core.label_scheme import LabelScheme
    from components.account_pool.core.pool_operator import PoolOperator
    from operations.pool.access import PoolTarget
    from operations.pool.options import BringingOptions


_OPTIONS: Final[Mapping[str, str]] = {
    "type": "--type",
    "accountId": "--account-id",
    "tenant": "--tenant",
    "partition": "--partition",
    "expiresAt": "--expires-at",
}


def bring(asked: BringingOptions, where: PoolTarget) -> CommandResult:
    """Create the Secret of an account that a tenant brings, or compare an existing one.

    Exit code 1 if a different value stays. Raises ConfigurationError with all problems of the input before
    any write; NotAllowed; and as `read_bytes` and `Pool.open`.
    """
    account = (asked.type, asked.account_id)
    name, former = brought_name(*account), former_name(asked.tenant, *account)
    member = _member(name, asked)
    data = read_value(asked.values, name)
    pool = where.open(OPERATOR)
    if pool.settings.protects(member.account_id):
        raise ConfigurationError([Problem(_OPTIONS["accountId"], *PROTECTED)])
    if has_ended(member.expires_at):
        raise ConfigurationError([Problem(_OPTIONS["expiresAt"], *_ENDED)])
    _refuse_twin(pool, {name, former}, member)
    Partition.of(member.type, member.partition, pool.settings.partition_keys)
    secrets = _Secrets(connect(where.target()), where.namespace, update=asked.update)
    body = secret_of(former, member.declared, data, pool.settings.scheme)
    reply = secrets.ask("POST", "?dryRun=All", body)
    if reply.answer is HttpOutcome.CONFLICT:
        name = former
    else:
        reply = secrets.ask("POST", "", secret_of(name, member.declared, data, pool.settings.scheme))
    document = {"secretName": name, "namespace": where.namespace, "tenant": member.tenant}
    if reply.answer is HttpOutcome.CONFLICT:
        outcome, reason = secrets.compare(name, data)
        return _brought_before(outcome, reason, {**document, "brought": False, "outcome": outcome})
    if reply.answer is not HttpOutcome.DONE:
        raise NotAllowed(
            place=f"pool {where.namespace}",
            problem=f"the API server refused the account: {reply.reason}",
            fix=f"ask the owner of the pool to add you to accountPool.bringers.{member.tenant}",
        )
    return CommandResult(
        {**document, "brought": True, "outcome": "imported"},
        [
            f"✓ account {name} is tenant {member.tenant}'s;"
            f" the tenant's next claim of type {member.type} takes it first"
        ],
    )


def _brought_before(outcome: str, reason: str, document: Mapping[str, object]) -> CommandResult:
    """Report how an existing account compares; who can only bring accounts cannot read it."""
    was_there = f"account {document['secretName']} was there already"
    if outcome in ("there", _UPDATED):
        return CommandResult(document, [f"✓ {was_there}, and has this value"])
    if outcome == _DIFFERS:
        return CommandResult(document, [f"✗ {was_there}: {reason}"], exit_code=1)
    told = [
        f"✗ {was_there}; whether it is {document['tenant']}'s and has this value is not known: {reason}",
        "→ have the owner of the pool give the same command with --update",
    ]
    return CommandResult(document, told, exit_code=1)


def _refuse_twin(pool: PoolOperator, names: Collection[str], member: Member) -> None:
    """Raise Misconfigured for an account that the pool has, unless it is the tenant's own with such a name.

    Users who can only bring accounts cannot check this.
    """
    owner = tenant_label(member.tenant or "")
    with suppress(NotAllowed):
        others = [one for one in pool.members() if one.tenant != owner or one.name not in names]
        other = find_other("", cloud_account(member.type, member.account_id), others)
        if other is not None:
            raise Misconfigured(
                place=_OPTIONS["accountId"],
                problem=f"Secret {other.name} of the pool is this account already, so it would be given away"
                " twice",
                fix="ask the owner of the pool to take that Secret out of it first",
            )


def _member(name: str, asked: BringingOptions) -> Member:
    """Return the account as a member in the configuration would be."""
    parts, ends = partition(asked.partition or ()), asked.expires_at
    stated = {"tenant": asked.tenant, "type": asked.type, "accountId": asked.account_id, "partition": parts}
    stated |= {} if ends is None else {"expiresAt": ends}
    try:
        member = Member.model_validate({**stated, "credentialsFrom": name})
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise ConfigurationError(
            [Problem(_OPTIONS[str(fault["loc"][0])], *explain(fault)) for fault in faults]
        ) from None
    faults = review_identities({name: member}, ())
    if problems := [Problem(_OPTIONS["accountId"], each.problem, each.fix) for each in faults]:
        raise ConfigurationError(problems)
    return member


_ENDED: Final = ("that time is over, so no claim would get the account", "make a credential that is valid")

HOLDS: Final = "a JSON object of texts, the keys of the account's Secret"
"""Format of a value."""


def import_accounts(
    where: PoolTarget, file: Path, values: str, *, update: bool, dry_run: bool
) -> CommandResult:
    """Create the missing Secrets of a CSV, and compare the others with it, including values.

    values: a folder with a file NAME.json for each account, or `-` for one JSON object with all on standard
    input. update: replace different values. Exit code 1 if an existing Secret differs, or a Secret was
    rejected. Raises ConfigurationError with all problems of CSV and values before any write; and as
    `read_bytes` and `Pool.open`.
    """
    read_bytes(str(file), "rows of name, type and accountId", instead="")
    pool = (where.for_a_look() if dry_run else where).open(OPERATOR)
    rows, problems = read_members_file(file, pool.settings.partition_keys)
    present = {member.name: member for member in pool.members()}
    new = [row for row in rows if row.name not in present]
    ended = (Problem(f"{row.place} expiresAt", *_ENDED, row.at) for row in new if has_ended(row.expires_at))
    problems = (*problems, *ended, *_taken(new, present.values()), *review_identities({}, rows))
    if problems := [*problems, *review_protected(pool.settings, {}, rows)]:
        raise ConfigurationError(problems)
    data = _data(rows, {row.name for row in new}, values) if rows else {}
    records = pool.records() if rows else ()
    secrets = _Secrets(connect(where.target()), where.namespace, update=update, dry_run=dry_run)
    told: list[tuple[ExistingMember, str, str]] = []
    for row in rows:
        if live := present.get(row.name):
            found = [each.problem for each in differences(row, live, pool.settings.partition_keys)]
            told.append((row, *secrets.compare(row.name, data.get(row.name), found)))
        else:
            marks = marks_of_records(row.name, row.declared(), records)
            body = secret_of(row.name, row.declared(), data[row.name], pool.settings.scheme, marks)
            told.append((row, *secrets.make(body)))
    changed = {row.name for row, outcome, _ in told if outcome in (_UPDATED, _TO_UPDATE)}
    users = {(stack_of(holder), each.member) for each in records for holder in each.holders}
    stacks = sorted({stack for stack, member in users if stack and member in changed})
    document = [
        {"secretName": row.name, "type": row.type, "outcome": outcome, "reason": reason or None}
        for row, outcome, reason in told
    ]
    columns = {"secretName": Column("Account", names=True), "type": "Type", "outcome": "Outcome"}
    columns |= {"reason": Column("Reason", folds=True)}
    failed = any(outcome in (_DIFFERS, _REFUSED) for _, outcome, _ in told)
    table = Table.of(f"Accounts of {file.name}", columns, document, empty=f"{file} lists no account.")
    return CommandResult(
        {"accounts": document, "stacks": stacks},
        [
            table,
            *(f"→ pulumi up --stack {stack}: copies of these accounts follow then" for stack in stacks),
        ],
        int(failed),
    )


def _taken(new: Sequence[ExistingMember], present: Collection[PoolMember]) -> Iterator[Problem]:
    """Yield problems of new rows whose accounts the pool has under other names."""
    taken = {cloud_account(each.type, each.account_id): each.name for each in present if each.account_id}
    for row in new:
        if name := taken.get(cloud_account(row.type, row.account_id)):
            problem = f"account {name} of the pool has it, so two tenants would be given one account"
            yield Problem(f"{row.place} accountId", problem, "remove the row", row.at)


_DIFFERS: Final = "differs"
_REFUSED: Final = "refused"
_UPDATED: Final = "updated"
_TO_UPDATE: Final = "to update"


@dataclass(frozen=True, slots=True)
class _Secrets:
    """The Secrets of a pool with their data: created, compared, and with `update` changed in their data."""

    connection: Connection
    namespace: str
    update: bool
    dry_run: bool = False

    def make(self, body: Mapping[str, object]) -> tuple[str, str]:
        """Create a missing Secret; return the outcome and its reason."""
        if self.dry_run:
            return "to import", ""
        reply = self.ask("POST", "", body)
        return ("imported", "") if reply.answer is HttpOutcome.DONE else (_REFUSED, reply.reason)

    def compare(
        self, name: str, data: Mapping[str, str] | None, found: Sequence[str] = ()
    ) -> tuple[str, str]:
        """Return how an existing Secret compares, and why. found: differences outside its data.

        The value is kept if it may be another account's, and if a stack declares it.
        """
        if data is None and not found:
            return "not compared", "no value is given for it"
        if data is None:
            return _DIFFERS, "; ".join(found)
        reply = self.ask("GET", f"/{name}")
        if reply.answer is not HttpOutcome.DONE:
            return _REFUSED, reply.reason
        if (live := data_of(reply.body)) == data:
            return (_DIFFERS, "; ".join(found)) if found else ("there", "")
        fix = "" if found else self._why_not(reply.body)
        if found or fix:
            return _DIFFERS, "; ".join((*found, "its value is another one than the one given" + fix))
        return self._replace(name, reply.body["metadata"], {**dict.fromkeys(live), **data})

    def _why_not(self, live: JsonObject) -> str:
        """Return why a different value is not replaced, or how to do so; empty if it is."""
        member = PoolMember.parse(live)
        if member.key_phase is not None:
            return f", and its key is being rotated ({member.key_phase})"
        if member.is_declared:
            return ", which the stack that declares it must change"
        return "" if self.update else "; --update puts that one in its place"

    def _replace(self, name: str, seen: JsonObject, data: Mapping[str, str | None]) -> tuple[str, str]:
        """Replace the data of a Secret if unchanged since it was read; keys with None are removed."""
        if self.dry_run:
            return _TO_UPDATE, ""
        held = {key: seen[key] for key in ("uid", "resourceVersion")}
        reply = self.ask("PATCH", f"/{name}", {"metadata": held, "data": data})
        return (_UPDATED, "") if reply.answer is HttpOutcome.DONE else (_REFUSED, reply.reason)

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Reply:
        """Send a request about Secrets; raises Unreachable without an answer."""
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        place = f"/api/v1/namespaces/{self.namespace}/secrets{path}"
        try:
            return self.connection.call(method, place, body=body, content_type=kind)
        except NoReply as silence:
            raise Unreachable(place=f"pool {self.namespace}", last=str(silence)) from None


def _data(
    rows: Sequence[ExistingMember], needed: Collection[str], values: str
) -> Mapping[str, Mapping[str, str]]:
    """Return the data of each needed account's Secret, and of the others whose values are given.

    Raises ConfigurationError with all values that are invalid or belong to no row, and Misconfigured without
    any value.
    """
    texts = _on_standard_input() if values == STANDARD_INPUT else dict(_in_folder(Path(values)))
    credentials = Credentials({row.name: texts[row.name] for row in rows if row.name in texts})
    problems = [
        Problem(f"{row.place} {row.name}", "no value is given for it", f"give {HOLDS}", row.at)
        for row in rows
        if row.name in needed and row.name not in texts
    ]
    named = {row.name for row in rows}
    for name in sorted(texts.keys() - named):
        problem = "no row of the CSV has this name, so no account would get it"
        problems.append(Problem(f"value of {name}", problem, nearest(name, named)))
    for name in sorted(credentials.names):
        if (fault := credential_fault(name, credentials)) is not None:
            problems.append(Problem(f"value of {name}", *fault))
    if not problems and not credentials.names:
        problem = "it has the value of no account that the CSV lists, so nothing can be compared"
        problems.append(Problem(place_of(values), problem, f"give {HOLDS}, by the names of the CSV"))
    if problems:
        raise ConfigurationError(problems)
    return {name: encode(texts[name]) for name in credentials.names}


def _in_folder(folder: Path) -> Iterator[tuple[str, str]]:
    if not folder.is_dir():
        raise CredfleetError(
            code="file-unreadable",
            place=str(folder),
            problem="there is no such folder, so there are no values to make or to compare",
            fix="give the folder with a file NAME.json for each account, or - for standard input",
        )
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() == ".json" and path.is_file():
            name = path.stem if path.suffix == ".json" else path.name
            yield name, text_of(read_bytes(str(path), HOLDS, instead=""), str(path))


def _on_standard_input() -> Mapping[str, str]:
    """Return the values by name, each as JSON text."""
    place = place_of(STANDARD_INPUT)
    try:
        given = read_json(text_of(read_bytes(STANDARD_INPUT, HOLDS), place))
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise Misconfigured(
            place=place,
            problem="it is not a JSON object, so no account has its values there",
            fix='give {"NAME": {"KEY": "VALUE"}} with the names of the CSV',
        )
    return {str(name): json.dumps(value, ensure_ascii=False) for name, value in given.items()}


def read_value(values: str, name: str) -> Mapping[str, str]:
    """Read the data of an account's Secret from a file or `-`; raises ConfigurationError."""
    place = place_of(values)
    text = text_of(read_bytes(values, HOLDS), place)
    if (fault := credential_fault(name, Credentials({name: text}))) is not None:
        raise ConfigurationError([Problem(place, *fault)])
    return encode(text)


def text_of(given: bytes, place: str) -> str:
    """Decode input as text; raises as `unreadable` if it is not UTF-8."""
    try:
        return given.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise unreadable(place, "it is not UTF-8", f"a file with {HOLDS}") from None


def encode(text: str) -> Mapping[str, str]:
    """Return the data of a Secret from the fields of a JSON object of strings."""
    fields: Mapping[str, str] = read_json(text)
    return {key: b64encode(value.encode()).decode() for key, value in fields.items()}


def secret_of(
    name: str,
    declared: DeclaredMember,
    data: Mapping[str, str],
    scheme: LabelScheme,
    marks: Marks | None = None,
) -> Mapping[str, object]:
    """Return the Secret of an account, with the labels and annotations of a declared one, and marks."""
    member = (marks or Marks()).on(declared.as_member(name))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": scheme.labels(member.labels),
            "annotations": dict(member.annotations),
        },
        "type": "Opaque",
        "data": dict(data),
    }
