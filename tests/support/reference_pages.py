"""What pages have from the code, each between comments `<!-- drawn: NAME -->` and `<!-- end -->`.

`python -m tests.support.reference_pages` draws all of it again.
"""

import inspect
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pulumi_policy import Policy, StackValidationPolicy
from typer.main import get_command

import credfleet
from components.account_pool.admission.roles import RIGHTS, Right, rights_to_bring
from components.account_pool.admission.state_machine import Verb
from components.account_pool.admission.transitions import list_state_machines
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.keys import CLAIM_TOKEN, SHARED_CAPACITY, SHARED_CLAIMS
from components.account_pool.core.model import Member
from components.account_pool.core.snapshot import PoolSnapshot
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME
from operations.cli.failures import EXIT_CODES, PAGES
from operations.main import app
from operations.pool.metrics import gauges_of, is_up
from tests.support import configuration_page
from tests.support.records import BOUND
from tests.support.stacks import ROOT

EXITS: Final = {
    0: "success",
    1: "failure: these, and every error that is not in this table",
    2: "invalid configuration or arguments",
    3: "no account can be claimed",
    4: "invalid pool or request; `aso explain`: the operator would not start",
    5: "permission denied",
    6: "preview: a required claim cannot be served",
    7: "changes, with `--expect-no-changes`",
    8: "interrupted",
    9: "`sandbox up`, `fleet up`: success, but something was skipped",
    10: "`stores explain`, `stores reach`: an answer is unknown",
}
_MANY: Final = 6
"""An option that this many commands have is listed once, above them."""

_WHO: Final = {
    Verb.CLAIM: "claimers",
    Verb.CLEAN: "cleaners",
    Verb.OPERATE: "operators",
    Verb.BRING: "bringers",
}
_BLOCK: Final = re.compile(r"(<!-- drawn: (\w+) -->).*?(<!-- end -->)", re.DOTALL)


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    line = "---".join("|" * head.count("|"))
    return "\n".join((head, line, *(f"| {' | '.join(cells)} |" for cells in rows)))


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())


def commands() -> str:
    found = [*_list_commands(get_command(app), "")]
    uses = Counter(option for _, command in found for option in _list_options(command))
    common = {option for option, count in uses.items() if count >= _MANY}
    text, group, met = "```text\n" + _render_options(sorted(common)), "", common
    for path, command in found:
        if path.split()[0] != group:
            group, met = path.split()[0], set(common)
            text += f"```\n\n### {group}\n\n```text\n"
        options = [each for each in _list_options(command) if each not in common]
        again = " ".join(name.partition(",")[0] for name, help_ in options if (name, help_) in met)
        text += f"{path:<26}{_first_paragraph(command.help)}\n"
        text += _render_options(each for each in options if each not in met)
        text += _render_options([("as above", again)] if again else [])
        met |= {*options}
    return f"{text}```"


def _list_commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    for word in sorted(getattr(command, "commands", ())):
        yield from _list_commands(command.commands[word], f"{path} {word}".strip())
    if not hasattr(command, "commands") or (path and command.invoke_without_command):
        yield path, command


def _list_options(command: Any) -> Iterator[tuple[str, str]]:
    for each in command.params:
        if not each.hidden:
            is_option = each.param_type_name == "option"
            needed = " Required." if is_option and each.required else ""
            name = ", ".join(each.opts)
            yield name if is_option else name.upper(), f"{each.help or ''}{needed}"


def _render_options(options: Iterable[tuple[str, str]]) -> str:
    return "".join(f"  {name:<24}{help_}\n" for name, help_ in options)


def errors() -> str:
    codes = defaultdict[int, list[str]](list)
    for code in sorted({*EXIT_CODES, *PAGES}):
        page = PAGES.get(code)
        linked = f"[`{code}`]({os.path.relpath(page, 'docs')})" if page else f"`{code}`"
        codes[EXIT_CODES.get(code, 1)].append(linked)
    rows = ((str(number), EXITS[number], ", ".join(codes[number])) for number in sorted({*EXITS, *codes}))
    return _table("| Exit code | Meaning | Error codes |", rows)


