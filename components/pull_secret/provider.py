"""What of a pull secret only run time can do, as dynamic resources: verify, retain, report.

Neither inputs nor outputs hold a byte of the pull secret, only its digest, which travels marked as secret.
The path of this module and the names of its classes are written into the state of stacks; they never move.
Import-pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pulumi
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

from components.dynamic import Properties, compared, is_unknown, kept, shortened, tell
from components.errors import CredfleetError
from components.pull_secret.hyperfleet import HyperFleet
from components.pull_secret.retention import Retention, settle_all, settle_replaced
from components.pull_secret.status import report
from components.pull_secret.verification import Expected, stand, verify
from components.secret_manager import (
    LATEST,
    SecretManager,
    SecretManagerError,
    SecretManagerTarget,
    VersionState,
    open_secret_manager,
    secret_name,
)

_SECRET: Final = ("project", "secretId")
_VERIFIED_INPUTS: Final = (*_SECRET, "version", "owner", "digest")
_VERIFIED_OUTPUTS: Final = ("reference", "state", "latest", "overtaken", "verifiedAt")
_RETAINED_INPUTS: Final = (*_SECRET, "version", "onReplace", "onDelete")
_REPORTED_INPUTS: Final = ("apiUrl", "cluster", "generation", "conditions", "data")
_REPORTED_OUTPUTS: Final = ("reportedAt", "trouble")
_START_INPUTS: Final = ("cluster", "ready")


class PullSecretStartProvider(ResourceProvider):
    """Remembers that a cluster was ready for its pull secret once. It makes nothing anywhere else."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Take what is given."""
        return CheckResult(kept(news, _START_INPUTS), [])

    def diff(self, _id: str, olds: Properties, news: Properties) -> DiffResult:
        """Tell a cluster that is ready for the first time; one that is so no longer is no change."""
        changes = bool(news["ready"]) and not olds.get("begun")
        return DiffResult(changes=changes, replaces=[], stables=[], delete_before_replace=False)

    def create(self, props: Properties) -> CreateResult:
        """Remember whether it is ready."""
        return CreateResult(str(props["cluster"]), {**kept(props, _START_INPUTS), "begun": props["ready"]})

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what was remembered."""
        return ReadResult(id_, kept(props, (*_START_INPUTS, "begun")), kept(props, _START_INPUTS))

    def update(self, _id: str, _olds: Properties, news: Properties) -> UpdateResult:
        """Remember that it is ready."""
        return UpdateResult({**kept(news, _START_INPUTS), "begun": True})

    def delete(self, _id: str, _props: Properties) -> None:
        """Nothing to delete."""


class _OnSecretManager(ResourceProvider):
    """A provider that works on Secret Manager; one instance serves all threads of the process."""

    _target = SecretManagerTarget()

    def configure(self, req: ConfigureRequest) -> None:
        """Learn from the stack's `gcp:` keys where Secret Manager is, and who asks."""
        self._target = SecretManagerTarget.configured(req.config.get)

    def _manager(self) -> SecretManager:
        return open_secret_manager(self._target)


