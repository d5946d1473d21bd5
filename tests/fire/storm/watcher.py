"""Watch a pool from outside, by a process of its own: each change of its Secrets' metadata and ConfigMaps.

Arguments: the kubeconfig, the namespace, the folder for what is seen, and the name of an object of each kind
whose coming ends the watch. Prints `watching` once everything from then on is seen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

_METADATA = "application/json;as={shape};g=meta.k8s.io;v=v1,application/json"


class Watch:
    """One kind of objects of a namespace, from a list on, without a gap."""

    def __init__(self, client: Any, namespace: str, kind: str) -> None:
        self._client, self._kind = client, kind
        self._path = f"/api/v1/namespaces/{namespace}/{kind}"
        listed = self._ask("PartialObjectMetadataList").data
        self._revision = str(json.loads(listed)["metadata"]["resourceVersion"])

    def write(self, file: Path, last: str) -> None:
        """Write down each change until an object called `last` comes."""
        with file.open("w", encoding="utf-8") as to:
            for event in self._events():
                body = event["object"]
                metadata = body["metadata"]
                self._revision = metadata["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                kept = {key: metadata.get(key) for key in ("uid", "labels", "annotations")}
                after = None if event["type"] == "DELETED" else {**kept, "data": body.get("data")}
                seen = {"revision": int(self._revision), "kind": self._kind, "name": metadata["name"]}
                to.write(json.dumps({**seen, "after": after}) + "\n")
                if metadata["name"] == last:
                    return

    def _events(self) -> Iterator[Any]:
        while True:  # the API server ends a watch from time to time; the next begins where that stood
            answer = self._ask("PartialObjectMetadata", watch="true", resourceVersion=self._revision)
            rest = b""
            for chunk in answer.stream(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise RuntimeError(event["object"])
                    yield event

    def _ask(self, shape: str, **query: str) -> Any:
        accepts = _METADATA.format(shape=shape) if self._kind == "secrets" else "application/json"
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
