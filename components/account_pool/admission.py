"""What the API server itself refuses in a pool, rule by rule in CEL, and the manifests that say so.

The protocol keeps its own promises; these keep everybody else from breaking them: kubectl, another
controller, a program with a fault. They are in force about a second after they were written. Written against
every write of the protocol (`changes.py` for members, `protocol.py` for records), all of which pass. A
Secret is judged as a member if it was one or becomes one. An empty text stands for an absent key. Who may do
what is asked of RBAC, by virtual verbs on `accounts` in group `credfleet.io`: `claim`, `clean`, `operate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from components.account_pool.config_map import CONFIG_MAP, POOL_UID
from components.account_pool.dialect import Dialect
from components.account_pool.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    POOL_RECORD,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_BEFORE,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.model import JsonObject, Policy
from components.labels import ACCOUNT_ID, BRING_YOUR_OWN, HYPERSCALER_TYPE, SHARED, TENANT_NAME

API_VERSION: Final = "admissionregistration.k8s.io/v1"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"

GUARDED: Final = ("members", "records", "settings")
"""What has a policy and a binding, in the order they are drawn."""


def admission_manifests(
    namespace: str, *, allow_destroy: bool = False, dialect: Dialect | None = None
) -> tuple[JsonObject, ...]:
    """Draw the policies of the pool in a namespace, each before the binding that puts it into force.

    allow_destroy: the pool may be thrown away, so nothing is kept from being deleted. dialect: of the pool.
    """
    drawn = (
        ("secrets", IS_MEMBER, MEMBER_VARIABLES, MEMBER_RULES),
        ("configmaps", IS_RECORD, RECORD_VARIABLES, RECORD_RULES),
        ("configmaps", IS_SETTINGS, SETTINGS_VARIABLES, SETTINGS_RULES),
    )
    manifests: list[JsonObject] = []
    for what, (resource, condition, variables, rules) in zip(GUARDED, drawn, strict=True):
        name = f"credfleet-{what}.{namespace}"
        kept = [rule for rule in rules if not (allow_destroy and rule.on == "DELETE")]
        policy = _policy(name, resource, condition, variables, kept)
        if dialect is not None and resource == "secrets":
            policy = dialect.expressions(policy)
        manifests += policy, _binding(name, namespace)
    return tuple(manifests)


def _policy(
    name: str, resource: str, condition: str, variables: Mapping[str, str], rules: Iterable[Rule]
) -> JsonObject:
    rules = tuple(rules)
    return {
        "apiVersion": API_VERSION,
        "kind": POLICY,
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": sorted({rule.on for rule in rules}),
                        "resources": [resource],
                    }
                ]
            },
            "matchConditions": [{"name": "belongs-to-the-pool", "expression": condition}],
            "variables": [{"name": key, "expression": value} for key, value in variables.items()],
            "validations": [_validation(rule) for rule in rules],
        },
    }


def _validation(rule: Rule) -> JsonObject:
    return {
        "expression": f"request.operation != '{rule.on}' || ({rule.allows})",
        "message": f"{rule.name}: {rule.message}",
        "reason": "Forbidden",
    }


def _binding(policy: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": BINDING,
        "metadata": {"name": policy},
        "spec": {
            "policyName": policy,
            "validationActions": ["Deny"],
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            },
        },
    }


VIRTUAL_GROUP: Final = "credfleet.io"
VIRTUAL_RESOURCE: Final = "accounts"
"""Objects that do not exist; rights on them do."""

CLAIM: Final = "claim"
CLEAN: Final = "clean"
OPERATE: Final = "operate"


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing the API server refuses: a write of kind `on` that does not satisfy the CEL in `allows`."""

    name: str
    on: Literal["CREATE", "UPDATE", "DELETE"]
    allows: str
    message: str


def _map(moment: str, kind: str) -> str:
    return f"{moment} == null ? {{}} : {moment}.metadata.?{kind}.orValue({{}})"


def _entry(variable: str, key: str) -> str:
    return f"variables.{variable}[?'{key}'].orValue('')"


