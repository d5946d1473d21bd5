"""What the stand-in keeps: every cluster with its reports, in one file that is replaced whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError

from components.documents import read_json
from operations.sandbox.hyperfleet.clusters import is_gone
from operations.sandbox.hyperfleet.reports import Report


class Store:
    """Clusters and reports, in memory and in a file: what is answered has been written before."""

    def __init__(self, file: Path) -> None:
        """Read what an earlier process left.

        Raises:
            SandboxError: `state-unreadable`.
        """
        self._file = file
        try:
            kept = read_json(file.read_text(encoding="utf-8"))
            self._clusters = {id_: _known(one) for id_, one in kept["clusters"].items()}
            self._reports: dict[str, dict[str, Report]] = dict(kept["reports"])
        except FileNotFoundError:
            self._clusters, self._reports = {}, {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SandboxError(
                code="state-unreadable",
                place=str(file),
                cause=f"it holds no clusters of the HyperFleet stand-in ({type(error).__name__})",
                mend="remove the file; the next update brings the stack's clusters again",
            ) from None

    def cluster(self, id_: str) -> dict[str, Any] | None:
        """Return a cluster."""
        return self._clusters.get(id_)

    def reports(self, id_: str) -> dict[str, Report]:
        """Return what adapters last reported of a cluster, by adapter, in their order."""
        return dict(sorted(self._reports.get(id_, {}).items()))

    def bring(self, id_: str, given: dict[str, Any]) -> None:
        """Keep a cluster by its name and generation; reports of it stay, and so does its deletion."""
        known = self._clusters.get(id_, {"created_time": now()})
        told = {"name": str(given.get("name", id_)), "generation": int(given.get("generation", 1))}
        self._write({**self._clusters, id_: {**known, **told, "updated_time": now()}}, self._reports)

    def delete(self, id_: str) -> None:
        """Begin to delete a cluster, which is another generation of it; one that is deleted stays so."""
        known = self._clusters.get(id_)
        if known is not None and "deleted_time" not in known:
            deleted = {**known, "generation": known["generation"] + 1, "deleted_time": now()}
            self._write({**self._clusters, id_: deleted}, self._reports)

    def keep_report(self, id_: str, report: Report) -> Report:
        """Put a report in the place of the adapter's last one; a cluster that waited for it alone is gone."""
        of_cluster = {**self._reports.get(id_, {}), report["adapter"]: report}
        clusters, reports = {**self._clusters}, {**self._reports, id_: of_cluster}
        if is_gone(clusters[id_], of_cluster):
            del clusters[id_], reports[id_]
        self._write(clusters, reports)
        return report

    def _write(self, clusters: dict[str, dict[str, Any]], reports: dict[str, dict[str, Report]]) -> None:
        document = json.dumps({"clusters": clusters, "reports": reports}, indent=1)
        files.replace(self._file, document, mode=files.PRIVATE)
        self._clusters, self._reports = clusters, reports


def now() -> str:
    """Return the present moment, RFC 3339."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _known(kept: dict[str, Any]) -> dict[str, Any]:
    """Read a cluster that was kept, also by a stand-in that kept what it was brought as it was."""
    fields = ("name", "generation", "created_time", "updated_time", "deleted_time")
    since = now()
    return {"generation": 1, "created_time": since, "updated_time": since} | {
        key: kept[key] for key in fields if key in kept
    }
