"""Where providers live is written into the state of stacks: `frozen_paths.txt` records it, and only grows.

It does not prove that an older state is understood; tests/program does.
"""

import base64
import importlib
import inspect
import pickletools
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider

import components
from components.secret_stores.admission import document_of
from components.secret_stores.kinds import KINDS
from components.secret_stores.registry import ProviderKind

FROZEN = Path(__file__).with_name("frozen_paths.txt").read_text().split()
HEAVY = ("kubernetes", "pulumi_kubernetes", "jinja2", "rich", "pydantic")


def providers() -> dict[str, type[ResourceProvider]]:
    """Every provider in components by its path, without the shells that others are built on."""
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(components.__path__, "components.")
    ]
    return {
        f"{kind.__module__}:{kind.__qualname__}": kind
        for module in modules
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, ResourceProvider)
        and kind.__module__.startswith("components.")
        and not kind.__subclasses__()
    }


def test_every_provider_is_where_states_say_it_is_and_a_new_one_is_recorded() -> None:
    assert sorted(providers()) == FROZEN


@pytest.mark.parametrize("path", FROZEN)
@pytest.mark.parametrize(
    ("attribute", "value"), [("__qualname__", "Renamed"), ("__module__", "components.elsewhere")]
)
def test_a_provider_that_is_renamed_or_moved_is_noticed(path: str, attribute: str, value: str) -> None:
    kind = providers()[path]
    recorded = getattr(kind, attribute)
    setattr(kind, attribute, value)
    try:
        assert sorted(providers()) != FROZEN
    finally:
        setattr(kind, attribute, recorded)


@pytest.mark.parametrize("path", FROZEN)
def test_state_names_a_provider_by_its_path_and_keeps_no_code(path: str) -> None:
    module, name = path.split(":")
    provider: type[ResourceProvider] = getattr(importlib.import_module(module), name)
    pickled = base64.b64decode(serialize_provider(provider()))
    texts = [argument for _, argument, _ in pickletools.genops(pickled) if isinstance(argument, str)]
    assert texts == [module, name]


def test_the_module_that_reads_and_pushes_name_for_their_kinds_stays() -> None:
    embedded = KINDS.embedded("fake")
    assert isinstance(embedded, ProviderKind)
    named = document_of(embedded.provider("a", "b", {"data": [{"key": "k", "value": "v"}]}))
    assert named["module"] == "components.secret_stores.kinds"


@pytest.mark.parametrize("module", sorted({path.split(":")[0] for path in FROZEN}))
def test_a_provider_is_loaded_without_anything_heavy(module: str) -> None:
    program = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
