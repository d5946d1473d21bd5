"""`credfleet pool import`: Secrets for the accounts of a CSV; the values come from files or standard input.

A value is in no argument, no message and no answer, and goes to the API server only.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from components.account_pool.core.bringing import brought_name
from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.identity import cloud_account, find_other
from components.account_pool.core.model import Partition
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
from components.config.document import explain
from components.connection import Connection, HttpOutcome, NoReply, Reply, connect
from components.credentials import Credentials
from components.documents import read_json
from components.errors import ConfigurationError, Misconfigured, NotAllowed, Problem, Unreachable
from operations.cli.answer import CommandResult
from operations.cli.inputs import STANDARD_INPUT, place_of, read_bytes
from operations.cli.tables import Column, Table

if TYPE_CHECKING:
    from components.account_pool.core.label_scheme import LabelScheme
    from components.account_pool.core.pool import Pool
    from operations.pool.access import WritablePoolOptions


_OPTIONS: Final[Mapping[str, str]] = {
    "type": "--type",
    "accountId": "--account-id",
    "tenant": "--tenant",
    "partition": "--partition",
}


def brought(where: WritablePoolOptions, stated: Mapping[str, object], values: str) -> CommandResult:
    """Make the Secret of an account that is a tenant's; one that is there already is no error.

    stated: tenant, type, accountId and partition, as the configuration has them of a member. values: a file,
    or `-`, with a JSON object of texts. Raises ConfigurationError with everything that is wrong with what was
    given, before the write; NotAllowed; and as `read_bytes` and `Pool.open`.
    """
    name = brought_name(*(str(stated[key]) for key in ("tenant", "type", "accountId")))
    member = _member(name, stated)
    text = text_of(read_bytes(values, HOLDS), place_of(values))
    if (fault := credential_fault(name, Credentials({name: text}))) is not None:
        raise ConfigurationError([Problem(place_of(values), *fault)])
    pool = where.open(OPERATOR)
    if pool.settings.protects(member.account_id):
        raise ConfigurationError([Problem(_OPTIONS["accountId"], *PROTECTED)])
    _refuse_twin(pool, name, member)
    Partition.of(member.type, member.partition, pool.settings.partition_keys)
    body = secret_of(name, member.declared, encode(text), pool.settings.scheme)
    reply = made_in(connect(where.target()), where.namespace, body)
    is_there = reply.answer is HttpOutcome.CONFLICT
    if not is_there and reply.answer is not HttpOutcome.DONE:
        raise NotAllowed(
            place=f"pool {where.namespace}",
            problem=f"the API server refused the account: {reply.reason}",
            fix=f"ask whoever runs the pool to add you to accountPool.bringers.{member.tenant}",
        )
    done = "was there already, and is as it was" if is_there else f"is tenant {member.tenant}'s"
    return CommandResult(
        {"secretName": name, "namespace": where.namespace, "tenant": member.tenant, "brought": not is_there},
        [f"✓ account {name} {done}; the tenant's next claim of type {member.type} takes it first"],
    )


def _refuse_twin(pool: Pool, name: str, member: Member) -> None:
    """Raise Misconfigured for an account that the pool has; who may only bring cannot see whether it has."""
    with suppress(NotAllowed):
        other = find_other(name, cloud_account(member.type, member.account_id), pool.members())
        if other is not None:
            raise Misconfigured(
                place=_OPTIONS["accountId"],
                problem=f"Secret {other.name} of the pool is this account already, so it would be given away"
                " twice",
                fix="ask whoever runs the pool to take that Secret out of it first",
            )


def _member(name: str, stated: Mapping[str, object]) -> Member:
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


HOLDS: Final = "a JSON object of texts, the keys of the account's Secret"
"""What a value is."""


def import_accounts(where: WritablePoolOptions, file: Path, values: str, *, dry_run: bool) -> CommandResult:
    """Make the Secrets of a CSV that are not there yet, and compare the others with it.

    values: a folder with a file NAME.json for each account, or `-` for one JSON object of all on standard
    input. Exit code 1 when a Secret that is there differs, or one was refused.

    Raises ConfigurationError with everything that is wrong with the CSV or the values, before any write; and
    as `read_bytes` and `Pool.open`.
    """
    read_bytes(str(file), "rows of name, type and accountId")
    pool = (where.for_a_look() if dry_run else where).open(OPERATOR)
    keys = pool.settings.partition_keys
    rows, problems = read_members_file(file, keys)
    present = {member.name: member for member in pool.members()}
    new = [row for row in rows if row.name not in present]
    taken = {
        cloud_account(member.type, member.account_id): member.name
        for member in present.values()
        if member.account_id
    }
    for row in new:
        if name := taken.get(cloud_account(row.type, row.account_id)):
            problem = f"account {name} of the pool has it, so two tenants would be given one account"
            problems += (Problem(f"{row.place} accountId", problem, "remove the row", row.at),)
    if problems := [*problems, *review_identities({}, rows), *review_protected(pool.settings, {}, rows)]:
        raise ConfigurationError(problems)
    data = _data(new, values) if new else {}
    records = pool.records() if new else ()
    connection = connect(where.target())
    told: list[tuple[ExistingMember, str, str]] = []
    for row in rows:
        if row.name in present:
            found = [each.problem for each in differences(row, present[row.name], keys)]
            told.append((row, "differs" if found else "there", "; ".join(found)))
        elif dry_run:
            told.append((row, "to import", ""))
        else:
            marks = marks_of_records(row.name, row.declared(), records)
            body = secret_of(row.name, row.declared(), data[row.name], pool.settings.scheme, marks)
            reply = made_in(connection, where.namespace, body)
            made = reply.answer is HttpOutcome.DONE
            told.append((row, "imported" if made else "refused", "" if made else reply.reason))
    document = [
        {"secretName": row.name, "type": row.type, "outcome": outcome, "reason": reason or None}
        for row, outcome, reason in told
    ]
    columns = (Column("Account", names=True), "Type", "Outcome", Column("Reason", folds=True))
    lines = [(row.name, row.type, outcome, reason) for row, outcome, reason in told]
    failed = any(outcome in ("differs", "refused") for _, outcome, _ in told)
    table = Table(f"Accounts of {file.name}", columns, lines)
    return CommandResult(
        {"accounts": document}, [table if lines else f"{file} lists no account."], int(failed)
    )


def _data(rows: Sequence[ExistingMember], values: str) -> Mapping[str, Mapping[str, str]]:
    """Return the data of each account's Secret; raises ConfigurationError with every value that is none."""
    texts = _on_standard_input() if values == STANDARD_INPUT else dict(_in_folder(rows, Path(values)))
    credentials = Credentials({row.name: texts[row.name] for row in rows if row.name in texts})
    problems = [
        Problem(f"{row.place} {row.name}", "no value is given for it", f"give {HOLDS}", row.at)
        for row in rows
        if row.name not in texts
    ]
    for name in sorted(credentials.names):
        if (fault := credential_fault(name, credentials)) is not None:
            problems.append(Problem(f"value of {name}", *fault))
    if problems:
        raise ConfigurationError(problems)
    return {row.name: encode(texts[row.name]) for row in rows}


