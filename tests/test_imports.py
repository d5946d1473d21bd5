"""The arrows of the house: who may import whom, read from the imports themselves.

What import-linter says with wildcards stands in pyproject.toml, the rest here; each contract is shown to
catch an import that breaks it. Imports inside functions count, and so do those for type checkers alone.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import grimp
import pytest

from tests.support.cases import tabled

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "components": "components",
    "credfleet": "credfleet",
    "operations": "operations",
    "pulumi_sandbox": "sandbox/pulumi_sandbox",
}
FROZEN = {
    line.split(":")[0] for line in (ROOT / "tests" / "dynamic" / "frozen_paths.txt").read_text().splitlines()
}
PULUMI = {"pulumi", "pulumi_azure_native", "pulumi_gcp", "pulumi_kubernetes"}
ACTS = {"components.connection", "components.secret_manager"}
READS_THE_STACK = {"components.credentials", "components.sdk_costs", "components.stack_config.stack"}
DRIVES_THE_CLI = {
    "operations.fleet.backend",
    *(f"operations.sandbox.{name}" for name in ("deployment", "display", "updates")),
}
HOSTS = {f"operations.review.{name}" for name in ("dynamic_host", "gate", "language_host")}
"""What a review starts as processes of their own."""
DECLARES = re.compile(
    r"components\.(dynamic|fleet|holding|kubernetes_plugin|providers|recalled|refusing|waiting|wiring(\..+)?"
    r"|\w+\.(births|claim_forecast|component|one_writer|provider|remembered|resources|identity|service_account|eso_objects))"
)

Import: TypeAlias = tuple[str, str]
Contract: TypeAlias = Callable[[grimp.ImportGraph], set[Import]]


@pytest.fixture(scope="module")
def built() -> grimp.ImportGraph:
    return grimp.build_graph(
        "components",
        "credfleet",
        "operations",
        "policies",
        "pulumi_sandbox",
        include_external_packages=True,
        cache_dir=None,
    )


@pytest.fixture
def graph(built: grimp.ImportGraph) -> Iterator[grimp.ImportGraph]:
    """The imports as they are; what a test plants is taken out again."""
    before = imports(built)
    yield built
    for importer, imported in imports(built) - before:
        built.remove_import(importer=importer, imported=imported)


def imports(graph: grimp.ImportGraph) -> set[Import]:
    return {
        (module, each) for module in graph.modules for each in graph.find_modules_directly_imported_by(module)
    }


def declares(module: str) -> bool:
    """Whether a module makes resources: its name says so, or states name it."""
    return module in FROZEN or DECLARES.fullmatch(module) is not None


def pulumi_outside_of_components_providers_and_wiring(graph: grimp.ImportGraph) -> set[Import]:
    return {
        (importer, imported)
        for importer, imported in imports(graph)
        if imported in PULUMI
        and importer.startswith(("components.", "operations."))
        and importer not in READS_THE_STACK | DRIVES_THE_CLI | HOSTS
        and not declares(importer)
    }


def commands_that_reach_what_declares(graph: grimp.ImportGraph) -> set[Import]:
    return {
        (module, reached)
        for module in graph.modules
        if module.startswith("operations") and module not in HOSTS
        for reached in graph.find_upstream_modules(module)
        if declares(reached)
    }


def rooms_that_import_each_other(graph: grimp.ImportGraph) -> set[Import]:
    """A room is a package with a component; what rooms share is in none of them, or in `projection`."""
    rooms = {
        name.removesuffix(".component")
        for name in graph.modules
        if re.fullmatch(r"components\.\w+\.component", name)
    } - {"components.projection"}
    assert len(rooms) >= 5
    return {
        (importer, imported)
        for importer, imported in imports(graph)
        for room in rooms
        if importer.startswith(f"{room}.")
        for other in rooms - {room}
        if f"{imported}.".startswith(f"{other}.")
    }


def policies_that_import_more_than_words(graph: grimp.ImportGraph) -> set[Import]:
    """A policy pack runs in a host of its own: of the project it takes names and limits only."""
    return {
        (module, reached)
        for module in graph.modules
        if module.startswith("policies.")
        for reached in graph.find_upstream_modules(module)
        if reached.startswith(("operations", "pulumi_sandbox")) or reached in ACTS or declares(reached)
    }


def circles(graph: grimp.ImportGraph) -> set[Import]:
    """Imports between modules that reach each other; a policy imports another by its bare name."""
    bare = {name.removeprefix("policies."): name for name in graph.modules if name.startswith("policies.")}
    reached: dict[str, set[str]] = {
        module: {bare.get(each, each) for each in graph.find_modules_directly_imported_by(module)}
        for module in graph.modules
    }
    grown = True
    while grown:
        grown = False
        for module, known in reached.items():
            more = set[str]().union(*(reached.get(each, set()) for each in known))
            if not more <= known:
                reached[module] = known | more
                grown = True
    return {
        (importer, imported)
        for importer, imported in imports(graph)
        if importer in reached.get(bare.get(imported, imported), set())
    }


def test_no_module_hides_from_the_contracts(built: grimp.ImportGraph) -> None:
    """A folder without `__init__.py` would."""
    files = {
        ".".join((package, *path.relative_to(ROOT / folder).with_suffix("").parts)).removesuffix(".__init__")
        for package, folder in PACKAGES.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    assert len(files) > 300
    assert files <= built.modules


@pytest.mark.parametrize(
    "contract",
    [
        pulumi_outside_of_components_providers_and_wiring,
        commands_that_reach_what_declares,
        rooms_that_import_each_other,
        policies_that_import_more_than_words,
        circles,
    ],
)
def test_no_import_breaks(contract: Contract, graph: grimp.ImportGraph) -> None:
    assert contract(graph) == set()


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        (
            "components.account_pool.core.protocol",
            "pulumi",
            pulumi_outside_of_components_providers_and_wiring,
        ),
        ("components.naming", "pulumi_kubernetes", pulumi_outside_of_components_providers_and_wiring),
        ("operations.pool.cleaning", "pulumi", pulumi_outside_of_components_providers_and_wiring),
        *(
            ("operations.pool.cleaning", imported, commands_that_reach_what_declares)
            for imported in (
                *sorted(FROZEN),
                "components.account_pool.component",
                "components.fleet",
                "components.providers",
                "components.wiring.tenants",
            )
        ),
        ("components.naming", "components.projection.component", commands_that_reach_what_declares),
        (
            "components.pull_secret.payload",
            "components.account_pool.core.model",
            rooms_that_import_each_other,
        ),
        ("policies.rule", "operations.stack.at_rest", policies_that_import_more_than_words),
        ("policies.rights", "operations.main", policies_that_import_more_than_words),
        ("policies.aso", "components.account_pool.core.pool", policies_that_import_more_than_words),
        ("policies.aso", "components.aso_credentials.component", policies_that_import_more_than_words),
        ("components.errors", "components.connection", circles),
        ("policies.rule", "pack", circles),
        ("operations.folders", "operations.sandbox.updates", circles),
    ],
)
def test_a_planted_import_is_caught(
    importer: str, imported: str, contract: Contract, graph: grimp.ImportGraph
) -> None:
    assert {importer, imported} <= graph.modules
    before = contract(graph)
    graph.add_import(importer=importer, imported=imported)
    assert contract(graph) > before


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what import-linter reads."""
    house = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", house)
    for folder in PACKAGES.values():
        shutil.copytree(ROOT / folder, house / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return house


def lint(house: Path) -> list[str]:
    """The contracts of pyproject.toml that are broken."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        cwd=house,
        env={**os.environ, "COLUMNS": "200", "PYTHONPATH": f"{house}{os.pathsep}{house / 'sandbox'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts: " in ran.stdout, ran.stdout + ran.stderr
    return re.findall(r"^(.+) BROKEN\b", ran.stdout, re.MULTILINE)


def test_no_import_breaks_what_the_linter_holds(house: Path) -> None:
    assert lint(house) == []


@tabled("importer, imported, contract")
def test_an_import_planted_for_the_linter_is_caught(
    importer: str, imported: str, contract: str, house: Path
) -> None:
    module = house / f"{importer}.py"
    written = module.read_text()
    module.write_text(f"{written}\n\ndef planted():\n    import {imported}\n")
    try:
        assert any(broken.startswith(contract) for broken in lint(house))
    finally:
        module.write_text(written)
