"""Configurations of stacks, small and whole, in the form the CLI passes them."""

import json
import runpy
from collections.abc import Collection, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from components.errors import ConfigurationError, Problem
from components.stack_config.stack import Settings
from operations.stack.at_rest import StackAtRest

ROOT: Final = Path(__file__).parents[2]
SECRET_KEYS: Final = frozenset({"credfleet:credentials"})
NO_ENTRIES: Final = {"gcp:secretmanager/getSecrets:getSecrets": {"id": "none", "secrets": []}}
"""What a program is told of a Secret Manager without entries."""

SMALL: Final[Mapping[str, Any]] = {
    "cluster": {"context": "credfleet-test"},
    "credentials": {"aws-1": '{"accessKeyID": "id", "secretAccessKey": "key"}'},
    "tenants": {"acme": {"namespace": "tenant-acme", "accounts": {"aws": {"type": "aws"}}}},
    "accountPool": {
        "namespace": "account-pool",
        "partitionKeys": ["eu-access"],
        "rules": ["aws", "aws(PR=cf-eu11) -> EU", "trial -> S"],
        "members": {"aws-1": {"type": "aws", "accountId": "111111111111", "credentialsFrom": "aws-1"}},
    },
}
"""One tenant, one account, one claim: valid as it stands."""


def stack(**changes: Any) -> dict[str, str]:
    """Change the small stack: a path with `__` for the dots → a value; None removes the entry."""
    sections = deepcopy(dict(SMALL))
    for path, value in changes.items():
        *holders, last = path.split("__")
        holder = sections
        for step in holders:
            holder = holder[step]
        if value is None:
            del holder[last]
        else:
            holder[last] = value
    return as_passed(sections)


def as_passed(sections: Mapping[str, Any]) -> dict[str, str]:
    """Put sections into the form the CLI passes: full keys, objects as JSON text."""
    return {f"credfleet:{key}": json.dumps(value) for key, value in sections.items()}


def settings(values: Mapping[str, str], root: Path = ROOT) -> Settings:
    """Read a configuration whose credentials are secret."""
    return Settings.parse(values, SECRET_KEYS, root)


def problems(values: Mapping[str, str], *, secret: bool = True, root: Path = ROOT) -> tuple[Problem, ...]:
    """Return what is wrong with a configuration."""
    try:
        Settings.parse(values, SECRET_KEYS if secret else (), root)
    except ConfigurationError as error:
        return error.problems
    return ()


def dev(folder: Path) -> tuple[dict[str, str], Collection[str]]:
    """Return the configuration of the stack `dev`, its credentials decrypted, and its secret keys."""
    passphrase = (ROOT / "stacks" / "dev" / "passphrase").read_text(encoding="utf-8").strip()
    at_rest = StackAtRest.find(ROOT, "dev", backend_dir=folder)
    config, _ = at_rest.read(at_rest.unlock(passphrase).decrypt)
    values = {key: text.replace("127.0.0.1:0", "127.0.0.1:1") for key, text in config.values.items()}
    return values, config.secret_keys


def program() -> None:
    """Run the program, as the language host does."""
    runpy.run_path(str(ROOT / "__main__.py"))
