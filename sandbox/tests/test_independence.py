"""The sandbox runs any Pulumi program: no word of the one it lies beside is in it.

That it imports nothing of it is a contract in pyproject.toml. Test data may name whatever it likes.
"""

import re
from pathlib import Path

SANDBOX = Path(__file__).parents[1]

WORDS = re.compile(
    r"credfleet|hyperfleet|account.?pool|pull.?secret|aso[-_ ]credential|hyperscaler|kyma|korifi|gardener",
    re.IGNORECASE,
)


def test_no_word_of_the_project_beside_it_is_in_the_sandbox():
    files = [
        path
        for path in SANDBOX.rglob("*")
        if path.is_file() and path.suffix in {".py", ".md", ".mod", ".go"} and "tests" not in path.parts
    ]
    assert {"pulumi_cli.py", "go.mod"} <= {path.name for path in files}
    found = {
        f"{path.relative_to(SANDBOX)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if WORDS.search(line)
    }
    assert found == set()