def _before_and_after(noun: str, kind: str, key: str) -> dict[str, str]:
    return {f"old{noun}": _entry(f"old{kind}", key), f"new{noun}": _entry(f"new{kind}", key)}


def _datum(noun: str, key: str) -> dict[str, str]:
    return {
        f"{age}{noun}": f"{moment} == null ? '' : {moment}.?data[?'{key}'].orValue('')"
        for age, moment in (("old", "oldObject"), ("new", "object"))
    }


def _has_label(key: str) -> str:
    return " || ".join(
        f"({moment} != null && '{key}' in {moment}.metadata.?labels.orValue({{}}))"
        for moment in ("object", "oldObject")
    )


def _may(*verbs: str) -> dict[str, str]:
    return {
        f"may{verb.capitalize()}": f"authorizer.group('{VIRTUAL_GROUP}').resource('{VIRTUAL_RESOURCE}')"
        f".namespace(request.namespace).check('{verb}').allowed()"
        for verb in verbs
    }


def _alike(kind: str, *but: str) -> str:
    """Return whether all entries of a map but some are as they were."""
    others = ", ".join(f"'{key}'" for key in but)
    return (
        f"variables.old{kind}.all(key, key in [{others}] || (key in variables.new{kind}"
        f" && variables.new{kind}[key] == variables.old{kind}[key]))"
        f" && variables.new{kind}.all(key, key in [{others}] || key in variables.old{kind})"
    )


_COMPARED: Final = 500
"""How many entries are compared with each other; more are counted only, or the API server would give up."""


def _entries(noun: str, pattern: str) -> dict[str, str]:
    """Return the entries of a JSON object in a text, and how many came and went."""
    lists = {age: f"variables.{age}{noun}List" for age in ("old", "new")}

    def beyond(one: str, other: str) -> str:
        return (
            f"{one}.size() > {_COMPARED} || {other}.size() > {_COMPARED}"
            f" ? ({one}.size() > {other}.size() ? {one}.size() - {other}.size() : 0)"
            f" : {one}.filter(entry, !(entry in {other})).size()"
        )

    return {
        **{f"{age}{noun}List": f"variables.{age}{noun}.findAll(r'{pattern}')" for age in lists},
        f"come{noun}": beyond(lists["new"], lists["old"]),
        f"gone{noun}": beyond(lists["old"], lists["new"]),
    }


def _json(entry: str) -> str:
    """Return the pattern of a JSON object of such entries, as the protocol writes one."""
    return f"^[{{]({entry}(, {entry})*)?[}}]$"


_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_PLACE: Final = rf'"claim-[^"\\]*": {_TEXT}'
_HOLDER: Final = rf"{_TEXT}: [0-9]+"


def _number(variable: str) -> str:
    """Return the number in a text, 0 when there is none."""
    text = f"variables.{variable}"
    return f"({text}.matches('^[0-9]{{1,18}}$') ? int({text}) : 0)"


def _same(*fields: str) -> str:
    return " && ".join(
        f"object.{field}.orValue({empty}) == oldObject.{field}.orValue({empty})"
        for field, empty in ((field, _EMPTY[field]) for field in fields)
    )


_REFERENCES: Final = "metadata.?ownerReferences"
_FINALIZERS: Final = "metadata.?finalizers"
_LOCK: Final = "?immutable"
_LABELS: Final = "metadata.?labels"
_NOTES: Final = "metadata.?annotations"
_BYTES: Final = "?binaryData"
_EMPTY: Final = {
    _REFERENCES: "[]",
    _FINALIZERS: "[]",
    _LOCK: "false",
    _LABELS: "{}",
    _NOTES: "{}",
    _BYTES: "{}",
}

_NAME: Final = "(object == null ? oldObject : object).metadata.name"
"""Unlike `request.name`, it is there when many are deleted at once."""

IS_MEMBER: Final = _has_label(HYPERSCALER_TYPE)
IS_RECORD: Final = f"{_NAME}.startsWith('claim-') || {_has_label(POOL_RECORD)}"
IS_SETTINGS: Final = f"{_NAME} == '{CONFIG_MAP}'"

