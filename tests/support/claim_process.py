"""Claims made in processes of their own: several at once, or one that is killed at a chosen call."""

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.kubernetes_api import KubernetesApi
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.pool import CLAIMS, Pool
from components.account_pool.core.records import Claimed
from components.connection import ClusterTarget, Connection, Reply, connect
from components.errors import PoolError

REQUEST = ClaimRequest("acme", "aws", holder="h", policy=Policy.RELEASE)


def processes() -> ForkServerContext:
    """Return a context whose processes start fast, because everything is imported before they fork."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.claim_process", "kubernetes.config", "urllib3"])
    return context


def claim_all(
    kubeconfig: Path, namespace: str, shares: Sequence[Sequence[ClaimRequest]]
) -> list[Claimed | tuple[str, str]]:
    """Claim each share in a process of its own, each request of it in a thread, all starting together."""
    context = processes()
    barrier = context.Barrier(len(shares))
    answers = context.SimpleQueue()
    workers = [
        context.Process(target=_claim_share, args=(kubeconfig, namespace, list(share), barrier, answers))
        for share in shares
    ]
    for worker in workers:
        worker.start()
    gathered = [answer for _ in workers for answer in answers.get()]
    for worker in workers:
        worker.join()
    return gathered


def _claim_share(
    kubeconfig: Path, namespace: str, share: list[ClaimRequest], barrier: Barrier, answers: Any
) -> None:
    pool = Pool(_api(kubeconfig, namespace), namespace, PoolConfigMap())

    def one(request: ClaimRequest) -> Claimed | tuple[str, str]:
        try:
            return pool.claim(request)
        except PoolError as error:
            return error.code, str(error)

    barrier.wait()
    with ThreadPoolExecutor(len(share)) as threads:
        answers.put(list(threads.map(one, share)))
    pool.flush()


class Mortal(Connection):
    """A connection that kills its process after a number of calls, before their answer is seen."""

    def __init__(self, real: Connection, calls: int) -> None:
        self._real = real
        self._left = calls

    def call(self, method: str, path: str, **rest: Any) -> Reply:
        """Make the call, and die if it was the last."""
        reply = self._real.call(method, path, **rest)
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return reply


def _api(kubeconfig: Path, namespace: str) -> KubernetesApi:
    return KubernetesApi(connect(ClusterTarget(kubeconfig=str(kubeconfig))), namespace, CLAIMS)
