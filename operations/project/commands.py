"""`credfleet init`: a project of one's own, which depends on the package; `credfleet add`: more in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from components.errors import CredfleetError
from operations.cli import completion
from operations.cli.answer import Answer
from operations.cli.command import command, group
from operations.cli.options import StackOption
from operations.project.words import PASSPHRASE, ROOMS, Cloud

_ROOM: str = "accountPool"

alone = typer.Typer()


@command(
    alone,
    "credfleet init fleet; cd fleet; make up",
    "credfleet init fleet --rooms accountPool,services --cloud azure",
    "credfleet init fleet --cluster fleet-prod --secrets-provider 'gcpkms://…'",
    "credfleet init --here    # in a Pulumi project that exists",
)
def init(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder of the new project.")
    ] = None,
    *,
    here: Annotated[
        bool, typer.Option("--here", help="Add to the Pulumi project in this folder what it lacks.")
    ] = False,
    rooms: Annotated[
        str | None,
        typer.Option(
            "--rooms",
            metavar="ROOM,…",
            autocompletion=completion.rooms,
            help="What stack dev shows: accountPool, asoCredentials, pullSecrets, services, secretStores.",
        ),
    ] = None,
    cloud: Annotated[Cloud | None, typer.Option("--cloud", help="Whose accounts the pool holds.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="CONTEXT", help="Context of your cluster, for which a stack prod is written."
        ),
    ] = None,
    secrets_provider: Annotated[
        str | None,
        typer.Option(
            "--secrets-provider",
            metavar="URL",
            help="Who encrypts stack prod: passphrase, awskms://…, azurekeyvault://…, gcpkms://….",
        ),
    ] = None,
) -> Answer:
    """Write a small Pulumi project of your own, which `make up` brings up at once.

    It depends on this package. On a terminal it asks what no option says. What is there stays as it is.
    """
    if (folder is None) != here:
        raise CredfleetError(
            code="usage",
            place="credfleet init",
            cause="it needs either the folder of a new project or --here, and not both",
            mend="credfleet init DIR, or in a project: credfleet init --here",
        )
    from operations.project.starting import Wanted, rooms_of, start

    rooms = _asked(rooms, f"Rooms that stack dev shows ({', '.join(ROOMS)})", _ROOM)
    named = rooms_of(rooms)
    cloud = Cloud(_asked(cloud, "Cloud of the pool's accounts", Cloud.AWS))  # asked until it is one
    cluster = _asked(cluster, "Context of your cluster, empty for the sandbox alone", "") or None
    question = "Who encrypts stack prod (passphrase, awskms://…, azurekeyvault://…, gcpkms://…)"
    if secrets_provider is None:
        secrets_provider = _asked(None, question, PASSPHRASE) if cluster else PASSPHRASE
    wanted = Wanted(rooms=named, cloud=cloud, cluster=cluster, secrets_provider=secrets_provider)
    return start(folder or Path(), wanted, here=here)


def somebody_is_there() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty()


def _asked(given: str | None, question: str, default: str) -> str:
    """Return what was given, else what a person on a terminal answers, else the default."""
    if given is not None:
        return given
    if not somebody_is_there():
        return default
    return str(typer.prompt(question, default=default, show_default=bool(default), err=True))


add_app = group(
    "Add to a stack's file: comments and order stay, what is wrong is refused, values are encrypted.",
    "credfleet add tenant umbrella --account aws",
    "credfleet add account aws-9 --type aws --id 999999999999 < key.json",
    "credfleet add service orders-db --namespace tenant-acme --values db.json",
)

ValuesOption = Annotated[
    str | None,
    typer.Option("--values", metavar="FILE", help="The file of the credential; without it, standard input."),
]
NamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NS",
        autocompletion=completion.namespaces,
        help="A tenant's namespace, or one that is there.",
    ),
]


@command(
    add_app,
    "credfleet add tenant umbrella",
    "credfleet add tenant umbrella --account aws --account data=gcp --stack prod",
)
def tenant(
    name: Annotated[str, typer.Argument(help="The tenant.")],
    *,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", metavar="NS", help="Its namespace; without it, tenant-NAME."),
    ] = None,
    account: Annotated[
        list[str] | None,
        typer.Option(
            "--account",
            metavar="[SLOT=]TYPE",
            autocompletion=completion.types,
            help="An account that it claims; the slot is main without one. Repeat it.",
        ),
    ] = None,
    stack: StackOption = "dev",
) -> Answer:
    """Add a tenant: its namespace, and the accounts it claims."""
    from operations.project import adding

    return adding.add(stack, adding.tenant(name, namespace, account or ()), None)


@command(
    add_app,
    "credfleet add account aws-9 --type aws --id 999999999999 < key.json",
    "credfleet add account azure-9 --type azure --id GUID --values sp.json",
)
def account(
    name: Annotated[str, typer.Argument(help="The account: the name of its Secret in the pool.")],
    *,
    type_: Annotated[
        str, typer.Option("--type", "-t", autocompletion=completion.types, help="Type, such as aws.")
    ],
    id_: Annotated[str, typer.Option("--id", help="Its id at the cloud.")],
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", autocompletion=completion.tenants, help="The one tenant that may claim it."),
    ] = None,
    values: ValuesOption = None,
    stack: StackOption = "dev",
) -> Answer:
    """Add an account to the pool, with its credential: a JSON object, whose fields its Secret has."""
    from operations.project import adding

    return adding.add(stack, adding.account(name, type_, id_, tenant), values)


@command(
    add_app,
    "credfleet add service orders-db -n tenant-acme --binding orders < db.json",
)
def service(
    name: Annotated[str, typer.Argument(help="The service.")],
    *,
    namespace: NamespaceOption,
    binding: Annotated[
        list[str] | None,
        typer.Option("--binding", metavar="APP", help="An application that is bound to it. Repeat it."),
    ] = None,
    values: ValuesOption = None,
    stack: StackOption = "dev",
) -> Answer:
    """Add a service that somebody else runs, with its credential: a JSON object."""
    from operations.project import adding

    return adding.add(stack, adding.service(name, namespace, binding or ()), values)


@command(
    add_app,
    "credfleet add pull-secret cls-0a1b --name east --project acme-1 < pull.json",
    "credfleet add pull-secret cls-0a1b --name east --project acme/gcp < p.json",
    name="pull-secret",
)
def pull_secret(
    cluster: Annotated[str, typer.Argument(metavar="ID", help="Id of the cluster at HyperFleet.")],
    *,
    name: Annotated[str, typer.Option("--name", help="Name of the cluster, for people.")],
    project: Annotated[
        str, typer.Option("--project", help="Google's project, or TENANT/SLOT of a claimed account.")
    ],
    generation: Annotated[int, typer.Option("--generation", help="Generation of the cluster.")] = 1,
    values: ValuesOption = None,
    stack: StackOption = "dev",
) -> Answer:
    """Add a cluster with its pull secret, the JSON that a registry gives."""
    from operations.project import adding

    return adding.add(stack, adding.pull_secret(cluster, name, project, generation), values)


@command(
    add_app,
    "credfleet add aso-credential team-a --subscription ID \\",
    "    --tenant-id ID --client-id ID < secret.txt",
    name="aso-credential",
)
def aso_credential(
    namespace: Annotated[
        str,
        typer.Argument(
            metavar="NS", autocompletion=completion.namespaces, help="The namespace of the resources."
        ),
    ],
    *,
    subscription: Annotated[str, typer.Option("--subscription", metavar="ID", help="Azure subscription.")],
    tenant_id: Annotated[str, typer.Option("--tenant-id", metavar="ID", help="Tenant of Entra.")],
    client_id: Annotated[
        str, typer.Option("--client-id", metavar="ID", help="Client id of the application.")
    ],
    certificate: Annotated[
        bool, typer.Option("--certificate", help="The value is a certificate with its key, PEM or PKCS12.")
    ] = False,
    values: ValuesOption = None,
    stack: StackOption = "dev",
) -> Answer:
    """Add the credential of Azure Service Operator's resources in a namespace: a client secret."""
    from operations.project import adding

    made = adding.aso_credential(namespace, subscription, tenant_id, client_id, certificate=certificate)
    return adding.add(stack, made, values)


@command(
    add_app,
    "credfleet add store shared -n tenant-acme --kind GCPSM --spec gcpsm.yaml",
    "credfleet add store ci -n tenant-acme --kind GitLab --spec s.yaml --values f",
)
def store(
    name: Annotated[str, typer.Argument(help="The store, and its provider.")],
    *,
    namespace: NamespaceOption,
    kind: Annotated[str, typer.Option("--kind", help="Kind of the provider, such as GCPSM.")],
    spec: Annotated[
        Path | None, typer.Option("--spec", metavar="FILE", help="What the provider is told, as YAML.")
    ] = None,
    values: Annotated[
        str | None,
        typer.Option("--values", metavar="FILE", help="The credential it logs in with; - is standard input."),
    ] = None,
    stack: StackOption = "dev",
) -> Answer:
    """Add a secret store of a namespace, on a provider of its own."""
    from operations.project import adding

    made = adding.store(name, namespace, kind, spec, logs_in=values is not None)
    return adding.add(stack, made, values)
