"""Configuration of a stack: one immutable model, read once, with all problems reported together."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field, InstanceOf, PrivateAttr, WithJsonSchema

from components.account_pool.members_file import ExistingMember, read_members
from components.account_pool.rules import Pool
from components.account_pool.settings import AccountPool, Slot
from components.account_pool.settings_review import Stated, review_accounts, review_pool
from components.aso_credentials.settings import AsoCredentials
from components.config.document import read_as_meant, unfit_values, well_formed, without_values
from components.config.field_types import ConfigModel, FilePath, Flag, Name, config_error, optional
from components.config.places import begins, locate
from components.config.section import (
    Account,
    Dangling,
    ReviewContext,
    Section,
    Written,
    review_written,
)
from components.config.shards import Stacks
from components.credentials import KEY, Credentials, read_credentials
from components.documents import read_json
from components.errors import ConfigurationError, Problem
from components.naming import config_path
from components.open_ports import is_in_environment
from components.pull_secret.settings import PullSecretsSection
from components.secret_stores.certificate_files import read_certificates
from components.secret_stores.settings import SecretStoresSection
from components.service_credentials.settings import Services
from components.stack_config import cloud_keys
from components.stack_config.models import Cluster, Tenant
from components.stack_config.review import (
    review_cluster,
    review_far_accounts,
    review_names,
    review_namespaces,
    review_ranges,
    usable_namespaces,
)
from components.stack_config.tenant_files import KEY as TENANTS_FROM
from components.stack_config.tenant_files import TenantFiles, read_tenants

NAMESPACE: Final = "credfleet:"
_CANCELLED_CALLS: Final = ("Exception: context canceled", "Resource monitor has terminated, shutting down")
"""Ends of the SDK's messages about calls that the engine canceled because something else failed."""

SIZE_LIMIT: Final = 100 * 1024
"""In bytes. The CLI passes the configuration in one environment string; Linux limits that to 131,071."""

_OPEN_PORT: Final = re.compile(r"\b(127\.0\.0\.1|localhost):0\b")

_CREDENTIALS_SCHEMA: Final = {
    "type": "object",
    "description": "Name → credential: JSON text, other text, or base64:… for bytes; each one encrypted.",
    "additionalProperties": {
        "type": "object",
        "properties": {"secure": {"type": "string"}},
        "required": ["secure"],
        "additionalProperties": False,
    },
}


def _section(*, of: type[ConfigModel]) -> BeforeValidator:
    """Return a validator of a section: `{}` means no section; any other empty value is rejected."""

    def read(given: object) -> object:
        if not given and given != {}:
            raise config_error(
                "it is empty, not {}: taken as absent, the next update would delete all that it declared",
                "give its keys, {} to declare nothing, or remove it",
            )
        return given or None

    return BeforeValidator(read, json_schema_input_type=of)


