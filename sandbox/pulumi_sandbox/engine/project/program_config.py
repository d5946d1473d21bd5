"""The configuration a program is given: a stack's values over the project's defaults, checked, as texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.project_file import Declaration, Project
from pulumi_sandbox.engine.project.stack_file import StackFile
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import MASK, Json

_LONGEST_VARIABLE: Final = 131_071
"""Bytes Linux takes in one environment string, its name and `=` included."""


@dataclass(frozen=True, slots=True)
class ProgramConfig:
    """What a program sees: texts by full keys (objects as compact JSON), and which keys hold a secret.

    `secrets` are the decrypted texts themselves, for whoever must keep them out of what is shown.
    """

    values: Mapping[str, str] = field(repr=False)
    secret_keys: tuple[str, ...]
    secrets: tuple[str, ...] = field(repr=False)

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


def program_config(project: Project, stack: StackFile, crypter: PassphraseCrypter) -> ProgramConfig:
    """Decrypt a stack's configuration and lay it over the project's defaults.

    Raises SandboxError `config-invalid`, with all that is missing or of the wrong type; `config-too-long`, as
    no program could be started with it; `ciphertext-unreadable`.
    """
    texts: dict[str, str] = {}
    secret_keys: list[str] = []
    secrets: list[str] = []
    problems: list[str] = []
    plain: dict[str, Json] = {}
    for key, value in stack.config.items():
        found = list(_secrets(value))
        plain[key] = _decrypted(value, crypter, key)
        texts[key] = _text(plain[key])
        if found:
            secret_keys.append(key)
            secrets += (crypter.decrypt(each, place=key) for each in found)
    for declaration in project.declarations:
        key = declaration.key
        if key in plain:
            problems += _problems(declaration, plain[key], texts[key], secret=key in secret_keys)
        elif declaration.has_default:
            texts[key] = _text(declaration.default)
        else:
            problems.append(f"{key} is missing")
    if problems:
        raise SandboxError(
            code="config-invalid",
            place=str(stack.path),
            cause="; ".join(problems),
            mend="give these keys values of the type that Pulumi.yaml declares",
        )
    config = ProgramConfig(dict(sorted(texts.items())), tuple(sorted(secret_keys)), tuple(secrets))
    _refuse_too_long(stack, config)
    return config


def compact(value: Any) -> str:
    """Return JSON as the genuine CLI puts it into texts: keys sorted, no spaces, `<`, `>` and `&` escaped."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _secrets(value: Any) -> Iterator[str]:
    """Yield every ciphertext in a value."""
    if isinstance(value, dict):
        if _is_secure(value):
            yield value["secure"]
        else:
            for item in value.values():
                yield from _secrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item)


def _is_secure(value: dict[str, Any]) -> bool:
    return len(value) == 1 and isinstance(value.get("secure"), str)


def _decrypted(value: Any, crypter: PassphraseCrypter, place: str) -> Json:
    """Return a value as plain JSON: whole numbers as integers, an unquoted date as the genuine CLI has it."""
    if isinstance(value, dict):
        if _is_secure(value):
            return crypter.decrypt(value["secure"], place=place)
        return {str(key): _decrypted(item, crypter, place) for key, item in value.items()}
    if isinstance(value, list):
        return [_decrypted(item, crypter, place) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, date):
        return f"{value:%Y-%m-%d %H:%M:%S} +0000 UTC"
    return value if isinstance(value, bool | int | float) or value is None else str(value)


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)


def _problems(declaration: Declaration, value: Json, text: str, *, secret: bool) -> Iterator[str]:
    """Yield what is wrong with a value; the genuine CLI checks a bare one by its text."""
    if declaration.secret and not secret:
        yield f"{declaration.key} must be encrypted, as Pulumi.yaml declares it secret"
    checked = value if isinstance(value, dict | list) else text
    if declaration.type and not _fits(declaration.type, declaration.items, checked):
        yield f"{declaration.key} must be of type {_type_name(declaration.type, declaration.items)}"


def _fits(type_: str, items: Mapping[str, Any] | None, value: Json) -> bool:
    match type_, value:
        case ("string", str()) | ("object", dict()) | ("boolean", bool() | "true" | "false"):
            return True
        case "integer", str():
            return value.removeprefix("-").isdecimal()
        case "integer", int():
            return not isinstance(value, bool)
        case "array", list() if items:
            return all(_fits(items["type"], items.get("items"), item) for item in value)
        case _:
            return False


def _type_name(type_: str, items: Mapping[str, Any] | None) -> str:
    return f"array<{_type_name(items['type'], items.get('items'))}>" if type_ == "array" and items else type_


def _refuse_too_long(stack: StackFile, config: ProgramConfig) -> None:
    length = len(f"PULUMI_CONFIG={config.environment['PULUMI_CONFIG']}".encode())
    if length > _LONGEST_VARIABLE:
        raise SandboxError(
            code="config-too-long",
            place=str(stack.path),
            cause=f"the configuration takes {length} bytes; Linux gives a program only {_LONGEST_VARIABLE}",
            mend="move long values into files that the program reads",
        )
