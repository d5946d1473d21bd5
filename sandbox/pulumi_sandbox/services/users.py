"""Who may talk to the control plane: users with tokens, and a kubeconfig file for each."""

import csv
import io
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class User:
    """A user of the API server, known to RBAC by its name and groups."""

    name: str
    groups: tuple[str, ...] = ()


ADMIN = User("admin", ("system:masters",))
"""Who may do everything."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user and the token it proves itself with."""

    user: User
    token: str = field(repr=False)


def enrol(known: Iterable[Account], wanted: Iterable[User]) -> list[Account]:
    """Return known and wanted users an account each; tokens are the known ones, groups the wanted ones."""
    tokens = {account.user.name: account.token for account in known}
    users = {account.user.name: account.user for account in known} | {user.name: user for user in wanted}
    return [Account(user, tokens.get(name) or secrets.token_urlsafe(32)) for name, user in users.items()]


def to_token_file(accounts: Iterable[Account]) -> str:
    """Write the API server's `--token-auth-file`: token, name, uid, groups."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for account in accounts:
        user = account.user
        rows.writerow([account.token, user.name, user.name, ",".join(user.groups)])
    return text.getvalue()


def from_token_file(text: str) -> list[Account]:
    """Read what `to_token_file` wrote. Raises ValueError for what is none."""
    try:
        return [
            Account(User(name, tuple(group for group in groups.split(",") if group)), token)
            for token, name, _, groups in csv.reader(io.StringIO(text))
        ]
    except csv.Error as error:
        raise ValueError(error) from None


def kubeconfig_name(user: str) -> str:
    """Name a user's kubeconfig file; any user name is a file name after this."""
    return f"{quote(user, safe=':')}.kubeconfig"


def kubeconfig(account: Account, server: str, authority: str, context: str) -> str:
    """Write a kubeconfig with one context; `authority` is the server's CA in base64. JSON is YAML, too."""
    name = account.user.name
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": context, "cluster": {"server": server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": name, "user": {"token": account.token}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": name}}],
        "current-context": context,
    }
    return json.dumps(config, indent=2) + "\n"
