"""Stand-in providers kept up in the foreground, so that the genuine Pulumi CLI attaches to them."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import typer
from pulumi_sandbox import files
from pulumi_sandbox.documents import read_json
from pulumi_sandbox.providers import MODULES
from pulumi_sandbox.services import is_process_of

from components.errors import CredfleetError
from operations.folders import Folders
from operations.sandbox import cloud_services


def addresses(record: Path) -> str | None:
    """Return PULUMI_DEBUG_PROVIDERS of the providers that run, None when none do.

    A record whose writer was killed counts for nothing, and so does what is no record.
    """
    try:
        kept = read_json(record.read_bytes())
        return kept["addresses"] if is_process_of(kept["pid"], "credfleet", "providers") else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def serve(folders: Folders) -> None:
    """Start a provider for each package and keep them up until Ctrl-C.

    Raises:
        CredfleetError: code `already-running`.
        SandboxError: code `plugin-failed`.
    """
    running = addresses(folders.providers)
    if running is not None:
        raise CredfleetError(
            code="already-running",
            place=str(folders.providers),
            cause=f"the stand-in providers run already ({running})",
            mend="use those, or end that command first",
        )
    asyncio.run(_serve(folders))


async def _serve(folders: Folders) -> None:
    from pulumi_sandbox.engine import start_plugin

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    files.make_folder(folders.logs)
    started = {
        package: await start_plugin(
            f"provider {package}",
            [sys.executable, "-u", "-m", module],
            cwd=folders.project,
            env=cloud_services.stand_ins(folders).trust(),
            log=folders.logs / f"standing-{package}.log",
        )
        for package, module in MODULES.items()
    }
    try:
        ports = ",".join(
            f"{package}:{address.rpartition(':')[2]}" for package, (_, address) in started.items()
        )
        files.replace(folders.providers, json.dumps({"pid": os.getpid(), "addresses": ports}))
        typer.echo(f'✓ up: {ports}\n  In another shell: eval "$(credfleet sandbox env)"\n  Ctrl-C ends them.')
        await stopped.wait()
    finally:
        folders.providers.unlink(missing_ok=True)
        await asyncio.gather(*(child.stop() for child, _ in started.values()))
