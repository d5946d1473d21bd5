"""What the stand-in keeps: one file per secret, for its owner alone, replaced whole at every write."""

import base64
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.cloud.secretmanager_v1.types import Secret, SecretVersion
from google.iam.v1.policy_pb2 import Policy
from google.protobuf import json_format

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.cloud.secret_manager.callers import EMPTY_ETAG
from pulumi_sandbox.services.cloud.secret_manager.names import project_number
from pulumi_sandbox.services.cloud.secret_manager.wire import shown

_FILE = "secret.json"


@dataclass(slots=True)
class Version:
    """A version; data is None once it is destroyed."""

    about: SecretVersion
    data: bytes | None = field(repr=False)


@dataclass(slots=True)
class Kept:
    """A secret with all its versions, number 1 first, and its policy."""

    about: Secret
    versions: list[Version] = field(default_factory=list[Version])
    policy: Policy = field(default_factory=lambda: Policy(etag=EMPTY_ETAG))


class SecretStore:
    """All secrets, in memory and in a folder: what is answered has been written before."""

    def __init__(self, folder: Path) -> None:
        """Read what an earlier process left in a folder.

        Raises SandboxError `state-unreadable`.
        """
        self._folder = folder
        self._secrets: dict[str, dict[str, Kept]] = {}
        for parent in sorted(files.make_folder(folder).iterdir()):
            self._secrets[parent.name.replace("@", "/")] = {
                file.parent.name: _read(file) for file in sorted(parent.glob(f"*/{_FILE}"))
            }

    def project_of(self, number: str) -> str | None:
        """Return the id of a project by its number, if it was ever used."""
        used = (parent.partition("/")[0] for parent in self._secrets)
        return next((project for project in used if project_number(project) == number), None)

    def secrets(self, parent: str) -> dict[str, Kept]:
        """Return the secrets of a parent by their ids, in their order."""
        return dict(sorted(self._secrets.get(parent, {}).items()))

    def get(self, parent: str, secret: str) -> Kept | None:
        """Return one secret, which is changed only by `save`."""
        return self._secrets.get(parent, {}).get(secret)

    def save(self, parent: str, secret: str, kept: Kept) -> None:
        """Keep a secret as it is now."""
        document = {
            "secret": shown(Secret.pb(kept.about)),
            "versions": [
                {
                    "version": shown(SecretVersion.pb(version.about)),
                    "data": None if version.data is None else base64.b64encode(version.data).decode(),
                }
                for version in kept.versions
            ],
            "policy": shown(kept.policy),
        }
        files.replace(self._path(parent, secret), json.dumps(document), mode=files.PRIVATE)
        self._secrets.setdefault(parent, {})[secret] = kept

    def delete(self, parent: str, secret: str) -> None:
        """Forget a secret; its project stays known."""
        path = self._path(parent, secret)
        path.unlink()
        shutil.rmtree(path.parent)
        del self._secrets[parent][secret]

    def _path(self, parent: str, secret: str) -> Path:
        return self._folder / parent.replace("/", "@") / secret / _FILE


def _read(file: Path) -> Kept:
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        kept = Kept(Secret())
        json_format.ParseDict(document["secret"], Secret.pb(kept.about))
        json_format.ParseDict(document["policy"], kept.policy)
        for each in document["versions"]:
            data = None if each["data"] is None else base64.b64decode(each["data"])
            version = Version(SecretVersion(), data)
            json_format.ParseDict(each["version"], SecretVersion.pb(version.about))
            kept.versions.append(version)
    except (ValueError, KeyError, TypeError, json_format.ParseError) as error:
        raise SandboxError(
            code="state-unreadable",
            place=str(file),
            problem=f"it holds no secret of the Secret Manager stand-in ({type(error).__name__})",
            fix="remove the file; the secret is gone then",
        ) from None
    return kept
