"""The program's process: started early, told where the engine is once the engine knows."""

import json
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from pulumi_sandbox.engine.plugins.process import Child, Confinement
from pulumi_sandbox.engine.project.identity import ORGANIZATION, Identity
from pulumi_sandbox.engine.project.project_file import Project
from pulumi_sandbox.errors import SandboxError


@dataclass(frozen=True, slots=True)
class ProgramTask:
    """All a program is told at its start; `address` is where monitor and engine listen.

    scratch: a folder for what the program is built into.
    """

    identity: Identity
    program: Path
    root: Path
    address: str
    parallel: int
    scratch: Path

    def to_json(self) -> str:
        """Return it as the language host reads it."""
        identity, config = self.identity, self.identity.config
        return json.dumps(
            {
                "project": identity.project,
                "stack": identity.stack,
                "organization": ORGANIZATION,
                "program": str(self.program),
                "root": str(self.root),
                "monitor": self.address,
                "parallel": self.parallel,
                "scratch": str(self.scratch),
                "preview": identity.preview,
                "config": dict(config.values),
                "secretKeys": list(config.secret_keys),
                "environment": config.environment,
            }
        )


async def start_program(project: Project, python: Path, confinement: Confinement | None = None) -> Child:
    """Start the language host in the program's folder; it waits for its `ProgramTask` on standard input.

    What it prints waits until someone follows it.
    Raises SandboxError `program-missing`, when the project's environment, or Node, does not exist, and
    `project-unsupported` for a program in another language than Python that is to be shut in.
    """
    program = project.program
    folder = program if program.is_dir() else program.parent
    if confinement and project.runtime != "python":
        raise SandboxError(
            code="project-unsupported",
            place=str(project.directory / "Pulumi.yaml"),
            cause=f"a program of runtime {project.runtime} cannot be shut in",
            mend="preview it with the keys of the stack, where its code is trusted",
        )
    if project.runtime == "go":
        host = Path(__file__).with_name("go_host.py")
        options = (project.binary, project.build_target)
        return await Child.start("program", [sys.executable, "-P", str(host), *options], cwd=folder, env={})
    if project.runtime == "nodejs":
        node, host = shutil.which("node") or "node", Path(__file__).with_name("node_host.cjs")
        typescript = {"PULUMI_NODEJS_TYPESCRIPT": "true"} if project.typescript else {}
        return await Child.start("program", [node, str(host)], cwd=folder, env=typescript)
    host = Path(__file__).with_name("language_host.py")
    command = [str(python), "-u", "-P", str(host)]
    if confinement:
        confinement = replace(confinement, readable=(*confinement.readable, host))
    return await Child.start("program", command, cwd=folder, env={}, confinement=confinement)
