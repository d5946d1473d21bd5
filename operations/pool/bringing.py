"""`credfleet pool bring`: an account of a tenant's own, without the stack and its from the first instant.

Whoever may only bring sees nothing of the pool but what it says about itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from components.account_pool.bringing import brought_name
from components.account_pool.model import Partition
from components.account_pool.pool import OPERATOR
from components.account_pool.settings import Member
from components.account_pool.settings_review import credential_fault, review_identities
from components.connection import Answer as Meaning
from components.connection import connect
from components.credentials import Credentials
from components.errors import ConfigurationError, NotAllowed, Problem
from components.settings.document import explain
from operations.cli.answer import Answer
from operations.cli.inputs import place_of, read_bytes
from operations.pool.importing import HOLDS, encoded, made_in, secret_of, text_of

if TYPE_CHECKING:
    from operations.pool.access import Written

_OPTIONS: Final[Mapping[str, str]] = {
    "type": "--type",
    "accountId": "--account-id",
    "tenant": "--tenant",
    "partition": "--partition",
}


def brought(where: Written, stated: Mapping[str, object], values: str) -> Answer:
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
    Partition.of(member.type, member.partition, pool.settings.partition_keys)
    body = secret_of(name, member.declared, encoded(text), pool.settings.dialect)
    reply = made_in(connect(where.target()), where.namespace, body)
    is_there = reply.answer is Meaning.CONFLICT
    if not is_there and reply.answer is not Meaning.DONE:
        raise NotAllowed(
            place=f"pool {where.namespace}",
            cause=f"the API server refused the account: {reply.reason}",
            mend=f"ask whoever runs the pool to add you to accountPool.bringers.{member.tenant}",
        )
    done = "was there already, and is as it was" if is_there else f"is tenant {member.tenant}'s"
    return Answer(
        {"secretName": name, "namespace": where.namespace, "tenant": member.tenant, "brought": not is_there},
        [f"✓ account {name} {done}; the tenant's next claim of type {member.type} takes it first"],
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
    if problems := [Problem(_OPTIONS["accountId"], each.cause, each.mend) for each in faults]:
        raise ConfigurationError(problems)
    return member
