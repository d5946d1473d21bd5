"""What the stand-in keeps: all resources in one file, replaced whole at every write."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.cloud.resource_manager.ids import PathKind

Document: TypeAlias = dict[str, Any]
"""A resource as it is answered: id, name, type, properties, and a location and tags where it has them."""


class ResourceStore:
    """All resources, in memory and in a file: what is answered has been written before."""

    def __init__(self, file: Path) -> None:
        """Read what an earlier process left.

        Raises SandboxError `state-unreadable`.
        """
        self._file = file
        try:
            documents = json.loads(file.read_text(encoding="utf-8"))
            self._documents: dict[str, Document] = {each["id"].lower(): each for each in documents}
        except FileNotFoundError:
            self._documents = {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SandboxError(
                code="state-unreadable",
                place=str(file),
                problem=f"it holds no resources of the Resource Manager stand-in ({type(error).__name__})",
                fix="remove the file; the resources are gone then",
            ) from None

    def get(self, id_: str) -> Document | None:
        """Return a resource by its id, in any case."""
        return self._documents.get(id_.lower())

    def of(self, kind: PathKind, below: str = "") -> Iterator[Document]:
        """Return the resources of a kind whose ids begin with another id."""
        for key, document in self._documents.items():
            if document["type"] == kind.value and key.startswith(below.lower()):
                yield document

    def save(self, document: Document) -> None:
        """Keep a resource as it is now."""
        self._write({**self._documents, document["id"].lower(): document})

    def delete(self, id_: str) -> None:
        """Forget a resource, and all that is in it."""
        key = id_.lower()
        left = {
            other: document
            for other, document in self._documents.items()
            if other != key and not other.startswith(f"{key}/")
        }
        self._write(left)

    def _write(self, documents: dict[str, Document]) -> None:
        files.replace(self._file, json.dumps(list(documents.values()), indent=1), mode=files.PRIVATE)
        self._documents = documents
