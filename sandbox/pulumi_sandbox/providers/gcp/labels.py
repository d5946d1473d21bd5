"""Which labels a secret bears: those declared, the provider's own, and what others put beside them.

Labels are not authoritative: only those declared here are compared and set back, all others stay as they are.
The rules are those of the genuine provider's plan for `labels`, `pulumiLabels` and `effectiveLabels`.
"""

from __future__ import annotations

from typing import Final

from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value, contains_unknown
from pulumi_sandbox.providers.gcp.options import Options

ATTRIBUTION: Final[Properties] = {"goog-pulumi-provisioned": "true"}


def planned(declared: Value, recorded: Properties | None, options: Options) -> Properties:
    """Return the outputs `labels`, `pulumiLabels` and `effectiveLabels` as declared labels ask for them.

    `recorded` are the outputs of the secret, None for a new one.
    """
    if contains_unknown(declared):
        return {"labels": declared, "pulumiLabels": UNKNOWN, "effectiveLabels": UNKNOWN}
    own: Properties = {**options.labels}
    before = _object((recorded or {}).get("effectiveLabels"))
    if _is_attributed(recorded, before, options):
        own |= ATTRIBUTION
    own |= _object(declared)
    return {
        "labels": _object(declared),
        "pulumiLabels": own,
        "effectiveLabels": {**_others(before, (recorded or {}).get("pulumiLabels")), **own},
    }


def planned_annotations(declared: Value, recorded: Properties | None) -> Properties:
    """Return the outputs `annotations` and `effectiveAnnotations` as declared annotations ask for them."""
    if contains_unknown(declared):
        return {"annotations": declared, "effectiveAnnotations": UNKNOWN}
    before, own = recorded or {}, _object(declared)
    others = _others(_object(before.get("effectiveAnnotations")), before.get("annotations"))
    return {"annotations": own, "effectiveAnnotations": {**others, **own}}


def live_part(live: Value, recorded: Value) -> Properties:
    """Return what is live of the keys that are recorded."""
    present = _object(live)
    return {key: present[key] for key in _object(recorded) if key in present}


def _is_attributed(recorded: Properties | None, before: Properties, options: Options) -> bool:
    if options.attribution == "never":
        return False
    return recorded is None or options.attribution == "always" or ATTRIBUTION.keys() <= before.keys()


def _others(present: Properties, own: Value) -> Properties:
    owned = _object(own)
    return {key: value for key, value in present.items() if key not in owned}


def _object(value: Value) -> Properties:
    return value if isinstance(value, dict) else {}
