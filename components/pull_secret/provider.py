"""What of a pull secret only run time can do, as dynamic resources: verify, retain, report.

Neither inputs nor outputs hold a byte of the pull secret, only its digest, which travels marked as secret.
The path of this module and the names of its classes are written into the state of stacks; they never move.
Import-pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pulumi import Input, Output
from pulumi.dynamic import CheckFailure

from components.dynamic import (
    IDENTITY,
    SECRET,
    WARNING,
    DynamicProvider,
    DynamicResource,
    FollowingProvider,
    Properties,
    is_unknown,
    keys,
    log,
)
from components.errors import CredfleetError, PullSecretError, SecretManagerError
from components.importing import IMPORT_LOCK
from components.open_ports import HYPERFLEET, leaves_port_open, settle
from components.projection.kubernetes_secrets import KubernetesSecrets, open_secrets
from components.projection.model import SecretRef
from components.projection.provider import MarkedArgs, MarkedProvider, content_of
from components.projection.sources import Source
from components.pull_secret.hyperfleet import Contract, HyperFleet
from components.pull_secret.retention import Replaced, Retention, settle_all, settle_replaced
from components.pull_secret.status import of_removed, report
from components.pull_secret.verification import (
    KEY,
    STORED_AS,
    TYPE,
    Expected,
    add_version,
    differences,
    digest_of,
    enable_again,
    is_delivered,
    lost_version,
    stand,
    verify,
)
from components.secret_manager import (
    LATEST,
    SecretManager,
    SecretManagerTarget,
    VersionState,
    open_secret_manager,
    secret_name,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretStartArgs:
    """A cluster, and whether it is ready; that it is ready no longer is no change.

    project, secret_id: of its entry in Secret Manager. namespace, secret_name: of the cluster's Secret.
    """

    cluster: str = field(compare=False)
    ready: bool = field(compare=False)
    project: Input[str] | None = field(compare=False)
    secret_id: str = field(compare=False)
    namespace: str = field(compare=False)
    secret_name: str = field(compare=False)


class PullSecretStartProvider(DynamicProvider):
    """Remembers that a cluster was ready for its pull secret once, and tells when the pull secret is gone.

    All else of the pull secret depends on it, so it goes last. Another one is made where the version in use
    can never be read again, or its entry is gone, since these are replaced with it.
    """

    args = PullSecretStartArgs
    outputs = ("begun",)
    named_by = ("cluster",)

    def lost(self, _olds: Properties, news: Properties) -> Sequence[str]:
        """Return the cluster, when its version is destroyed or gone; of one being deleted nothing is made."""
        project = news.get("project")
        if not (news["ready"] and project) or is_unknown(project):
            return ()
        for reason in _seen(lambda: self._lost(news)):
            log(reason)
            return ("cluster",)
        return ()

    def _lost(self, props: Properties) -> Iterator[str]:
        manager = open_secret_manager(SecretManagerTarget.configured(self.configured))
        found = open_secrets(self.cluster).get(SecretRef(props["namespace"], props["secretName"])) or {}
        made_from = str((found.get("metadata", {}).get("annotations") or {}).get(STORED_AS, ""))
        try:
            name = lost_version(manager, _secret(props), made_from)
        except SecretManagerError as error:
            if error.code != "absent":
                raise
            name = _secret(props)
        if name and self._deletion(props["cluster"]) is None:
            yield f"{name} can never be read again; the update adds the pull secret again"

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Whether the cluster is ready for the first time."""
        return bool(news["ready"]) and not olds.get("begun")

    def create_resource(self, props: Properties) -> Properties:
        """Remember whether it is ready."""
        return {"begun": props["ready"]}

    def update_resource(self, _id: str, _olds: Properties, _news: Properties) -> Properties:
        """Remember that it is ready."""
        return {"begun": True}

    def delete_resource(self, _id: str, props: Properties) -> None:
        """Report to a HyperFleet that deletes the cluster, and waits for it, that the pull secret is gone."""
        cluster = props["cluster"]
        if (deletion := self._deletion(cluster)) is not None:
            hyperfleet, generation = deletion
            conditions = [each.document for each in of_removed()]
            hyperfleet.report(cluster, report(generation, conditions, {}, _now()))
            log(f"cluster {cluster}: it was reported to HyperFleet that its pull secret is gone")

    def _deletion(self, cluster: str) -> tuple[HyperFleet, int] | None:
        """Return the HyperFleet that deletes the cluster, and which generation; None for any other."""
        given = json.loads(self.configured("pullSecrets") or "{}").get("hyperfleet") or {}
        if not given or given.get("contract") == Contract.V1:
            return None
        hyperfleet = HyperFleet(settle(HYPERFLEET, given["apiUrl"]))
        generation = hyperfleet.deletion(cluster)
        return None if generation is None else (hyperfleet, generation)


