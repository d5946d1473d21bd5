"""The public passphrase of stack `dev`, which is only for stacks in the sandbox."""

from collections.abc import Mapping
from os import environ
from typing import Final

from components.errors import CredfleetError
from operations.folders import Folders
from operations.sandbox.control_plane import CONTEXT
from operations.stack.at_rest import StackAtRest
from operations.stack.passphrase import PassphraseCrypter

_CLUSTER: Final = "credfleet:cluster"


def is_strange(
    folders: Folders, stack: str, at_rest: StackAtRest | None, environment: Mapping[str, str] = environ
) -> bool:
    """Return whether the environment gives it to a stack outside the sandbox that does not use it yet."""
    if folders.public_passphrase(stack) or not folders.is_public_given(environment):
        return False
    if at_rest is None:
        return True
    cluster = at_rest.stack_file.config.get(_CLUSTER)
    is_of_the_sandbox = isinstance(cluster, dict) and cluster.get("context") == CONTEXT
    return not (is_of_the_sandbox or _is_encrypted(folders, at_rest))


def refuse_new(folders: Folders, at_rest: StackAtRest) -> None:
    """Raise CredfleetError `public-passphrase` instead of starting to encrypt a real stack with it."""
    if not at_rest.stack_file.salt and is_strange(folders, at_rest.stack, at_rest):
        raise CredfleetError(
            code="public-passphrase",
            place=str(at_rest.stack_file.path),
            problem="the environment gives the public passphrase, so anybody could decrypt what this stack"
            " has",
            fix="give it one of its own, by PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE;"
            f" a stack for the sandbox alone says {_CLUSTER}: {{context: {CONTEXT}}}",
        )


def _is_encrypted(folders: Folders, at_rest: StackAtRest) -> bool:
    public = folders.dev_passphrase.read_text(encoding="utf-8").strip()
    try:
        PassphraseCrypter.open(at_rest.stack_file.salt, public)
    except CredfleetError:
        return False
    return True
