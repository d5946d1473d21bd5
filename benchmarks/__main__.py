"""Run the benchmarks on one API server of their own and print the tables.

`python -m benchmarks [engine|claims] [--full] [--peers]`: minutes without `--full`, half an hour with it.
`python -m benchmarks fleet 100 300 1000`: what fleets of so many tenants cost. With `--folder` they stay, and
so do the data of their API server: a further run goes on; `--only added rotated` measures nothing else.
`python -m benchmarks split 1000 10`: a fleet of so many tenants shared out among so many stacks.
`python -m benchmarks shards 5000 50`: what so many stacks cost that claim from one pool.
"""

import argparse
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pulumi_sandbox.services import build
from pulumi_sandbox.services.control_plane import ControlPlane

from benchmarks import claims, engine, fleet
from benchmarks.stopwatch import table
from operations.sandbox.control_plane import CONTEXT


def main() -> None:
    """Start an API server, measure, print, stop it."""
    options = _options()
    with ExitStack() as kept:
        folder = options.folder or Path(
            kept.enter_context(tempfile.TemporaryDirectory(prefix="credfleet-bench-"))
        )
        programs = build.binaries(cache=build.cache_folder("credfleet"))
        plane = ControlPlane.start(
            folder / "control-plane", binaries=programs, context=CONTEXT, die_with_parent=True
        )
        try:
            if options.what in (None, "engine"):
                print(table("The embedded engine", engine.measure(plane, folder)))
            if options.what in (None, "claims"):
                plan = replace(claims.FULL if options.full else claims.QUICK, peers=options.peers)
                print(claims.report(claims.measure(plane, folder, plan)))
            if options.what == "fleet":
                sizes, parts = options.tenants or fleet.SIZES, options.only or fleet.PARTS
                print(fleet.report(fleet.measure(plane, folder, sizes, parts)))
            if options.what == "split":
                print(fleet.split(plane, folder, *(options.tenants or (1000, 10))))
            if options.what == "shards":
                print(fleet.shards(plane, folder, *(options.tenants or (5000, 50))))
        finally:
            plane.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed, as ratios in one run.")
    parser.add_argument(
        "what", nargs="?", choices=("engine", "claims", "fleet", "split", "shards"), help="only one of them"
    )
    parser.add_argument(
        "tenants",
        nargs="*",
        type=int,
        help="how many tenants each fleet has; of a split and of shards: tenants and stacks",
    )
    parser.add_argument("--only", nargs="+", choices=fleet.PARTS, help="of a fleet: these parts of its life")
    parser.add_argument("--folder", type=Path, help="of fleets: where they stay, for a further run")
    parser.add_argument("--full", action="store_true", help="pools of 10,000 accounts, more turns")
    parser.add_argument("--peers", action="store_true", help="Boskos too, built from source once")
    return parser.parse_args()


if __name__ == "__main__":
    main()
