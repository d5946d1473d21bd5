"""Text templates, whose delimiters have no meaning in shells, workflows and YAML."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates_in(folder: Path) -> Environment:
    """Return the environment for the templates in a folder."""
    return Environment(
        autoescape=False,  # noqa: S701 - these are no pages
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        keep_trailing_newline=True,
        loader=FileSystemLoader(folder),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
