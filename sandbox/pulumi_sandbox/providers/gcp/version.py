"""`gcp:secretmanager/secretVersion:SecretVersion`: one payload, which never changes."""

import base64
from collections.abc import Mapping
from typing import ClassVar, Final

from pulumi_sandbox.protocol.values import UNKNOWN, Path, Properties, Unknown, text
from pulumi_sandbox.providers.contract import InputDiff, Problem, State
from pulumi_sandbox.providers.dispatch import ResourceKind
from pulumi_sandbox.providers.gcp import names
from pulumi_sandbox.providers.inputs import Input, changes, declared, problems, with_defaults
from pulumi_sandbox.providers.rest import Rest, ask, ask_for

SCHEMA: Final[Mapping[str, Input]] = {
    "deletionPolicy": Input(),
    "secret": Input(required=True, replaces=True),
    "secretData": Input(required=True, replaces=True),
}
UNSERVED: Final = frozenset(
    {"enabled", "isSecretDataBase64", "project", "secretDataWo", "secretDataWoVersion"}
)
POLICIES: Final = ("DELETE", "ABANDON")

_DEFAULTS: Final[Properties] = {"deletionPolicy": "DELETE", "enabled": True, "isSecretDataBase64": False}


class Versions(ResourceKind):
    """The versions of secrets."""

    secrets: ClassVar = frozenset({"secretData"})

    def __init__(self, api: Rest) -> None:
        self._api = api

    def check(self, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Fill in defaults; judge the policy and the secret's name."""
        del old
        given = declared(new)
        found = problems(given, SCHEMA, UNSERVED)
        inputs = with_defaults(given, _DEFAULTS)
        policy, secret = inputs["deletionPolicy"], inputs.get("secret")
        if not isinstance(policy, Unknown) and policy not in POLICIES:
            found.append(Problem("deletionPolicy", f"it must be one of {', '.join(POLICIES)}"))
        if isinstance(secret, str) and not names.is_secret_name(secret):
            found.append(Problem("secret", "it must be the id of a secret: projects/PROJECT/secrets/SECRET"))
        return inputs, found

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with what is recorded; another payload is another version, made before the old one goes."""
        compared = {**SCHEMA, "enabled": Input()}
        before = {key: old.outputs.get(key) for key in compared}
        after = {key: value for key, value in declared(new).items() if key in compared}
        if names.same_secret(before.get("secret"), after.get("secret")):
            after["secret"] = before["secret"]
        return InputDiff(changes(before, after, compared, ignored), delete_first=False)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs, and what only the service knows as unknown."""
        return {
            **declared(new),
            "createTime": UNKNOWN,
            "destroyTime": UNKNOWN,
            "name": UNKNOWN,
            "version": UNKNOWN,
        }

    def create(self, urn: str, new: Properties) -> State:
        """Add the version; from the first answer on it is recorded."""
        del urn
        secret = text(new.get("secret"))
        data = base64.b64encode(text(new.get("secretData")).encode()).decode()
        body: Properties = {"payload": {"data": data}}
        added = ask(self._api, "add a version to", secret, "POST", f"{secret}:addVersion", body=body)
        return State(text(added.get("name")), self._outputs(added, new), {})

    def update(self, old: State, new: Properties) -> Properties:
        """Enable the version again, if others disabled it; the policy is only recorded."""
        if old.outputs.get("enabled") is True:
            return self.preview_update(old, new)
        live = ask(self._api, "enable", old.id, "POST", f"{old.id}:enable", body={})
        return self._outputs(live, new)

    def read(self, old: State) -> State | None:
        """Return the live version; a destroyed one is gone, a disabled one keeps the recorded payload."""
        secret, _ = names.version_parts(old.id)
        live = ask_for(self._api, "read", old.id, "GET", old.id)
        if live is None or live.get("state") == "DESTROYED":
            return None
        given = old.inputs or {"secret": secret}
        inputs = with_defaults(
            {**given, "secretData": old.outputs.get("secretData") or given.get("secretData")}, _DEFAULTS
        )
        if live.get("state") == "ENABLED":
            accessed = ask_for(self._api, "read", old.id, "GET", f"{old.id}:access")
            if accessed is None:
                return None
            inputs["secretData"] = _decoded(accessed)
        outputs = self._outputs(live, inputs)
        return State(old.id, outputs, {**inputs, "enabled": outputs["enabled"]})

    def delete(self, old: State) -> None:
        """Destroy the version, or abandon it, as the recorded policy says."""
        if old.outputs.get("deletionPolicy") != "ABANDON":
            ask_for(self._api, "destroy", old.id, "POST", f"{old.id}:destroy")

    def _outputs(self, live: Properties, inputs: Properties) -> Properties:
        name = text(live.get("name"))
        return {
            "createTime": live.get("createTime"),
            "deletionPolicy": inputs.get("deletionPolicy"),
            "destroyTime": live.get("destroyTime") or "",
            "enabled": live.get("state") == "ENABLED",
            "isSecretDataBase64": inputs.get("isSecretDataBase64"),
            "name": name,
            "secret": inputs.get("secret"),
            "secretData": inputs.get("secretData"),
            "version": names.version_parts(name)[1],
        }


def _decoded(accessed: Properties) -> str:
    payload = accessed.get("payload")
    data = text(payload.get("data")) if isinstance(payload, dict) else ""
    return base64.b64decode(data).decode(errors="replace")
