"""What an environment says to a policy pack: the JSON file that the CLI takes as `--policy-pack-config`.

An object: name of a policy → its level, or `{enforcementLevel?, property: value, …}`; the name `all` gives a
level to every policy that the file does not name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format

from pulumi_sandbox.documents import read_json
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.stubs import analyzer_pb2

_LEVELS: Final = {
    "advisory": analyzer_pb2.ADVISORY,
    "mandatory": analyzer_pb2.MANDATORY,
    "remediate": analyzer_pb2.REMEDIATE,
    "disabled": analyzer_pb2.DISABLED,
}


@dataclass(frozen=True, slots=True)
class PackConfig:
    """The file's place, and its entries as objects."""

    place: str
    entries: Mapping[str, Mapping[str, Any]]

    def over(
        self, defaults: Mapping[str, analyzer_pb2.PolicyConfig], info: analyzer_pb2.AnalyzerInfo
    ) -> dict[str, analyzer_pb2.PolicyConfig]:
        """Lay the entries over the pack's defaults.

        Raises SandboxError `policy-config-invalid`, with every policy, property and level that is unknown,
        and every property that is not as its policy's schema says.
        """
        schemas = {policy.name: policy.configSchema for policy in info.policies}
        if problems := list(self._problems({name: {*each.properties} for name, each in schemas.items()})):
            raise _invalid(self.place, "; ".join(problems))
        merged = {name: self._merged(name, default) for name, default in defaults.items()}
        if problems := [one for name in merged for one in _unfit(name, merged[name], schemas[name])]:
            raise _invalid(self.place, "; ".join(problems))
        return merged

    def _problems(self, known: Mapping[str, set[str]]) -> Iterator[str]:
        for name, entry in self.entries.items():
            level = entry.get("enforcementLevel", "advisory")
            if not isinstance(level, str) or level not in _LEVELS:
                yield f"{name}: the level is none of {', '.join(_LEVELS)}"
            properties = set(entry) - {"enforcementLevel"}
            if name != "all" and name not in known:
                yield f"the pack has no policy {name}"
            else:
                yield from (
                    f"{name} has no property {one}" for one in sorted(properties - known.get(name, set()))
                )

    def _merged(self, name: str, default: analyzer_pb2.PolicyConfig) -> analyzer_pb2.PolicyConfig:
        entry = self.entries.get(name, {})
        merged = analyzer_pb2.PolicyConfig()
        merged.CopyFrom(default)
        level = entry.get("enforcementLevel")
        if name not in self.entries:
            level = self.entries.get("all", {}).get("enforcementLevel")
        if level:
            merged.enforcementLevel = _LEVELS[level]
        merged.properties.update({key: value for key, value in entry.items() if key != "enforcementLevel"})
        return merged


def _unfit(
    name: str, config: analyzer_pb2.PolicyConfig, schema: analyzer_pb2.PolicyConfigSchema
) -> Iterator[str]:
    from jsonschema import Draft7Validator

    rules = {
        "properties": json_format.MessageToDict(schema.properties),
        "required": [*schema.required],
    }
    given = json_format.MessageToDict(config.properties)
    for error in Draft7Validator(rules).iter_errors(given):
        yield ": ".join([name, *map(str, error.path), error.message])


NOTHING: Final = PackConfig("", {})


def load(path: Path) -> PackConfig:
    """Read a file.

    Raises SandboxError `policy-config-invalid`, for what is no JSON object of levels and objects.
    """
    try:
        document = read_json(path.read_bytes().strip() or b"{}")
    except (OSError, ValueError) as error:
        raise _invalid(str(path), f"it cannot be read as JSON ({error})") from error
    if not isinstance(document, dict) or not all(isinstance(one, str | dict) for one in document.values()):
        raise _invalid(str(path), "it is no object whose values are levels or objects")
    return PackConfig(
        str(path),
        {
            name: {"enforcementLevel": entry} if isinstance(entry, str) else entry
            for name, entry in document.items()
        },
    )


def _invalid(place: str, cause: str) -> SandboxError:
    return SandboxError(
        code="policy-config-invalid",
        place=place,
        cause=cause,
        mend="write policy → level, or policy → {enforcementLevel, property: value}",
    )
