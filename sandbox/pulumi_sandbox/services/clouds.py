"""The emulators of cloud services as processes: starts them where a stack expects them, finds and ends them.

As with the control plane, everything known of one is in its folder, so that any process can find or stop it.
Their data outlive them.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pulumi_sandbox import files
from pulumi_sandbox.locks import exclusive
from pulumi_sandbox.services import processes
from pulumi_sandbox.services.cloud.certificates import TRUST_VARIABLE, Certificate
from pulumi_sandbox.services.cloud.registry import OWN, CloudService
from pulumi_sandbox.services.launch import Launch
from pulumi_sandbox.services.ports import LOOPBACK, PortTakenError, asked, free_ports, is_free, port_of
from pulumi_sandbox.services.progress import Progress, Step, silent

STOP_SECONDS = 5.0
"""How long an emulator may take to exit; it completes its current requests."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """An emulator that was once started; pid is None if it is not running."""

    service: CloudService
    port: int
    log: Path
    pid: int | None

    @property
    def address(self) -> str:
        """Its address while it runs."""
        return f"{self.service.scheme}://{LOOPBACK}:{self.port}"


@dataclass(frozen=True, slots=True)
class Clouds:
    """The emulators of one sandbox, in a folder (an absolute path) that might not exist yet.

    services: possible ones, including the project's own. die_with_parent: make the kernel kill started ones
    when the calling thread ends.
    """

    folder: Path
    services: Sequence[CloudService] = OWN
    die_with_parent: bool = False

    @property
    def certificate(self) -> Certificate:
        """The certificate of HTTPS emulators."""
        return Certificate(self.folder / "certificate")

    def start(
        self,
        ports: Mapping[CloudService, int],
        environment: Mapping[str, str] = processes.NOTHING,
        progress: Progress = silent,
    ) -> dict[CloudService, int]:
        """Ensure that emulators serve on these ports; running ones are not restarted.

        ports: 0 selects the previous port, otherwise the usual one, otherwise a free one. Returns the
        selected ports. environment: its trusted authorities are kept when another one is added (see
        `Certificate.trust`). Raises SandboxError `port-taken`, `cloud-died` or `cloud-not-ready` with the
        last lines of its log.
        """
        if not ports:
            return {}
        waiting = Step("another process is starting emulators of this sandbox; waiting for it", 0.0)
        with exclusive(self.folder / "lock", on_wait=lambda: progress(waiting)):
            if any(service.scheme == "https" for service in ports):
                self.certificate.renew()
                self.certificate.trust(environment)
            chosen = {service: port or self._choose(service) for service, port in ports.items()}
            self._start_missing(
                {service: port for service, port in chosen.items() if not self._serves(service, port)},
                progress,
            )
        return chosen

    def trust(self) -> dict[str, str]:
        """Return the variables with which a process trusts running emulators; empty without HTTPS."""
        runs = any(self.runs(service) for service in self.services if service.scheme == "https")
        return {TRUST_VARIABLE: str(self.certificate.trusted)} if runs else {}

    def stop(self) -> bool:
        """End all of them; return whether any was running."""
        running = [service for service in self.services if self.runs(service)]
        if running:
            with exclusive(self.folder / "lock"):
                self._end(running)
        return bool(running)

    def started(self) -> list[StandIn]:
        """Return those that were ever started.

        Raises SandboxError `state-unreadable`.
        """
        recorded = {service: self._recorded(service) for service in self.services}
        return [
            StandIn(service, port, self._log(service), self._pid(service))
            for service, port in recorded.items()
            if port is not None
        ]

    def runs(self, service: CloudService) -> bool:
        """Return whether a service is running."""
        return self._pid(service) is not None

    def _recorded(self, service: CloudService) -> int | None:
        """Return its last port, None if it was never started; raises as `started`."""
        record, fix = self._record(service), "remove the file; the sandbox makes it again"
        with suppress(FileNotFoundError), files.readable(record, "this is not an emulator's record", fix):
            return port_of(json.loads(record.read_bytes())["port"])
        return None

    def _choose(self, service: CloudService) -> int:
        recorded = self._recorded(service)
        if recorded is not None and (self.runs(service) or is_free(recorded)):
            return recorded
        return service.usual if is_free(service.usual) else free_ports(1)[0]

    def _serves(self, service: CloudService, port: int) -> bool:
        pid = self._pid(service)
        return (
            pid is not None
            and processes.command_line(pid) == self._command(service, port)
            and self._answers(service, port)
        )

    def _start_missing(self, ports: Mapping[CloudService, int], progress: Progress) -> None:
        self._end(ports)
        for service, port in ports.items():
            if not is_free(port):
                key = service.address[0]
                fix = (
                    f"stop it, with `down` in its folder if it is another sandbox's; or write port 0 in {key}"
                )
                raise PortTakenError(port, f"the sandbox's {service}", fix)
        what = f"starting {', '.join(sorted(service.name for service in ports))}"
        fix = f"run the command again; if what it keeps is broken, remove it from {self.folder} first"
        launch = Launch("cloud", what, 2.0, fix, progress)
        try:
            for service, port in ports.items():
                files.replace(self._record(service), json.dumps({"port": port}))
                launch.start(
                    service.name,
                    self._command(service, port),
                    self._log(service),
                    die_with_parent=self.die_with_parent,
                )
            launch.wait_for(lambda: all(self._answers(service, port) for service, port in ports.items()))
        except BaseException:
            launch.end()
            raise

    def _answers(self, service: CloudService, port: int) -> bool:
        """Return whether this service answers there, with the certificate of this sandbox."""
        authority = self.certificate.authority if service.scheme == "https" else None
        answer = asked(port, "/sandbox/service", authority=authority)
        with suppress(ValueError):
            return json.loads(answer or b"null") == {"service": service.name}
        return False

    def _end(self, services: Iterable[CloudService]) -> None:
        for service in services:
            processes.end_all(service.name, self._mark(service), patience=STOP_SECONDS)

    def _pid(self, service: CloudService) -> int | None:
        return next(iter(processes.find(service.name, self._mark(service))), None)

    def _command(self, service: CloudService, port: int) -> list[str]:
        program = [sys.executable, "-P", "-m", "pulumi_sandbox.services.cloud", service.name, service.module]
        own = [f"--certificate={self.certificate.serving}"] if service.scheme == "https" else []
        return [*program, self._mark(service), f"--port={port}", *own]

    def _mark(self, service: CloudService) -> str:
        """Return the argument that identifies the sandbox of a process."""
        return f"--folder={self.folder / service.name / 'data'}"

    def _record(self, service: CloudService) -> Path:
        return self.folder / service.name / "service.json"

    def _log(self, service: CloudService) -> Path:
        return self.folder / "logs" / f"{service}.log"
