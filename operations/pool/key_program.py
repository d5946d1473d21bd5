"""The user's own program for accounts' keys, which exchanges JSON, the only place of credentials.

It is run as PROGRAM ARGUMENT… ACCOUNT VERB. Its input has account, type, accountId, credential and, for
`create` and `revoke`, keyId of the key that stays. `identify` prints {accountId, keyId}, `create` {keyId,
credential}. Exit code 0 is success, 10 that the cloud rejects the credential, others an unknown outcome.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from components.account_pool.core.calls import AskProgram, KeyVerb, Said, Told
from components.account_pool.core.model import Member
from components.account_pool.core.rotation import key_digest
from components.account_pool.member_data import data_fault, shape_of
from components.documents import read_json
from operations.pool.importing import encode
from operations.pool.launching import Launcher, find_program, name_of, run_once

REJECTED: Final = 10
"""Exit code of a key program if the cloud rejected the credential."""


@dataclass(frozen=True, slots=True)
class KeyProgram:
    """A program for the keys of a type's accounts. launcher: runs it."""

    command: Sequence[str]
    launcher: Launcher

    @classmethod
    def of(cls, command: Sequence[str], folder: Path, launcher: Launcher) -> KeyProgram:
        """Return the program, whose path is relative to the folder."""
        return cls([find_program(command[0], folder), *command[1:]], launcher)

    def ask(self, asked: AskProgram) -> Told:
        """Run it once. Only the output that its verb defines is passed on."""
        name = name_of(self.command)
        try:
            question = _question(asked)
        except UnicodeDecodeError:
            return Told(Said.UNKNOWN, "its credential is not a string")
        command = [*self.command, asked.member.name, str(asked.verb)]
        answer = run_once(self.launcher, json.dumps({"command": command, "input": json.dumps(question)}))
        if answer is None:
            return Told(Said.UNKNOWN, f"{name} was stopped")
        told: dict[str, Any] = json.loads(answer)
        if told["failure"]:
            said = Said.REJECTED if told["code"] == REJECTED else Said.UNKNOWN
            return Told(said, f"{name} {asked.verb} {told['failure']}")
        return _read(asked.verb, told["output"], name)


@dataclass(slots=True)
class ByHand:
    """Keys that a person creates and removes. given: the new credential; confirm: asks about the old one.

    program: identifies and tests keys, if there is one.
    """

    given: Mapping[str, str]
    confirm: Callable[[str], None]
    program: KeyProgram | None = None
    is_removed: bool = field(default=False)

    def ask(self, asked: AskProgram) -> Told:
        """Answer for the person."""
        if asked.verb is KeyVerb.CREATE:
            named = self.ask(AskProgram(KeyVerb.IDENTIFY, asked.member, "", self.given))
            return Told(named.said, named.problem, named.key_id, named.account_id, self.given)
        if self.program is not None:
            return self.program.ask(asked)
        match asked.verb:
            case KeyVerb.IDENTIFY:
                digest = key_digest(asked.data, asked.member.uid)
                return Told(Said.DONE, key_id=digest, account_id=asked.member.account_id or "")
            case KeyVerb.REVOKE:
                self.confirm(f"Did you remove every key of {asked.member.name} but the one in use?")
                self.is_removed = True
                return Told(Said.DONE)
            case KeyVerb.TEST:
                return Told(Said.REJECTED if self.is_removed else Said.DONE)


def _question(asked: AskProgram) -> Mapping[str, Any]:
    member: Member = asked.member
    kept = {"keyId": asked.keep} if asked.keep else {}
    credential = {key: b64decode(value).decode() for key, value in asked.data.items()}
    said = {"account": member.name, "type": member.type, "accountId": member.account_id}
    return {**said, **kept, "credential": credential}


def _read(verb: KeyVerb, output: str, name: str) -> Told:
    """Parse the output of a successful program."""
    if verb in (KeyVerb.TEST, KeyVerb.REVOKE):
        return Told(Said.DONE)
    try:
        printed = read_json(output)
    except ValueError:
        printed = None
    if not isinstance(printed, dict):
        return Told(Said.UNKNOWN, f"{name} {verb} printed no JSON object")
    key_id, account_id = (str(printed.get(key) or "") for key in ("keyId", "accountId"))
    if verb is KeyVerb.IDENTIFY:
        return Told(Said.DONE, key_id=key_id, account_id=account_id)
    content = json.dumps(printed.get("credential"))
    if data_fault("", shape_of(content.encode())) is not None:
        return Told(Said.UNKNOWN, f"{name} {verb} printed no credential, a JSON object of texts")
    return Told(Said.DONE, key_id=key_id, data=encode(content))
