"""`credfleet preview-report`: what it says of a preview, and what it can never say."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from components.account_pool.forecast.claims import ClaimForecast, ForecastKind, Vacancy
from components.account_pool.forecast.forecast import lines, unseen_lines
from components.seals import COULD_NOT
from components.skipped_lines import skipped_lines
from operations.main import app
from operations.preview_report.digest import parse
from operations.preview_report.markdown import LIMIT, code, render
from operations.preview_report.review import Review, review
from tests.operations.previews import CLAIM, NAMESPACE, SECRET, claim, digest, said, step, urn
from tests.support.cases import tabled

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs/examples/preview/dev.json"
POOL = "credfleet:index:AccountPool"


def reviewed(*steps: dict[str, Any], **more: Any) -> Review:
    return review(parse(digest(*steps, **more), "p.json"))


def comment(*steps: dict[str, Any], **more: Any) -> str:
    return render(reviewed(*steps, **more), "p.json")


def forecast(expected: Sequence[ClaimForecast], left: Sequence[Vacancy] = ()) -> dict[str, Any]:
    return said("\n".join(lines(expected, left)))


def section(text: str, title: str) -> str:
    return text.partition(f"### {title}\n")[2].partition("\n### ")[0]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def run(*arguments: str, given: bytes | None = None) -> Ran:
    done = CliRunner().invoke(app, ["preview-report", *arguments], input=given)
    return Ran(done.exit_code, done.stdout, done.stderr)


# What comes first


def test_what_is_lost_is_said_before_anything_else():
    assert "CAUTION" not in comment(step("create", "a", SECRET))
    text = comment(
        step("create", "a", SECRET),
        step("delete", "account-pool-aws-1", POOL, SECRET),
        step("replace", "acme-namespace", NAMESPACE, new={"metadata": {}}, replaceReasons=["metadata.name"]),
        claim("create", "acme", "aws"),
    )
    assert text.splitlines()[0].endswith("1 to replace, 1 to delete, 2 to create")
    assert "**1 replaced and 1 deleted.**" in text
    table = section(text, "Replaced and deleted")
    assert table.index("**REPLACE** | <code>acme-namespace") < table.index(
        "**DELETE** | <code>account-pool-aws-1"
    )
    assert "<code>metadata</code>" in table
    titles = [line for line in text.splitlines() if line.startswith("### ")]
    assert titles == [
        "### Replaced and deleted",
        "### Policies",
        "### Claims",
        "### Free accounts",
        "### Changes by tenant",
    ]


def test_the_steps_of_a_replacement_are_one_change():
    found = reviewed(
        *(step(op, "a", SECRET) for op in ("create-replacement", "replace", "delete-replaced")),
    )
    assert [(each.action, each.name) for each in found.changes] == [("replace", "a")]


@pytest.mark.parametrize(
    "more",
    [
        {"diagnostics": [said("it broke", "error")]},
        {"policyEvents": [{"policyName": "no-dust", "enforcementLevel": "mandatory"}]},
    ],
    ids=["an error", "a mandatory rule"],
)
def test_a_failed_preview_says_so(more: dict[str, Any]):
    assert "**The preview failed**" in comment(step("create", "a", SECRET), **more)
    assert "**The preview failed**" not in comment(step("create", "a", SECRET))


def test_the_same_steps_in_any_order_give_the_same_review():
    document = json.loads(EXAMPLE.read_text())
    texts: set[str] = set()
    for seed in range(5):
        random.Random(seed).shuffle(document["steps"])
        random.Random(seed).shuffle(document["diagnostics"])
        texts.add(render(review(parse(json.dumps(document).encode(), "")), "p.json"))
    assert len(texts) == 1


# For whom


@tabled("changed, owner")
def test_a_change_is_told_under_whose_it_is(changed: dict[str, Any], owner: str):
    (change,) = reviewed(changed).changes
    assert (change.tenant or change.owner) == owner


@pytest.mark.parametrize(
    ("type_", "inputs"),
    [
        (SECRET, {"metadata": {"name": "x", "namespace": "tenant-acme"}}),
        ("pulumi-python:dynamic/credfleet:SecretRead", {"namespace": "tenant-acme"}),
        ("pulumi-python:dynamic/credfleet:SecretProjection", {"targetNamespace": "tenant-acme"}),
    ],
)
@pytest.mark.parametrize("told_by", ["configuration", "declaration"])
@pytest.mark.parametrize("tenant", ["acme", "Acme_1", "a.B"])
def test_what_is_written_into_the_namespace_of_a_tenant_is_the_tenants(
    type_: str, inputs: dict[str, Any], told_by: str, tenant: str
):
    tenants = json.dumps({tenant: {"namespace": "tenant-acme"}})
    configuration = {"config": {"credfleet:tenants": tenants}} if told_by == "configuration" else {}
    namespace = step(
        "create",
        f"{tenant}-namespace",
        NAMESPACE,
        new={"metadata": {"name": "tenant-acme", "labels": {"credfleet.io/tenant": tenant}}},
    )
    declared = [namespace] if told_by == "declaration" else []
    changes = reviewed(*declared, step("delete", "x", type_, old=inputs), **configuration).changes
    assert [each.tenant for each in changes if each.name == "x"] == [tenant]


@pytest.mark.parametrize("tenants", ["[secret]", "7", '{"acme": 7}', '{"a b": {"namespace": "n"}}', None, {}])
def test_a_configuration_that_names_no_tenants_is_passed_over(tenants: object):
    deleted = step("delete", "x", SECRET, old={"metadata": {"name": "x", "namespace": "n"}})
    (change,) = reviewed(deleted, config={"credfleet:tenants": tenants}).changes
    assert change.tenant is None


def test_a_tenant_called_as_the_stack_is_told_apart_from_it():
    text = comment(claim("create", "stack", "aws"), step("create", "x", SECRET))
    rows = section(text, "Changes by tenant").splitlines()
    assert "| <code>stack</code> |  |  | 1 |  |  |" in rows
    assert "| stack |  |  | 1 |  |  |" in rows


def test_without_an_account_of_the_differences_inputs_are_compared_and_only_named():
    (change,) = reviewed(
        step(
            "update", "a", SECRET, old={"size": 1, "same": 1, "gone": 1, "__p": 1}, new={"size": 2, "same": 1}
        )
    ).changes
    assert change.properties == ("gone", "size")


def test_of_a_path_only_the_property_is_named_and_only_if_the_resource_has_it():
    paths = {"data.aws-key[0]": {}, 'config["x y"]': {}, '["gcp:project"]': {}, "hunter2": {}}
    had = {"data": {}, "config": {}, "gcp:project": ""}
    (change,) = reviewed(step("update", "a", SECRET, old=had, detailedDiff=paths)).changes
    assert change.properties == ("config", "data", "gcp:project")


def test_default_providers_are_no_news():
    assert not reviewed(
        {"op": "update", "urn": "urn:pulumi:dev::credfleet::pulumi:providers:pulumi-python::default"}
    ).changes


def test_an_operation_of_a_later_version_is_a_change_of_another_kind():
    (change,) = reviewed(step("transmute", "a", SECRET)).changes
    assert change.action == "other"


# Claims and the pool


def test_with_no_cluster_in_reach_claims_and_accounts_are_unknown():
    text = comment(
        claim("create", "acme", "aws"),
        diagnostics=[said("\n".join(unseen_lines("account-pool", "x: y\n→ z")))],
    )
    assert "unknown: no cluster in reach |" in section(text, "Claims")
    assert "Unknown: no cluster was in reach" in section(text, "Free accounts")


def test_what_nobody_told_of_claims_is_not_made_up():
    text = comment(claim("create", "acme", "aws"))
    assert "| not reported |" in section(text, "Claims")
    assert "Unknown: the preview does not report them." in section(text, "Free accounts")
    assert "As they are" in section(comment(step("create", "a", SECRET)), "Free accounts")


# Policies


def objection(rule: str, level: str) -> dict[str, Any]:
    return {"policyName": rule, "enforcementLevel": level, "resourceUrn": urn("a", SECRET), "message": "no"}


def skipped(
    what: str, *reasons: str, by: str = "cls-2", type_: str = "credfleet:index:PullSecret"
) -> dict[str, Any]:
    return said("\n".join(skipped_lines({what: "; ".join(reasons)})), about=urn(by, type_))


def test_a_skipped_pull_secret_is_told_with_what_its_cluster_waits_for():
    reasons = ("no GCP project is named", "adapter dns reports False")
    found = reviewed(diagnostics=[skipped("pull secret cls-2", *reasons)])

    assert found.document()["skipped"] == [{"what": "pull secret cls-2", "reasons": reasons}]
    row = f"| {code('pull secret cls-2')} | {'; '.join(map(code, reasons))} |"
    assert row in section(render(found, "p.json"), "Skipped")


@tabled("what, why")
def test_all_that_is_skipped_is_in_the_review(what: str, why: str):
    found = reviewed(diagnostics=[skipped(what, why, by="fleet", type_="credfleet:index:Fleet")])

    assert found.document()["skipped"] == [{"what": what, "reasons": (why,)}]


def test_a_reason_that_quotes_strange_text_is_left_to_the_log():
    strange = skipped("pull secret cls-2", "its provider is <b>, and Secret Manager is only there on gcp")
    elsewhere = skipped("pull secret x", "no GCP project is named", type_="credfleet:index:AccountPool")

    assert reviewed(diagnostics=[strange, elsewhere]).document()["skipped"] == [
        {"what": "pull secret cls-2", "reasons": ("the log says why",)}
    ]


def test_mandatory_rules_come_before_advisory_ones():
    text = comment(policyEvents=[objection("a-rule", "advisory"), objection("b-rule", "mandatory")])
    table = section(text, "Policies")
    assert "| **MANDATORY** | <code>b-rule</code> | <code>a</code> |" in table
    assert table.index("b-rule") < table.index("a-rule")


def test_what_rules_could_not_decide_is_one_row_a_rule_behind_what_they_refuse():
    unseen = [
        {**objection(rule, "mandatory"), "message": COULD_NOT}
        for rule in ("a-rule", "b-rule")
        for _ in range(30)
    ]
    of_many = [{**each, "resourceUrn": urn(f"r{n}", SECRET)} for n, each in enumerate(unseen)]
    rows = section(comment(policyEvents=[*of_many, objection("z-rule", "advisory")]), "Policies")
    told = [row for row in rows.splitlines() if row.startswith("| ") and "rule</code>" in row]
    assert [row.split("<code>")[1].partition("<")[0] for row in told] == ["z-rule", "a-rule", "b-rule"]
    assert told[1].endswith("… 22 more |")


def test_no_objection_and_no_policies_are_told_apart():
    assert "✓ No rule objects." in section(comment(policyEvents=[]), "Policies")
    assert "Unknown" in section(comment(), "Policies")


# What reads


def events(*told: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps({"sequence": n, **each}) for n, each in enumerate(told)).encode()


def test_a_stream_of_events_says_what_the_digest_says_and_what_policies_say():
    changed = claim("update", "acme", "aws", old={"limit": 1}, new={"limit": 2, "type": "aws"})
    told = forecast([ClaimForecast("acme", "aws", "aws", ForecastKind.REUSE, "expected to reuse aws-1")])
    metadata = {"op": "update", "urn": changed["urn"], "old": changed["oldState"], "new": changed["newState"]}
    stream = events(
        {"preludeEvent": {"config": {}}},
        {"policyLoadEvent": {}},
        {"resourcePreEvent": {"metadata": metadata}},
        {"diagnosticEvent": told},
        {"diagnosticEvent": {"message": "passing", "severity": "error", "ephemeral": True}},
        {"policyEvent": objection("a-rule", "advisory")},
        {"summaryEvent": {"resourceChanges": {"update": 1, "same": 3}, "result": "succeeded"}},
    )
    of_stream = review(parse(stream, ""))
    of_digest = reviewed(changed, diagnostics=[told], policyEvents=[objection("a-rule", "advisory")])
    assert of_stream.document()["claims"][0]["expected"] == "expected to reuse aws-1"
    assert of_stream.document() == of_digest.document()


def test_what_errors_warnings_and_policies_say_goes_to_the_log_and_is_no_command_to_a_runner():
    text = {"message": "no <key>\n ::add-mask::x\n"}
    stream = events(
        {"preludeEvent": {}},
        *({"diagnosticEvent": {**text, "severity": each}} for each in ("error", "warning", "info")),
        {"policyLoadEvent": {}},
        {"policyEvent": {**text, "policyName": "p", "enforcementLevel": "mandatory"}},
        {"summaryEvent": {"result": "failed"}},
    )
    shown = run("-", given=stream)
    assert shown.err.count("no <key>\n") == 3
    assert "\n ::" not in shown.err
    assert "no <key>" not in shown.out


def test_a_stream_that_breaks_off_is_a_failed_preview():
    assert review(parse(events({"preludeEvent": {}}), "")).failed


def test_what_is_nested_deeper_than_any_preview_is_refused(tmp_path: Path):
    (tmp_path / "p.json").write_text('{"steps": ' + "[" * 100_000)
    assert "p.json: it is nested deeper" in run(str(tmp_path / "p.json")).err


@tabled("content")
def test_what_is_no_preview_is_refused_in_two_lines_that_quote_nothing_of_it(content: str, tmp_path: Path):
    path = tmp_path / "p.json"
    path.write_text(content)
    ran = run(str(path))
    assert ran.code == 1
    assert ran.out == ""
    assert [line[0] for line in ran.err.splitlines()] == ["✗", "→"]
    assert "p.json: " in ran.err
    assert "hunter2" not in ran.err


def test_a_file_that_is_not_there_is_refused_as_json_when_json_was_asked_for(tmp_path: Path):
    ran = run(str(tmp_path / "none.json"), "--format", "json")
    assert (ran.code, json.loads(ran.out)["error"]["code"]) == (2, "file-unreadable")


def test_a_preview_is_read_from_standard_input():
    ran = run("-", "--format", "json", given=digest(claim("create", "acme", "aws")))
    assert ran.code == 0
    assert json.loads(ran.out)["claims"][0]["tenant"] == "acme"


# What it can never say

CANARIES = (
    "AKIAHUNTER2HUNTER2HU",
    "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
    '{"clientSecret":"hunter2"}',
    "aHVudGVyMg==",
    "hunter2 | `hunter2`",
)
_NAMES = frozenset(
    {"op", "urn", "parent", "type", "severity", "policyName", "enforcementLevel", "resourceUrn"}
)
"""Fields that hold names of resources, types, rules: the review is made of them."""


def poisoned(value: Any, canary: str, key: str = "", depth: int = 0) -> Any:
    """Put the canary into every text, and into every name of a value below the properties."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        deep = {"data": {canary: canary}} if key in ("inputs", "outputs") else {}
        paths = {f"data.{canary}": {"kind": canary}, f'data["{canary}"]': {}} if key == "detailedDiff" else {}
        return {name: poisoned(each, canary, name, depth + 1) for name, each in items} | deep | paths
    if isinstance(value, list):
        return [poisoned(each, canary, key, depth + 1) for each in cast("list[Any]", value)]
    if isinstance(value, str) and (key not in _NAMES or depth > 5):
        return canary
    return value


