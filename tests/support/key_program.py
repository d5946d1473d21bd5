"""A program for the keys of one account: its cloud is a file of those that are alive."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PROGRAM: Final = """#!/usr/bin/env python3
import json, os, pathlib, sys
account, verb = sys.argv[-2:]
name = lambda key: "id-" + key.rpartition("-")[2]
asked = json.load(sys.stdin)
alive = pathlib.Path("alive")
keys = alive.read_text().split()
(own,) = asked["credential"].values()
secrets = [key for key in keys if any(key in text for text in (*sys.argv, *os.environ.values()))]
with open("calls", "a") as calls:
    print(verb, account, asked["type"], asked["accountId"], asked.get("keyId"), secrets, file=calls)
print("on standard error:", own, file=sys.stderr)
if own not in keys:
    sys.exit(10)
if verb in ("create", "revoke"):
    keys = [key for key in keys if name(key) == asked["keyId"]]
if verb == "create":
    own = f"sentinel-{len(list(open('calls')))}"
    keys.append(own)
pathlib.Path("next").write_text(" ".join(keys))
os.replace("next", "alive")
answer = {"accountId": "111111111111", "keyId": name(own)}
if verb == "create":
    answer["credential"] = dict.fromkeys(asked["credential"], own)
print(json.dumps(answer))
"""


def write_program(folder: Path, key: str) -> None:
    """Have a program `keys.py`, and a cloud where this key is alive; what is asked goes to `calls`."""
    program = folder / "keys.py"
    program.write_text(_PROGRAM)
    program.chmod(0o700)
    (folder / "alive").write_text(key)
