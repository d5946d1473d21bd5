"""When a control plane is ready: what it answers, not how long it has been running."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from pulumi_sandbox.services.ports import LOOPBACK

_PATIENCE = 2.0
"""Seconds for one answer. A stranger on the port may never answer; a busy API server is asked again."""

_SERVICE_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@dataclass(frozen=True, slots=True)
class Questions:
    """Asks an API server over its own certificate, as a user."""

    port: int
    authority: Path
    token: str = field(repr=False)

    def api_server_ready(self) -> bool:
        """Whether the API server serves, its built-in roles included."""
        return self._ask("GET", "/readyz") is not None

    def set_controllers_a_task(self) -> None:
        """Delete a service account that controllers make again; what earlier ones did proves nothing."""
        self._ask("DELETE", _SERVICE_ACCOUNT)

    def controllers_ready(self) -> bool:
        """Whether the controllers' work is seen: the service account, a filled role `view`."""
        view = self._ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
        filled = view is not None and bool(json.loads(view)["rules"])
        return filled and self._ask("GET", _SERVICE_ACCOUNT) is not None

    def _ask(self, method: str, path: str) -> bytes | None:
        """Return the body of a 200; None for any other answer or none at all."""
        try:
            trust = ssl.create_default_context(cafile=str(self.authority))
            connection = http.client.HTTPSConnection(LOOPBACK, self.port, timeout=_PATIENCE, context=trust)
            try:
                connection.request(method, path, headers={"Authorization": f"Bearer {self.token}"})
                answer = connection.getresponse()
                body = answer.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            return None
        return body if answer.status == http.client.OK else None