def example_as_events() -> Iterator[dict[str, Any]]:
    document = json.loads(EXAMPLE.read_text())
    yield {"preludeEvent": {"config": document["config"]}}
    for each in document["steps"]:
        yield {
            "resourcePreEvent": {
                "metadata": {
                    **each,
                    "old": each["oldState"],
                    "new": each["newState"],
                    "diffs": each["diffReasons"],
                }
            }
        }
    yield from ({"diagnosticEvent": each} for each in document["diagnostics"])
    yield {"policyLoadEvent": {"policyPackName": "p"}}
    yield {
        "policyEvent": {
            "policyName": "a",
            "enforcementLevel": "mandatory",
            "message": "m",
            "policyPackName": "p",
        }
    }


@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize("form", ["digest", "events"])
def test_no_value_of_a_preview_is_in_its_review(canary: str, form: str):
    if form == "digest":
        document = json.loads(EXAMPLE.read_text())
        document["policyEvents"] = [{**objection("a", "advisory"), "policyPackName": "p"}]
        document["diagnostics"] += [said("m", "error"), {**said("m", "warning"), "prefix": "p"}]
        content = json.dumps(poisoned(document, canary)).encode()
    else:
        content = events(*(poisoned(each, canary) for each in example_as_events()))
    assert content.count(json.dumps(canary)[1:-1].encode()) > 100
    found = review(parse(content, "p.json"))
    assert len(found.changes) > 20
    for text in (render(found, "p.json"), json.dumps(found.document(), ensure_ascii=False)):
        assert "hunter2" not in text.lower()
        assert canary not in text


