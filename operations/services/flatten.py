"""`credfleet services flatten`: the Secrets that credentials become, and what is to be said of them."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.errors import CredfleetError, Problem
from components.go_json import Numbers
from components.service_credentials.binding import (
    binding_data,
    binding_type,
    read_credentials_object,
    source_data,
)
from components.service_credentials.conformity import judge
from operations.cli.answer import CommandResult
from operations.cli.inputs import place_of, read_bytes
from operations.cli.tables import Column, Table


@dataclass(frozen=True, slots=True)
class Flattened:
    """Both Secrets of credentials; type is the binding Secret's."""

    source: Mapping[str, bytes]
    type: str
    binding: Mapping[str, bytes]
    warnings: tuple[Problem, ...]


def flatten_file(
    file: str, *, default_type: str, strict: bool, numbers: Numbers, with_values: bool
) -> CommandResult:
    """Flatten the credentials in a file; raises ServiceError as `flatten` does."""
    text = read_bytes(file, "the credentials")
    secrets = flatten(text, place_of(file), default_type=default_type, strict=strict, numbers=numbers)
    document = {
        "source": _base64(secrets.source),
        "binding": {"type": secrets.type, "data": _base64(secrets.binding)},
        "warnings": [str(remark) for remark in secrets.warnings],
    }
    return CommandResult(document, _tables(secrets, with_values=with_values))


def flatten(text: bytes, place: str, *, default_type: str, strict: bool, numbers: Numbers) -> Flattened:
    """Turn credentials into Secrets. place: where they are from.

    Raises CredfleetError that names every key at fault, never a value.
    """
    try:
        credentials = read_credentials_object(text, numbers=numbers)
    except CredfleetError as error:
        raise _invalid(place, [Problem(error.place, error.problem, error.fix)]) from None
    verdict = judge(credentials, default_type=default_type, strict=strict)
    if verdict.errors:
        raise _invalid(place, verdict.errors)
    return Flattened(
        source_data(credentials),
        binding_type(credentials, default_type),
        binding_data(credentials, default_type),
        verdict.warnings,
    )


def _base64(data: Mapping[str, bytes]) -> dict[str, str]:
    return {key: b64encode(value).decode() for key, value in data.items()}


def _tables(secrets: Flattened, *, with_values: bool) -> Iterator[Table]:
    """Return what a terminal may show; JSON holds every value, in base64."""
    columns, rows = (
        ["Secret", Column("Type", leaves=1), Column("Key", names=True), "Bytes"],
        [
            *_rows("source", "Opaque", secrets.source),
            *_rows("binding", _printable(secrets.type), secrets.binding),
        ],
    )
    if with_values:
        columns.append(Column("Value", folds=True))
        values = (*secrets.source.values(), *secrets.binding.values())
        rows = [(*row, _printable(value.decode())) for row, value in zip(rows, values, strict=True)]
    yield Table("Secrets", columns, rows)
    if secrets.warnings:
        remarks = [(each.place, f"{each.problem}\n→ {each.fix}") for each in secrets.warnings]
        yield Table("Warnings", ("Where", Column("What", folds=True)), remarks)


def _rows(secret: str, type_: str, data: Mapping[str, bytes]) -> Iterator[tuple[str, ...]]:
    for index, (key, value) in enumerate(data.items()):
        named = ("", "") if index else (secret, type_)
        yield (*named, key, str(len(value)))


def _printable(text: str) -> str:
    """Keep what could steer a terminal from reaching it."""
    return text if text.replace("\n", "").isprintable() else json.dumps(text)


def _invalid(place: str, remarks: Sequence[Problem]) -> CredfleetError:
    return CredfleetError(
        code="credentials-invalid",
        place=place,
        problem="; ".join(f"{remark.place}: {remark.problem}" for remark in remarks),
        fix="; ".join(dict.fromkeys(remark.fix for remark in remarks)),
    )
