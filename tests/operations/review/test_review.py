"""`credfleet review` as its workflow runs it: a hostile branch of a recorded stack, and the page about it.

Not proved: what the kernel keeps from a program (`test_confinement.py`).
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml
from pulumi_sandbox.protocol import wire

from operations.review.sealed import ciphertexts
from operations.stack.passphrase import PassphraseCrypter
from tests.operations.review.edits import EDITS
from tests.operations.review.recording import PASSPHRASE
from tests.support.recorded_stacks import ROOT, document_of, exported_of

CREDFLEET: Final = Path(sys.executable).with_name("credfleet")
STACK: Final = "staging"
CANARY: Final = "canary-of-the-runner"
EDITED: Final = ("staging pool rotate", "staging claims add", "staging services add")
HOSTILE: Final = """
import os, pathlib, socket, sys
print("::warning::escaped?")
print("hostile: began")
for name, work in {{
    "environment": lambda: dict(os.environ),
    "outside": lambda: pathlib.Path({outside!r}).read_text(),
    "git": lambda: os.listdir(".git"),
    "compiled": lambda: os.listdir("components/__pycache__"),
    "checkout": lambda: pathlib.Path("Pulumi.yaml").write_text(""),
    "network": lambda: socket.create_connection(("127.0.0.1", {port}), 2),
}}.items():
    try:
        print(f"hostile: {{name}}: {{work()}}")
    except OSError as error:
        print(f"hostile: {{name}}: refused {{type(error).__name__}}")
import pulumi
pulumi.log.warn("<b>@everybody</b>")
"""
PICKLED: Final = """
import pulumi
class Steals:
    def __reduce__(self):
        return eval, ("open({stolen!r}, 'w').write(str(dict(__import__('os').environ)))",)
import base64, pickle
pickled = base64.b64encode(pickle.dumps(Steals())).decode()
pulumi.CustomResource(
    "pulumi-python:dynamic/x:Y", "n", {{"__provider": pickled}}, pulumi.ResourceOptions(id="1")
)
"""
"""Finding R1: a resource that is looked up, whose provider is a program of the branch."""


@dataclass(frozen=True)
class Reviewed:
    """What the command said, what it left, and who was asked meanwhile."""

    page: str
    log: str
    code: int
    connections: int
    checkout: Path


@pytest.fixture(scope="module")
def record() -> bytes:
    """Return the record of the stack, as `review export` writes it after an update that failed in part."""
    document = json.loads(exported_of(STACK))
    component = next(
        each for each in document["deployment"]["resources"] if not each["custom"] and each.get("outputs")
    )
    component["outputs"] |= dict.fromkeys(component["outputs"], wire.UNKNOWN_MARK)
    return json.dumps(document).encode()


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory, record: bytes) -> Reviewed:
    """Review a branch that edits the stack file, and whose program tries to get out."""
    folder = tmp_path_factory.mktemp("review")
    (folder / "outside").write_text(CANARY)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        prologue = HOSTILE.format(outside=str(folder / "outside"), port=port)
        done, checkout = _review(folder, record, prologue + (ROOT / "__main__.py").read_text(), port)
        server.setblocking(False)
        connections = sum(1 for _ in _accepted(server))
    return Reviewed(done.stdout, done.stderr, done.returncode, connections, checkout)


def _review(
    folder: Path, record: bytes, program: str, port: int
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Review a branch with this program; variables of a proxy name the port."""
    checkout = folder / "branch"
    (checkout / ".git").mkdir(parents=True)
    (checkout / ".git" / "config").write_text(CANARY)
    shutil.copy(ROOT / "Pulumi.yaml", checkout)
    shutil.copytree(ROOT / "components", checkout / "components")
    (checkout / "components" / "__pycache__").mkdir(exist_ok=True)
    (checkout / "components" / "__pycache__" / "fleet.pyc").touch()
    shutil.copytree(ROOT / "sandbox" / "pulumi_sandbox", checkout / "sandbox" / "pulumi_sandbox")
    document = document_of(STACK)
    for edit in (each for each in EDITS if each.title.startswith(EDITED)):
        document = edit.applied(document, lambda text: f"v1:{len(text)}:edited")
    (checkout / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    (folder / "record.json").write_bytes(record)
    (checkout / "__main__.py").write_text(program)
    proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "https_proxy"), f"http://127.0.0.1:{port}")
    given = ["--stack", STACK, "--checkout", str(checkout), "--record", str(folder / "record.json")]
    done = subprocess.run(
        [str(CREDFLEET), "review", *given],
        cwd=ROOT,
        env={**os.environ, **proxy, "AWS_SECRET_ACCESS_KEY": CANARY, "PULUMI_CONFIG_PASSPHRASE": CANARY},
        capture_output=True,
        text=True,
        check=False,
    )
    if "not-shut-in" in done.stderr or "kernel does not let a program be shut in" in done.stderr:
        pytest.skip(done.stderr)
    return done, checkout


def _accepted(server: socket.socket) -> Iterator[None]:
    while True:
        try:
            server.accept()
        except BlockingIOError:
            return
        yield


def test_the_page_says_what_would_change(reviewed: Reviewed) -> None:
    assert reviewed.code == 0, reviewed.page + reviewed.log
    assert "<code>account-pool-azure-1</code>" in reviewed.page
    assert "<code>mail/api-binding</code>" in reviewed.page
    assert "expected to get" in reviewed.page