class PullSecretStart(DynamicResource[PullSecretStartArgs], module="credfleet", name="PullSecretStart"):
    """Whether a cluster was ready for its pull secret once. begun: unknown in the preview that finds out."""

    provider = PullSecretStartProvider

    begun: Output[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretVersionArgs:
    """A pull secret that is elsewhere, and the entry that gets it as a version.

    owner: with whose key its digest is made. namespace: of the cluster's Secret, for which it is read.
    source: as `Source.properties` has it. strict: whether doubts about it are errors. additional: further
    sources, which merge with it.
    """

    project: Input[str] = field(metadata=IDENTITY)
    secret_id: Input[str] = field(metadata=IDENTITY)
    owner: str
    namespace: Input[str] = field(compare=False)
    source: Properties
    strict: bool
    additional: Sequence[Properties] | None = None


class PullSecretVersionProvider(FollowingProvider):
    """Adds a version of what the source says, unless the newest one says it. Retention sees to all others."""

    args = PullSecretVersionArgs
    outputs = ("version", "digest")
    named_by = ("secretId",)

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse what cannot be read, and what is not a pull secret; tell doubts."""
        try:
            secrets = open_secrets(self.cluster)
        except CredfleetError:
            return
        if is_unknown(inputs["namespace"]):
            return
        try:
            for line in self._read(secrets, inputs)[1]:
                log(line)
        except CredfleetError as error:
            yield CheckFailure("source", str(error))

    def create_resource(self, props: Properties) -> Properties:
        """Add the version, and return its number with the digest of what it holds."""
        content, _ = self._read(open_secrets(self.cluster), props)
        manager = open_secret_manager(SecretManagerTarget.configured(self.configured))
        number = add_version(manager, _secret(props), content)
        return {"version": str(number), "digest": digest_of(props["owner"], content)}

    def is_current(self, props: Properties, digest: str) -> bool:
        """Whether the source says what the version holds."""
        content, _ = self._read(open_secrets(self.cluster), props)
        return digest_of(props["owner"], content) == digest

    def _read(self, secrets: KubernetesSecrets, props: Properties) -> tuple[bytes, Sequence[str]]:
        """Return the pull secret, and what to say of it; raises CredfleetError for what is none."""
        with IMPORT_LOCK:
            from components.pull_secret.payload import judge, list_winners, merge

        contents: list[bytes] = []
        lines: list[str] = []
        registries: dict[str, Sequence[str]] = {}
        for given in (props["source"], *(props.get("additional") or ())):
            source = Source(**given)
            content = content_of(source, props["namespace"], secrets, self.configured)
            verdict = judge(content, strict=props["strict"])
            for error in verdict.errors:
                place = f"{source.place} ({error.place})"
                raise PullSecretError(code="unfit", place=place, problem=error.problem, fix=error.fix)
            contents.append(content)
            lines += [f"{WARNING}{source.place}: {doubt}" for doubt in verdict.warnings]
            registries[source.place] = verdict.registries
        return merge(contents) if contents[1:] else contents[0], [*lines, *list_winners(registries)]


class PullSecretVersion(DynamicResource[PullSecretVersionArgs], module="credfleet", name="PullSecretVersion"):
    """A version that follows a pull secret which is elsewhere. digest: of what it holds (`digest_of`)."""

    provider = PullSecretVersionProvider

    version: Output[str]
    digest: Output[str]


class PullSecretCopyProvider(MarkedProvider):
    """Writes the Secret that a cluster pulls with, of the version that was verified."""

    def render(
        self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]
    ) -> tuple[str, Mapping[str, bytes]]:
        """Return type and values of the Secret."""
        del recipe, places
        return TYPE, {KEY: contents[0]}


class PullSecretCopy(DynamicResource[MarkedArgs], module="credfleet", name="PullSecretCopy"):
    """The Secret that a cluster pulls with."""

    provider = PullSecretCopyProvider

    namespace: Output[str]
    target_name: Output[str]


class _OnSecretManager(DynamicProvider):
    """A provider that works on a version of a secret in Secret Manager."""

    named_by = ("secretId",)

    def prepare(self, inputs: Properties, _olds: Properties) -> Properties:
        """Return the version as a number."""
        return _numbered(inputs, "version")

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse what names no version."""
        return _empty(inputs, keys(self.args))

    def _manager(self) -> SecretManager:
        return open_secret_manager(SecretManagerTarget.configured(self.configured))


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretVerificationArgs:
    """The version that was added. digest: of what it has to hold (`digest_of`).

    namespace, secret_name: of the cluster's Secret, which has to hold the same.
    """

    project: Input[str]
    secret_id: Input[str]
    version: Input[str]
    owner: str
    digest: Input[str] = field(metadata=SECRET)
    namespace: Input[str] = field(compare=False)
    secret_name: str = field(compare=False)


class PullSecretVerificationProvider(_OnSecretManager):
    """Reads back the version that was added. It makes nothing, so there is nothing to remove.

    Another one is made where the cluster's Secret is lost, since that is replaced with it.
    """

    args = PullSecretVerificationArgs
    outputs = ("reference", "state", "latest", "overtaken", "verifiedAt")

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Whether a refresh found the version unreadable, or it is not as it was verified.

        That is looked at whenever it is asked; what cannot be seen is no change.
        """
        if olds.get("state") != VersionState.ENABLED:
            return True
        if is_unknown(news):
            return False
        expected, told = _expected(news), str(olds["overtaken"])
        reasons = _seen(lambda: differences(self._manager(), expected, told))
        for reason in reasons:
            log(f"{expected.name}: {reason}")
        return bool(reasons)

    def lost(self, olds: Properties, news: Properties) -> Sequence[str]:
        """Return the Secret's name when the cluster has it no more as it was given: it is replaced, too."""
        where = ("namespace", "secretName")
        if any(not olds.get(key) or olds[key] != news[key] for key in where):
            return ()
        reasons = _seen(lambda: self._undelivered(olds))
        for reason in reasons:
            log(f"{reason}; the update recreates it")
        return ("secretName",) if reasons else ()

    def _undelivered(self, props: Properties) -> Iterator[str]:
        """Yield what is wrong with the Secret that the cluster reads."""
        ref = SecretRef(props["namespace"], props["secretName"])
        found = open_secrets(self.cluster).get(ref)
        if found is None:
            yield f"Secret {ref} is gone"
        elif not is_delivered(found.get("data") or {}, _expected(props)):
            yield f"Secret {ref} holds something else than it was given"

    def create_resource(self, props: Properties) -> Properties:
        """Verify the first version."""
        return self._verified(props, before=0)

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Verify the version that came in the place of the last one."""
        same = all(olds.get(key) == news.get(key) for key in ("project", "secretId"))
        return self._verified(news, before=int(olds["version"]) if same else 0)

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return how the version stands now; None when it is not there."""
        standing = stand(self._manager(), _expected(props))
        if standing is None:
            return None
        found: Properties = {"state": standing.state, "overtaken": standing.overtaken}
        if standing.state is not VersionState.ENABLED:
            log(f"{_expected(props).name} is {standing.state.lower()}; the next update sees to it")
            return found
        if standing.overtaken:
            log(f"{_expected(props).secret}: {standing.overtaken}")
        return {**found, "digest": standing.digest, "latest": standing.latest}

    def _verified(self, props: Properties, before: int) -> Properties:
        expected = _expected(props)
        if enable_again(self._manager(), expected):
            log(f"{expected.name} was disabled, and is enabled again")
        standing, disabled = verify(self._manager(), expected, before)
        if standing.latest < expected.version:
            log(
                f"{expected.name} was read back; {LATEST} still means version {standing.latest}, which Google"
                " takes some minutes to change everywhere"
            )
        for number in disabled:
            log(
                f"{expected.secret}: version {number} held the same, and the answer to adding it was lost;"
                " its number was unknown, and it is disabled"
            )
        return {
            "reference": expected.name,
            "state": standing.state,
            "latest": standing.latest,
            "overtaken": standing.overtaken,
            "verifiedAt": _now(),
        }


class PullSecretVerification(
    DynamicResource[PullSecretVerificationArgs], module="credfleet", name="PullSecretVerification"
):
    """A version that was read back, and is what was given.

    reference: its name. latest: the number others get, overtaken: what is to be said when it is another one.
    verified_at: when, RFC 3339.
    """

    provider = PullSecretVerificationProvider

    reference: Output[str]
    version: Output[int]
    latest: Output[int]
    overtaken: Output[str]
    verified_at: Output[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretRetentionArgs:
    """The version in use, and what to do with others: when it is replaced, and when the cluster leaves."""

    project: Input[str] = field(metadata=IDENTITY)
    secret_id: Input[str] = field(metadata=IDENTITY)
    version: Input[int]
    on_replace: Retention
    on_delete: Retention


class PullSecretRetentionProvider(_OnSecretManager):
    """Carries out what was asked for with versions that are not needed any more."""

    args = PullSecretRetentionArgs
    outputs = ("replaced",)

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse what names no version, and unknown words."""
        yield from super().failures(inputs, _olds)
        for key in ("onReplace", "onDelete"):
            if not is_unknown(inputs[key]) and inputs[key] not in set(Retention):
                yield CheckFailure(key, f"the words are {', '.join(Retention)}")

    def create_resource(self, _props: Properties) -> Properties:
        """Remember the version; there is none before it."""
        return {"replaced": ""}

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Do with former versions what `onReplace` says; the new one is verified by now.

        Where it said to keep them until now, that is all there are.
        """
        former, now, secret = int(olds["version"]), int(news["version"]), _secret(news)
        retention = Retention(news["onReplace"])
        were_kept = olds["onReplace"] == Retention.KEEP != retention
        if former == now and not were_kept:
            return {}
        since = 1 if were_kept else former
        replaced = settle_replaced(self._manager(), secret, Replaced(since, former, now), retention)
        log(f"{secret}: {replaced}")
        return {"replaced": replaced}

    def delete_resource(self, _id: str, props: Properties) -> None:
        """Do with all versions what `onDelete` says; the cluster has lost its Secret by now."""
        secret, retention = _secret(props), Retention(props["onDelete"])
        try:
            settled = settle_all(self._manager(), secret, retention)
        except SecretManagerError as error:
            if error.code == "absent":
                return
            raise
        match retention:
            case Retention.DISABLE:
                numbers = ", ".join(map(str, settled)) or "none was enabled"
                log(f"{secret} stays; its versions are disabled ({numbers})")
            case Retention.KEEP:
                log(f"{secret} stays, and so do its versions")
            case Retention.DESTROY:
                log(f"{secret} is deleted with all its versions")


class PullSecretRetention(
    DynamicResource[PullSecretRetentionArgs], module="credfleet", name="PullSecretRetention"
):
    """What becomes of versions that are not needed any more. replaced: what became of the last one."""

    provider = PullSecretRetentionProvider

    replaced: Output[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretStatusArgs:
    """A report. conditions: type, status, reason and message of each. data: what else HyperFleet keeps.

    contract: how it is made; that it is made another way is no change. api_url: with port 0 the sandbox's,
    wherever it is.
    """

    api_url: str = field(compare=False)
    cluster: str = field(metadata=IDENTITY)
    generation: int
    conditions: Input[Sequence[Mapping[str, str]]]
    data: Input[Mapping[str, Input[str]]]
    contract: str = field(default=Contract.V2.value, compare=False)


class PullSecretStatusProvider(DynamicProvider):
    """Reports to HyperFleet, which drops reports with their cluster.

    A report that does not get through undoes nothing, and is made again later.
    """

    args = PullSecretStatusArgs
    outputs = ("reportedAt", "trouble")
    named_by = ("cluster",)

    def prepare(self, inputs: Properties, _olds: Properties) -> Properties:
        """Return the generation as a number."""
        return _numbered(inputs, "generation")

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse a report about nothing."""
        return _empty(inputs, ("apiUrl", "cluster", "generation"))

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Return whether the last report did not get through, or went somewhere else."""
        moved = news["apiUrl"] != olds.get("apiUrl") and not leaves_port_open(news["apiUrl"])
        return moved or bool(olds.get("trouble"))

    def create_resource(self, props: Properties) -> Properties:
        """Report; HyperFleet puts it in the place of the adapter's last report."""
        now = _now()
        document = report(int(props["generation"]), props["conditions"], props["data"], now)
        try:
            hyperfleet = HyperFleet(settle(HYPERFLEET, props["apiUrl"]), Contract(props["contract"]))
            hyperfleet.report(props["cluster"], document)
        except CredfleetError as error:
            return {"reportedAt": "", "trouble": str(error)}
        return {"reportedAt": now, "trouble": ""}


class PullSecretStatus(DynamicResource[PullSecretStatusArgs], module="credfleet", name="PullSecretStatus"):
    """What HyperFleet was told. trouble: why it was not, empty when it was."""

    provider = PullSecretStatusProvider

    trouble: Output[str]


def _expected(props: Properties) -> Expected:
    return Expected(
        project=props["project"],
        secret_id=props["secretId"],
        version=int(props["version"]),
        owner=props["owner"],
        digest=props["digest"],
    )


def _seen(look: Callable[[], Iterator[str]]) -> Sequence[str]:
    """Return what a look finds; nothing when it fails."""
    try:
        return [*look()]
    except CredfleetError:
        return ()


def _secret(props: Properties) -> str:
    return secret_name(props["project"], props["secretId"])


def _numbered(inputs: Properties, key: str) -> Properties:
    """Take a number as one: Google gives them as texts, and the engine as floats."""
    given: Any = inputs[key]
    return inputs if is_unknown(given) or not given else {**inputs, key: int(given)}


def _empty(inputs: Properties, keys: Sequence[str]) -> Iterator[CheckFailure]:
    for key in keys:
        if not is_unknown(inputs[key]) and not inputs[key]:
            yield CheckFailure(key, "it is empty, so it is not clear what is meant")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
