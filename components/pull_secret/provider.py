"""Dynamic resources of a pull secret: verification, retention, report.

Inputs and outputs contain no data of the pull secret, only its digest, marked as secret. The path of this
module and its class names are stored in the state of stacks and must not change. Import-pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pulumi import Input
from pulumi.dynamic import CheckFailure

from components.durations import now
from components.dynamic import (
    IDENTITY,
    NUMBER,
    SECRET,
    WARNING,
    DynamicProvider,
    FollowingProvider,
    Properties,
    is_unknown,
    log,
)
from components.errors import CredfleetError, PullSecretError, SecretManagerError
from components.open_ports import HYPERFLEET, leaves_port_open, settle
from components.projection.kubernetes_secrets import KubernetesSecrets, open_secrets
from components.projection.model import SecretRef
from components.projection.provider import MarkedProvider, Rendered, content_of
from components.projection.sources import Source
from components.pull_secret.hyperfleet import Contract, HyperFleet
from components.pull_secret.payload import judge, list_winners, merge
from components.pull_secret.retention import Retention, settle_all, settle_replaced
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
from components.secret_manager import LATEST, VersionState, configured_secret_manager, secret_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretStartArgs:
    """Cluster, and whether it is ready; no longer being ready is not a change.

    `project`, `secret_id`: of its entry in Secret Manager. `namespace`, `secret_name`: of the cluster's
    Secret.
    """

    cluster: str = field(compare=False)
    ready: bool = field(compare=False)
    project: Input[str] | None = field(compare=False)
    secret_id: str = field(compare=False)
    namespace: str = field(compare=False)
    secret_name: str = field(compare=False)


class PullSecretStartProvider(DynamicProvider):
    """Records that a cluster was ready once, and reports when its pull secret is deleted.

    Everything else of the pull secret depends on it, so it is deleted last. It is replaced, with its
    dependents, if the version in use can never be read again, or its entry is missing.
    """

    args = PullSecretStartArgs
    outputs = ("begun",)
    named_by = ("cluster",)

    def lost(self, _olds: Properties, news: Properties) -> Sequence[str]:
        """Return the cluster if its version is destroyed or missing, unless it is being deleted."""
        project = news.get("project")
        is_known = news["ready"] and project and not is_unknown(project)
        return ("cluster",) if is_known and _finds(lambda: self._lost(news)) else ()

    def _lost(self, props: Properties) -> Iterator[str]:
        manager = configured_secret_manager(self.configured)
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
        """Return whether the cluster is ready for the first time."""
        return bool(news["ready"]) and not olds.get("begun")

    def create_resource(self, props: Properties) -> Properties:
        """Record whether it is ready."""
        return {"begun": props["ready"]}

    def update_resource(self, _id: str, _olds: Properties, _news: Properties) -> Properties:
        """Record that it is ready."""
        return {"begun": True}

    def delete_resource(self, _id: str, props: Properties) -> None:
        """Report the deletion of the pull secret, if HyperFleet is deleting the cluster and waits for it."""
        cluster = props["cluster"]
        if (deletion := self._deletion(cluster)) is not None:
            hyperfleet, generation = deletion
            hyperfleet.report(cluster, report(generation, of_removed(), {}, now()))
            log(f"cluster {cluster}: it was reported to HyperFleet that its pull secret is gone")

    def _deletion(self, cluster: str) -> tuple[HyperFleet, int] | None:
        """Return the HyperFleet that is deleting the cluster, and the generation; otherwise None."""
        given = json.loads(self.configured("pullSecrets") or "{}").get("hyperfleet") or {}
        if not given or given.get("contract") == Contract.V1:
            return None
        hyperfleet = HyperFleet(settle(HYPERFLEET, given["apiUrl"]))
        generation = hyperfleet.deletion(cluster)
        return None if generation is None else (hyperfleet, generation)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretVersionArgs:
    """External pull secret, and the entry that gets it as a version.

    `owner`: key of its digest. `namespace`: of the cluster's Secret, for which it is read. `source`: from
    `Source.properties`. `strict`: whether doubts are errors. `additional`: further sources to merge.
    """

    project: Input[str] = field(metadata=IDENTITY)
    secret_id: Input[str] = field(metadata=IDENTITY)
    owner: str
    namespace: Input[str] = field(compare=False)
    source: Properties
    strict: bool
    additional: Sequence[Properties] | None = None


class PullSecretVersionProvider(FollowingProvider):
    """Adds a version with the source's content, unless the newest has it. Retention handles the others."""

    args = PullSecretVersionArgs
    outputs = ("version", "digest")
    named_by = ("secretId",)

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Reject sources that are unreadable or not pull secrets; print warnings."""
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
        """Add the version, and return its number and the digest of its content."""
        content, _ = self._read(open_secrets(self.cluster), props)
        manager = configured_secret_manager(self.configured)
        number = add_version(manager, _secret(props), content)
        return {"version": str(number), "digest": digest_of(props["owner"], content)}

    def is_current(self, props: Properties, digest: str) -> bool:
        """Return whether the version has the source's content."""
        content, _ = self._read(open_secrets(self.cluster), props)
        return digest_of(props["owner"], content) == digest

    def _read(self, secrets: KubernetesSecrets, props: Properties) -> tuple[bytes, Sequence[str]]:
        """Return the pull secret and messages about it; raises CredfleetError if it is invalid."""
        contents: list[bytes] = []
        lines: list[str] = []
        registries: dict[str, Sequence[str]] = {}
        for given in (props["source"], *(props.get("additional") or ())):
            source = Source(**given)
            content = content_of(source, props["namespace"], secrets, self.configured)
            verdict = judge(content, strict=props["strict"])
            for error in verdict.errors:
                raise PullSecretError.of(error, "unfit", f"{source.place} ({error.place})")
            contents.append(content)
            lines += [f"{WARNING}{source.place}: {doubt}" for doubt in verdict.warnings]
            registries[source.place] = verdict.registries
        return merge(contents) if contents[1:] else contents[0], [*lines, *list_winners(registries)]