def policies() -> str:
    from pack import POLICIES

    return _table("| Rule | Level | Description | Configured by |", map(_cells_of_rule, POLICIES))


def _cells_of_rule(policy: Policy) -> tuple[str, ...]:
    level = policy.enforcement_level.value if policy.enforcement_level else ""
    where = ", whole stack" if isinstance(policy, StackValidationPolicy) else ""
    keys = policy.config_schema.properties if policy.config_schema else ()
    return f"`{policy.name}`", level + where, policy.description, ", ".join(f"`{key}`" for key in keys)


def metrics() -> str:
    """Return the gauges of a pool that has something to say of each label."""
    notes = {SHARED_CAPACITY: "2", SHARED_CLAIMS: '{"claim-0.u.1": "0"}'}
    shared = Member("s", "uid-s", "1", {HYPERSCALER_TYPE: "aws", SHARED: "true"}, notes)
    labels = {HYPERSCALER_TYPE: "aws", TENANT_NAME: "acme"}
    claimed = Member(
        "aws-1", "uid-aws-1", "1", labels, {CLAIM_TOKEN: str(BOUND.token)}, key_ends="2027-01-31"
    )
    settings = PoolConfigMap(("eu-access",), consumers=(Consumer("web", ("h",), quotas={"aws": 1}),))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    families = [*gauges_of("pool", PoolSnapshot((shared, claimed), (BOUND,)), settings, now)]
    rows = (
        (f"`{each.name}`", ", ".join(_list_labels(each)), each.documentation)
        for each in (is_up("pool", up=True), *families)
    )
    return _table("| Metric | Labels | Meaning |", rows)


def _list_labels(family: Any) -> Iterator[str]:
    for key in family.samples[0].labels:
        values = dict.fromkeys(sample.labels[key] for sample in family.samples)
        if key != "namespace":
            yield key.removesuffix("_eu_access") + f" ({' '.join(values)})" * (key in {"state", "phase"})


def rights() -> str:
    found = {**RIGHTS, Verb.BRING: rights_to_bring("TENANT")}
    rows = (
        (_WHO[Verb(verb)], "; ".join(_render_right(each) for each in needed if not each.group), f"`{verb}`")
        for verb, needed in found.items()
    )
    return _table("| Who | Kubernetes | Virtual verb on `accounts.credfleet.io` |", rows)


def _render_right(right: Right) -> str:
    return f"{right.resource} {', '.join(right.verbs)}" + "".join(f" of `{name}`" for name in right.names)


def steps() -> str:
    text = ""
    for machine in list_state_machines((), quotas=True):
        rows = (
            (each.does, ", ".join(_WHO[verb] for verb in each.by))
            for each in machine.transitions.values()
            if each.by
        )
        text += f"## {machine.name.capitalize()}\n\n{_table('| Step | Who |', rows)}\n\n"
    return text.rstrip()


def python() -> str:
    """Return the public names but for arguments, and an alias once."""
    names = sorted({*dir(credfleet)} - {*vars(credfleet)}, reverse=True)
    public = {getattr(credfleet, name): name for name in names if not name.endswith("Args")}
    rows = sorted((f"`{name}`", _first_paragraph(inspect.getdoc(each))) for each, name in public.items())
    return _table("| `from credfleet import` | Purpose |", rows)


BLOCKS: Final[Mapping[str, Callable[[], str]]] = {
    "commands": commands,
    "configuration": configuration_page.tables,
    "errors": errors,
    "metrics": metrics,
    "policies": policies,
    "python": python,
    "rights": rights,
    "steps": steps,
}


def drawn(page: str) -> str:
    """Return a page with what it has from the code as that is now."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n\n{BLOCKS[found[2]]()}\n\n{found[3]}", page)


def list_pages() -> Iterator[Path]:
    return (page for page in sorted((ROOT / "docs").rglob("*.md")) if _BLOCK.search(page.read_text("utf-8")))


if __name__ == "__main__":
    sys.path.append(str(ROOT / "policies"))
    for path in list_pages():
        path.write_text(drawn(path.read_text("utf-8")), "utf-8")
