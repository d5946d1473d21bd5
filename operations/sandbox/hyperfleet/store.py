"""What the stand-in keeps: every cluster with its reports, in one file that is replaced whole."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError

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
            kept = json.loads(file.read_text(encoding="utf-8"))
            self._clusters: dict[str, dict[str, Any]] = dict(kept["clusters"])
            self._reports: dict[str, dict[str, Report]] = dict(kept["reports"])
        except FileNotFoundError:
            self._clusters, self._reports = {}, {}
        except (ValueError, KeyError, TypeError) as error:
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

    def keep_cluster(self, id_: str, cluster: dict[str, Any]) -> None:
        """Keep a cluster as it is now; reports of it stay."""
        self._write({**self._clusters, id_: cluster}, self._reports)

    def keep_report(self, id_: str, report: Report) -> bool:
        """Put a report in the place of the adapter's last one; return whether it is its first."""
        reports = deepcopy(self._reports)
        of_cluster = reports.setdefault(id_, {})
        is_first = report["adapter"] not in of_cluster
        of_cluster[report["adapter"]] = report
        self._write(self._clusters, reports)
        return is_first

    def _write(self, clusters: dict[str, dict[str, Any]], reports: dict[str, dict[str, Report]]) -> None:
        document = json.dumps({"clusters": clusters, "reports": reports}, indent=1)
        files.replace(self._file, document, mode=files.PRIVATE)
        self._clusters, self._reports = clusters, reports
