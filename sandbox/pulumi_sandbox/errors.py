"""What the sandbox says when it cannot go on: one shape, four words, two lines."""


class SandboxError(Exception):
    """A foreseeable failure of the sandbox; no field may hold a secret.

    code: its stable kind, `port-taken`, by which callers tell it. place: where: a file, an address, a part of
    the sandbox. problem: a sentence; fix: an imperative one; both without a full stop.
    """

    def __init__(self, *, code: str, place: str, problem: str, fix: str) -> None:
        super().__init__(code, place, problem, fix)
        self.code = code
        self.place = place
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        """Two lines: what is wrong and where; then how to fix it."""
        return f"{self.place}: {self.problem}\n→ {self.fix}"
