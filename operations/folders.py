"""Where this project keeps what belongs to its sandbox, its policies and its stacks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pulumi_sandbox import engine, folders
from pulumi_sandbox.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Folders(folders.Folders):
    """The folders of the sandbox, and what this project has beside them."""

    @property
    def logs(self) -> Path:
        """What providers said, and the tracebacks of defects."""
        return self.sandbox / "logs"

    @property
    def pulumi_home(self) -> Path:
        """The home of the Pulumi CLI (PULUMI_HOME), where it finds every provider."""
        return self.sandbox / "pulumi"

    @property
    def report(self) -> Path:
        """The page about the latest update."""
        return self.sandbox / "report.html"

    @property
    def policy_packs(self) -> tuple[Path, ...]:
        """The project's own policy pack, if it has one."""
        pack = self.project / "policies"
        return (pack,) if (pack / "PulumiPolicy.yaml").is_file() else ()

    def policy_config(self, stack: str) -> Path | None:
        """Return what a stack's environment says to the project's own policy pack, if anything."""
        config = self.project / "policies" / "config" / f"{stack}.json"
        return config if config.is_file() else None

    @property
    def dev_passphrase(self) -> Path:
        """The passphrase of stack `dev`, public on purpose."""
        return self.project / "stacks" / "dev" / "passphrase"

    def public_passphrase(self, stack: str) -> Path | None:
        """Return the file of a stack's passphrase if anybody may read it: no stack's but that of `dev`."""
        return self.dev_passphrase if stack == "dev" else None

    def is_public_given(self, environment: Mapping[str, str]) -> bool:
        """Whether the passphrase that the environment gives is that of stack `dev`, wherever it is from."""
        try:
            given = engine.find_passphrase("dev", environment=environment)
        except SandboxError:
            return False
        public = self.dev_passphrase
        return public.is_file() and given == public.read_text(encoding="utf-8").strip()

    def existing(self, stack: str) -> Path:
        """Return the file of what the sandbox's cluster has before the first update of a stack, if any."""
        return self.project / "stacks" / stack / "existing.yaml"
