"""Looks at a pool: `credfleet pool explain`, `outlook` and `metrics`, and `credfleet doctor`.

Adds to the commands of `pool_commands`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from operations.cli.answer import Form, OutputOption, examples, note_json
from operations.cli.options import ClusterOption, ContextOption, NamespaceOption, StackOption
from operations.pool.commands import (
    HolderOption,
    HyperscalerOption,
    HyperscalerRegionOption,
    PartitionOption,
    PlanOption,
    RegionOption,
    RulesOption,
    SlotOption,
    TenantOption,
    TypeOption,
    app,
)


class MetricsForm(StrEnum):
    """How metrics are written to standard output."""

    PROMETHEUS = "prometheus"
    JSON = "json"


def _note_form(context: typer.Context, form: MetricsForm) -> MetricsForm:
    note_json(context, form is MetricsForm.JSON)
    return form


@app.command(
    epilog=examples(
        "credfleet pool explain --tenant acme --type aws",
        "credfleet pool explain --tenant acme --plan gcp --region cf-sa30",
        "credfleet pool explain --tenant acme --type aws --partition eu-access=true --output json",
    )
)
def explain(
    *,
    tenant: TenantOption,
    namespace: NamespaceOption = "account-pool",
    type_: TypeOption = None,
    plan: PlanOption = None,
    region: RegionOption = None,
    hyperscaler_region: HyperscalerRegionOption = None,
    hyperscaler: HyperscalerOption = None,
    slot: SlotOption = "0",
    partition: PartitionOption = None,
    holder: HolderOption = None,
    stack: RulesOption = "dev",
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Tell why a claim gets an account, or none.

    Shows the rule that chose the pool, the claim there is, and every account of the type with its reason.
    """
    from components.account_pool.rules import Request
    from operations.pool.access import Where
    from operations.pool.claims import Wanted
    from operations.pool.explain import show

    planned = Request(plan, region, hyperscaler_region, hyperscaler) if plan else None
    where = Where(namespace, kubeconfig, context)
    wanted = Wanted(where, tenant, type_, planned, slot, partition or [], holder, stack)
    show(wanted, as_json=output is Form.JSON)


@app.command(epilog=examples("credfleet pool outlook", "credfleet pool outlook --stack prod --output json"))
def outlook(
    *,
    stack: StackOption = "dev",
    organization: Annotated[
        str, typer.Option("--organization", help="Organization of the stack, part of its holder ids.")
    ] = "organization",
    kubeconfig: ClusterOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Tell what all claims of a stack can expect of the pool.

    A forecast, never a guarantee: others claim and release meanwhile. Pool and cluster are the stack's.
    """
    from operations.pool.outlook import show

    show(stack, organization, kubeconfig, as_json=output is Form.JSON)


@app.command(
    epilog=examples(
        "credfleet pool metrics",
        "credfleet pool metrics > pool.prom.new && mv pool.prom.new /var/lib/node_exporter/pool.prom",
    )
)
def metrics(
    *,
    namespace: NamespaceOption = "account-pool",
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: Annotated[
        MetricsForm,
        typer.Option("--output", "-o", callback=_note_form, is_eager=True, help="Form of the answer."),
    ] = MetricsForm.PROMETHEUS,
) -> None:
    """Print the pool as gauges for Prometheus.

    By type and partition, zeros included, so that an alert on an empty pool has a series.
    """
    from operations.pool.access import Where
    from operations.pool.metrics import show

    show(Where(namespace, kubeconfig, context), as_json=output is MetricsForm.JSON)


def doctor(
    *,
    namespace: NamespaceOption = "account-pool",
    stack: Annotated[
        str | None,
        typer.Option("--stack", "-s", help="Look at the pool and the cluster that a stack means."),
    ] = None,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Find what is wrong with a pool, and the command that mends it.

    Looks at the cluster, your rights, the admission policies, the pool, its accounts and claims.
    Writes nothing.

    Exit codes: 0 all is well, 1 something is wrong.
    """
    from operations.pool.doctor import show

    show(namespace, stack, kubeconfig, context, as_json=output is Form.JSON)
