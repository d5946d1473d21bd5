"""The language host: over gRPC as an engine speaks to it, and under the Pulumi CLI; what it leaves behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc
from pulumi_sandbox import language_host

from sandbox.tests.support.cli_folder import HANG, MARK, Cli, await_file, left_behind, running

SOURCE: Final = Path(language_host.__file__)
STANDS_IN: Final = """\
import json, os, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print(json.dumps([words, sys.argv[-3:], os.getcwd(), os.environ["PULUMI_CONFIG"], os.environ["VIRTUAL_ENV"]]))
sys.exit(int(sys.argv[-1]))
"""
"""In place of the script that runs a program and needs a whole engine: it prints what it is given."""
WAITS: Final = """\
import pathlib, sys, threading
pathlib.Path(sys.argv[1]).touch()
threading.Event().wait()
"""


def test_the_language_host_stays_short() -> None:
    assert len(SOURCE.read_text().splitlines()) <= 150


@contextmanager
def hosting(folder: Path, *addresses: str) -> Generator[tuple[Any, subprocess.Popen[str]]]:
    """Start the host as an engine does, in a group of its own and with three pipes."""
    shutil.copy(SOURCE, folder / "host.py")
    (folder / "pulumi-language-python-exec").write_text(STANDS_IN)
    command = [sys.executable, "-u", str(folder / "host.py"), *addresses]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
                yield language_pb2_grpc.LanguageRuntimeStub(channel), process
        finally:
            process.stdin.close()
            process.wait(HANG)


def program_in(folder: Path, text: str = "") -> language_pb2.ProgramInfo:
    """Return a program that runs with the Python of these tests."""
    program = folder / "program"
    program.mkdir(exist_ok=True)
    (program / "__main__.py").write_text(text)
    options = struct_pb2.Struct()
    options.update({"virtualenv": os.path.relpath(sys.prefix, folder)})
    return language_pb2.ProgramInfo(
        root_directory=str(folder), program_directory=str(program), entry_point=".", options=options
    )


def a_run(folder: Path, code: int, **fields: Any) -> language_pb2.RunRequest:
    return language_pb2.RunRequest(
        project="mine",
        stack="dev",
        pwd=str(folder),
        monitor_address="monitor:1",
        parallel=7,
        info=program_in(folder),
        args=["word", str(code)],
        **fields,
    )


def a_plugin(folder: Path, text: str, *args: str, kind: str = "resource") -> language_pb2.RunPluginRequest:
    info = program_in(folder, text)
    return language_pb2.RunPluginRequest(
        pwd=str(folder), info=info, kind=kind, args=args, env=["SAID=a=b", f"{MARK}={folder}"]
    )


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (0, language_pb2.RunResponse()),
        (32, language_pb2.RunResponse(bail=True)),
        (1, language_pb2.RunResponse(error="Program exited with non-zero exit code: 1")),
    ],
)
def test_run_tells_how_a_program_ended(tmp_path: Path, code: int, answer: language_pb2.RunResponse) -> None:
    with hosting(tmp_path, "engine:1") as (host, _):
        assert host.Run(a_run(tmp_path, code)) == answer


@pytest.mark.parametrize("attached", [False, True])
def test_run_gives_a_program_its_engine_and_configuration(tmp_path: Path, *, attached: bool) -> None:
    request = a_run(tmp_path, 0, dryRun=True, config={"mine:a": "1"}, configSecretKeys=["mine:b"])
    with hosting(tmp_path, *([] if attached else ["--root=/x", "engine:1"])) as (host, process):
        if attached:
            host.Handshake(language_pb2.LanguageHandshakeRequest(engine_address="engine:1"))
        host.Run(request)
        assert process.stdout is not None
        words, last, folder, config, environment = eval(process.stdout.readline())
    assert (
        words.items()
        >= {
            "--monitor": "monitor:1",
            "--engine": "engine:1",
            "--project": "mine",
            "--stack": "dev",
            "--pwd": str(tmp_path),
            "--dry_run": "true",
            "--parallel": "7",
            "--root_directory": str(tmp_path),
        }.items()
    )
    assert last == [str(tmp_path / "program"), "word", "0"]
    assert (folder, config) == (str(tmp_path), '{"mine:a": "1"}')
    assert Path(environment).resolve() == Path(sys.prefix).resolve()


def test_run_plugin_streams_what_is_printed_and_the_exit_code(tmp_path: Path) -> None:
    text = "import os, sys\nprint(os.environ['SAID'], *sys.argv[1:])\nsys.stderr.write('no')\nsys.exit(7)\n"
    with hosting(tmp_path) as (host, _):
        *printed, last = host.RunPlugin(a_plugin(tmp_path, text, "word"))
    assert b"".join(each.stdout for each in printed) == b"a=b word\n"
    assert b"".join(each.stderr for each in printed) == b"no"
    assert last.WhichOneof("output") == "exitcode"
    assert last.exitcode == 7


def test_run_plugin_gives_a_program_no_input_of_the_engine(tmp_path: Path) -> None:
    with hosting(tmp_path) as (host, _):
        *_, last = host.RunPlugin(a_plugin(tmp_path, "import sys\nsys.exit(len(sys.stdin.read()))\n"))
    assert last.exitcode == 0


def test_calls_that_need_nothing_here_are_answered(tmp_path: Path) -> None:
    with hosting(tmp_path) as (host, _):
        info = program_in(tmp_path)
        assert host.GetPluginInfo(empty_pb2.Empty()).version
        assert host.About(language_pb2.AboutRequest(info=info)).executable == sys.executable
        assert not host.GetRequiredPackages(language_pb2.GetRequiredPackagesRequest(info=info)).packages
        assert not host.GetRequiredPlugins(language_pb2.GetRequiredPluginsRequest()).plugins
        asked = language_pb2.GetProgramDependenciesRequest(info=info)
        assert not host.GetProgramDependencies(asked).dependencies
        assert not host.RuntimeOptionsPrompts(language_pb2.RuntimeOptionsRequest(info=info)).prompts
        assert [*host.InstallDependencies(language_pb2.InstallDependenciesRequest(info=info))] == []
        host.Cancel(empty_pb2.Empty())


def test_a_cancelled_call_ends_its_program(tmp_path: Path) -> None:
    with hosting(tmp_path) as (host, process):
        call = host.RunPlugin(a_plugin(tmp_path, WAITS, str(tmp_path / "runs")))
        await_file(tmp_path / "runs", process.poll)
        started = running(str(tmp_path))
        call.cancel()
        assert started
        assert left_behind(started) == []
        assert process.poll() is None


def test_programs_and_packs_never_keep_another_call_waiting(tmp_path: Path) -> None:
    request = a_plugin(tmp_path, "import sys, threading\nsys.stdout.write('1')\nthreading.Event().wait()")
    with hosting(tmp_path) as (host, _):
        calls = [host.RunPlugin(request) for _ in range(12)]
        assert [next(call).stdout for call in calls] == [b"1"] * len(calls)
        assert host.GetPluginInfo(empty_pb2.Empty(), timeout=HANG).version


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_the_end_of_the_engine_ends_host_and_programs_silently(tmp_path: Path, how: str) -> None:
    with hosting(tmp_path) as (host, process):
        call = host.RunPlugin(a_plugin(tmp_path, WAITS, str(tmp_path / "runs")))
        await_file(tmp_path / "runs", process.poll)
        started = running(str(tmp_path))
        assert process.stdin is not None
        if how == "closed":
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.stdin.close()
        process.wait(HANG)
        assert started
        assert left_behind(started) == []
        with pytest.raises(grpc.RpcError):
            next(call)
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_a_program_with_a_dynamic_resource_and_a_pack_runs_under_the_cli(cli: Cli) -> None:
    first = cli.update()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "greetings" in first.stdout
    assert "+ 2 created" in first.stdout
    refused = cli.update("--config", "mine:colour=red")
    assert refused.returncode != 0
    assert "apple is red" in refused.stdout
    cli.program("raise ValueError('no good')")
    failed = cli.update()
    assert failed.returncode != 0
    assert "ValueError: no good" in failed.stdout


@pytest.mark.life
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_cli_leaves_no_process_behind(
    cli: Cli, tmp_path: Path, number: signal.Signals
) -> None:
    process = cli.start("preview")
    assert process.stdout is not None
    with closing(process.stdout):
        started = running(str(tmp_path))
        names = " ".join(" ".join(each.cmdline()) for each in started)
        for part in ("pulumi-language-python ", "pulumi-language-python-exec", "pulumi.policy"):
            assert part in names
        process.send_signal(number)
        process.wait(HANG)
        assert left_behind(started) == []
        assert running(str(tmp_path)) == []
        assert "Traceback" not in process.stdout.read()
