"""Secret Manager in memory: one secret whose versions a test lays out, and what was asked of it."""

from dataclasses import dataclass, field, replace

from components.errors import SecretManagerError
from components.secret_manager import LATEST, Payload, SecretManager, Version, VersionState, version_name

SECRET = "projects/p/secrets/s"
ENABLED, DISABLED, DESTROYED = VersionState.ENABLED, VersionState.DISABLED, VersionState.DESTROYED


@dataclass
class MemorySecretManager(SecretManager):
    """Versions from 1 on, by what they hold and how they stand. latest: what the alias means."""

    laid_out: list[tuple[bytes, VersionState]]
    latest: int | None = None
    writes: list[str] = field(default_factory=list[str])

    def version(self, name: str) -> Version | None:
        assert name.startswith(f"{SECRET}/versions/")
        wanted = name.rpartition("/")[2]
        number = (self.latest or len(self.laid_out)) if wanted == LATEST else int(wanted)
        return self._version(number) if 0 < number <= len(self.laid_out) else None

    def versions(self, secret: str) -> list[Version]:
        assert secret == SECRET
        return [self._version(number) for number in range(len(self.laid_out), 0, -1)]

    def access(self, name: str) -> Payload:
        found = self.version(name)
        if found is None or found.state is not ENABLED:
            raise SecretManagerError(code="refused", place=name, problem="it is not enabled", fix="")
        return Payload(found.number, self.laid_out[found.number - 1][0])

    def enable(self, version: Version) -> Version:
        return self._turned(version, ENABLED)

    def disable(self, version: Version) -> Version:
        return self._turned(version, DISABLED)

    def destroy(self, version: Version) -> Version:
        return self._turned(version, DESTROYED)

    def states(self) -> list[VersionState]:
        return [state for _, state in self.laid_out]

    def _turned(self, version: Version, state: VersionState) -> Version:
        content, _ = self.laid_out[version.number - 1]
        self.laid_out[version.number - 1] = (content, state)
        self.writes.append(f"{version.number} {state}")
        return replace(version, state=state)

    def _version(self, number: int) -> Version:
        state = self.laid_out[number - 1][1]
        return Version(version_name(SECRET, number), state, "etag", f"2026-01-0{number}T00:00:00Z")
