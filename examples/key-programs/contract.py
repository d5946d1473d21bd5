"""What the programs beside this file have in common: the contract of `credfleet pool rotate`.

They are run as PROGRAM ACCOUNT VERB, with JSON on standard input, and print nothing but the answer. No
credential is in an argument, a variable or a message. They end with 0; with 10 where the cloud rejects the
credential; else it is not known what was done, and the same call may be repeated.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

Credential: TypeAlias = Mapping[str, str]

REJECTED: Final = 10
TRIES: Final = 8
SECONDS: Final = 2
"""Between two tries: a cloud does not know a new key everywhere at once, and rejects it for a while."""


class RejectedError(Exception):
    """The cloud knows no such credential. Nothing else may be called so: it is the proof of `revoke`."""


class Keys(Protocol):
    """The keys of the identity that a credential is of, and that it signs in as."""

    def test(self) -> None:
        """Use the credential; raises RejectedError."""
        ...

    def identify(self) -> tuple[str, str]:
        """Return the ids of the account and of the credential's key, as the cloud knows them."""
        ...

    def list(self) -> Sequence[str]:
        """Return the ids of all keys."""
        ...

    def create(self) -> tuple[str, Credential]:
        """Make a key; return its id and credential, with the same fields."""
        ...

    def remove(self, key_id: str) -> None:
        """Remove a key, unless it is gone."""
        ...


def main(open_keys: Callable[[Credential], Keys]) -> None:
    """Answer the verb of the command line; what the cloud rejects is repeated for a while."""
    verb, asked = sys.argv[-1], json.load(sys.stdin)
    for left in reversed(range(TRIES)):
        try:
            answer = _answer(verb, open_keys(asked["credential"]), asked)
        except RejectedError:
            if not left:
                sys.exit(REJECTED)
            time.sleep(SECONDS)
        else:
            sys.stdout.write(json.dumps(answer))
            return


def _answer(verb: str, keys: Keys, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    match verb:
        case "test":
            keys.test()
            return {}
        case "identify":
            account_id, key_id = keys.identify()
            return {"accountId": account_id, "keyId": key_id}
        case "create":
            _remove_all_but(asked["keyId"], keys)
            key_id, credential = keys.create()
            return {"keyId": key_id, "credential": credential}
        case "revoke":
            _remove_all_but(asked["keyId"], keys)
            return {}
        case _:
            sys.exit(f"unknown verb: {verb}")


def _remove_all_but(kept: str, keys: Keys) -> None:
    """Never "the oldest": a repeated call has to find the key in use where it was."""
    found = keys.list()
    if kept not in found:
        sys.exit(f"the cloud lists no key {kept} of this identity: nothing was removed")
    for key_id in found:
        if key_id != kept:
            keys.remove(key_id)
