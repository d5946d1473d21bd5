"""The initial content of the sandbox's own cluster: kinds, and objects that others created."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from components.connection import ClusterTarget, Connection, connect, served_kinds
from components.errors import CredfleetError

KINDS: Final = Path(__file__).parents[2] / "stacks" / "dev" / "crds"
"""CRDs of operators that do not run in the sandbox, permissive enough to declare their objects."""

_SECONDS: Final = 30
"""How long the API server may take to serve a kind."""

_PAUSE: Final = 0.1
"""Interval of checks in seconds; a kind is served after about one second."""


def bring_kinds(kubeconfig: Path) -> None:
    """Create the kinds that do not exist, and wait until they are served.

    Raises CredfleetError `existing-refused` if the API server rejects one of them; `kinds-missing`.
    """
    connection = connect(ClusterTarget(kubeconfig=str(kubeconfig)))
    lacking = [path for path in sorted(KINDS.glob("*.yaml")) if not _is_served(path.stem, connection)]
    for path in lacking:
        bring(path, kubeconfig)
    deadline, kinds = time.monotonic() + _SECONDS, [path.stem for path in lacking]
    while kinds := [kind for kind in kinds if not _is_served(kind, connection)]:
        if time.monotonic() > deadline:
            raise CredfleetError(
                code="kinds-missing",
                place=", ".join(kinds),
                problem=f"the API server does not serve what was applied within {_SECONDS} seconds",
                fix="run the same command again; if it stays so, start again with `credfleet sandbox down`",
            )
        time.sleep(_PAUSE)


def bring(objects: Path, kubeconfig: Path) -> None:
    """Create the objects of a YAML file that do not exist; a missing file has none.

    Raises CredfleetError `existing-refused` if the API server rejects one of them.
    """
    from kubernetes import config, utils

    if not objects.is_file():
        return
    api = config.new_client_from_config(config_file=str(kubeconfig), persist_config=False)
    try:
        utils.create_from_yaml(api, str(objects))
    except utils.FailToCreateError as refused:
        reasons = [each.reason for each in refused.api_exceptions if each.status != HTTPStatus.CONFLICT]
        if reasons:
            raise CredfleetError(
                code="existing-refused",
                place=str(objects),
                problem=f"the API server did not accept one of its objects: {', '.join(map(str, reasons))}",
                fix="correct the file; it holds what the sandbox's cluster has before the first update",
            ) from None


def _is_served(kind: str, connection: Connection) -> bool:
    """Return whether a kind is established and in discovery, which lists it only later."""

    def get(path: str) -> Mapping[str, Any]:
        reply = connection.call("GET", path)
        return reply.body if reply.status == HTTPStatus.OK else {}

    definition = get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind}")
    conditions = definition.get("status", {}).get("conditions") or ()
    is_established = any((each["type"], each["status"]) == ("Established", "True") for each in conditions)
    return is_established and all(
        definition["spec"]["names"]["kind"]
        in served_kinds(get, f"{definition['spec']['group']}/{version['name']}")
        for version in definition["spec"]["versions"]
        if version["served"]
    )
