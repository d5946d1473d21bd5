"""`gcp:secretmanager/secretVersion:SecretVersion`: one payload, which never changes."""

import base64
from collections.abc import Mapping
from typing import ClassVar, Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.paths import Path
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Unknown, equal, text
from pulumi_sandbox.providers.contract import Autonaming, InitFailedError, InputDiff, Problem, State
from pulumi_sandbox.providers.dispatch import ResourceKind
from pulumi_sandbox.providers.gcp import names
from pulumi_sandbox.providers.inputs import Input, changes, declared, problems, with_defaults
from pulumi_sandbox.providers.rest import Rest, ask, ask_for

SCHEMA: Final[Mapping[str, Input]] = {
    "deletionPolicy": Input(),
    "enabled": Input("flag"),
    "isSecretDataBase64": Input("flag", replaces=True),
    "secret": Input(required=True, replaces=True),
    "secretData": Input(required=True, replaces=True),
}
UNSERVED: Final = frozenset({"project", "secretDataWo", "secretDataWoVersion"})
POLICIES: Final = ("DELETE", "DISABLE", "ABANDON", "PREVENT")

_DEFAULTS: Final[Properties] = {"deletionPolicy": "DELETE", "enabled": True, "isSecretDataBase64": False}


class Versions(ResourceKind):
    """The versions of secrets."""

    secrets: ClassVar = frozenset({"secretData"})

    def __init__(self, api: Rest) -> None:
        self._api = api

    def check(
        self, name: str, old: Properties, new: Properties, *, seed: bytes, autonaming: Autonaming | None
    ) -> tuple[Properties, list[Problem]]:
        """Fill in defaults; judge the policy and the secret's name."""
        del name, old, seed, autonaming
        inputs = with_defaults(declared(new), _DEFAULTS)
        found = problems(inputs, SCHEMA, UNSERVED)
        policy, secret = inputs["deletionPolicy"], inputs.get("secret")
        if not isinstance(policy, Unknown) and policy not in POLICIES:
            found.append(Problem("deletionPolicy", f"it must be one of {', '.join(POLICIES)}"))
        if isinstance(secret, str) and not names.is_secret_name(secret):
            found.append(Problem("secret", "it must be the id of a secret: projects/PROJECT/secrets/SECRET"))
        return inputs, found

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with what is recorded; another payload is another version, made before the old one goes."""
        before = {key: old.outputs.get(key) for key in SCHEMA}
        after = declared(new)
        if names.same_secret(before.get("secret"), after.get("secret")):
            after["secret"] = before["secret"]
        return InputDiff(changes(before, after, SCHEMA, ignored), delete_first=False)

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
        """Add the version, disabled if it is declared so; from the first answer on it is recorded."""
        del urn
        secret = text(new.get("secret"))
        body: Properties = {"payload": {"data": _encoded(new)}}
        added = ask(self._api, "add a version to", secret, "POST", f"{secret}:addVersion", body=body)
        made = State(text(added.get("name")), self._outputs(added, new), {})
        if new.get("enabled") is not False:
            return made
        try:
            disabled = self._switched(made.id, "disable")
        except SandboxError as error:
            raise InitFailedError(made, str(error)) from error
        return State(made.id, self._outputs(disabled, new), {})

    def update(self, old: State, new: Properties) -> Properties:
        """Enable or disable the version, if that changed; the policy is only recorded."""
        if equal(old.outputs.get("enabled"), new.get("enabled")):
            return self.preview_update(old, new)
        live = self._switched(old.id, "disable" if new.get("enabled") is False else "enable")
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
            inputs["secretData"] = _decoded(accessed, inputs)
        outputs = self._outputs(live, inputs)
        return State(old.id, outputs, {**inputs, "enabled": outputs["enabled"]})

    def delete(self, old: State) -> None:
        """Destroy the version, or disable or abandon it, as the recorded policy says."""
        policy = old.outputs.get("deletionPolicy")
        if policy == "PREVENT":
            raise SandboxError(
                code="deletion-prevented",
                place=old.id,
                problem="its deletionPolicy PREVENT forbids to delete it",
                fix="set deletionPolicy to DELETE, DISABLE or ABANDON, and run up first",
            )
        if policy != "ABANDON":
            action = "disable" if policy == "DISABLE" else "destroy"
            ask_for(self._api, action, old.id, "POST", f"{old.id}:{action}")

    def _switched(self, name: str, action: str) -> Properties:
        return ask(self._api, action, name, "POST", f"{name}:{action}", body={})

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


def _encoded(new: Properties) -> str:
    data = text(new.get("secretData"))
    return data if new.get("isSecretDataBase64") is True else base64.b64encode(data.encode()).decode()


def _decoded(accessed: Properties, inputs: Properties) -> str:
    payload = accessed.get("payload")
    data = text(payload.get("data")) if isinstance(payload, dict) else ""
    if inputs.get("isSecretDataBase64") is True:
        return data
    return base64.b64decode(data).decode(errors="replace")
