"""What was measured, and how it is printed: a figure beside the one it is to be compared with."""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a table, in seconds; `floor` names the line it is divided by, if any."""

    name: str
    seconds: float
    floor: str | None = None


def timed(work: Callable[[], object]) -> float:
    """Return the wall seconds of `work`."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def command_time(command: Iterable[str | Path], folder: Path, environment: Mapping[str, str]) -> float:
    """Return the wall seconds of a whole process; a failing one ends the benchmark with what it printed."""

    def run() -> None:
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")

    return timed(run)


def table(title: str, figures: Iterable[Figure]) -> str:
    """Lay figures out, ratios first."""
    figures = list(figures)
    by_name = {figure.name: figure.seconds for figure in figures}
    lines = [title, f"{'ratio':>8}  {'seconds':>8}  what"]
    for figure in figures:
        ratio = f"{figure.seconds / by_name[figure.floor]:.2f}x" if figure.floor else ""
        against = f"  (against: {figure.floor})" if figure.floor else ""
        lines.append(f"{ratio:>8}  {figure.seconds:8.3f}  {figure.name}{against}")
    return "\n".join(lines)
