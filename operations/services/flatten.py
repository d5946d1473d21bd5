"""`credfleet services flatten`: the Secrets that credentials become, and what is to be said of them."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence

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


def flatten_file(
    file: str, *, default_type: str, strict: bool, numbers: Numbers, with_values: bool
) -> CommandResult:
    """Turn the credentials in a file into Secrets.

    Raises CredfleetError that names every key at fault, never a value.
    """
    text, place = read_bytes(file, "the credentials"), place_of(file)
    try:
        credentials = read_credentials_object(text, numbers=numbers)
    except CredfleetError as error:
        raise _invalid(place, [Problem(error.place, error.problem, error.fix)]) from None
    verdict = judge(credentials, default_type=default_type, strict=strict)
    if verdict.errors:
        raise _invalid(place, verdict.errors)
    source, binding = source_data(credentials), binding_data(credentials, default_type)
    type_ = binding_type(credentials, default_type)
    document = {
        "source": _base64(source),
        "binding": {"type": type_, "data": _base64(binding)},
        "warnings": [str(remark) for remark in verdict.warnings],
    }
    columns = ["Secret", Column("Type", leaves=1), Column("Key", names=True), "Bytes"]
    rows = [*_rows("source", "Opaque", source), *_rows("binding", _printable(type_), binding)]
    if with_values:
        columns.append(Column("Value", folds=True))
        values = (*source.values(), *binding.values())
        rows = [(*row, _printable(value.decode())) for row, value in zip(rows, values, strict=True)]
    parts = [Table("Secrets", columns, rows)]
    if verdict.warnings:
        remarks = [(each.place, f"{each.problem}\n→ {each.fix}") for each in verdict.warnings]
        parts.append(Table("Warnings", ("Where", Column("What", folds=True)), remarks))
    return CommandResult(document, parts)


def _base64(data: Mapping[str, bytes]) -> dict[str, str]:
    return {key: b64encode(value).decode() for key, value in data.items()}


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