MEMBER_VARIABLES: Final[Mapping[str, str]] = {
    **_may(CLAIM, CLEAN, OPERATE),
    "oldLabels": _map("oldObject", "labels"),
    "newLabels": _map("object", "labels"),
    "oldNotes": _map("oldObject", "annotations"),
    "newNotes": _map("object", "annotations"),
    **_before_and_after("Type", "Labels", HYPERSCALER_TYPE),
    **_before_and_after("Shared", "Labels", SHARED),
    **_before_and_after("Owner", "Labels", TENANT_NAME),
    **_before_and_after("State", "Labels", POOL_STATE),
    **_before_and_after("Token", "Notes", CLAIM_TOKEN),
    **_before_and_after("Origin", "Notes", CLAIM_ORIGIN),
    **_before_and_after("Policy", "Notes", CLAIM_POLICY),
    **_before_and_after("Tenant", "Notes", TENANT_ID),
    **_before_and_after("Cleaning", "Notes", CLEANING_TOKEN),
    **_before_and_after("Reason", "Notes", STATE_REASON),
    **_before_and_after("Before", "Notes", STATE_BEFORE),
    **_before_and_after("Sharing", "Notes", SHARED_CLAIMS),
    **_before_and_after("Brought", "Notes", BRING_YOUR_OWN),
    **_before_and_after("Account", "Notes", ACCOUNT_ID),
    **_before_and_after("Capacity", "Notes", SHARED_CAPACITY),
    **_entries("Sharing", _PLACE),
    "isHeld": "variables.oldToken != '' || !(variables.oldSharing in ['', '{}'])",
    "isReleased": "variables.oldToken != '' && variables.newToken == ''",
    "isFromPool": "variables.oldOrigin == 'pool'",
    "isClaimChanged": "variables.mayClaim && variables.oldToken != variables.newToken",
    "isCleaned": "variables.mayClean && 'cleaning' in [variables.oldState, variables.newState]",
    "isUnclaimed": " && ".join(
        f"variables.new{noun} == ''"
        for noun in (
            "Owner",
            "State",
            "Token",
            "Origin",
            "Policy",
            "Tenant",
            "Cleaning",
            "Reason",
            "Before",
            "Sharing",
            "Brought",
        )
    ),
}

_ASK: Final = f"or ask for the verb {{}} on {VIRTUAL_RESOURCE}.{VIRTUAL_GROUP}"

_DELETES_OR_LOCKS: Final = (
    "owner references, finalizers and `immutable` let others delete it, or keep it from going and from"
    f" rotating; leave them, {_ASK.format(OPERATE)}"
)
_NOTHING_WITH_IT: Final = Rule(
    "nothing-new-is-deleted-or-locked-with-another",
    "CREATE",
    f"variables.mayOperate || (object.{_REFERENCES}.orValue([]).size() == 0"
    f" && object.{_FINALIZERS}.orValue([]).size() == 0 && !object.{_LOCK}.orValue(false))",
    _DELETES_OR_LOCKS,
)
_POLICIES: Final = str([str(policy) for policy in Policy])

