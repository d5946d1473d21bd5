"""The configuration a program is given: a stack's values over the project's defaults, as texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pulumi_sandbox.protocol.values import Json, Path, render

from components.errors import CredfleetError
from operations.stack.project_file import Project
from operations.stack.stack_file import StackFile


@dataclass(frozen=True, slots=True)
class ProgramConfig:
    """What a program sees: texts by full keys (objects as compact JSON), and which keys hold a secret.

    `sealed`: where texts stand that were not decrypted; `values` has null in their place.
    """

    values: Mapping[str, str] = field(repr=False)
    secret_keys: tuple[str, ...]
    sealed: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one value: its key, and the path inside of it where it is known."""

    code: str
    path: Path
    problem: str
    fix: str = "give it a value: Pulumi.yaml declares it"


def program_config(project: Project, stack: StackFile, decrypt: Callable[[str], str]) -> ProgramConfig:
    """Decrypt a stack's configuration and lay it over the project's defaults.

    Raises CredfleetError `config-invalid`, with all that is missing;
    `ciphertext-unreadable`, naming each value that is.
    """
    config, faults = read_config(project, stack, decrypt)
    if faults:
        first = faults[0]
        alike = [fault for fault in faults if fault.code == first.code]
        raise CredfleetError(
            code=first.code,
            place=str(stack.at(*first.path)) if len(alike) == 1 else str(stack.path),
            problem="; ".join(f"{_key_of(fault.path)} {fault.problem}" for fault in alike),
            fix=first.fix,
        )
    return config


def read_config(
    project: Project, stack: StackFile, decrypt: Callable[[str], str] | None
) -> tuple[ProgramConfig, tuple[Fault, ...]]:
    """Return a stack's configuration over the project's defaults, and what is wrong with it.

    Without a way to decrypt all that is encrypted stays sealed, and so does what is damaged.
    """
    reading = _Reading(decrypt)
    plain = {key: reading.value(value, (key,)) for key, value in stack.config.items()}
    texts = {key: _text(value) for key, value in plain.items() if (key,) not in reading.sealed}
    for declaration in project.declarations:
        if declaration.default is not None:
            texts.setdefault(declaration.key, _text(_whole(declaration.default)))
        elif declaration.key not in plain:
            reading.faults.append(Fault("config-invalid", (declaration.key,), "is missing"))
    config = ProgramConfig(
        dict(sorted(texts.items())),
        tuple(sorted(reading.secret_keys)),
        tuple(reading.sealed),
    )
    return config, tuple(reading.faults)


def compact(value: Any) -> str:
    """Return JSON as the Pulumi CLI puts it into texts: keys sorted, no spaces, `<`, `>` and `&` escaped."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@dataclass(slots=True)
class _Reading:
    """A configuration as far as it is decrypted."""

    decrypt: Callable[[str], str] | None
    secret_keys: set[str] = field(default_factory=set[str])
    sealed: list[Path] = field(default_factory=list[Path])
    faults: list[Fault] = field(default_factory=list[Fault])

    def value(self, value: Any, path: Path) -> Json:
        """Return a value as plain JSON, decrypted."""
        if isinstance(value, dict):
            if len(value) == 1 and isinstance(value.get("secure"), str):
                return self._secret(value["secure"], path)
            return {str(key): self.value(item, (*path, str(key))) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, (*path, index)) for index, item in enumerate(value)]
        return _whole(value)

    def _secret(self, ciphertext: str, path: Path) -> Json:
        self.secret_keys.add(str(path[0]))
        try:
            if self.decrypt is not None:
                return self.decrypt(ciphertext)
        except CredfleetError as error:
            self.faults.append(Fault(error.code, path, error.problem, error.fix))
        self.sealed.append(path)
        return None


def _key_of(path: Path) -> str:
    """Return a key with the path inside of it, as the configuration's commands take it."""
    key, *inside = path
    return f"{key}{'.' if inside and isinstance(inside[0], str) else ''}{render(tuple(inside))}"


def _whole(value: Any) -> Json:
    """Return plain JSON: whole numbers as integers, a bare date as the Pulumi CLI has it."""
    match value:
        case dict():
            return {str(key): _whole(each) for key, each in value.items()}
        case list():
            return [_whole(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case date():
            return f"{value:%Y-%m-%d %H:%M:%S} +0000 UTC"
        case _:
            return value if isinstance(value, bool | int | float) or value is None else str(value)


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)
