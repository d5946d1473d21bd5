"""The cloud services' stand-ins as processes: started where a stack expects them, found again, ended.

As with the control plane, all that is known of one lies in its folder, and any process can find or stop it.
What they keep outlives them.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services import processes
from pulumi_sandbox.services.cloud.certificates import Certificate
from pulumi_sandbox.services.cloud.kinds import Cloud
from pulumi_sandbox.services.launch import Launch, Undertaking
from pulumi_sandbox.services.locks import exclusive
from pulumi_sandbox.services.ports import LOOPBACK, PortTakenError, is_free
from pulumi_sandbox.services.progress import Progress, Step, silent

STOP_SECONDS = 5.0
"""How long one may take to end by itself; it finishes the requests it has."""

_PATIENCE = 2.0
"""Seconds for one answer. A stranger on the port may never answer."""

_SOURCES = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Standing:
    """A stand-in that was started some time; pid is None when it does not run."""

    cloud: Cloud
    port: int
    log: Path
    pid: int | None

    @property
    def address(self) -> str:
        """Where it listens when it runs."""
        return f"{self.cloud.scheme}://{LOOPBACK}:{self.port}"


@dataclass(frozen=True, slots=True)
class Clouds:
    """The stand-ins of one sandbox, in a folder (an absolute path) that may not be there yet.

    die_with_parent: let the kernel kill those that are started when the calling thread ends.
    """

    folder: Path
    die_with_parent: bool = False

    @property
    def certificate(self) -> Certificate:
        """The certificate of those that speak HTTPS."""
        return Certificate(self.folder / "certificate")

    def start(
        self,
        ports: Mapping[Cloud, int],
        environment: Mapping[str, str] = processes.NOTHING,
        progress: Progress = silent,
    ) -> None:
        """See to it that stand-ins serve on these ports: those that do already are left alone.

        environment: whose trusted authorities are kept when another one is added (see `Certificate.trust`).

        Raises:
            SandboxError: `port-taken`, `cloud-died` or `cloud-not-ready` with the last words of its log.
        """
        if not ports:
            return
        waiting = Step("another process is starting stand-ins of this sandbox; waiting for it", 0.0)
        with exclusive(self.folder / "lock", on_wait=lambda: progress(waiting)):
            if Cloud.RESOURCE_MANAGER in ports:
                self.certificate.renew()
                self.certificate.trust(environment)
            self._start_missing(
                {cloud: port for cloud, port in ports.items() if not self._serves(cloud, port)}, progress
            )

    def stop(self) -> bool:
        """End all of them; tell whether one ran."""
        running = [cloud for cloud in Cloud if self.runs(cloud)]
        if running:
            with exclusive(self.folder / "lock"):
                self._end(running, patience=STOP_SECONDS)
        return bool(running)

    def standing(self) -> list[Standing]:
        """Give those that were started some time.

        Raises:
            SandboxError: `state-unreadable`.
        """
        return [*self._standing()]

    def runs(self, cloud: Cloud) -> bool:
        """Tell whether one runs."""
        return self._pid(cloud) is not None

    def _standing(self) -> Iterator[Standing]:
        for cloud in Cloud:
            try:
                port = json.loads(self._record(cloud).read_text(encoding="utf-8"))["port"]
            except FileNotFoundError:
                continue
            except (ValueError, KeyError, TypeError) as error:
                raise SandboxError(
                    code="state-unreadable",
                    place=str(self._record(cloud)),
                    cause=f"this is not the record of a stand-in ({type(error).__name__})",
                    mend="remove the file; the sandbox makes it anew",
                ) from None
            yield Standing(cloud, port, self._log(cloud), self._pid(cloud))

    def _serves(self, cloud: Cloud, port: int) -> bool:
        pid = self._pid(cloud)
        return (
            pid is not None
            and processes.command_line(pid) == self._command(cloud, port)
            and self._answers(cloud, port)
        )

    def _start_missing(self, ports: Mapping[Cloud, int], progress: Progress) -> None:
        self._end(ports, patience=STOP_SECONDS)
        for cloud, port in ports.items():
            if not is_free(port):
                raise PortTakenError(port, f"the sandbox's {cloud}")
        what = f"starting {', '.join(sorted(ports))}"
        mend = f"run the command again; if what it keeps is broken, remove it from {self.folder} first"
        launch = Launch(Undertaking("cloud", what, usual=2.0, mend=mend), progress)
        try:
            for cloud, port in ports.items():
                files.replace(self._record(cloud), json.dumps({"port": port}))
                launch.start(
                    cloud,
                    self._command(cloud, port),
                    self._log(cloud),
                    environment={"PYTHONPATH": str(_SOURCES)},
                    die_with_parent=self.die_with_parent,
                )
            launch.wait_for(lambda: all(self._answers(cloud, port) for cloud, port in ports.items()))
        except BaseException:
            launch.end()
            raise

    def _answers(self, cloud: Cloud, port: int) -> bool:
        """Tell whether it is this service that answers there, by the certificate of this sandbox."""
        try:
            if cloud.scheme == "https":
                trust = ssl.create_default_context(cafile=str(self.certificate.authority))
                connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=_PATIENCE, context=trust)
            else:
                connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_PATIENCE)
            try:
                connection.request("GET", "/sandbox/service")
                answer = json.loads(connection.getresponse().read())
            finally:
                connection.close()
        except (OSError, ValueError, http.client.HTTPException):
            return False
        return answer == {"service": cloud}

    def _end(self, clouds: Iterable[Cloud], *, patience: float) -> None:
        for cloud in clouds:
            processes.end_all(cloud, self._mark(cloud), patience=patience)

    def _pid(self, cloud: Cloud) -> int | None:
        return next(iter(processes.find(cloud, self._mark(cloud))), None)

    def _command(self, cloud: Cloud, port: int) -> list[str]:
        program = [sys.executable, "-P", "-m", "pulumi_sandbox.services.cloud", cloud.value]
        own = [f"--certificate={self.certificate.serving}"] if cloud.scheme == "https" else []
        return [*program, self._mark(cloud), f"--port={port}", *own]

    def _mark(self, cloud: Cloud) -> str:
        """Give the argument that says of a process which sandbox it belongs to."""
        return f"--folder={self.folder / cloud / 'data'}"

    def _record(self, cloud: Cloud) -> Path:
        return self.folder / cloud / "service.json"

    def _log(self, cloud: Cloud) -> Path:
        return self.folder / "logs" / f"{cloud}.log"