MEMBER_RULES: Final = (
    Rule(
        "a-new-account-is-unclaimed",
        "CREATE",
        "variables.mayOperate || variables.isUnclaimed",
        "a new account has no owner, no state and no trace of a claim; leave them out. One that its tenant"
        " brought along is made by operators; " + _ASK.format(OPERATE).removeprefix("or "),
    ),
    Rule(
        "an-owner-never-changes-at-once",
        "UPDATE",
        "variables.oldOwner == '' || variables.newOwner == '' || variables.oldOwner == variables.newOwner",
        "the account would go from one tenant to another in one step, with all the first has left in it;"
        " release it, let it be cleaned, then claim it",
    ),
    Rule(
        "an-owner-stays-while-claimed",
        "UPDATE",
        "variables.oldOwner == '' || variables.newOwner != '' || variables.newToken == ''",
        "the account is claimed and would lose its owner; run `credfleet pool release` instead",
    ),
    Rule(
        "an-owner-is-written-by-claims",
        "UPDATE",
        "variables.oldOwner == variables.newOwner || variables.mayOperate"
        " || (variables.mayClaim && variables.newToken != '')"
        " || (variables.mayClaim && variables.isReleased && variables.isFromPool)"
        " || (variables.mayClean && variables.isFromPool"
        " && variables.oldState == 'cleaning' && variables.newState == '')",
        f"{TENANT_NAME} is written by claims and cleaners; run `credfleet pool claim` or `release`, "
        + _ASK.format(OPERATE),
    ),
    Rule(
        "a-token-is-written-by-claims",
        "UPDATE",
        "variables.mayOperate || ((variables.mayClaim || variables.oldSharing == variables.newSharing)"
        " && (variables.oldToken == variables.newToken"
        " || (variables.mayClaim && (variables.oldToken == '' || variables.newToken == ''))))",
        "a token is what a claim is known by; run `credfleet pool release` or `sweep`, " + _ASK.format(CLAIM),
    ),
    Rule(
        "a-used-account-is-cleaned-before-it-is-free",
        "UPDATE",
        "variables.newState != '' || variables.oldState == ''"
        " || (variables.mayClean && variables.oldState == 'cleaning')"
        " || (variables.oldState == 'quarantined' && variables.oldBefore == ''"
        " && !(variables.oldToken == '' && variables.isFromPool))"
        " || !(variables.oldState in ['dirty', 'cleaning', 'quarantined'])",
        "the account was used, and the next tenant would find what is left in it; run `credfleet pool clean`,"
        " or `unquarantine`, which leaves it to the cleaner",
    ),
    Rule(
        "a-claimed-account-is-not-cleaned",
        "UPDATE",
        "variables.newState != 'cleaning' || variables.oldState == 'cleaning'"
        " || (variables.oldState == 'dirty' && !variables.isHeld && variables.newToken == '')",
        "only a dirty account that nobody holds is cleaned, else its tenant would lose what runs in it;"
        " release it first",
    ),
    Rule(
        "a-state-is-written-by-those-who-may",
        "UPDATE",
        "variables.oldState == variables.newState"
        " || (variables.newState in ['', 'dirty', 'cleaning', 'quarantined'] && (variables.mayOperate"
        " || (variables.mayClaim && variables.isReleased)"
        " || (variables.mayClean && 'cleaning' in [variables.oldState, variables.newState])))",
        f"{POOL_STATE} is dirty, cleaning, quarantined or absent, and written by releases, cleaners and"
        " operators; run `credfleet pool clean`, `quarantine` or `unquarantine`",
    ),
    Rule(
        "what-a-claim-noted-stays",
        "UPDATE",
        "variables.mayOperate || (variables.oldBrought == variables.newBrought"
        " && (variables.isClaimChanged || variables.oldPolicy == variables.newPolicy)"
        " && (variables.isCleaned || (variables.oldCleaning == variables.newCleaning"
        " && variables.oldBefore == variables.newBefore))"
        " && (variables.isCleaned || variables.isClaimChanged || variables.oldReason == variables.newReason)"
        " && (variables.isClaimChanged"
        " || (variables.oldOrigin == variables.newOrigin && variables.oldTenant == variables.newTenant)"
        " || (variables.isCleaned && variables.oldState == 'cleaning'"
        " && variables.newOrigin in ['', variables.oldOrigin]"
        " && variables.newTenant in ['', variables.oldTenant])))",
        "these annotations say what is to become of the account, and change with its claim only; leave them",
    ),
    Rule(
        "an-unused-account-is-claimed",
        "UPDATE",
        "variables.mayOperate || variables.oldToken != '' || variables.newToken == ''"
        " || (variables.oldState == '' && variables.newState == '' && variables.newOwner != ''"
        f" && variables.newPolicy in {_POLICIES} && variables.newOrigin"
        " == (variables.oldOwner != '' && variables.oldOrigin == '' ? 'owner' : 'pool'))",
        "a claim takes an account without a state, for a tenant, and notes whether it was that tenant's"
        " before; run `credfleet pool claim`",
    ),
    Rule(
        "a-release-ends-as-a-policy-says",
        "UPDATE",
        "variables.mayOperate || !variables.isReleased || (variables.newPolicy == ''"
        " && (variables.newOrigin in ['', variables.oldOrigin]"
        " || (variables.isFromPool && variables.newOrigin == 'retained'))"
        " && ((variables.newOwner == variables.oldOwner && variables.newState == variables.oldState)"
        " || (variables.isFromPool && variables.newOwner == '' && variables.newOrigin == ''"
        " && variables.newState == variables.oldState)"
        " || (variables.isFromPool && variables.newOwner == variables.oldOwner"
        " && variables.newOrigin == 'pool' && variables.oldState != 'quarantined'"
        " && variables.newState in ['dirty', 'quarantined'])))",
        "a release takes the token off and leaves the account free, retained, dirty or quarantined; run"
        " `credfleet pool release`",
    ),
    Rule(
        "places-are-taken-and-left-one-by-one",
        "UPDATE",
        "variables.mayOperate || variables.oldSharing == variables.newSharing"
        f" || (variables.newSharing.matches(r'{_json(_PLACE)}')"
        " && (variables.comeSharing == 0 ? variables.goneSharing <= 1 : variables.goneSharing == 0"
        " && variables.comeSharing == 1"
        f" && variables.newSharingList.size() <= {_number('newCapacity')}))",
        "each claim takes one place on a shared account and leaves that one; run `credfleet pool claim` or"
        " `release`",
    ),
    Rule(
        "an-account-enters-unclaimed",
        "UPDATE",
        f"'{HYPERSCALER_TYPE}' in variables.oldLabels || variables.mayOperate || variables.isUnclaimed",
        "a Secret that becomes an account has no owner, no state and no trace of a claim; take them off it"
        " first, " + _ASK.format(OPERATE),
    ),
    Rule(
        "a-claimed-account-keeps-its-type",
        "UPDATE",
        f"!('{HYPERSCALER_TYPE}' in variables.oldLabels)"
        " || !(variables.isHeld || variables.oldState == 'cleaning')"
        " || (variables.oldType == variables.newType && variables.oldShared == variables.newShared)",
        f"the account is claimed or being cleaned, and is found by its {HYPERSCALER_TYPE}; release it first",
    ),
    Rule(
        "an-account-leaves-by-an-operator",
        "UPDATE",
        f"!('{HYPERSCALER_TYPE}' in variables.oldLabels) || '{HYPERSCALER_TYPE}' in variables.newLabels"
        " || (variables.mayOperate && !variables.isHeld && !(variables.oldState in ['dirty', 'cleaning']))",
        f"without its {HYPERSCALER_TYPE} nothing would guard the account; release and clean it, then "
        + _ASK.format(OPERATE).removeprefix("or "),
    ),
    Rule(
        "what-is-declared-stays",
        "UPDATE",
        "variables.mayOperate || !(variables.mayClaim || variables.mayClean || variables.isHeld"
        f" || variables.oldState == 'cleaning') || ({_alike('Labels', TENANT_NAME, POOL_STATE)}"
        " && variables.oldAccount == variables.newAccount && variables.oldCapacity == variables.newCapacity)",
        "claims and cleaners leave what the pool says of an account, and a claimed one keeps its part of the"
        " pool; change the stack that declares it, " + _ASK.format(OPERATE),
    ),
    _NOTHING_WITH_IT,
    Rule(
        "what-deletes-or-locks-is-an-operators",
        "UPDATE",
        f"variables.mayOperate || ({_same(_REFERENCES, _LOCK)} && ({_same(_FINALIZERS)}"
        " || (oldObject.metadata.?deletionTimestamp.hasValue()"
        f" && oldObject.{_FINALIZERS}.orValue([]).all(f, f in ['foregroundDeletion', 'orphan']))))",
        _DELETES_OR_LOCKS,
    ),
    Rule(
        "an-account-in-use-is-not-deleted",
        "DELETE",
        "!(variables.isHeld || variables.oldState in ['dirty', 'cleaning'])",
        "the account is claimed, or not clean; release and clean it, or give it up with"
        " `credfleet pool decommission` (its namespace stays as long as it does)",
    ),
)

