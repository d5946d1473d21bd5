"""Watch a pool from outside, by a process of its own: each change of its Secrets' metadata and ConfigMaps.

Arguments: the kubeconfig, the namespace, the folder for what is seen, and the name of an object of each kind
whose coming ends the watch. Without a namespace it is all of them, with the data of Secrets. Prints
`watching` once everything from then on is seen, but what an API server wrote just before it was killed and
something else soon after.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from urllib3.exceptions import HTTPError

_GONE = (HTTPError, ConnectionError, ValueError)
_METADATA = "application/json;as={shape};g=meta.k8s.io;v=v1,application/json"


class Watch:
    """One kind of objects of a namespace, from a list on, without a gap."""

    def __init__(self, client: Any, namespace: str, kind: str) -> None:
        self._client, self._kind, self._is_whole = client, kind, not namespace
        self._path = f"/api/v1/namespaces/{namespace}/{kind}" if namespace else f"/api/v1/{kind}"
        self._known: dict[tuple[str, str], str] = {}
        self._revision = ""
        list(self._changed())

    def write(self, file: Path, last: str) -> None:
        """Write down each change until an object called `last` comes."""
        with file.open("w", encoding="utf-8") as to:
            for event in self._events():
                body = event["object"]
                metadata = body["metadata"]
                own = (metadata["namespace"], metadata["name"])
                kept = {key: metadata.get(key) for key in ("uid", "labels", "annotations")}
                after = None if event["type"] == "DELETED" else {**kept, "data": body.get("data")}
                self._known[own] = revision = metadata["resourceVersion"]
                if after is None:
                    del self._known[own]
                name = "/".join(own) if self._is_whole else own[1]
                seen = {"revision": int(revision), "kind": self._kind, "name": name}
                to.write(json.dumps({**seen, "after": after}) + "\n")
                if own[1] == last:
                    return

    def _events(self) -> Iterator[Any]:
        while True:  # the API server ends a watch from time to time; the next begins where that stood
            try:
                yield from self._watched()
            except _GONE:  # it is being started again, and has no past
                time.sleep(0.1)
                with suppress(*_GONE):
                    yield from self._changed()

    def _watched(self) -> Iterator[Any]:
        answer = self._ask("PartialObjectMetadata", watch="true", resourceVersion=self._revision)
        rest = b""
        for chunk in answer.stream(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if event.get("type") not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                    raise ConnectionError(line)
                self._revision = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    yield event

    def _changed(self) -> Iterator[Any]:
        """Yield what changed since it was seen last, and what is gone, as early as that can have been."""
        listed = json.loads(self._ask("PartialObjectMetadataList").data)
        if "items" not in listed:
            raise ConnectionError(listed)
        now = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in listed["items"]}
        for namespace, name in self._known.keys() - now.keys():
            metadata = {"namespace": namespace, "name": name, "resourceVersion": self._known[namespace, name]}
            yield {"type": "DELETED", "object": {"metadata": metadata}}
        for own, one in now.items():
            if self._known.get(own) != one["metadata"]["resourceVersion"]:
                yield {"type": "MODIFIED", "object": one}
        self._known = {own: one["metadata"]["resourceVersion"] for own, one in now.items()}
        self._revision = listed["metadata"]["resourceVersion"]

    def _ask(self, shape: str, **query: str) -> Any:
        is_less = self._kind == "secrets" and not self._is_whole
        accepts = _METADATA.format(shape=shape) if is_less else "application/json"
        method, url, headers, *_ = self._client.param_serialize(
            "GET",
            self._path,
            query_params=list(query.items()),
            header_params={"Accept": accepts},
            auth_settings=["BearerToken"],
        )
        pool = self._client.rest_client.pool_manager
        return pool.request(method, url, headers=headers, preload_content=False)


def main(kubeconfig: str, namespace: str, folder: Path, last: str) -> None:
    """Watch both kinds until the end."""
    from kubernetes.config import new_client_from_config

    client = new_client_from_config(kubeconfig)
    watches = {kind: Watch(client, namespace, kind) for kind in ("secrets", "configmaps")}
    sys.stdout.write("watching\n")
    sys.stdout.flush()
    threads = [Thread(target=one.write, args=(folder / kind, last)) for kind, one in watches.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