class Settings(ConfigModel):
    """Configuration of a stack. `load` and `parse` create it, and check its parts together."""

    cluster: Cluster = Cluster()
    credentials: Annotated[InstanceOf[Credentials], WithJsonSchema(_CREDENTIALS_SCHEMA)] = Field(
        default_factory=lambda: Credentials({})
    )
    tenants: Mapping[Name, Tenant] = {}
    tenants_from: FilePath | None = optional("Folder of files NAME.yaml, each with what is one tenant's.")
    held_as: Name | None = optional("Stack under whose name this one holds accounts and owns what it writes.")
    allow_removals: Flag = optional("Whether many removals are allowed in one update.", False)
    account_pool: Annotated[AccountPool | None, _section(of=AccountPool)] = None
    aso_credentials: Annotated[AsoCredentials | None, _section(of=AsoCredentials)] = None
    pull_secrets: Annotated[PullSecretsSection | None, _section(of=PullSecretsSection)] = None
    services: Annotated[Services | None, _section(of=Services)] = None
    secret_stores: Annotated[SecretStoresSection | None, _section(of=SecretStoresSection)] = None
    _files: str = PrivateAttr(default="")
    _located: Callable[[Iterable[Problem]], Iterable[Problem]] = PrivateAttr(default=tuple)

    @property
    def files(self) -> str:
        """Digest of what other files than the stack's declare; empty if nothing."""
        return self._files

    @classmethod
    def load(cls) -> Self:
        """Read the configuration of the running stack; problems end the program without traceback.

        From here on, the Pulumi CLI does too: it interrupts a program once a resource was rejected, and the
        SDK would show a traceback of its own code above the reason.
        """
        import pulumi
        from pulumi.runtime.config import CONFIG, get_config_env, is_config_secret

        sys.excepthook = _without_interruptions
        pulumi.log.error = _without_cancelled_calls(pulumi.log.error)
        values = {**get_config_env(), **CONFIG.get()}
        try:
            _refuse_open_ports(values)
            settings = cls.parse(
                values, {*filter(is_config_secret, values)}, Path.cwd(), stack=pulumi.get_stack()
            )
            settings.refuse_what_cannot_run()
        except ConfigurationError as error:
            problems = locate(error.problems, Path.cwd() / f"Pulumi.{pulumi.get_stack()}.yaml")
            raise pulumi.RunError(str(ConfigurationError(problems))) from None
        return settings

    @classmethod
    def parse(
        cls,
        values: Mapping[str, str],
        secret_keys: Collection[str],
        root: Path,
        sealed: Collection[Sequence[str | int]] = (),
        stack: str = "",
    ) -> Self:
        """Parse a configuration as passed by the CLI.

        `values`: full key → string, for all namespaces; objects as JSON. `secret_keys`: full keys that
        contain secrets. `root`: directory of Pulumi.yaml. `sealed`: full key and path of values that were not
        decrypted, which are null and not judged. `stack`: whose tenants to read from files (`shards.py`).
        Raises ConfigurationError with all problems.
        """
        credentials, unreadable = read_credentials(
            values.get(NAMESPACE + KEY, "{}"),
            secret=NAMESPACE + KEY in secret_keys,
            sealed={str(path[1]) for path in sealed if path[0] == NAMESPACE + KEY and len(path) > 1},
        )
        document: dict[str, Any] = {
            key.removeprefix(NAMESPACE): _decoded(text)
            for key, text in values.items()
            if key.startswith(NAMESPACE)
        }
        document[KEY] = credentials
        is_ours = Stacks.read(root).tenants_of(stack)
        files = read_tenants(document.get(TENANTS_FROM), root, is_ours)
        rows = _joined(document, root)
        strange = (*files.join(document), *_unfit_in_classes(files))
        misspelt = (*read_as_meant(cls, document), *read_certificates(document, root))
        rows = rows or _joined(document, root) or _Rows()
        stated = _stated(document, rows)
        absent = without_values(document)
        settings, malformed = well_formed(cls, document)
        faulty = {each.place for each in malformed}
        absent = tuple(each for each in absent if not _follows(each, malformed) or each.place in faulty)
        malformed = (*absent, *(each for each in malformed if not _follows(each, absent)))
        whole = [each for each in unreadable if each.place == config_path(KEY)]
        context = replace(settings.review_context(root, (*malformed, *whole)), confined=files.confined)
        review = chain(settings._review(stated, context, rows), review_ranges(settings.tenants, is_ours))
        unknown = {config_path(str(path[0]).removeprefix(NAMESPACE), *path[1:]) for path in sealed}
        written = (*_foreign(values, secret_keys), *unreadable, *misspelt, *strange, *malformed)
        found = (*written, *(each for each in review if not _follows(each, written)))
        known = files.located(problem for problem in found if problem.place not in unknown)
        if problems := [*_told_once(_in_rows(known, rows))]:
            raise ConfigurationError(problems)
        settings._files = files.digest(each.entry for each in rows.declared.values())
        settings._located = files.located
        return settings

    def warnings(self) -> Iterable[Problem]:
        """Return the warnings of an update, as far as the configuration shows them."""
        found = (section.warnings(self.credentials) for section in self.sections)
        return self._located(chain.from_iterable(found))

    @property
    def sections(self) -> Sequence[Section]:
        """The configured sections of components."""
        rooms = (self.services, self.aso_credentials, self.pull_secrets, self.secret_stores)
        return [section for section in rooms if section is not None]

    def review_context(self, root: Path, malformed: Sequence[Problem] = ()) -> ReviewContext:
        """Return what sections can refer to. `malformed`: problems of removed parts."""
        return ReviewContext(
            tenants={name: tenant.namespace for name, tenant in self.tenants.items()},
            namespaces=usable_namespaces(self.tenants, self.cluster),
            accounts={
                f"{name}/{slot}": Account(tenant.namespace, self.type_of(account), account.deliver_to)
                for name, tenant in self.tenants.items()
                for slot, account in tenant.accounts.items()
            },
            pool=self.account_pool and self.account_pool.namespace,
            credentials=self.credentials,
            root=root,
            faulty=tuple(problem.place for problem in malformed),
        )

    def type_of(self, account: Slot) -> str | None:
        """Return the type of a tenant's account; None if no pool serves it."""
        served_by = self.account_pool and account.pool(self.account_pool.ruleset)
        return served_by.type if isinstance(served_by, Pool) else None

    def _review(self, stated: Stated, context: ReviewContext, rows: _Rows) -> Iterator[Problem]:
        pool, existing = self.account_pool, rows.existing
        writes = any((self.tenants, pool, self.sections))
        yield from review_cluster(self.cluster, writes=writes and context.whole("cluster"))
        yield from review_namespaces(self.tenants, self._taken_namespaces())
        yield from review_names(self.tenants, self.sections)
        if pool is not None:
            problems = rows.problems
            if pool.members_from is not None and not context.whole("accountPool.partitionKeys"):
                read, problems = read_members(context.root / pool.members_from, None)
                existing = [row for row in read if row.credentials_from is None]
            yield from problems
            yield from review_pool(pool, existing, stated, context)
        accounts = {name: tenant.accounts for name, tenant in self.tenants.items()}
        yield from review_accounts(accounts, pool, existing, stated, context)
        for section in self.sections:
            yield from section.review(context)
        if pool is not None and pool.is_in_other_cluster:
            yield from review_far_accounts(
                chain.from_iterable(section.sources() for section in self.sections)
            )
        sources = chain.from_iterable(
            section.sources() for section in (*self.sections, *filter(None, [pool]))
        )
        yield from review_written(self.written(), sources)

    def refuse_what_cannot_run(self) -> None:
        """Raise ConfigurationError if a required cloud SDK is not installed."""
        lacking: list[Problem] = []
        if self.pull_secrets is not None:
            lacking += cloud_keys.review_sdk("gcp", self.pull_secrets.place())
        if self.aso_credentials is not None and self.aso_credentials.is_in_azure:
            lacking += cloud_keys.review_sdk("azure", self.aso_credentials.place())
        if lacking:
            raise ConfigurationError(lacking)

    def _taken_namespaces(self) -> Mapping[str, str]:
        """Return the namespaces that tenants cannot have → their owners."""
        taken = dict.fromkeys(self.cluster.existing_namespaces, "others, by cluster.existingNamespaces")
        if self.aso_credentials is not None:
            taken[self.aso_credentials.operator.namespace] = "Azure Service Operator"
        if self.account_pool is not None:
            taken |= self.account_pool.owners
        return taken

    def written(self) -> Iterator[Written]:
        """Yield every Secret that the stack writes."""
        if self.account_pool is not None:
            yield from self.account_pool.written()
        for name, tenant in self.tenants.items():
            yield from tenant.written(name)
        for section in self.sections:
            yield from section.written()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Members of files. `declared`: by the place of the entry made from a row."""

    existing: Sequence[ExistingMember] = ()
    declared: Mapping[str, ExistingMember] = field(default_factory=dict[str, ExistingMember])
    problems: Sequence[Problem] = ()


def _joined(document: Mapping[str, Any], root: Path) -> _Rows | None:
    """Read the rows of `membersFrom`, and add declared ones to the configuration; None without it."""
    pool = document.get("accountPool")
    path = pool.get("membersFrom") if isinstance(pool, dict) else None
    if not isinstance(pool, dict) or not isinstance(path, str) or not path:
        return None
    keys = pool.get("partitionKeys", [])
    rows, problems = read_members(root / path, _names(keys) if isinstance(keys, list) else None)
    members = pool.setdefault("members", {})
    existing: list[ExistingMember] = []
    declared: dict[str, ExistingMember] = {}
    for row in rows:
        place = config_path("accountPool", "members", row.name)
        if row.credentials_from is None or not isinstance(members, dict) or row.name in members:
            existing.append(row)  # duplicate names are reported like those of any row
        else:
            members[row.name] = row.entry
            declared[place] = row
    return _Rows(existing, declared, problems)


def _unfit_in_classes(files: TenantFiles) -> Iterator[Problem]:
    """Yield invalid values in classes without tenants; such a tenant would report missing ones."""
    for each in files.idle:
        alone, document = TenantFiles((each,)), dict[str, Any]()
        deque(alone.join(document), maxlen=0)
        yield from alone.located(unfit_values(Settings, document))


def _in_rows(problems: Iterable[Problem], rows: _Rows) -> Iterator[Problem]:
    """Yield problems, moving those of entries from rows to their rows."""
    for each in problems:
        places = (each.place[:end] for end in range(len(each.place), 0, -1)) if rows.declared else ()
        row = next((row for place in places if (row := rows.declared.get(place))), None)
        if row is None or each.at is not None:
            yield each
        else:
            within = each.place.removeprefix(config_path("accountPool", "members", row.name))
            yield replace(each, place=f"{row.place} {within.lstrip('.')}".rstrip(), at=row.at)


def _follows(problem: Problem, written: Iterable[Problem]) -> bool:
    """Return whether a problem is in a part that is already reported as invalid."""
    return any(begins(problem.place, each.place) for each in written)


def _told_once(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Report references to the same missing thing once, at the first place, with the others named."""
    first: dict[str, list[Problem]] = {}
    told = list(problems)
    for each in told:
        if isinstance(each, Dangling):
            first.setdefault(each.problem, []).append(each)
    for each in told:
        alike = first.get(each.problem, [each])
        if each is alike[0]:
            others = ", ".join(dict.fromkeys(other.place for other in alike[1:]))
            yield replace(each, problem=f"{each.problem} (also at {others})") if others else each


