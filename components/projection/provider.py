"""The projection of a Secret as a dynamic resource: bytes move inside the cluster, references travel.

Neither inputs nor outputs hold a byte of the Secret: the outputs are where the copy is, a keyed digest of
what is in it, and the version of the source it was made from. The path of this module and the names of its
classes are written into the state of stacks; they never move. Import-pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pulumi import Input, Output, ResourceOptions
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)

from components.dynamic import Properties, compared, is_unknown, kept, shortened
from components.errors import CredfleetError
from components.naming import is_namespace, is_object_name
from components.projection.keys import AsoMethod, plan_keys
from components.projection.kubernetes_secrets import open_projector
from components.projection.model import Projection, SecretRef

_TARGET: Final = ("targetNamespace", "targetName", "owner")
_INPUTS: Final = (*_TARGET, "sourceNamespace", "sourceName", "sourceLabels", "keys", "asoCredential")
_OUTPUTS: Final = ("reference", "digest", "sourceResourceVersion")


class SecretProjectionProvider(ResourceProvider):
    """A thin shell over the projector; one instance serves all threads of the provider's process."""

    _cluster: str | None = None

    def configure(self, req: ConfigureRequest) -> None:
        """Learn which cluster is meant from `credfleet:cluster`."""
        self._cluster = req.config.get("cluster")

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse names no Secret can have, keys no method has, and a place that is somebody else's."""
        inputs = {key: news.get(key) for key in _INPUTS}
        inputs["keys"] = inputs["keys"] or {}
        inputs["sourceLabels"] = inputs["sourceLabels"] or {}
        failures = list(_failures(inputs))
        if not failures and not any(is_unknown(inputs[key]) for key in (*_TARGET, "keys", "asoCredential")):
            failures += self._taken(inputs)
        return CheckResult(inputs, failures)

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; then what the source makes of the target with what is known of it."""
        return compared(
            _olds,
            _news,
            _INPUTS,
            identity=_TARGET,
            otherwise=lambda: not self._is_current(_news, str(_olds.get("digest"))),
        )

    def create(self, props: Properties) -> CreateResult:
        """Write the copy; run again after any failure it finds it, and takes it as its own."""
        return CreateResult(f"{props['targetNamespace']}/{props['targetName']}", self._written(props))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what is in the copy, by digest; one that is gone, or somebody else's, has no id."""
        with shortened():
            found = open_projector(self._cluster).digest(_projection(props))
        if found is None:
            return ReadResult("", {})
        return ReadResult(id_, {**kept(props, _INPUTS + _OUTPUTS), "digest": found}, kept(props, _INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Write the copy again."""
        return UpdateResult(self._written(_news))

    def delete(self, _id: str, _props: Properties) -> None:
        """Remove the copy, if it is still ours."""
        with shortened():
            open_projector(self._cluster).remove(_projection(_props))

    def _written(self, props: Properties) -> Properties:
        with shortened():
            wanted = _projection(props)
            written = open_projector(self._cluster).write(wanted)
        return {
            **kept(props, _INPUTS),
            "reference": str(wanted.target),
            "digest": written.digest,
            "sourceResourceVersion": written.source_version,
        }

    def _taken(self, inputs: Properties) -> Iterator[CheckFailure]:
        """Tell that the target's place is taken; in a cluster that cannot be seen, `create` tells it."""
        source = {
            key: "" if is_unknown(inputs[key]) else inputs[key] for key in ("sourceNamespace", "sourceName")
        }
        wanted = _projection({**inputs, **source, "sourceLabels": {}})
        try:
            taken = open_projector(self._cluster).taken(wanted)
        except CredfleetError:
            return
        if taken is not None:
            yield CheckFailure("targetName", str(taken))

    def _is_current(self, props: Properties, known: str) -> bool:
        if any(is_unknown(props.get(key)) for key in _INPUTS):
            return True
        try:
            return open_projector(self._cluster).is_current(_projection(props), known)
        except CredfleetError:
            return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretProjectionArgs:
    """A copy of a Secret.

    owner: who wants it, the same text whenever the program runs. source_labels: what the source must be
    labelled with. keys: target key → source key; empty means all as they are. aso_credential: the method of
    an ASO credential, whose keys are then the defaults.
    """

    source_namespace: Input[str]
    source_name: Input[str]
    target_namespace: Input[str]
    target_name: Input[str]
    owner: Input[str]
    source_labels: Input[Mapping[str, Input[str]]] = field(default_factory=dict[str, Input[str]])
    keys: Input[Mapping[str, Input[str]]] = field(default_factory=dict[str, Input[str]])
    aso_credential: Input[str] | None = None


class SecretProjection(Resource, module="credfleet", name="SecretProjection"):
    """A copy of a Secret that follows its source, in the namespace of who uses it."""

    reference: Output[str]
    digest: Output[str]

    def __init__(self, name: str, args: SecretProjectionArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(
            SecretProjectionProvider(),
            name,
            {
                "sourceNamespace": args.source_namespace,
                "sourceName": args.source_name,
                "sourceLabels": args.source_labels,
                "targetNamespace": args.target_namespace,
                "targetName": args.target_name,
                "owner": args.owner,
                "keys": args.keys,
                "asoCredential": args.aso_credential,
                **dict.fromkeys(_OUTPUTS),
            },
            opts,
        )


def _failures(inputs: Properties) -> Iterator[CheckFailure]:
    """Everything wrong with the inputs that are known already."""
    for key in ("sourceNamespace", "targetNamespace"):
        if not is_unknown(inputs[key]) and not is_namespace(str(inputs[key] or "")):
            yield CheckFailure(key, "it is no namespace; use up to 63 of a-z, 0-9 and, inside, '-'")
    for key in ("sourceName", "targetName"):
        if not is_unknown(inputs[key]) and not is_object_name(str(inputs[key] or "")):
            yield CheckFailure(key, "it is no name of a Secret; use up to 253 of a-z, 0-9, '-' and '.'")
    if not inputs["owner"]:
        yield CheckFailure("owner", "a copy has an owner, so that nobody else's Secret is overwritten")
    method = inputs["asoCredential"]
    if method is not None and not is_unknown(method) and method not in set(AsoMethod):
        yield CheckFailure("asoCredential", f"the methods are {', '.join(AsoMethod)}")
    elif not any(is_unknown(each) for each in (method, inputs["keys"])):
        try:
            plan_keys(inputs["keys"], None if method is None else AsoMethod(method))
        except CredfleetError as error:
            yield CheckFailure("keys", str(error))


def _projection(props: Properties) -> Projection:
    method = props.get("asoCredential")
    return Projection(
        source=SecretRef(props["sourceNamespace"], props["sourceName"]),
        target=SecretRef(props["targetNamespace"], props["targetName"]),
        owner=props["owner"],
        plan=plan_keys(props.get("keys") or {}, None if method is None else AsoMethod(method)),
        source_labels=props.get("sourceLabels") or {},
    )
