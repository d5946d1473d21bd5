"""A wipe of an account whose steps stand in one order with all that the pool was.

Run as `python -m tests.fire.storm.wipe NAMESPACE ACCOUNT`: each step writes ConfigMap wiped.ACCOUNT.
"""

import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.fire.storm.cloud import call
from tests.fire.storm.history import WIPED


def main(namespace: str, account: str) -> None:
    """Take up to a second; some wipes leave a process behind that would go on for long."""
    kept = Path(tempfile.mkdtemp(), "kubeconfig")  # as one that has read all it needs, and outlives its run
    os.environ["KUBECONFIG"] = str(shutil.copy(os.environ["KUBECONFIG"], kept))
    name = f"{WIPED}{account}"
    is_left = random.random() < 0.3
    if is_left and os.fork():
        return
    for step in range(300 if is_left else random.randint(1, 10)):
        body = {"metadata": {"name": name}, "data": {"step": str(step)}}
        call(f"/api/v1/namespaces/{namespace}/configmaps/{name}", body)
        time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
