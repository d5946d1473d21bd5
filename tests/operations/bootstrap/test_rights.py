"""The rights that are printed for a stack are of what it declares, as it was deployed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from operations.bootstrap.rights import CLUSTER, Identity, declared, rights_of
from operations.config.settings import read_settings
from operations.stack.at_rest import StackAtRest
from tests.support.recorded_stacks import RECORDED, ROOT, exported_of, laid_out

_WRITES_SECRETS: Final = ("SecretProjection", "ServiceMigration", "SecretRead", "PullSecretCopy")


def _deployed(stack: str) -> set[tuple[str, str, str]]:
    """Namespace, API group and kind of what Pulumi's provider made, and of the Secrets of dynamic ones."""
    found: set[tuple[str, str, str]] = set()
    for each in json.loads(exported_of(stack))["deployment"]["resources"]:
        package, _, rest = str(each["type"]).partition(":")
        module, _, kind = rest.partition(":")
        inputs: dict[str, Any] = each.get("inputs", {})
        if package == "kubernetes":
            group = module.partition("/")[0]
            namespace = inputs["metadata"].get("namespace", CLUSTER)
            found.add((namespace, "" if group == "core" else group, kind))
        elif kind in _WRITES_SECRETS:
            found.add((inputs.get("targetNamespace") or inputs.get("namespace") or "", "", "Secret"))
    return found


def _plural(kind: str) -> str:
    return f"{kind.lower().removesuffix('y')}ies" if kind.endswith("y") else f"{kind.lower()}s"


@pytest.mark.parametrize("stack", ["dev", "prod", "staging"])
def test_declared_kinds_of_a_stack_are_what_was_deployed_of_it(
    stack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out(tmp_path, stack, monkeypatch)
    (tmp_path / f"Pulumi.{stack}.yaml").symlink_to(RECORDED / stack / f"Pulumi.{stack}.yaml")
    at_rest = StackAtRest.find(tmp_path, stack, backend_dir=tmp_path)
    settings = read_settings(at_rest)
    found = {(place, group, resource) for place, (group, resource) in declared(settings, ROOT)}
    azure = {place for place, group, _ in found if group.endswith(".azure.com")}
    made = {(place, group, _plural(kind)) for place, group, kind in _deployed(stack)}
    known = {(p, g, "*" if g.endswith(".azure.com") else r) for p, g, r in made}
    undeployed = {each for each in found - known if not each[1].startswith("external-secrets")}
    assert known <= found
    assert {resource for _, _, resource in undeployed} <= {"secrets"}, undeployed
    assert azure <= {place for place, *_ in made}
    for identity in (Identity.PREVIEW, Identity.DRIFT):
        rights = rights_of(identity, settings, ROOT)
        assert {verb for those in rights.values() for each in those for verb in each.verbs} == {"get", "list"}
        assert not any(each.resource == "secrets" for each in rights.get(CLUSTER, ()))