RECORD_VARIABLES: Final[Mapping[str, str]] = {
    **_may(CLAIM, OPERATE),
    **_datum("Tenant", "tenant"),
    **_datum("Partition", "partition"),
    **_datum("Slot", "slot"),
    **_datum("Member", "member"),
    **_datum("Attempt", "attempt"),
    **_datum("Phase", "phase"),
    **_datum("Uid", "memberUid"),
    **_datum("Policy", "policy"),
    **_datum("Limit", "limit"),
    **_datum("Holders", "holders"),
    **_datum("Retired", "retired"),
    **_datum("Former", "formerUid"),
    **_entries("Holders", _HOLDER),
    "oldLabels": _map("oldObject", "labels"),
    "newLabels": _map("object", "labels"),
    **_before_and_after("Owner", "Labels", TENANT_NAME),
    **_before_and_after("Type", "Labels", HYPERSCALER_TYPE),
    "isLabelled": f"'{POOL_RECORD}' in variables.newLabels",
    "step": "variables.oldPhase + '>' + variables.newPhase",
    "isReadable": f"variables.newMember != '' && variables.newAttempt.matches('^[0-9]{{1,18}}$')"
    f" && variables.newPolicy in {_POLICIES} && variables.newLimit.matches('^[0-9]{{0,18}}$')"
    " && variables.newRetired.matches('^[0-9]{0,18}$')"
    f" && variables.newHolders.matches(r'{_json(_HOLDER)}')",
}

