"""What the sandbox's own cluster has before the first update: objects that somebody else made."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from components.errors import CredfleetError


def bring(objects: Path, kubeconfig: Path) -> None:
    """Create the objects of a YAML file that are not there yet; without the file there are none.

    Raises:
        CredfleetError: code `existing-refused`, when the API server takes one of them not.
    """
    if not objects.is_file():
        return
    from kubernetes import config, utils

    api = config.new_client_from_config(config_file=str(kubeconfig), persist_config=False)
    try:
        utils.create_from_yaml(api, str(objects))
    except utils.FailToCreateError as refused:
        reasons = [each.reason for each in refused.api_exceptions if each.status != HTTPStatus.CONFLICT]
        if reasons:
            raise CredfleetError(
                code="existing-refused",
                place=str(objects),
                cause=f"the API server took an object of it not: {', '.join(map(str, reasons))}",
                mend="correct the file; it holds what the sandbox's cluster has before the first update",
            ) from None
