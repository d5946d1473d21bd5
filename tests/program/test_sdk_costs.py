"""What the program saves of the SDK's costs, beside the same program without."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from pulumi.runtime.settings import SETTINGS

from components.sdk_costs import settle
from tests.support import pulumi_shell
from tests.support.fleet_project import FleetProject

PLAIN = f"""from components.fleet import Fleet
from components.stack_config.stack import Settings
{chr(10) * 11}Fleet("fleet", Settings.load()).export()
"""
"""The program without it; what it declares stands in the same line."""

_OF_THE_RUN = ("created", "modified", "stackTrace")


def resources(project: FleetProject) -> dict[str, dict[str, Any]]:
    """URN → what the state has of what is declared, but for secrets: each run encrypts them again."""
    text = pulumi_shell.state_of(project.folder, project.stack).read_text(encoding="utf-8")
    state = json.loads(re.sub(r"\"v1:[^\"]+", '"', text))
    found = state["checkpoint"]["latest"]["resources"]
    return {each["urn"]: each for each in found if each["type"] != "pulumi:pulumi:Stack"}


def comparable(resource: dict[str, Any]) -> dict[str, Any]:
    """Return what two runs have in common; dependencies come in the order in which they ended."""
    found = {key: each for key, each in resource.items() if key not in _OF_THE_RUN}
    by_property = {key: {*urns} for key, urns in found.get("propertyDependencies", {}).items()}
    return {**found, "dependencies": {*found.get("dependencies", ())}, "propertyDependencies": by_property}


def test_state_with_costs_saved_differs_in_stack_traces_alone(project: FleetProject) -> None:
    program = project.folder / "__main__.py"
    saving = program.readlink()
    program.unlink()
    program.write_text(PLAIN, encoding="utf-8")
    project.up().quiet()
    project.up("--refresh").quiet()
    plain = resources(project)
    program.unlink()
    program.symlink_to(saving)

    project.pulumi("preview", "--expect-no-changes").quiet()
    project.up("--refresh").quiet()
    saved = resources(project)

    assert saved.keys() == plain.keys()
    for urn, each in saved.items():
        assert comparable(each) == comparable(plain[urn])
        assert each.get("stackTrace", ()) == plain[urn].get("stackTrace", ())[:1]


def test_settle_with_failed_output_leaves_it_to_the_sdk() -> None:
    async def fail() -> None:
        raise ValueError("as the SDK shall see it")

    async def later() -> None:
        await asyncio.Event().wait()

    async def program() -> set[Any]:
        settings: Any = SETTINGS
        failing, pending = asyncio.ensure_future(fail()), asyncio.ensure_future(later())
        settings.outputs |= {failing, pending}
        await settle()
        left = {*settings.outputs} & {failing, pending}
        settings.outputs.clear()
        pending.cancel()
        return {type(each.exception()) for each in left if each.done()}

    assert asyncio.run(program()) == {ValueError}


def test_debug_messages_of_the_sdk_arrive_where_the_cli_is_asked(project: FleetProject) -> None:
    message = "debug: registering resource: ty=credfleet"
    assert message not in project.pulumi("preview", "--debug").quiet().said
    asked = FleetProject(
        project.folder, project.kubeconfig, project.pool, {**project.trust, "PULUMI_OPTION_DEBUG": "true"}
    )
    assert message in asked.preview().said