def test_the_page_says_what_could_not_be_told_and_why(reviewed: Reviewed) -> None:
    _, told, untold = reviewed.page.partition("## What is unknown, and why")
    assert told
    for each in ("azure-1", "mail", "could not decide", "secrets-stay-marked-everywhere"):
        assert each in untold
    row = "| could not decide | <code>aso-secret-one-method</code> | "
    [of_the_rule] = [line for line in reviewed.page.splitlines() if line.startswith(row)]
    assert "<code>mail-source</code>" in of_the_rule
    assert "✓ No rule objects" not in reviewed.page


def test_a_branch_with_code_of_its_own_is_named_and_what_it_makes_of_sealed_values_may_change(
    reviewed: Reviewed,
) -> None:
    assert "other code than what is deployed" in reviewed.page
    assert "**May change**" in reviewed.page
    assert "<code>account-pool-aws-1</code>" in reviewed.page.partition("**May change**")[2]


def test_the_program_gets_nothing_that_is_not_its_own(reviewed: Reviewed) -> None:
    said = [line.removeprefix("| ") for line in reviewed.log.splitlines() if "hostile: " in line]

    assert said[0] == "hostile: began"
    assert [line.partition(": ")[2] for line in said[2:]] == [
        "outside: refused FileNotFoundError",
        "git: []",
        "compiled: []",
        "checkout: refused OSError",
        "network: refused OSError",
    ] or [line for line in said if "refused ConnectionRefusedError" in line]
    assert CANARY not in reviewed.page + reviewed.log
    assert (reviewed.checkout / "Pulumi.yaml").read_text() == (ROOT / "Pulumi.yaml").read_text()


def test_what_it_prints_steers_neither_the_runner_nor_the_page(reviewed: Reviewed) -> None:
    assert "::warning::escaped?" in reviewed.log
    assert [line for line in (reviewed.log + reviewed.page).splitlines() if line.startswith("::")] == []
    assert "@everybody" not in reviewed.page
    assert "<b>" not in reviewed.page


def test_nobody_is_asked(reviewed: Reviewed) -> None:
    assert reviewed.connections == 0


def test_no_credential_of_the_stack_is_in_record_page_or_log(reviewed: Reviewed, record: bytes) -> None:
    document = document_of(STACK)
    crypter = PassphraseCrypter.open(document["encryptionsalt"], PASSPHRASE)
    sealed = ciphertexts(document["config"])
    words = {word for each in sealed.values() for word in _words(crypter.decrypt(each))}
    assert "made-up-key-of-aws-1" in words

    everything = record.decode() + reviewed.page + reviewed.log
    forms = [form for word in words for form in (word, base64.b64encode(word.encode()).decode())]
    assert [form for form in (*forms, *sealed.values()) if form in everything] == []


def _words(text: str) -> Iterator[str]:
    """Yield the texts in a credential that are long enough to be told from names."""
    try:
        document = json.loads(text)
    except ValueError:
        document = text
    inner = document.values() if isinstance(document, dict) else ()
    for each in inner:
        yield from _words(each if isinstance(each, str) else json.dumps(each))
    if not inner and len(text) > 16:
        yield text


def test_a_provider_that_the_branch_pickled_is_never_loaded(tmp_path: Path, record: bytes) -> None:
    stolen = tmp_path / "stolen"

    done, _ = _review(tmp_path, record, PICKLED.format(stolen=str(stolen)), port=1)

    assert not stolen.exists()
    assert done.returncode == 1
    assert "a review runs no dynamic provider of the branch: Read is not allowed" in done.stdout + done.stderr


_PACK: Final = """
from pulumi_policy import EnforcementLevel, PolicyPack, StackValidationPolicy
{broken}
says = StackValidationPolicy("says-hello", "Says hello.", lambda _, report: report("hello"))
PolicyPack("own", policies=[says], enforcement_level=EnforcementLevel.ADVISORY)
"""


@pytest.mark.parametrize("broken", ["", "import no_such_module"])
def test_a_project_of_init_is_reviewed_by_its_own_policy_pack(tmp_path: Path, broken: str) -> None:
    """Its pack names no virtual environment: it takes the one in which the command runs."""

    def credfleet(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(CREDFLEET), *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert credfleet("init", "--here", "--rooms", "accountPool").returncode == 0
    (tmp_path / "__main__.py").write_text("import pulumi\n")
    (tmp_path / "policies" / "__main__.py").write_text(_PACK.format(broken=broken))
    done = credfleet("review")
    if "kernel does not let a program be shut in" in done.stderr:
        pytest.skip(done.stderr)
    if broken:
        assert "No module named 'no_such_module'" in done.stderr
        assert '{"' not in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert "<code>says-hello</code>" in done.stdout


@pytest.mark.life
def test_an_environment_of_a_kms_shows_as_new_where_nobody_recorded_it() -> None:
    """The template itself, for genuine clouds, with no key and no state."""
    done = subprocess.run(
        [str(CREDFLEET), "review", "--stack", STACK], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if "kernel does not let a program be shut in" in done.stderr:
        pytest.skip(done.stderr)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "No deployment was recorded, so everything shows as new." in done.stdout
    assert "to create" in done.stdout
    assert "0 unchanged." in done.stdout
