"""`credfleet aso`: how Azure Service Operator will treat manifests, before they are applied."""

from pathlib import Path
from typing import Annotated

import typer

from components.aso_credentials.keys import OPERATOR_ACCOUNT, OPERATOR_NAMESPACE
from operations.cli.answer import CommandResult
from operations.cli.command import command, group
from operations.cli.options import ClusterOption
from operations.pool.access import ClusterStackOption, ContextOption, cluster_of

app = group("Show which credential Azure Service Operator uses.", "credfleet aso explain docs/examples/aso")


@command(
    app,
    "credfleet aso explain docs/examples/aso",
    "credfleet aso explain team-a.yaml secrets.yaml --strict --output json",
    "kubectl get secrets,resourcegroups -A -o yaml | credfleet aso explain -",
    "credfleet aso explain team-a.yaml --live --stack prod",
)
def explain(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Kubernetes YAML, or a folder of it. - is standard input."),
    ],
    operator_namespace: Annotated[
        str, typer.Option(metavar="NAMESPACE", help="Namespace of the operator.")
    ] = OPERATOR_NAMESPACE,
    operator_account: Annotated[
        str, typer.Option(metavar="NAME", help="ServiceAccount of the operator.")
    ] = OPERATOR_ACCOUNT,
    multi_env: Annotated[
        bool, typer.Option("--multi-env", help="The operator runs with ALLOW_MULTI_ENV_MANAGEMENT=true.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="The operator runs with workload identity in strict mode.")
    ] = False,
    stack: ClusterStackOption = None,
    live: Annotated[
        bool, typer.Option("--live", help="Read the Secrets from the cluster instead of the files.")
    ] = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
) -> CommandResult:
    """Explain which Secret each ASO resource will use, how, and what is wrong.

    No value of a Secret is shown. Exit code 1: ASO would reject a resource.
    """
    from components.aso_credentials.resolution import Operator
    from operations.aso.explain import explain_files, operator_of

    operator = Operator(operator_namespace, multi_env, strict, operator_account)
    if stack is not None and operator != Operator():
        raise typer.BadParameter("Give --stack or the options of the operator, not both.")
    operator = operator if stack is None else operator_of(stack)
    return explain_files(files, operator, cluster_of(stack, kubeconfig, context) if live else None)