class PullSecretVerificationProvider(_OnSecretManager):
    """Reads back the version that was added. It makes nothing, so there is nothing to delete."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse what names no version."""
        inputs = _numbered(kept(news, _VERIFIED_INPUTS), "version")
        return CheckResult(inputs, [*_empty(inputs, _VERIFIED_INPUTS)])

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; a version that a refresh found unreadable is verified again."""
        return compared(
            _olds, _news, _VERIFIED_INPUTS, otherwise=lambda: _olds.get("state") != VersionState.ENABLED
        )

    def create(self, props: Properties) -> CreateResult:
        """Verify the first version."""
        return CreateResult(str(props["secretId"]), self._verified(props, before=0))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell how the version stands now; one that is not there has no id."""
        with shortened():
            standing = stand(self._manager(), _expected(props))
        if standing is None:
            return ReadResult("", {})
        outputs = {
            **kept(props, _VERIFIED_INPUTS + _VERIFIED_OUTPUTS),
            "state": standing.state,
            "overtaken": standing.overtaken,
        }
        if standing.state is VersionState.ENABLED:
            outputs |= {"digest": standing.digest, "latest": standing.latest}
            if standing.overtaken:
                tell(f"{_expected(props).secret}: {standing.overtaken}")
        else:
            tell(f"{_expected(props).name} is {standing.state.lower()}; the next update sees to it")
        return ReadResult(id_, outputs, kept(props, _VERIFIED_INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Verify the version that came in the place of the last one."""
        same = kept(_olds, _SECRET) == kept(_news, _SECRET)
        return UpdateResult(self._verified(_news, before=int(_olds["version"]) if same else 0))

    def delete(self, _id: str, _props: Properties) -> None:
        """Nothing to delete."""

    def _verified(self, props: Properties, before: int) -> Properties:
        expected = _expected(props)
        with shortened():
            standing, disabled = verify(self._manager(), expected, before)
        if standing.latest < expected.version:
            tell(
                f"{expected.name} was read back; {LATEST} still means version {standing.latest}, which Google"
                " takes some minutes to change everywhere"
            )
        for number in disabled:
            tell(
                f"{expected.secret}: version {number} held the same, and the answer to adding it was lost;"
                " nobody knew its number, and it is disabled"
            )
        return {
            **kept(props, _VERIFIED_INPUTS),
            "reference": expected.name,
            "state": standing.state,
            "latest": standing.latest,
            "overtaken": standing.overtaken,
            "verifiedAt": _now(),
        }


class PullSecretRetentionProvider(_OnSecretManager):
    """Carries out what was asked for with versions nobody needs any more."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse what names no version, and words nobody knows."""
        inputs = _numbered(kept(news, _RETAINED_INPUTS), "version")
        failures = [*_empty(inputs, _RETAINED_INPUTS)]
        for key in ("onReplace", "onDelete"):
            if not is_unknown(inputs[key]) and inputs[key] not in set(Retention):
                failures.append(CheckFailure(key, f"the words are {', '.join(Retention)}"))
        return CheckResult(inputs, failures)

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; in another secret it is another retention."""
        return compared(_olds, _news, _RETAINED_INPUTS, identity=_SECRET)

    def create(self, props: Properties) -> CreateResult:
        """Remember the version; there is none before it."""
        return CreateResult(str(props["secretId"]), {**kept(props, _RETAINED_INPUTS), "replaced": ""})

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what was remembered: nothing of it is anywhere else."""
        return ReadResult(id_, kept(props, (*_RETAINED_INPUTS, "replaced")), kept(props, _RETAINED_INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Do with former versions what `onReplace` says; the new one is verified by now."""
        outputs = {**kept(_news, _RETAINED_INPUTS), "replaced": _olds.get("replaced", "")}
        former, secret = int(_olds["version"]), _secret(_news)
        if former != int(_news["version"]):
            with shortened():
                outputs["replaced"] = settle_replaced(
                    self._manager(), secret, former, int(_news["version"]), Retention(_news["onReplace"])
                )
            tell(f"{secret}: {outputs['replaced']}")
        return UpdateResult(outputs)

    def delete(self, _id: str, _props: Properties) -> None:
        """Do with all versions what `onDelete` says; the cluster has lost its Secret by now."""
        secret, retention = _secret(_props), Retention(_props["onDelete"])
        with shortened():
            try:
                settled = settle_all(self._manager(), secret, retention)
            except SecretManagerError as error:
                if error.code == "absent":
                    return
                raise
        match retention:
            case Retention.DISABLE:
                numbers = ", ".join(map(str, settled)) or "none was enabled"
                tell(f"{secret} stays; its versions are disabled ({numbers})")
            case Retention.KEEP:
                tell(f"{secret} stays, and so do its versions")
            case Retention.DESTROY:
                tell(f"{secret} is deleted with all its versions")


class PullSecretStatusProvider(ResourceProvider):
    """Reports to HyperFleet. A report that does not get through undoes nothing, and is made again later."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse a report about nothing."""
        inputs = _numbered(kept(news, _REPORTED_INPUTS), "generation")
        return CheckResult(inputs, [*_empty(inputs, ("apiUrl", "cluster", "generation"))])

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; a report that did not get through is made again."""
        return compared(
            _olds,
            _news,
            _REPORTED_INPUTS,
            identity=("cluster",),
            otherwise=lambda: bool(_olds.get("trouble")),
        )

    def create(self, props: Properties) -> CreateResult:
        """Report; HyperFleet puts it in the place of the adapter's last report."""
        return CreateResult(str(props["cluster"]), _reported(props))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what was reported last; reports are HyperFleet's to keep."""
        outputs = kept(props, _REPORTED_INPUTS + _REPORTED_OUTPUTS)
        return ReadResult(id_, outputs, kept(props, _REPORTED_INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Report again."""
        return UpdateResult(_reported(_news))

    def delete(self, _id: str, _props: Properties) -> None:
        """Nothing to delete: HyperFleet drops reports with their cluster."""


class PullSecretStart(Resource, module="credfleet", name="PullSecretStart"):
    """Whether a cluster was ready for its pull secret once. begun: unknown in the preview that finds out."""

    begun: Output[bool]

    def __init__(self, name: str, cluster: str, opts: ResourceOptions | None = None, *, ready: bool) -> None:
        props = {"cluster": cluster, "ready": ready, "begun": None}
        super().__init__(PullSecretStartProvider(), name, props, opts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretVerificationArgs:
    """The version that was added. digest: of what it has to hold (`digest_of`), marked as secret."""

    project: Input[str]
    secret_id: Input[str]
    version: Input[str]
    owner: str
    digest: Input[str]


class PullSecretVerification(Resource, module="credfleet", name="PullSecretVerification"):
    """A version that was read back, and is what was given.

    reference: its name. latest: the number others get, overtaken: what is to be said when it is another one.
    """

    reference: Output[str]
    version: Output[int]
    latest: Output[int]
    overtaken: Output[str]

    @property
    def verified_at(self) -> Output[str]:
        """When, RFC 3339."""
        return pulumi.get(self, "verifiedAt")

    def __init__(
        self, name: str, args: PullSecretVerificationArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__(
            PullSecretVerificationProvider(),
            name,
            {
                "project": args.project,
                "secretId": args.secret_id,
                "version": args.version,
                "owner": args.owner,
                "digest": Output.secret(args.digest),
                **dict.fromkeys(_VERIFIED_OUTPUTS),
            },
            opts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretRetentionArgs:
    """The version in use, and what to do with others: when it is replaced, and when the cluster leaves."""

    project: Input[str]
    secret_id: Input[str]
    version: Input[int]
    on_replace: Retention
    on_delete: Retention


class PullSecretRetention(Resource, module="credfleet", name="PullSecretRetention"):
    """What becomes of versions nobody needs any more. replaced: what became of the last one."""

    replaced: Output[str]

    def __init__(self, name: str, args: PullSecretRetentionArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(
            PullSecretRetentionProvider(),
            name,
            {
                "project": args.project,
                "secretId": args.secret_id,
                "version": args.version,
                "onReplace": args.on_replace.value,
                "onDelete": args.on_delete.value,
                "replaced": None,
            },
            opts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretStatusArgs:
    """A report. conditions: type, status, reason and message of each. data: what else HyperFleet keeps."""

    api_url: str
    cluster: str
    generation: int
    conditions: Input[Sequence[Mapping[str, str]]]
    data: Input[Mapping[str, Input[str]]]


class PullSecretStatus(Resource, module="credfleet", name="PullSecretStatus"):
    """What HyperFleet was told. trouble: why it was not, empty when it was."""

    trouble: Output[str]

    def __init__(self, name: str, args: PullSecretStatusArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(
            PullSecretStatusProvider(),
            name,
            {
                "apiUrl": args.api_url,
                "cluster": args.cluster,
                "generation": args.generation,
                "conditions": args.conditions,
                "data": args.data,
                **dict.fromkeys(_REPORTED_OUTPUTS),
            },
            opts,
        )


def _expected(props: Properties) -> Expected:
    return Expected(
        project=props["project"],
        secret_id=props["secretId"],
        version=int(props["version"]),
        owner=props["owner"],
        digest=props["digest"],
    )


def _reported(props: Properties) -> Properties:
    inputs, now = kept(props, _REPORTED_INPUTS), _now()
    document = report(int(inputs["generation"]), inputs["conditions"], inputs["data"], now)
    try:
        HyperFleet(inputs["apiUrl"]).report(inputs["cluster"], document)
    except CredfleetError as error:
        return {**inputs, "reportedAt": "", "trouble": str(error)}
    return {**inputs, "reportedAt": now, "trouble": ""}


def _secret(props: Properties) -> str:
    return secret_name(props["project"], props["secretId"])


def _numbered(inputs: Properties, key: str) -> Properties:
    """Take a number as one: Google gives them as texts, and the engine as floats."""
    given: Any = inputs[key]
    return inputs if is_unknown(given) or not given else {**inputs, key: int(given)}


def _empty(inputs: Properties, keys: Sequence[str]) -> Iterator[CheckFailure]:
    for key in keys:
        if not is_unknown(inputs[key]) and not inputs[key]:
            yield CheckFailure(key, "it is empty, so nobody could tell what is meant")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
