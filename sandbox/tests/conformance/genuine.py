"""Asks the genuine CLI what it does with the rows: `python -m sandbox.tests.conformance.genuine PULUMI`.

It prints where that differs from what is recorded, as rows of a table; `--record` records it, under the
version that the CLI tells, or `--called`. Names of groups and of rows (`GROUP-NAME`) choose among them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from pulumi.runtime.proto import language_pb2_grpc
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter

from sandbox.tests.conformance import told
from sandbox.tests.conformance.laboratory import PASSPHRASE, Ended, Laboratory, Row, rows, step_names
from sandbox.tests.conformance.program import Program
from sandbox.tests.conformance.recorded import Recorded, differences
from sandbox.tests.support.recording_provider import RecordingProvider, serving

_SECONDS: Final = 120


@dataclass(frozen=True)
class Genuine:
    """The CLI, with a provider that runs already."""

    pulumi: str
    provider: int

    def run(self, folder: Path, operation: str, flags: list[str], program: Program | None) -> Ended:
        """Run one operation; the program answers from this process, as those of the automation API do."""
        backend, empty = folder.parent / f"{folder.name}-backend", folder.parent / "empty-backend"
        if not empty.exists():
            empty.mkdir()
            self._pulumi(folder, empty, "stack", "init", "dev")
        if not backend.exists():
            shutil.copytree(empty, backend)
        log = folder / "events"
        log.unlink(missing_ok=True)
        yes = () if operation == "preview" else ("--yes", "--skip-preview")
        if "--preview-only" in flags:
            yes = ()
        with _answering(program) as client:
            command = (operation, "--stack", "dev", "--parallel", "1", f"--client={client}", *yes, *flags)
            ran = self._pulumi(folder, backend, *command, "--event-log", str(log))
        file = backend / ".pulumi" / "stacks" / "test" / "dev.json"
        deployment = json.loads(file.read_text())["checkpoint"].get("latest") or {}
        return _ended(ran, log, deployment)

    def _pulumi(self, folder: Path, backend: Path, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.defpath,
            "HOME": str(folder.parent),
            "PULUMI_BACKEND_URL": f"file://{backend}",
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_DEBUG_COMMANDS": "1",
            "PULUMI_DEBUG_PROVIDERS": f"fake:{self.provider}",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
        }
        return subprocess.run(
            [self.pulumi, "--non-interactive", *command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )


@contextmanager
def _answering(program: Program | None) -> Generator[str]:
    server = grpc.server(ThreadPoolExecutor(4))
    served = (program or Program()).served()
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(served, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def _ended(ran: subprocess.CompletedProcess[str], log: Path, deployment: Mapping[str, Any]) -> Ended:
    events = [json.loads(each) for each in log.read_text().splitlines()] if log.exists() else []
    of = {kind: [each[kind] for each in events if kind in each] for kind in _EVENTS}
    steps: list[dict[str, str]] = []
    for each in events:
        metadata = next((each[kind]["metadata"] for kind in _STEPS if kind in each), {})
        if "resourcePreEvent" in each:
            steps.append(dict(metadata))
        for begun in steps:
            if begun["op"] == "refresh" and begun["urn"] == metadata.get("urn"):
                begun["op"] = metadata["op"]
    failed = [each["metadata"] for each in of["resOpFailedEvent"]]
    said = [each for each in of["diagnosticEvent"] if each["severity"] == "error"]
    (summary,) = of["summaryEvent"] or [{"resourceChanges": {}}]
    return Ended(
        code=ran.returncode,
        operations=step_names(steps, step_names(failed, ())),
        changes=summary["resourceChanges"] or {},
        errors=sorted({each.get("urn", "") for each in said}),
        deployment=deployment,
        said=(*(each["message"] for each in said), ran.stderr),
    )


_STEPS: Final = ("resourcePreEvent", "resOutputsEvent")
_EVENTS: Final = (
    "resOpFailedEvent",
    "diagnosticEvent",
    "summaryEvent",
)


def ask(pulumi: str, asked: list[Row], *, loud: bool = False) -> Generator[tuple[Row, list[dict[str, Any]]]]:
    """Yield the rows, and what the CLI did with each."""
    crypter = PassphraseCrypter.new(PASSPHRASE)
    provider = RecordingProvider()
    with serving(provider) as port, tempfile.TemporaryDirectory() as folder:
        for row in asked:
            played = Laboratory(Path(folder, f"{row.group}-{row.name}"), crypter, provider).play(
                row, Genuine(pulumi, port)
            )
            if loud:
                for _, ended in played:
                    sys.stderr.write("\n    ".join((row.name, str(ended.code), *ended.said, "\n")))
            yield row, told.plain([came for came, _ in played])


def main() -> int:
    """Compare, or record; return 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pulumi")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--called", default="", help="the version of a CLI that tells none")
    parser.add_argument("--loud", action="store_true", help="print the errors of the CLI as well")
    arguments = parser.parse_args()
    asked = [
        each
        for each in rows()
        if not arguments.names or {each.group, each.name, f"{each.group}-{each.name}"} & {*arguments.names}
    ]
    recorded = Recorded.load()
    version = arguments.called or subprocess.check_output([arguments.pulumi, "version"], text=True).strip()
    different = 0
    for row, came in ask(arguments.pulumi, asked, loud=arguments.loud):
        found = differences(recorded.of(row), came)
        different += bool(found)
        for step, aspect, was, now in found:
            sys.stdout.write(f"{row.group}-{row.name} | {step} | {aspect} | {was} | {now}\n")
        if arguments.record:
            recorded.keep(row, came)
            recorded.save(row.group, version)
    sys.stdout.write(f"{len(asked)} rows asked, {different} differ\n")
    return int(different > 0 and not arguments.record)


if __name__ == "__main__":
    sys.exit(main())
