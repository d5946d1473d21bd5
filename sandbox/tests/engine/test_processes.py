"""Processes the engine starts."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from pulumi_sandbox.engine.plugins import process
from pulumi_sandbox.engine.plugins.program import start_program
from pulumi_sandbox.engine.project.project_file import Project
from pulumi_sandbox.errors import SandboxError


def _project(directory: Path, runtime: str) -> Project:
    (directory / "Pulumi.yaml").write_text(f"name: test\nruntime: {runtime}\n")
    return Project.load(directory)


async def test_an_environment_that_does_not_exist_is_named_before_anything_starts(tmp_path: Path):
    with pytest.raises(SandboxError, match=str(tmp_path / "gone")) as caught:
        await start_program(_project(tmp_path, "python"), tmp_path / "gone")
    assert caught.value.code == "program-missing"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not there")
async def test_a_program_in_node_is_run_by_the_script_of_its_sdk_and_told_what_the_cli_tells_it(
    tmp_path: Path,
):
    """Read in pulumi-language-nodejs of Pulumi at 1b59498: `constructArguments`, and the environment."""
    run = tmp_path / "node_modules" / "@pulumi" / "pulumi" / "cmd" / "run"
    run.mkdir(parents=True)
    told = "{argv: argv.slice(1), typescript: env.PULUMI_NODEJS_TYPESCRIPT, config: env.PULUMI_CONFIG}"
    (run / "index.js").write_text(f"const {{argv, env}} = process; console.log(JSON.stringify({told}))")
    child = await start_program(_project(tmp_path, "nodejs"), Path(sys.executable))
    heard: list[str] = []
    child.follow(heard.append, heard.append)
    task = {
        **{key: key for key in ("organization", "project", "stack", "root", "monitor")},
        **{"program": str(tmp_path), "parallel": 4, "preview": True, "environment": {"PULUMI_CONFIG": "{}"}},
    }
    await child.tell(json.dumps(task))
    assert await child.wait() == 0, heard
    assert json.loads(heard[0]) == {
        "argv": [
            str(run / "index.js"),
            *("--monitor", "monitor", "--engine", "monitor"),
            *("--organization", "organization", "--project", "project", "--stack", "stack"),
            *("--root-directory", "root", "--pwd", str(tmp_path), "--parallel", "4", "--dry-run", "."),
        ],
        "typescript": "true",
        "config": "{}",
    }


@pytest.mark.parametrize(
    ("options", "built"),
    [
        pytest.param("binary: claims", "", id="in-its-folder"),
        pytest.param("binary: claims-of-path", "", id="on-path"),
        pytest.param("buildTarget: target", "target", id="built-where-the-project-says"),
        pytest.param("", "scratch/program", id="built"),
    ],
)
async def test_a_program_in_go_is_built_and_told_as_the_cli_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, built: str
):
    """Read in pulumi-language-go of Pulumi at 1b59498: `Run`, `compileProgram` and `constructEnv`."""
    folder, scratch = tmp_path / "project", tmp_path / "scratch"
    for each in (folder, scratch, tmp_path / "bin"):
        each.mkdir()
    program = "#!/bin/sh\necho RAN; env\nexit 32\n"
    compiler = f'#!/bin/sh\necho "go $*"; cat > "$4" <<EOF\n{program}\nEOF\nchmod +x "$4"\n'
    for file, text in (
        (folder / "claims", program),
        (tmp_path / "bin" / "claims-of-path", program),
        (tmp_path / "bin" / "go", compiler),
    ):
        file.write_text(text)
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    child = await start_program(
        _project(folder, f"{{name: go, options: {{{options}}}}}"), Path(sys.executable)
    )
    heard: list[str] = []
    child.follow(heard.append, heard.append)
    task = {
        **{key: key for key in ("organization", "project", "stack", "root", "monitor")},
        **{"program": str(folder), "parallel": 4, "preview": True, "scratch": str(scratch)},
        **{"config": {"a:b": "c"}, "secretKeys": ["a:b"], "environment": {"OF_THE_STACK": "yes"}},
    }
    await child.tell(json.dumps(task))
    assert await child.wait() == 32, heard
    ran = heard.index("RAN")
    target = str(tmp_path / built) if "/" in built else built
    built_by = [f"go build -buildvcs=false -o {target} -trimpath -ldflags -w -s"] if built else []
    assert [each for each in heard[:ran] if each.startswith("go ")] == built_by
    told = {key: text for key, _, text in (each.partition("=") for each in heard[ran + 1 :])}
    expected = {
        "OF_THE_STACK": "yes",
        "PULUMI_CONFIG": '{"a:b": "c"}',
        "PULUMI_CONFIG_SECRET_KEYS": '["a:b"]',
        "PULUMI_DRY_RUN": "true",
        "PULUMI_ENGINE": "monitor",
        "PULUMI_MONITOR": "monitor",
        "PULUMI_ORGANIZATION": "organization",
        "PULUMI_PARALLEL": "4",
        "PULUMI_PROJECT": "project",
        "PULUMI_ROOT_DIRECTORY": "root",
        "PULUMI_STACK": "stack",
    }
    assert {key: told.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("options", "named"),
    [("binary: nobody", "no nobody"), ("", "no go on PATH"), ("buildTarget: x", "no go")],
)
async def test_a_program_in_go_that_cannot_be_had_ends_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, named: str
):
    monkeypatch.setenv("PATH", str(tmp_path))
    child = await start_program(
        _project(tmp_path, f"{{name: go, options: {{{options}}}}}"), Path(sys.executable)
    )
    heard: list[str] = []
    child.follow(heard.append, heard.append)
    await child.tell(json.dumps({"scratch": str(tmp_path)}))
    assert await child.wait() == 1
    assert named in "".join(heard)


async def test_a_line_that_is_too_long_is_left_out_and_those_behind_it_are_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "_LINE_LIMIT", 1 << 20)
    program = "import sys; sys.stdout.write('x' * (5 << 20) + chr(10) + 'behind it')"
    child = await process.Child.start("long", [sys.executable, "-c", program], cwd=tmp_path, env={})
    heard: list[str] = []
    child.follow(heard.append)
    assert await child.wait() == 0
    assert heard[0] == "(a line of more than 1 MiB is left out)"
    assert heard[-1].endswith("behind it")