_UNREADABLE: Final = (
    "an account, an attempt, a policy or holders are missing or not what a claim writes; leave the record to"
    " `credfleet pool claim` and `release`"
)

RECORD_RULES: Final = (
    Rule(
        "a-new-record-is-pending",
        "CREATE",
        "variables.mayOperate"
        " || (variables.mayClaim && variables.newPhase == 'Pending' && variables.newAttempt == '1'"
        f" && variables.isLabelled && {_NAME}.startsWith('claim-'))",
        "claims begin as Pending, by the claim protocol; run `credfleet pool claim`, " + _ASK.format(CLAIM),
    ),
    Rule(
        "a-record-is-written-by-claims",
        "UPDATE",
        "variables.mayClaim || variables.mayOperate",
        "a record is written by its claim; run `credfleet pool claim` or `release`, " + _ASK.format(CLAIM),
    ),
    Rule("a-new-record-is-readable", "CREATE", "variables.mayOperate || variables.isReadable", _UNREADABLE),
    Rule("a-record-stays-readable", "UPDATE", "variables.mayOperate || variables.isReadable", _UNREADABLE),
    Rule(
        "a-record-stays-whose-it-is",
        "UPDATE",
        "variables.isLabelled && variables.oldTenant == variables.newTenant"
        " && variables.oldPartition == variables.newPartition && variables.oldSlot == variables.newSlot",
        "a record is found by its tenant, partition and slot; claim the other one, then release this one",
    ),
    Rule(
        "a-record-goes-forward",
        "UPDATE",
        "variables.mayOperate || variables.oldPhase == variables.newPhase"
        " || variables.step in"
        " ['Pending>Bound', 'Pending>Releasing', 'Bound>Releasing']",
        "a claim goes from Pending to Bound to Releasing, never back; `credfleet pool sweep` finishes it",
    ),
    Rule(
        "a-bound-record-keeps-its-account",
        "UPDATE",
        "variables.mayOperate || variables.oldPhase != 'Bound'"
        " || (variables.oldMember == variables.newMember && variables.oldAttempt == variables.newAttempt)",
        "its holders use the account, so it never names another one; release it and claim again",
    ),
    Rule(
        "accounts-are-tried-one-by-one",
        "UPDATE",
        "variables.mayOperate || (variables.oldMember == variables.newMember"
        " && variables.oldAttempt == variables.newAttempt"
        " && (variables.oldUid == variables.newUid || variables.step == 'Pending>Bound'))"
        " || (variables.step == 'Pending>Pending'"
        f" && {_number('newAttempt')} == {_number('oldAttempt')} + 1)",
        "another account is another attempt, of a claim that has none yet; leave it to"
        " `credfleet pool claim`",
    ),
    Rule(
        "policy-and-limit-are-agreed-while-bound",
        "UPDATE",
        "variables.mayOperate || variables.step == 'Bound>Bound'"
        " || (variables.oldPolicy == variables.newPolicy && variables.oldLimit == variables.newLimit)",
        "they stand from the first claim on and change while the account is held; claim it first",
    ),
    Rule(
        "holders-come-and-go-one-by-one",
        "UPDATE",
        "variables.mayOperate || variables.oldPhase == 'Pending' || (variables.comeHolders <= 1"
        " && variables.goneHolders <= 1 && (variables.newPhase == 'Bound' || variables.newHolders == '{}'))",
        "each holder joins and leaves by itself, and the last one ends the claim; run"
        " `credfleet pool release`",
    ),
    Rule(
        "a-record-never-forgets",
        "UPDATE",
        "variables.mayOperate || (variables.oldFormer == variables.newFormer"
        " && (variables.oldRetired == variables.newRetired"
        f" || {_number('newRetired')} > {_number('oldRetired')}))",
        "a holder who returned would be released by what it did before; leave `retired` and `formerUid`",
    ),
    Rule(
        "a-record-is-found-by-its-labels",
        "UPDATE",
        "variables.mayOperate || (variables.oldOwner in ['', variables.newOwner]"
        " && variables.oldType in ['', variables.newType])",
        "its labels repeat what it says; leave them",
    ),
    Rule(
        "nothing-else-becomes-a-record",
        "UPDATE",
        f"variables.mayOperate || '{POOL_RECORD}' in variables.oldLabels || {_NAME}.startsWith('claim-')",
        "a ConfigMap that no claim made would count as one; run `credfleet pool claim`",
    ),
    _NOTHING_WITH_IT,
    Rule(
        "what-deletes-or-locks-is-an-operators",
        "UPDATE",
        "variables.mayOperate || "
        + " && ".join(
            f"object.{field}.orValue([]).all(one, one in oldObject.{field}.orValue([]))"
            for field in (_REFERENCES, _FINALIZERS)
        )
        + f" && (!object.{_LOCK}.orValue(false) || oldObject.{_LOCK}.orValue(false))",
        _DELETES_OR_LOCKS,
    ),
    Rule(
        "a-bound-record-is-not-deleted",
        "DELETE",
        "variables.oldPhase != 'Bound'",
        "somebody holds the account it names, and could not be told from others without it; run"
        " `credfleet pool release` (its namespace stays as long as it does)",
    ),
)

