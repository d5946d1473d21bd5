"""Which keys of the operator's settings its own chart hands to its pods, read of the chart as published.

`python -m tests.witness.chart VERSION COMMIT FILE` writes the entry of a version anew from FILE, the chart's
archive as it lies at that commit of the operator's repository.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from tests.witness.published import keep

KEPT: Final = Path(__file__).parent / "aso-chart.json"
CHART: Final[dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8"))
_HANDED: Final = re.compile(r"secretKeyRef:\n((?: +(?:key|name|optional): \S+\n)+)")
_ARCHIVE: Final = b"\x1f\x8b"


def template(published: bytes) -> str:
    """Return the chart's Deployment, of its archive or as it lies in the repository."""
    if not published.startswith(_ARCHIVE):
        return published.decode()
    with tarfile.open(fileobj=BytesIO(published)) as archive:
        found = archive.extractfile(CHART["template"].removeprefix("v2/charts/"))
        return found.read().decode() if found else ""


def keys_of(text: str) -> dict[str, list[str]]:
    """Return which keys of the Secret a chart's template hands to its pods, and which may be missing."""
    read = [dict(line.split(": ") for line in lines.splitlines()) for lines in _HANDED.findall(text)]
    handed = [{key.strip(): value for key, value in each.items()} for each in read]
    ours = [each for each in handed if each["name"] == CHART["secret"]]
    return {
        "required": sorted(each["key"] for each in ours if "optional" not in each),
        "optional": sorted(each["key"] for each in ours if "optional" in each),
    }


def entry(version: str, commit: str, published: bytes) -> Mapping[str, Any]:
    """Return what is kept of a version: where it was published, its digest, and the keys."""
    text = template(published)
    if f"app.kubernetes.io/version: v{version}\n" not in text:
        raise ValueError(f"it is no chart of {version}")
    archive = f"v2/charts/azure-service-operator-{version}.tgz"
    return {
        "file": archive if published.startswith(_ARCHIVE) else CHART["template"],
        "commit": commit,
        "sha256": hashlib.sha256(published).hexdigest(),
        **keys_of(text),
    }


def main(version: str, commit: str, file: str) -> None:
    """Write the entry of a version anew."""
    published = Path(file).read_bytes()
    keep(published)
    versions = {**CHART["versions"], version: entry(version, commit, published)}
    ordered = dict(sorted(versions.items(), key=lambda each: [*map(int, each[0].split("."))]))
    KEPT.write_text(json.dumps({**CHART, "versions": ordered}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
