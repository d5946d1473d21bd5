"""Asks External Secrets Operator's own providers in which namespace each looks for what its store names.

`python -m tests.witness.eso_habits PROGRAM` prints components/secret_stores/eso_habits.json. The program is
tests/witness/operator/main.go, built in the operator's source at the version below, where its packages are:
`mkdir cmd/habits`, copy it there, `go build -tags all_providers -o PROGRAM ./cmd/habits`. No server is asked:
every object is there, every key says x, and nothing else answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

from tests.support.shapes import SELECTORS, SHAPES, least, plain, selectors_of
from tests.witness.eso_by_hand import SPECS

VERSION: Final = "2.9.0"
FOLLOWED: Final = "followed"
REFUSED: Final = "refused"
EARLY: Final = "early"
LATE: Final = "late"
UNUSED: Final = "unused"
UNSEEN: Final = "unseen"
WORDS: Final = {
    FOLLOWED: "without a namespace it is the caller's, and nothing is looked for before somebody calls",
    REFUSED: "without a namespace a ClusterSecretStore is refused, or has no client",
    EARLY: "without a namespace it is looked for in none before anybody calls, so the store never gets ready",
    LATE: "without a namespace the store gets ready, and each read through it is refused",
    UNUSED: "it is not looked for, and reads go through without it",
    UNSEEN: "it was not looked for in any of the specs that were asked",
}

Path: TypeAlias = tuple[str, ...]
Answer: TypeAlias = Mapping[str, Any]

_TEXTS: Final = {"region": "fr-par", "id": "11111111-1111-1111-1111-111111111111"}
_ADDRESS: Final = "https://127.0.0.1:1/"
_AT_A_TIME: Final = 4
_NUMBERS: Final = count()
"""Names of objects are used once: what a provider is slow to look for is no answer to the next question."""

BY_HAND: Final = "by hand"
WAYS: Final = (
    *(
        BY_HAND,
        "least",
        "selectors beside",
        "texts beside",
        "selectors around",
        "texts around",
        "both around",
    ),
    "all words",
)
"""How much stands beside a selector, in the order in which it is tried."""


def _inner(shape: Any) -> Any:
    while isinstance(shape, list) and shape[0] in ("where", "default"):
        shape = shape[1]
    return shape


def _given(word: str) -> Any:
    return {**plain(word), "name": f"q{next(_NUMBERS)}"} if word in SELECTORS else plain(word)


def _widened(shape: Any, path: Path, value: Any, way: str) -> Any:
    shape = _inner(shape)
    if isinstance(shape, list):
        inner = _widened(shape[1], path, value[0] if shape[0] == "list" else value["x"], way)
        return [inner] if shape[0] == "list" else {"x": inner}
    if not isinstance(shape, dict):
        return value
    named = {name.removesuffix("!"): each for name, each in shape.items()}
    for name, each in named.items():
        inner = _inner(each)
        is_word = isinstance(inner, str) and inner != "any"
        is_login = isinstance(inner, dict) and any(selectors_of(inner))
        wanted = {
            "selectors beside": len(path) <= 1 and inner in SELECTORS,
            "texts beside": len(path) <= 1 and inner == "text",
            "selectors around": is_login,
            "texts around": inner == "text",
            "both around": is_login or inner == "text",
            "all words": is_word,
        }
        if path and name == path[0]:
            value = {**value, name: _widened(each, path[1:], value[name], way)}
        elif wanted.get(way) and name not in value:
            value = {**value, name: least(each, next(selectors_of(each), ()), _given)}
    return value


def _plausible(part: Any, name: str = "") -> Any:
    """Write texts that say what their names promise."""
    if isinstance(part, dict):
        kept = ("name", "key", "type", "namespace") if "name" in part else ()
        return {key: each if key in kept else _plausible(each, key) for key, each in part.items()}
    if isinstance(part, list):
        return [_plausible(each, name) for each in part]
    if part != "x":
        return part
    if any(word in name.lower() for word in ("url", "uri", "host", "endpoint", "server", "domain")):
        return _ADDRESS
    return next((text for word, text in _TEXTS.items() if name.lower().endswith(word)), part)


def _within(part: Any, path: Path) -> Mapping[str, Any]:
    while isinstance(part, list) or (isinstance(part, dict) and path and path[0] not in part):
        part = part[0] if isinstance(part, list) else part["x"]
    return _within(part[path[0]], path[1:]) if path else part


def _placed(part: Any, target: str, namespace: str | None) -> Any:
    """Write namespaces into all selectors: of the target the one that is given, of others n."""
    if isinstance(part, list):
        return [_placed(each, target, namespace) for each in part]
    if not isinstance(part, dict):
        return part
    said = {key: _placed(each, target, namespace) for key, each in part.items()}
    name = str(part.get("name"))
    own = namespace if name == target else "n"
    return {**said, "namespace": own} if name[:1] == "q" and own else said


def questions(key: str, path: Path, way: str) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Return the name of what a selector names, and the questions: without its namespace, then with it."""
    by_hand = SPECS.get(key, {}).get(".".join(path)) if way == BY_HAND else None
    around: Mapping[str, Any] = {}
    if by_hand is not None:
        block: Any = by_hand.block(_given)
        around = {"keys": by_hand.keys, "environment": by_hand.environment}
    else:
        block = _plausible(_widened(SHAPES[key], path, least(SHAPES[key], path, _given), way))
    target = str(_within(block, path)["name"])
    return target, [
        {
            "provider": {key: _placed(block, target, namespace)},
            "clusterwide": True,
            "caller": caller,
            **around,
        }
        for namespace in (None, "n")
        for caller in ("", "caller")
    ]