SETTINGS_VARIABLES: Final[Mapping[str, str]] = {
    **_may(CLAIM, OPERATE),
    "oldData": "oldObject == null ? {} : oldObject.?data.orValue({})",
    "newData": "object == null ? {} : object.?data.orValue({})",
    "isAsBefore": "variables.oldData.all(key, key in variables.newData"
    " && variables.newData[key] == variables.oldData[key])"
    " && variables.newData.all(key, key in variables.oldData"
    f" || (variables.mayClaim && key == '{POOL_UID}' && variables.newData[key] == oldObject.metadata.uid))"
    f" && {_same(_BYTES, _LOCK, _LABELS, _NOTES, _REFERENCES, _FINALIZERS)}",
}

SETTINGS_RULES: Final = (
    Rule(
        "settings-are-made-by-operators",
        "CREATE",
        "variables.mayOperate",
        "they divide the pool, and claims under other keys would get second accounts; declare them in a stack"
        " and run `up`, " + _ASK.format(OPERATE),
    ),
    Rule(
        "settings-are-declared",
        "UPDATE",
        "variables.mayOperate || variables.isAsBefore",
        f"a claim writes nothing but {POOL_UID}, once; change them in the stack that declares them and run"
        " `up`, " + _ASK.format(OPERATE),
    ),
    Rule(
        "settings-stay",
        "DELETE",
        "variables.mayOperate || namespaceObject.metadata.?deletionTimestamp.hasValue()",
        "without them claims would get second accounts; remove the pool from the stack that declares it, "
        + _ASK.format(OPERATE),
    ),
)
