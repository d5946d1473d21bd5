"""A cloud whose keys are in ConfigMaps, so that their ends stand in one order with all that Secrets had.

Run as `cloud.py NAMESPACE ACCOUNT VERB`, the program for keys.
"""

import json
import os
import ssl
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen


def call(path: str, body: Any = None) -> Any:
    """Read an object, or replace it if it is as it was read."""
    config = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    trust = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}
    text = None if body is None else json.dumps(body).encode()
    request = Request(cluster["server"] + path, text, headers, method="GET" if body is None else "PUT")
    with urlopen(request, timeout=10, context=trust) as answer:
        return json.load(answer)


def main(namespace: str, account: str, verb: str) -> None:
    """Answer a verb."""
    asked, path = json.load(sys.stdin), f"/api/v1/namespaces/{namespace}/configmaps/{account}"
    cloud, own = call(path), asked["credential"]["key"]
    data, alive = cloud["data"], cloud["data"]["alive"].split()
    if own not in alive:
        sys.exit(10)
    if verb in ("create", "revoke"):
        alive = [key for key in alive if key.rpartition("-")[2] == asked["keyId"]]
        if verb == "create":
            data["made"] = str(int(data["made"]) + 1)
            alive.append(own := f"sentinel-{account}-{data['made']}")
        data["alive"] = " ".join(alive)
        call(path, cloud)
    named = {"accountId": account.rpartition("-")[2].zfill(12), "keyId": own.rpartition("-")[2]}
    sys.stdout.write(json.dumps({**named, "credential": {"key": own}}))


if __name__ == "__main__":
    main(*sys.argv[1:])
