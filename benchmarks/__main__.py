"""Run the benchmarks on API servers of their own, and print tables.

`python -m benchmarks`: stack dev and a fleet of 100 tenants beside their floors, with and without policies.
`python -m benchmarks stack`, `… fleet 100 300`: one of these, in other sizes.
`python -m benchmarks claims [--full] [--peers]`: claims; minutes without `--full`, half an hour with it.
`python -m benchmarks policies`: what the policies cost per resource of stack dev; a minute.
`python -m benchmarks split 1000 10`: a fleet of so many tenants shared out among so many stacks.
`python -m benchmarks shards 5000 50`: what so many stacks cost that claim from one pool.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import claims, fleet, policies
from benchmarks.comparison import Row, table
from benchmarks.stacks import serving


def main() -> None:
    """Measure, and print."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="credfleet-bench-") as temporary:
        folder = Path(temporary).resolve()
        match options.what:
            case "claims":
                plan = replace(claims.FULL if options.full else claims.QUICK, peers=options.peers)
                with serving(folder) as kubeconfig:
                    print(claims.report(claims.measure(kubeconfig, folder, plan)))
            case "policies":
                print(policies.report(folder))
            case "split":
                print(fleet.split(folder, *(options.tenants or (1000, 10))))
            case "shards":
                print(fleet.shards(folder, *(options.tenants or (5000, 50))))
            case what:
                print(table(_compared(folder, what, options.tenants or (100,))))


def _compared(folder: Path, what: str | None, sizes: Sequence[int]) -> Iterator[Row]:
    measures: list[Callable[..., Iterator[Row]]] = [] if what == "fleet" else [fleet.stack_dev]
    measures += [] if what == "stack" else [partial(fleet.fleet, size=size) for size in sizes]
    for number, measure in enumerate(measures):
        for with_policies in (False, True):
            own = folder / f"{number}-{with_policies}"
            own.mkdir()
            yield from measure(own, with_policies=with_policies)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed, as ratios in one run.")
    known = ("stack", "fleet", "claims", "policies", "split", "shards")
    parser.add_argument("what", nargs="?", choices=known, help="only one of them")
    sizes = "sizes of fleets; of a split and of shards: tenants and stacks"
    parser.add_argument("tenants", nargs="*", type=int, help=sizes)
    parser.add_argument("--full", action="store_true", help="of claims: pools of 10,000 accounts, more turns")
    parser.add_argument("--peers", action="store_true", help="of claims: Boskos too, built from source once")
    return parser.parse_args()


if __name__ == "__main__":
    main()
