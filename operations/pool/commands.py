"""`credfleet pool`: who has which account, and claims from the command line, by the core the program runs."""

from __future__ import annotations

from typing import Annotated

import typer

from operations.cli.answer import Form, OutputOption, examples
from operations.cli.options import ClusterOption, ContextOption, NamespaceOption, YesOption

app = typer.Typer(
    help="See a pool of accounts; claim and release one by hand.",
    epilog=examples(
        "credfleet pool status",
        "credfleet pool claim --namespace account-pool --type aws --tenant acme",
    ),
    no_args_is_help=True,
)

TypeOption = Annotated[
    str | None, typer.Option("--type", "-t", help="Type of the account: aws, gcp_cf-sa30.")
]
PlanOption = Annotated[
    str | None,
    typer.Option("--plan", help="Plan, instead of a type: rules of a stack choose."),
]
RegionOption = Annotated[str | None, typer.Option("--region", help="Platform region of the plan.")]
HyperscalerRegionOption = Annotated[
    str | None, typer.Option("--hyperscaler-region", help="Hyperscaler region of the plan.")
]
HyperscalerOption = Annotated[
    str | None, typer.Option("--hyperscaler", help="Cloud, for a plan that runs on any.")
]
RulesOption = Annotated[str, typer.Option("--stack", "-s", help="The stack whose rules serve the plan.")]
TenantOption = Annotated[str, typer.Option("--tenant", help="The tenant.")]
SlotOption = Annotated[str, typer.Option("--slot", help="Which of the tenant's accounts of this type.")]
PartitionOption = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="KEY=VALUE", help="Part of the pool; repeat it for each key."),
]
HolderOption = Annotated[
    str | None, typer.Option("--holder", help="Who uses the account; `cli` when it is left out.")
]


@app.command(
    epilog=examples(
        "credfleet pool status",
        "credfleet pool status --namespace account-pool --output json",
    )
)
def status(
    *,
    namespace: NamespaceOption = "account-pool",
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show who has which account since when, and what is free.

    By type and partition: free, claimed, dirty, being cleaned, quarantined.
    """
    from operations.pool.access import Where
    from operations.pool.status import show

    show(Where(namespace, kubeconfig, context), as_json=output is Form.JSON)


@app.command(
    epilog=examples(
        "credfleet pool claim --namespace account-pool --type aws --tenant acme",
        "credfleet pool claim -n account-pool -t aws --tenant acme --slot eu --partition eu-access=true",
        "credfleet pool claim -n account-pool --plan trial --tenant acme --wait 10m --output json",
    )
)
def claim(
    *,
    namespace: NamespaceOption,
    tenant: TenantOption,
    type_: TypeOption = None,
    plan: PlanOption = None,
    region: RegionOption = None,
    hyperscaler_region: HyperscalerRegionOption = None,
    hyperscaler: HyperscalerOption = None,
    slot: SlotOption = "0",
    partition: PartitionOption = None,
    holder: HolderOption = None,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="TIME", help="Wait so long for a free account: 30s, 10m, 2h."),
    ] = None,
    stack: RulesOption = "dev",
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Give a tenant an account: the one it has, or a free one.

    Asking again gives the same account.

    Exit codes: 3 no account is free, 4 the pool or the request makes no sense, 5 not allowed.
    """
    from components.account_pool.rules import Request
    from operations.pool import claims
    from operations.pool.access import Where

    planned = Request(plan, region, hyperscaler_region, hyperscaler) if plan else None
    where = Where(namespace, kubeconfig, context)
    wanted = claims.Wanted(where, tenant, type_, planned, slot, partition or [], holder, stack)
    claims.claim(wanted, wait=wait, as_json=output is Form.JSON)


@app.command(
    epilog=examples(
        "credfleet pool release --namespace account-pool --type aws --tenant acme",
        "credfleet pool release -n account-pool -t aws --tenant acme --holder ci --yes",
    )
)
def release(
    *,
    namespace: NamespaceOption,
    tenant: TenantOption,
    type_: TypeOption = None,
    plan: PlanOption = None,
    region: RegionOption = None,
    hyperscaler_region: HyperscalerRegionOption = None,
    hyperscaler: HyperscalerOption = None,
    slot: SlotOption = "0",
    partition: PartitionOption = None,
    holder: HolderOption = None,
    yes: YesOption = False,
    stack: RulesOption = "dev",
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Give an account back.

    What becomes of it is the claim's release policy. Releasing twice is no error.

    The account of another holder, one of a stack for example, is given back only with --holder and --yes.
    """
    from components.account_pool.rules import Request
    from operations.pool import claims
    from operations.pool.access import Where

    planned = Request(plan, region, hyperscaler_region, hyperscaler) if plan else None
    where = Where(namespace, kubeconfig, context)
    wanted = claims.Wanted(where, tenant, type_, planned, slot, partition or [], holder, stack)
    claims.release(wanted, yes=yes, as_json=output is Form.JSON)
