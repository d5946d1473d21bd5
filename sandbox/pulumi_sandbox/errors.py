"""The error of the sandbox: always the same four fields and two lines."""


class SandboxError(Exception):
    """An expected failure of the sandbox; no field can contain a secret.

    code: a stable identifier for callers, such as `port-taken`. place: a file, an address, a part of the
    sandbox. problem: a sentence; fix: an imperative sentence; both without a full stop.
    """

    def __init__(self, *, code: str, place: str, problem: str, fix: str) -> None:
        super().__init__(code, place, problem, fix)
        self.code = code
        self.place = place
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        """Return two lines: place and problem, then the fix."""
        return f"{self.place}: {self.problem}\n→ {self.fix}"
