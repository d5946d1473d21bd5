"""HyperFleet API for pull secrets: adapter reports about a cluster, and our own reports.

Its two contracts are described in docs/compatibility.md. Its answers are never shown, since they might quote
the request. Import-pure: clients are imported by the first call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from components.documents import read_json
from components.errors import PullSecretError
from components.http_answers import HttpOutcome, answer_of
from components.importing import IMPORT_LOCK
from components.pull_secret.model import Availability, Observed, Phase

if TYPE_CHECKING:
    from requests import Response

TOKEN: Final = "HYPERFLEET_API_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable with the bearer token; if it is not set, no token is sent."""

_CLUSTERS: Final = "/api/hyperfleet/v1/clusters"
_NO_SUCH_PATH: Final = "HYPERFLEET-NTF-000"
"""Code of a 404 if the path is unknown, not the cluster. A 404 without a code is not from HyperFleet."""


class Contract(StrEnum):
    """API contract: v1 takes reports by POST and has a phase, v2 by PUT and has conditions."""

    V1 = "v1"
    V2 = "v2"


@dataclass(frozen=True, slots=True)
class HyperFleet:
    """HyperFleet API by its base URL; `seconds`: how long calls are retried."""

    url: str
    contract: Contract = Contract.V2
    seconds: float = 10.0

    def observe(self, cluster_id: str) -> Observed:
        """Return the state of a cluster, and the last reports of its adapters. Raises PullSecretError."""
        cluster = self._call("GET", cluster_id, "")
        if cluster is None:
            return Observed({}, known=False)
        adapters = {name: state for report in self._reports(cluster_id) for name, state in _available(report)}
        status = cluster.get("status") or {}
        if self.contract is Contract.V1:
            phase = status.get("phase")
            return Observed(adapters, Phase(phase) if phase in set(Phase) else None)
        reconciled = any(
            (each.get("type"), each.get("status")) == ("Reconciled", Availability.TRUE)
            for each in status.get("conditions") or ()
        )
        return Observed(adapters, Phase.READY if reconciled else None, cluster.get("deleted_time"))

    def deletion(self, cluster_id: str) -> int | None:
        """Return the generation of a cluster that HyperFleet is deleting; otherwise None.

        Raises PullSecretError.
        """
        cluster = self._call("GET", cluster_id, "") or {}
        return int(cluster["generation"]) if cluster.get("deleted_time") else None

    def report(self, cluster_id: str, document: Mapping[str, Any]) -> None:
        """Replace the adapter's last report. Raises PullSecretError."""
        method = "POST" if self.contract is Contract.V1 else "PUT"
        kept = self._call(method, cluster_id, "/statuses", document)
        if kept is None:
            raise self._failure(
                cluster_id, "unknown", "HyperFleet knows no such cluster", "correct the cluster's id"
            )
        if not kept:
            raise self._failure(
                cluster_id,
                "dropped",
                f"HyperFleet drops a report about generation {document['observed_generation']}",
                "give the cluster the generation that HyperFleet has of it",
            )

    def _reports(self, cluster_id: str) -> Iterator[Mapping[str, Any]]:
        """Yield the reports of adapters, from all pages."""
        seen, page, total = 0, 1, 1
        while seen < total:
            listed = self._call("GET", cluster_id, f"/statuses?page={page}") or {}
            items, total = listed.get("items") or [], int(listed.get("total") or 0)
            yield from items
            seen, page = seen + len(items), page + 1
            if not items:
                return

    def _call(
        self, method: str, cluster_id: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Make a call, with retries of temporary failures; None if HyperFleet does not know the cluster."""
        with IMPORT_LOCK:
            import requests
            from google.api_core.exceptions import RetryError
            from google.api_core.retry import Retry

        token = os.environ.get(TOKEN)
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        url = f"{self.url.rstrip('/')}{_CLUSTERS}/{quote(cluster_id, safe='')}{path}"

        def attempt() -> Response:
            answer = requests.request(
                method, url, json=body, headers=headers, timeout=self.seconds, allow_redirects=False
            )
            if answer_of(answer.status_code) is HttpOutcome.UNREACHABLE:
                raise requests.ConnectionError(f"HTTP {answer.status_code}")
            return answer

        repeatedly: Any = Retry(
            predicate=lambda error: isinstance(error, requests.ConnectionError | requests.Timeout),
            initial=0.1,
            maximum=2.0,
            timeout=self.seconds,
        )
        try:
            answer: Response = repeatedly(attempt)()
        except (RetryError, requests.RequestException):
            raise self._failure(
                cluster_id, "unreachable", "HyperFleet does not answer", "run again once it does"
            ) from None
        found, meaning = _body(answer), answer_of(answer.status_code)
        if meaning is HttpOutcome.ABSENT and found.get("code", _NO_SUCH_PATH) != _NO_SUCH_PATH:
            return None
        if meaning is not HttpOutcome.DONE or (method == "GET" and not found):
            what = "" if found else ", and in a form that is not its own"
            fix = f"see whether {self.url} is its URL, and the token in {TOKEN} is one of its"
            if answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
                fix = f"it keeps another contract than {self.contract}: set hyperfleet.contract"
            raise self._failure(
                cluster_id, "refused", f"HyperFleet answers HTTP {answer.status_code}{what}", fix
            )
        return found

    def _failure(self, cluster_id: str, code: str, problem: str, fix: str) -> PullSecretError:
        return PullSecretError(
            code=f"hyperfleet-{code}", place=f"cluster {cluster_id}", problem=problem, fix=fix
        )


def _available(report: Mapping[str, Any]) -> Iterator[tuple[str, Availability]]:
    """Yield the Available condition of an adapter's report; unknown values count as Unknown."""
    for condition in report.get("conditions") or ():
        if condition.get("type") == "Available":
            said = condition.get("status")
            known = Availability(said) if said in set(Availability) else Availability.UNKNOWN
            yield str(report.get("adapter")), known


def _body(answer: Response) -> dict[str, Any]:
    try:
        found: Any = answer.json()
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def render_observed(observed: Mapping[str, Observed], observed_at: str) -> str:
    """Serialize the observations of clusters for stacks; `observed_at`: RFC 3339.

    A program calls only its providers, and a preview must see the same as the update after it.
    """
    clusters = {cluster: _document(one) for cluster, one in sorted(observed.items())}
    return json.dumps({"observedAt": observed_at, "clusters": clusters}, indent=2) + "\n"


def read_observed(text: str) -> Mapping[str, Observed]:
    """Parse the observations. Raises ValueError for another format."""
    try:
        clusters: Mapping[str, Any] = read_json(text)["clusters"]
        return {cluster: _observed(one) for cluster, one in clusters.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("this is not what `credfleet pull-secret observe` writes") from None


def _document(observed: Observed) -> dict[str, Any]:
    if not observed.known:
        return {"known": False}
    said = {"phase": observed.phase, "deletedTime": observed.deleted_time}
    told = {key: value for key, value in said.items() if value is not None}
    return {**told, "adapters": dict(sorted(observed.adapters.items()))}


def _observed(document: Mapping[str, Any]) -> Observed:
    adapters = {str(name): Availability(said) for name, said in document.get("adapters", {}).items()}
    phase, deleted = document.get("phase"), document.get("deletedTime")
    if deleted is not None:
        datetime.fromisoformat(deleted)  # raises TypeError or ValueError for an invalid time
    known = document.get("known", True) is True
    return Observed(adapters, None if phase is None else Phase(phase), deleted, known)
