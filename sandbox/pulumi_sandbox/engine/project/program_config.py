"""The configuration a program is given: a stack's values over the project's defaults, checked, as texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from pulumi_sandbox.engine.project.config_types import fits, type_name
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.project_file import Declaration, Project
from pulumi_sandbox.engine.project.stack_file import StackFile
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.paths import Path, render
from pulumi_sandbox.protocol.values import MASK, Json

_LONGEST_VARIABLE: Final = 131_071
"""Bytes Linux takes in one environment string, its name and `=` included."""


@dataclass(frozen=True, slots=True)
class ProgramConfig:
    """What a program sees: texts by full keys (objects as compact JSON), and which keys hold a secret.

    `secrets` are the decrypted texts themselves, for whoever must keep them out of what is shown. `sealed`:
    where texts stand that were not decrypted; `values` has null in their place.
    """

    values: Mapping[str, str] = field(repr=False)
    secret_keys: tuple[str, ...]
    secrets: tuple[str, ...] = field(repr=False)
    sealed: tuple[Path, ...] = ()

    @property
    def shown(self) -> dict[str, str]:
        """The values, secret ones masked."""
        return {key: MASK if key in self.secret_keys else value for key, value in self.values.items()}

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which program, providers and policy packs get it."""
        return {
            "PULUMI_CONFIG": compact(self.values),
            "PULUMI_CONFIG_SECRET_KEYS": compact(list(self.secret_keys)),
        }


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one value: its key, and the path inside of it where it is known."""

    code: str
    path: Path
    cause: str
    mend: str = "give it a value of the type that Pulumi.yaml declares"


def program_config(project: Project, stack: StackFile, crypter: PassphraseCrypter) -> ProgramConfig:
    """Decrypt a stack's configuration and lay it over the project's defaults.

    Raises SandboxError `config-invalid`, with all that is missing or of the wrong type; `config-too-long`, as
    no program could be started with it; `ciphertext-unreadable`, naming each value that is.
    """
    config, faults = read_config(project, stack, crypter)
    if faults:
        first = faults[0]
        alike = [fault for fault in faults if fault.code == first.code]
        raise SandboxError(
            code=first.code,
            place=str(stack.at(*first.path)) if len(alike) == 1 else str(stack.path),
            cause="; ".join(f"{_key_of(fault.path)} {fault.cause}" for fault in alike),
            mend=first.mend,
        )
    _refuse_too_long(stack, config)
    return config


def read_config(
    project: Project, stack: StackFile, crypter: PassphraseCrypter | None
) -> tuple[ProgramConfig, tuple[Fault, ...]]:
    """Return a stack's configuration over the project's defaults, and what is wrong with it.

    Without a crypter all that is encrypted stays sealed, and so does what is damaged.
    """
    reading = _Reading(crypter)
    plain = {key: reading.value(value, (key,)) for key, value in stack.config.items()}
    texts = {key: _text(value) for key, value in plain.items() if (key,) not in reading.sealed}
    for declaration in project.declarations:
        key = declaration.key
        if key in texts:
            causes = _problems(declaration, plain[key], texts[key], secret=key in reading.secret_keys)
            reading.faults += (Fault("config-invalid", (key,), cause) for cause in causes)
        elif declaration.has_default:
            texts[key] = _text(_whole(declaration.default))
            causes = _problems(declaration, declaration.default, texts[key], secret=False)
            reading.faults += (Fault("config-invalid", (key,), cause) for cause in causes)
        elif key not in plain:
            reading.faults.append(Fault("config-invalid", (key,), "is missing"))
    config = ProgramConfig(
        dict(sorted(texts.items())),
        tuple(sorted(reading.secret_keys)),
        tuple(reading.secrets),
        tuple(reading.sealed),
    )
    return config, tuple(reading.faults)


def compact(value: Any) -> str:
    """Return JSON as the genuine CLI puts it into texts: keys sorted, no spaces, `<`, `>` and `&` escaped."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@dataclass(slots=True)
class _Reading:
    """A configuration as far as it is decrypted."""

    crypter: PassphraseCrypter | None
    secret_keys: set[str] = field(default_factory=set[str])
    secrets: list[str] = field(default_factory=list[str])
    sealed: list[Path] = field(default_factory=list[Path])
    faults: list[Fault] = field(default_factory=list[Fault])

    def value(self, value: Any, path: Path) -> Json:
        """Return a value as plain JSON: whole numbers as integers, a bare date as the genuine CLI has it."""
        if isinstance(value, dict):
            if len(value) == 1 and isinstance(value.get("secure"), str):
                return self._secret(value["secure"], path)
            return {str(key): self.value(item, (*path, str(key))) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, date):
            return f"{value:%Y-%m-%d %H:%M:%S} +0000 UTC"
        return value if isinstance(value, bool | int | float) or value is None else str(value)

    def _secret(self, ciphertext: str, path: Path) -> Json:
        self.secret_keys.add(str(path[0]))
        try:
            if self.crypter is not None:
                text = self.crypter.decrypt(ciphertext, place=_key_of(path))
                self.secrets.append(text)
                return text
        except SandboxError as error:
            self.faults.append(Fault(error.code, path, error.cause, error.mend))
        self.sealed.append(path)
        return None


def _key_of(path: Path) -> str:
    """Return a key with the path inside of it, as the configuration's commands take it."""
    key, *inside = path
    return f"{key}{'.' if inside and isinstance(inside[0], str) else ''}{render(tuple(inside))}"


def _whole(value: Json) -> Json:
    """Return a default with whole numbers as integers."""
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)


def _problems(declaration: Declaration, value: Json, text: str, *, secret: bool) -> Iterator[str]:
    """Yield what is wrong with a value; the genuine CLI checks a bare one by its text."""
    if declaration.type and declaration.secret and not secret:
        yield "must be encrypted, as Pulumi.yaml declares it secret"
    checked = value if isinstance(value, dict | list) else text
    if declaration.type and not fits(declaration.type, declaration.items, checked):
        yield f"must be of type {type_name(declaration.type, declaration.items)}"


def _refuse_too_long(stack: StackFile, config: ProgramConfig) -> None:
    length = len(f"PULUMI_CONFIG={config.environment['PULUMI_CONFIG']}".encode())
    if length > _LONGEST_VARIABLE:
        raise SandboxError(
            code="config-too-long",
            place=str(stack.path),
            cause=f"the configuration takes {length} bytes; Linux gives a program only {_LONGEST_VARIABLE}",
            mend="move long values into files that the program reads",
        )