class PullSecretCopyProvider(MarkedProvider):
    """Writes the cluster's Secret from the verified version."""

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret."""
        del recipe, places
        return TYPE, {KEY: contents[0]}


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretVerificationArgs:
    """Added version. `digest`: of its expected content (`digest_of`).

    `namespace`, `secret_name`: of the cluster's Secret, which must have the same content.
    """

    project: Input[str]
    secret_id: Input[str]
    version: Input[str] = field(metadata=NUMBER)
    owner: str
    digest: Input[str] = field(metadata=SECRET)
    namespace: Input[str] = field(compare=False)
    secret_name: str = field(compare=False)


class PullSecretVerificationProvider(DynamicProvider):
    """Reads back the added version. It creates nothing, so deletion does nothing.

    It is replaced, with the cluster's Secret, if that was lost.
    """

    args = PullSecretVerificationArgs
    named_by = ("secretId",)
    outputs = ("reference", "state", "latest", "overtaken", "verifiedAt")

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Return whether a refresh found the version unreadable, or it differs from the verified state.

        This is checked at every call; an unreachable service is no change.
        """
        if olds.get("state") != VersionState.ENABLED:
            return True
        if is_unknown(news):
            return False
        expected, told = _expected(news), str(olds["overtaken"])
        return _finds(
            lambda: (
                f"{expected.name}: {reason}"
                for reason in differences(configured_secret_manager(self.configured), expected, told)
            )
        )

    def lost(self, olds: Properties, news: Properties) -> Sequence[str]:
        """Return the Secret's name if the cluster's Secret was lost or changed, so it is replaced too."""
        where = ("namespace", "secretName")
        if any(not olds.get(key) or olds[key] != news[key] for key in where):
            return ()
        return ("secretName",) if _finds(lambda: self._undelivered(olds)) else ()

    def _undelivered(self, props: Properties) -> Iterator[str]:
        """Yield what is wrong with the cluster's Secret."""
        ref = SecretRef(props["namespace"], props["secretName"])
        found = open_secrets(self.cluster).get(ref)
        if found is None:
            yield f"Secret {ref} is gone; the update recreates it"
        elif not is_delivered(found.get("data") or {}, _expected(props)):
            yield f"Secret {ref} holds something else than it was given; the update recreates it"

    def create_resource(self, props: Properties) -> Properties:
        """Verify the first version."""
        return self._verified(props, before=0)

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Verify the version that replaced the last one."""
        same = all(olds.get(key) == news.get(key) for key in ("project", "secretId"))
        return self._verified(news, before=int(olds["version"]) if same else 0)

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return the present state of the version; None if not found."""
        standing = stand(configured_secret_manager(self.configured), _expected(props))
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
        if enable_again(configured_secret_manager(self.configured), expected):
            log(f"{expected.name} was disabled, and is enabled again")
        standing, disabled = verify(configured_secret_manager(self.configured), expected, before)
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
            "verifiedAt": now(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretRetentionArgs:
    """Version in use, and the retention of others: on replacement, and when the cluster leaves."""

    project: Input[str] = field(metadata=IDENTITY)
    secret_id: Input[str] = field(metadata=IDENTITY)
    version: Input[int] = field(metadata=NUMBER)
    on_replace: Retention
    on_delete: Retention


class PullSecretRetentionProvider(DynamicProvider):
    """Applies the retention to versions that are no longer required."""

    args = PullSecretRetentionArgs
    named_by = ("secretId",)
    outputs = ("replaced",)

    def create_resource(self, _props: Properties) -> Properties:
        """Record the version; there is none before it."""
        return {"replaced": ""}

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Apply `onReplace` to former versions; the new one is already verified.

        If it was `keep` until now, it applies to all former versions.
        """
        former, now, secret = int(olds["version"]), int(news["version"]), _secret(news)
        retention = Retention(news["onReplace"])
        were_kept = olds["onReplace"] == Retention.KEEP != retention
        if former == now and not were_kept:
            return {}
        manager, since = configured_secret_manager(self.configured), 1 if were_kept else former
        replaced = settle_replaced(manager, secret, retention, since=since, former=former, now=now)
        log(f"{secret}: {replaced}")
        return {"replaced": replaced}

    def delete_resource(self, _id: str, props: Properties) -> None:
        """Apply `onDelete` to all versions; the cluster's Secret is already deleted."""
        secret, retention = _secret(props), Retention(props["onDelete"])
        try:
            log(f"{secret} {settle_all(configured_secret_manager(self.configured), secret, retention)}")
        except SecretManagerError as error:
            if error.code != "absent":
                raise


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretStatusArgs:
    """Report. `conditions`: type, status, reason and message of each. `data`: other fields for HyperFleet.

    `contract`: of the API; its change is ignored. `api_url`: with port 0 the sandbox's, at any address.
    """

    api_url: str = field(compare=False)
    cluster: str = field(metadata=IDENTITY)
    generation: int = field(metadata=NUMBER)
    conditions: Input[Sequence[Mapping[str, str]]]
    data: Input[Mapping[str, Input[str]]]
    contract: str = field(default=Contract.V2.value, compare=False)


class PullSecretStatusProvider(DynamicProvider):
    """Reports to HyperFleet, which drops reports with their cluster.

    A failed report changes nothing else, and is repeated later.
    """

    args = PullSecretStatusArgs
    outputs = ("reportedAt", "trouble")
    named_by = ("cluster",)

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Return whether the last report failed, or went to another URL."""
        moved = news["apiUrl"] != olds.get("apiUrl") and not leaves_port_open(news["apiUrl"])
        return moved or bool(olds.get("trouble"))

    def create_resource(self, props: Properties) -> Properties:
        """Report; HyperFleet replaces the adapter's last report."""
        reported_at = now()
        document = report(int(props["generation"]), props["conditions"], props["data"], reported_at)
        try:
            hyperfleet = HyperFleet(settle(HYPERFLEET, props["apiUrl"]), Contract(props["contract"]))
            hyperfleet.report(props["cluster"], document)
        except CredfleetError as error:
            return {"reportedAt": "", "trouble": str(error)}
        return {"reportedAt": reported_at, "trouble": ""}


def _expected(props: Properties) -> Expected:
    return Expected(
        project=props["project"],
        secret_id=props["secretId"],
        version=int(props["version"]),
        owner=props["owner"],
        digest=props["digest"],
    )


def _finds(look: Callable[[], Iterator[str]]) -> bool:
    """Log what a check finds, and return whether it found anything; False if it fails."""
    try:
        reasons = [*look()]
    except CredfleetError:
        return False
    for reason in reasons:
        log(reason)
    return bool(reasons)


def _secret(props: Properties) -> str:
    return secret_name(props["project"], props["secretId"])