def judged(target: str, answers: Sequence[Answer]) -> str:
    """Say in one of our words what the answers come to."""
    alone, called, pinned, pinned_called = answers
    places = [{place for name, place in each["reads"] if name == target} for each in answers]
    if (alone["store"] and not pinned["store"]) or (_of_namespace(alone) and not _of_namespace(pinned)):
        return REFUSED
    if any(each["store"] for each in answers):
        return UNSEEN
    if "" in places[0] or "empty namespace" in alone["client"]:
        return EARLY
    is_open = not alone["client"] and alone["validity"].startswith(("Unknown", "Ready"))
    if is_open and not places[0] and places[1] <= {"caller"} and (places[1] or _waits(alone, pinned)):
        return FOLLOWED
    if is_open and "namespace" in called["read"] and "namespace" not in pinned_called["read"]:
        return LATE
    has_read = not any(each["client"] or each["read"] for each in (called, pinned_called))
    return UNUSED if has_read and not any(places) else UNSEEN


def _of_namespace(answer: Answer) -> bool:
    return "namespace" in answer["client"].lower() and "empty namespace" not in answer["client"]


def _waits(alone: Answer, pinned: Answer) -> bool:
    """Whether the provider leaves its client for later, only since the namespace is not said."""
    return alone["validity"].startswith("Unknown") and not pinned["validity"].startswith("Unknown")


def asked(program: str, lines: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
    """Ask the program, anew for each question: what providers keep of one is no answer to the next."""
    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        return [*threads.map(partial(_asked, program), lines)]


def _asked(program: str, line: Mapping[str, Any]) -> Answer:
    done = subprocess.run([program], input=json.dumps(line), capture_output=True, text=True, check=True)
    (answer,) = (json.loads(said) for said in done.stdout.splitlines() if said.startswith('{"store"'))
    return answer


def main(program: str) -> None:
    """Print the table."""
    found: dict[tuple[str, Path], str] = {
        (key, path): UNSEEN for key, shape in SHAPES.items() for path in selectors_of(shape)
    }
    for way in WAYS:
        rest = {each: questions(*each, way) for each, word in found.items() if word == UNSEEN}
        answers = iter(asked(program, [one for _, all_ in rest.values() for one in all_]))
        for each, (target, all_) in rest.items():
            found[each] = judged(target, [next(answers) for _ in all_])
    table: dict[str, dict[str, str]] = {}
    for (key, path), word in sorted(found.items()):
        table.setdefault(key, {})[".".join(path)] = word
    lines = (f"{json.dumps(key)}: {json.dumps(words)}" for key, words in table.items())
    head = json.dumps({"operator": "External Secrets Operator", "version": VERSION})
    sys.stdout.write(f'{{"source": {head},\n"words": {json.dumps(WORDS)},\n"selectors": {{\n')
    sys.stdout.write(",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1])