def _in_folder(rows: Sequence[ExistingMember], folder: Path) -> Iterator[tuple[str, str]]:
    for row in rows:
        path = folder / f"{row.name}.json"
        if path.is_file():
            yield row.name, text_of(read_bytes(str(path), HOLDS), str(path))


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
            problem="it is no JSON object, so no account has its values there",
            fix='give {"NAME": {"KEY": "VALUE"}} with the names of the CSV',
        )
    return {str(name): json.dumps(value, ensure_ascii=False) for name, value in given.items()}


def text_of(given: bytes, place: str) -> str:
    """Return what is given as text; raises Misconfigured for bytes that are none."""
    try:
        return given.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Misconfigured(
            place=place, problem="it is not UTF-8, so nobody knows its texts", fix="save it as UTF-8"
        ) from None


def encode(text: str) -> Mapping[str, str]:
    """Return the data of a Secret: the fields of a JSON object of texts."""
    fields: Mapping[str, str] = read_json(text)
    return {key: b64encode(value.encode()).decode() for key, value in fields.items()}


def secret_of(
    name: str,
    declared: DeclaredMember,
    data: Mapping[str, str],
    scheme: LabelScheme,
    marks: Marks | None = None,
) -> Mapping[str, object]:
    """Return the Secret of an account, with the labels and annotations that a declared one has, and marks."""
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


def made_in(connection: Connection, namespace: str, body: Mapping[str, object]) -> Reply:
    """Make a Secret in a pool; raises Unreachable when nobody answers."""
    try:
        return connection.call("POST", f"/api/v1/namespaces/{namespace}/secrets", body=dict(body))
    except NoReply as silence:
        raise Unreachable(place=f"pool {namespace}", last=str(silence)) from None