def test_a_provider_that_quotes_a_value_in_an_error_is_not_quoted():
    text = comment(
        step("create", "a", SECRET),
        diagnostics=[said("property text value {hunter2} has a problem", "error", urn("a", SECRET))],
    )
    assert "| error | <code>a</code> | 1 |" in section(text, "Errors and warnings")
    assert "hunter2" not in text


# What cannot break a comment


@tabled("name")
def test_a_name_cannot_become_markup(name: str):
    odd = step("delete", name, SECRET)
    plain = comment(step("delete", "x", SECRET))
    text = comment(odd)
    assert len(text.splitlines()) == len(plain.splitlines())
    text.encode()
    for line in text.splitlines():
        shape = line.replace("&#8203;", "")
        if "<code>" in shape and "deleted" not in shape:
            inner = (
                shape.replace("<code>", "").replace("</code>", "").replace("<sub>", "").replace("</sub>", "")
            )
            assert "<" not in inner
            assert "@" not in inner
            assert "`" not in inner
    assert "http:" not in text
    assert "https:" not in text.replace("https&#58;", "")
    assert "www." not in text


@given(st.text(max_size=200))
def test_shown_as_code_any_text_holds_nothing_but_plain_characters_and_entities(text: str):
    shown = code(text).removeprefix("<code>").removesuffix("</code>")
    rest = shown.replace("&#", "").replace(";", "")
    assert not set(rest) & set("<>|`@#[]*_~\\&\n\r!$")