def _decoded(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return text


def _stated(document: Mapping[str, Any], rows: _Rows) -> Stated:
    pool = document.get("accountPool")
    pool = pool if isinstance(pool, dict) else {}
    return Stated(
        tenants=_names(document.get("tenants")),
        members=_names(pool.get("members")),
        partition_keys=_names(pool.get("partitionKeys")),
        rows={row.name: row.place for row in rows.declared.values()},
    )


def _names(given: object) -> tuple[str, ...]:
    return tuple(name for name in given if isinstance(name, str)) if isinstance(given, dict | list) else ()


def _foreign(values: Mapping[str, str], secret_keys: Collection[str]) -> Iterator[Problem]:
    """Check what is not only ours: the total size, cloud credentials, and ignored keys."""
    size = len(json.dumps(dict(values), ensure_ascii=False).encode())
    if size > SIZE_LIMIT:
        yield Problem(
            "configuration",
            f"it has {size:,} bytes, and a program is started with {SIZE_LIMIT:,} at most:"
            " the CLI passes it in one environment string, which Linux bounds",
            "put tenants into files of their own (tenantsFrom), and name accounts whose Secrets exist already"
            " in the file of accountPool.membersFrom"
            + (
                "; name the file of certificates: caBundle: {file: …}"
                if any('"caBundle"' in text for text in values.values())
                else ""
            ),
        )
    yield from cloud_keys.review_cloud_keys(values)
    plain = {*cloud_keys.plain_logins(values, secret_keys)}
    yield from map(cloud_keys.in_plain, sorted(plain))
    for key in values:
        namespace, _, name = key.partition(":")
        if (cloud := cloud_keys.cloud_meant(namespace)) is not None:
            yield Problem(
                key,
                "keys of this namespace are not read, so it would be ignored",
                f"did you mean {cloud}:{name}?",
            )
        if (near := _meant(key)) is not None:
            yield Problem(
                key,
                "keys of this namespace are not read, so what is below it would count as absent, and the"
                " next update would delete it",
                f"did you mean {near}?",
            )
        if key.startswith("kubernetes:") and key not in plain:
            yield Problem(
                key,
                "the program's Kubernetes provider is its own and reads no such key, so it would be ignored",
                "remove it; the cluster is chosen by credfleet:cluster",
            )


def _meant(key: str) -> str | None:
    """Return our key that a key of an unknown namespace resembles, or None."""
    namespace, _, name = key.partition(":")
    own = {field.alias or name for name, field in Settings.model_fields.items()}
    alike = difflib.get_close_matches(namespace.lower(), [NAMESPACE.removesuffix(":")], cutoff=0.75)
    if namespace + ":" == NAMESPACE or namespace in cloud_keys.NAMESPACES or not (alike or name in own):
        return None
    return NAMESPACE + next(iter(difflib.get_close_matches(name, own, n=1)), name)


def _without_interruptions(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


def _without_cancelled_calls(log: Callable[..., None]) -> Callable[..., None]:
    def error(message: str, *rest: Any, **named: Any) -> None:
        if not message.rstrip().endswith(_CANCELLED_CALLS):
            log(message, *rest, **named)

    return error


def _refuse_open_ports(values: Mapping[str, str]) -> None:
    """Raise ConfigurationError for addresses with port 0 whose variables are not set in the shell."""
    fix = 'run `credfleet sandbox up`, then: eval "$(credfleet sandbox env)"; or write the port'
    open_ones = [
        key
        for key, text in values.items()
        if key != NAMESPACE + KEY and _OPEN_PORT.search(text) and not is_in_environment(key)
    ]
    if open_ones:
        raise ConfigurationError(
            Problem(key, "it leaves a port open, which the sandbox chooses", fix) for key in open_ones
        )
