"""`credfleet stores convert`: documents of stores in the other form; nothing is asked, nothing written."""

from collections.abc import Sequence

from components.errors import ConfigurationError, Problem
from components.secret_stores.kinds import KINDS
from components.secret_stores.rewriting import with_blocks, with_references
from operations.cli.answer import CommandResult, as_yaml
from operations.stores.documents import read


def convert(files: Sequence[str], *, embed: bool) -> CommandResult:
    """Return the documents, providers apart or embedded; raises as `read`, and with what cannot be."""
    documents = read(files).raw
    told = [*(with_blocks if embed else with_references)(documents, KINDS)]
    if problems := [each for each in told if isinstance(each, Problem)]:
        raise ConfigurationError(problems)
    items = [dict(each) for each in told if not isinstance(each, Problem)]
    text = "---\n".join(map(as_yaml, items)).removesuffix("\n")
    return CommandResult({"apiVersion": "v1", "kind": "List", "items": items}, [text])