def test_a_review_of_a_thousand_changes_fits_a_comment_and_says_what_it_left_out():
    steps = [step("delete", f"gone-{index:05}-{'|' * 100}", SECRET) for index in range(200)]
    steps += [claim("create", f"tenant-{index:04}", "aws") for index in range(800)]
    text = comment(*steps)
    assert len(text) < LIMIT
    assert "gone-00000" in text
    assert "more**, left out of this comment" in text
    assert text.rstrip().endswith(
        "<sub>All of it: <code>credfleet preview-report p.json --format json</code></sub>"
    )
    assert len(reviewed(*steps).document()["changes"]) == 1000


def test_a_thousand_losses_do_not_push_out_that_policies_object_or_claims_fail():
    steps = [step("delete", f"gone-{index:05}", SECRET) for index in range(1000)]
    steps += [claim("create", "acme", "aws")]
    text = comment(*steps, policyEvents=[objection("b-rule", "mandatory")])
    assert len(text) < LIMIT
    assert "<code>b-rule</code>" in text
    assert "### Claims" in text


# Documentation


def test_the_sample_in_the_documentation_is_what_the_command_writes():
    ran = run(str(EXAMPLE))
    assert ran.code == 0
    assert Path(__file__).with_name("dev.txt").read_text() == ran.out


def test_the_sample_is_a_review_with_everything_in_it():
    found = review(parse(EXAMPLE.read_bytes(), ""))
    assert found.losses
    assert found.doomed
    assert found.forecast.vacancies
    assert found.skipped
    assert any(
        step["urn"].split("::")[2].endswith(CLAIM) for step in json.loads(EXAMPLE.read_text())["steps"]
    )
