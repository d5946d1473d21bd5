"""The components as programs in other languages have them; what they are is told by their types alone.

The host of the SDK (`pulumi.provider.experimental`) wants arguments as typed dictionaries of texts, numbers
and lists, and would hand a dictionary to a component; ours have dataclasses with nouns of the configuration
and other components in them. Types and names are those of Python programs: a stack may change its language.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, get_args, get_origin

import pulumi

import components
from components.account_pool.model import ClaimRequest
from components.connection import ClusterTarget
from components.credentials import Credentials
from components.dynamic import camel_case
from components.errors import Problem
from components.holding import holder_here
from components.secret_stores.component import SecretStoresArgs
from components.settings.cloud_sdks import review_sdk
from components.settings.stack import Settings
from credfleet.remote.shapes import Shapes, Spec, hints_of

if TYPE_CHECKING:
    from components.pull_secret.component import PullSecretArgs

PACKAGE: Final = "credfleet"
SCHEMA: Final = Path(str(components.__file__)).parents[1] / "docs" / "schema" / "package.json"
"""The schema of all, whatever is installed."""

_COMPONENTS: Final = {
    "account_pool.component": ("AccountPool", "TenantAccounts"),
    "aso_credentials.component": ("AsoGlobalSettings", "AsoNamespaceCredential", "AsoResourceCredential"),
    "aso_credentials.identity": ("AsoWorkloadIdentity",),
    "aso_credentials.resources": ("AsoResources",),
    "aso_credentials.service_account": ("AsoServiceAccount",),
    "fleet": ("Fleet",),
    "projection.component": ("TenantDeliveries",),
    "pull_secret.component": ("PullSecret",),
    "secret_stores.component": ("SecretStores",),
    "service_credentials.component": ("ServiceApp", "ServiceBinding", "UserProvidedService"),
}

_SDKS: Final = {"AsoWorkloadIdentity": "azure", "PullSecret": "gcp"}
"""Those that need the SDK of a cloud."""

_UNSAID: Final = frozenset(
    {"begun", "composed", "copied", "declared", "elsewhere", "foreseen", "ready", "source", "start", "waits"}
)
"""What only a program knows that declares several components together."""


def package_shapes() -> Shapes:
    """Return the types of the package, of which none is walked yet."""
    return Shapes(
        PACKAGE,
        given={
            ClusterTarget: lambda: ClusterTarget.parse(pulumi.Config(PACKAGE).get("cluster")),
            Credentials: lambda: Settings.load().credentials,
            Settings: Settings.load,
        },
        missing={(ClaimRequest, "holder"): lambda said: holder_here(said["tenant"], said.get("slot", "0"))},
        unsaid=_UNSAID,
    )


class Remote:
    """One component: what programs say of it, and what it tells them."""

    def __init__(self, cls: type[pulumi.ComponentResource], shapes: Shapes) -> None:
        self.cls, self._shapes = cls, shapes
        said = (
            hint for name, hint in hints_of(cls.__init__).items() if name not in ("name", "opts", "return")
        )
        self._args: Any = next(said)
        self._whole = shapes.value_of(self._args)
        self._outputs = {
            name: shapes.of(hint) for name, hint in _annotated(cls).items() if not _is_of_resources(hint)
        }

    @property
    def token(self) -> str:
        """The type, as `registerResource` sends it and states have it."""
        return str(vars(self.cls)["TYPE"])

    @property
    def spec(self) -> Spec:
        """Return the resource as a schema has it."""
        parts = () if self._whole else self._shapes.parts(self._args)
        said = [(part.key, part.spec, part.required) for part in parts if not part.shape.given]
        inputs = self._shapes.object_spec(self._args, said)
        told = [
            (camel_case(name), _eventual(one.spec), not one.optional) for name, one in self._outputs.items()
        ]
        return {
            "isComponent": True,
            **self._shapes.object_spec(self.cls, told),
            "inputProperties": inputs["properties"],
            "requiredInputs": inputs["required"],
        }

    def made(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> Any:
        """Construct it; raises InputPropertyError for inputs that make no sense."""
        args = self._whole() if self._whole else self._shapes.read(self._args, dict(inputs))
        if self.cls.__name__ == "PullSecret":
            args = _started(args, opts)
        if isinstance(args, SecretStoresArgs):
            args = replace(args, source=_in_the_cluster)
        return self.cls(name, args, opts)  # pyright: ignore[reportArgumentType] - a component's own, not the base's

    def told(self, made: pulumi.ComponentResource) -> dict[str, Any]:
        """Return its outputs."""
        return {camel_case(name): getattr(made, name) for name in self._outputs}


def _started(args: PullSecretArgs, opts: pulumi.ResourceOptions) -> PullSecretArgs:
    from components.wiring.pull_secrets import started

    beside = pulumi.ResourceOptions(parent=opts.parent)
    start, begun = started(args.section, args.cluster, args.project, beside)
    return replace(args, start=start, begun=begun)


def _in_the_cluster(_source: object, place: str) -> NoReturn:
    """Refuse a login that another Secret holds: where those are only a program knows that declares them."""
    raise pulumi.RunError(
        f"{place}: the credential is in the cluster, which SecretStores by itself does not find\n"
        "→ name an entry of credfleet:credentials, or declare the store in Fleet"
    )


def _eventual(spec: Spec) -> Spec:
    """Return the type of an output: none is plain."""
    parts = {key: _eventual(one) if isinstance(one, dict) else one for key, one in spec.items()}
    return {key: one for key, one in parts.items() if key != "plain"}


def _annotated(cls: type) -> Mapping[str, Any]:
    """Return the public attributes of a component, without what the SDK's own classes have."""
    found: dict[str, Any] = {}
    for one in reversed(cls.__mro__[: cls.__mro__.index(pulumi.ComponentResource)]):
        alone = type(
            one.__name__, (), {"__annotations__": inspect.get_annotations(one), "__module__": one.__module__}
        )
        found |= {
            name: hint for name, hint in hints_of(alone).items() if ClassVar not in (hint, get_origin(hint))
        }
    return found


def _is_of_resources(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, pulumi.Resource):
        return True
    return any(map(_is_of_resources, get_args(hint)))


def remote_components(shapes: Shapes) -> Mapping[str, Remote]:
    """Return all components by their types; none that lacks the SDK of its cloud."""
    found: list[Remote] = []
    for module, names in _COMPONENTS.items():
        usable = [name for name in names if not [*lacking(f"{PACKAGE}:index:{name}")]]
        loaded = import_module(f"{components.__name__}.{module}") if usable else None
        found += [Remote(getattr(loaded, name), shapes) for name in usable]
    return {one.token: one for one in sorted(found, key=lambda one: one.token)}


def lacking(token: str) -> Iterator[Problem]:
    """Say which SDK a component lacks here, if one."""
    extra = _SDKS.get(token.removeprefix(f"{PACKAGE}:index:"))
    if extra is not None:
        yield from review_sdk(extra, token)


def package_schema() -> Mapping[str, Any]:
    """Return the schema of the package where every SDK is installed, as SCHEMA has it."""
    shapes = package_shapes()
    resources = {token: one.spec for token, one in remote_components(shapes).items()}
    languages = ("csharp", "go", "java", "nodejs", "python")
    return {
        "name": PACKAGE,
        "version": version(PACKAGE),
        "displayName": PACKAGE,
        "description": "The credentials of a fleet of tenants, on Kubernetes and two clouds",
        "language": {language: {"respectSchemaVersion": True} for language in languages},
        "resources": resources,
        "types": dict(sorted(shapes.types.items())),
    }
