"""The `credfleet` command: forked where the sandbox keeps a process for that, else by itself."""

from pathlib import Path

from operations.cli.forking import fork_command


def main() -> None:
    """Run the command line and end the process with its exit code."""
    fork_command(Path(__file__).with_name("__main__.py"))
    from operations.main import main

    main()
