"""`credfleet aso explain`: which credential each ASO resource will use, and what prevents it from working."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from components.aso_credentials import keys
from components.aso_credentials.manifests import Found, objects_in
from components.aso_credentials.resolution import Operator, Resolution, Resource, Secrets
from components.aso_credentials.resolver import resolve
from components.aso_credentials.settings import AsoCredentials
from components.connection import Connection
from components.errors import CredfleetError
from components.projection.model import SecretRef
from operations.cli import inputs
from operations.cli.answer import CommandResult, Part
from operations.cli.tables import Column, Table
from operations.config.settings import settings_of
from operations.pool.access import PoolTarget

_ABSENT: Final = 404


def live_secrets(connection: Connection, resources: Iterable[Resource], operator_namespace: str) -> Secrets:
    """Read the Secrets, as far as they exist, that the resources and the operator refer to.

    Raises CredfleetError `not-allowed`, and NoReply.
    """
    wanted = {SecretRef(operator_namespace, keys.GLOBAL_SETTINGS)}
    for resource in resources:
        wanted.add(SecretRef(resource.namespace, keys.NAMESPACE_SECRET))
        name = resource.annotations.get(keys.CREDENTIAL_FROM, "")
        if name and "/" not in name:
            wanted.add(SecretRef(resource.namespace, name))
    found = {name: _read(connection, name) for name in sorted(wanted, key=str)}
    return {name: data for name, data in found.items() if data is not None}


def _read(connection: Connection, secret: SecretRef) -> Mapping[str, bytes] | None:
    namespace, name = quote(secret.namespace, safe=""), quote(secret.name, safe="")
    reply = connection.call("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
    if reply.status == _ABSENT:
        return None
    if reply.status != 200:
        raise CredfleetError(
            code="not-allowed",
            place=f"Secret {secret}",
            problem=f"the API server does not show it: {reply.text}",
            fix="choose a cluster and a user that may read it, or give the Secrets as files without --live",
        )
    body: Mapping[str, Any] = reply.body
    return Found(f"Secret {secret}", body).secret_data()


def read_manifests(files: Iterable[Path]) -> tuple[list[Resource], Secrets]:
    """Return the ASO resources, in order, and the Secrets in files, folders of YAML files or stdin (`-`).

    Ignores other objects. Raises CredfleetError `yaml-invalid` with the file and the line or object.
    """
    resources: list[Resource] = []
    secrets: dict[SecretRef, Mapping[str, bytes]] = {}
    for path in _each_file(files):
        for found in objects_in(inputs.read_yaml(str(path)), inputs.place_of(str(path))):
            if found.is_secret:
                secrets[found.secret_name()] = found.secret_data()
            elif found.is_resource:
                resources.append(found.resource())
    return resources, secrets


def _each_file(files: Iterable[Path]) -> Iterator[Path]:
    for path in files:
        if path.is_dir():
            of_yaml = (each for each in path.iterdir() if each.suffix in (".yaml", ".yml"))
            yield from sorted(each for each in of_yaml if each.stat().st_size)
        else:
            yield path


def operator_of(stack: str) -> Operator:
    """Return how the operator runs according to a stack; raises as `settings_of`."""
    section = settings_of(stack).aso_credentials or AsoCredentials()
    return section.operator.as_it_runs(strict=section.operator.strict)


def explain_files(files: Sequence[Path], operator: Operator, live: PoolTarget | None) -> CommandResult:
    """Return how ASO would treat each resource; exit code 1 if it would reject one.

    live: the cluster whose Secrets replace those in the files. Raises as `read_manifests`, `live_secrets`,
    `resolve` and `connect`.
    """
    resources, secrets = read_manifests(files)
    if live is not None:
        from components.connection import connect

        secrets = live_secrets(connect(live.target()), resources, operator.namespace)
    resolutions = resolve(resources, secrets, operator)
    refused = any(each.fault for each in resolutions)
    return CommandResult([*map(_as_document, resolutions)], _parts(resolutions), int(refused))


def _as_document(resolution: Resolution) -> dict[str, Any]:
    fault = resolution.fault
    return {
        "resource": str(resolution.resource),
        "secret": str(resolution.secret) if resolution.secret else None,
        **{name: getattr(resolution, name) for name in ("scope", "method", "subject")},
        "severity": fault.severity if fault else None,
        "reason": fault.reason if fault else None,
        "message": resolution.message,
    }


def _parts(resolutions: Sequence[Resolution]) -> Iterator[Part]:
    if not resolutions:
        yield "There is no ASO resource in what was given."
        return
    rows = [
        (
            "✗" if each.fault else "✓",
            str(each.resource),
            *(str(cell or "-") for cell in (each.secret, each.scope, each.method)),
        )
        for each in resolutions
    ]
    beside = ("Secret", Column("Scope", leaves=2), Column("Method", leaves=1))
    columns = ("", Column("Resource", names=True), *beside)
    yield Table("Credentials ASO will use", columns, rows)
    for each in resolutions:
        if each.subject:
            yield f"→ {each.resource}: its identity must trust\n  {each.subject}"
    for each in resolutions:
        if each.message:
            title = f"{each.fault.severity}, {each.fault.reason}" if each.fault else "Note"
            yield f"{'✗' if each.fault else '→'} {each.resource}: {title}\n  {each.message}"
