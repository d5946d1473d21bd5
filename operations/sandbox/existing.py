"""What the sandbox's own cluster has before the first update: kinds, and objects that others made."""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from components.errors import CredfleetError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

KINDS: Final = Path(__file__).parents[2] / "stacks" / "dev" / "crds"
"""Kinds of operators that do not run in the sandbox, made just permissive enough to declare their objects."""

_SECONDS: Final = 30
"""How long the API server may take until it serves a kind."""

_PAUSE: Final = 0.1
"""Seconds between two looks; a kind is served after about a second."""


def bring_kinds(kubeconfig: Path) -> None:
    """Create the kinds that are not there yet, and wait until they are served.

    Raises CredfleetError `existing-refused`, when the API server takes one of them not; `kinds-missing`.
    """
    api = _client(kubeconfig)
    lacking = [path for path in sorted(KINDS.glob("*.yaml")) if not _is_served(path.stem, api)]
    for path in lacking:
        _create(path, api)
    if lacking:
        _await_served([path.stem for path in lacking], api)


def bring(objects: Path, kubeconfig: Path) -> None:
    """Create the objects of a YAML file that are not there yet; without the file there are none.

    Raises CredfleetError `existing-refused`, when the API server takes one of them not.
    """
    if objects.is_file():
        _create(objects, _client(kubeconfig))


def _client(kubeconfig: Path) -> ApiClient:
    from kubernetes import config

    return config.new_client_from_config(config_file=str(kubeconfig), persist_config=False)


def _create(objects: Path, api: ApiClient) -> None:
    from kubernetes import utils

    try:
        utils.create_from_yaml(api, str(objects))
    except utils.FailToCreateError as refused:
        reasons = [each.reason for each in refused.api_exceptions if each.status != HTTPStatus.CONFLICT]
        if reasons:
            raise CredfleetError(
                code="existing-refused",
                place=str(objects),
                problem=f"the API server took an object of it not: {', '.join(map(str, reasons))}",
                fix="correct the file; it holds what the sandbox's cluster has before the first update",
            ) from None


def _is_served(kind: str, api: ApiClient) -> bool:
    """Whether a kind is established, and clients find it: the lists they look into are filled after that.

    Its definition is asked for by its name: to import the client's classes for it takes longer than all else.
    """
    definition = _asked(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind}", api)
    return _is_established(definition) and all(
        _is_listed(definition["spec"], version["name"], api)
        for version in definition["spec"]["versions"]
        if version["served"]
    )


def _is_listed(spec: dict[str, Any], version: str, api: ApiClient) -> bool:
    served = f"{spec['group']}/{version}"
    kinds = _asked(f"/apis/{served}", api).get("resources", ())
    groups = _asked("/apis", api).get("groups", ())
    return spec["names"]["plural"] in {each["name"] for each in kinds} and served in {
        each["groupVersion"] for group in groups for each in group["versions"]
    }


def _asked(path: str, api: ApiClient) -> dict[str, Any]:
    """Return what the API server answers; nothing where it has nothing there."""
    answer = api.call_api(*api.param_serialize("GET", path, auth_settings=["BearerToken"]))
    body = answer.read()
    return json.loads(body) if answer.status == HTTPStatus.OK else {}


def _await_served(kinds: list[str], api: ApiClient) -> None:
    """Wait until each of these, by the name of its definition, is served."""
    deadline = time.monotonic() + _SECONDS
    while kinds := [kind for kind in kinds if not _is_served(kind, api)]:
        if time.monotonic() > deadline:
            raise CredfleetError(
                code="kinds-missing",
                place=", ".join(kinds),
                problem=f"the API server does not serve what was applied within {_SECONDS} seconds",
                fix="run the same command again; if it stays so, start again with `credfleet sandbox down`",
            )
        time.sleep(_PAUSE)


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)
