"""The seal of a pool: as long as an account is in use, nothing of the pool is deleted.

It depends on everything the pool is made of, so a destroy comes to it first, and past it only when nobody
would lose an account (decision 13). The path of this module and the names of its classes are written into
the state of stacks; they never move. Import-pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulumi import Input, Output, ResourceOptions, RunError
from pulumi.dynamic import (
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)

from components.account_pool.declared import blocked
from components.account_pool.pool import Pool
from components.connection import ClusterTarget
from components.dynamic import Properties, compared, kept
from components.errors import CredfleetError

_INPUTS: Final = ("namespace", "allowDestroy")
_SHOWN: Final = 5
"""Accounts named in a refusal; the rest are counted, since the text stands below a traceback."""


class PoolSealProvider(ResourceProvider):
    """Does nothing until the pool is to be deleted; one instance serves all threads."""

    _cluster: str | None = None

    def configure(self, req: ConfigureRequest) -> None:
        """Learn which cluster is meant from `credfleet:cluster`."""
        self._cluster = req.config.get("cluster")

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare both inputs; a pool in another namespace is another pool."""
        return compared(_olds, _news, _INPUTS, identity=("namespace",))

    def create(self, props: Properties) -> CreateResult:
        """Remember which pool it is."""
        return CreateResult(str(props["namespace"]), kept(props, _INPUTS))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell which pool it is: nothing of the seal is in the cluster."""
        return ReadResult(id_, kept(props, _INPUTS), kept(props, _INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Remember whether the pool may be thrown away."""
        return UpdateResult(kept(_news, _INPUTS))

    def delete(self, _id: str, _props: Properties) -> None:
        """Let the pool go, unless an account in it is blocked; members nobody declared count as well."""
        namespace = str(_props["namespace"])
        try:
            census = Pool.census(ClusterTarget.parse(self._cluster), namespace)
        except CredfleetError as error:
            raise RunError(f"what is in use is unknown: {error}") from None
        in_use = list(blocked(census, allow_destroy=bool(_props.get("allowDestroy"))))
        if in_use:
            named = "; ".join(f"{name}: {reason}" for name, reason in in_use[:_SHOWN])
            more = f"; and {len(in_use) - _SHOWN} more" if len(in_use) > _SHOWN else ""
            raise RunError(f"pool {namespace} is in use, nothing of it was deleted\n→ {named}{more}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSealArgs:
    """namespace: of the pool. allow_destroy: dirty accounts may go uncleaned."""

    namespace: Input[str]
    allow_destroy: Input[bool] = False


class PoolSeal(Resource, module="credfleet", name="PoolSeal"):
    """Stands before everything a pool is made of when the pool is to be deleted."""

    namespace: Output[str]

    def __init__(self, name: str, args: PoolSealArgs, opts: ResourceOptions | None = None) -> None:
        props = {"namespace": args.namespace, "allowDestroy": args.allow_destroy}
        super().__init__(PoolSealProvider(), name, props, opts)
