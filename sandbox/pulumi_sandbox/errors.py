"""What the sandbox says when it cannot go on: one shape, four words, two lines."""


class SandboxError(Exception):
    """A foreseeable failure of the sandbox.

    Callers tell failures apart by `code` (kebab-case, stable: `port-taken`); people read the rest.
    None of the fields may hold a secret.
    """

    def __init__(self, *, code: str, place: str, problem: str, fix: str) -> None:
        """Keep the four words.

        Args:
            code: A stable name of the kind of failure, in kebab-case.
            place: Where it went wrong: a file, an address, a resource, a part of the sandbox.
            problem: What is wrong there, as a sentence without a full stop.
            fix: What to do about it, as an imperative sentence without a full stop.
        """
        super().__init__(code, place, problem, fix)
        self.code = code
        self.place = place
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        """Two lines: what is wrong and where; then how to fix it."""
        return f"{self.place}: {self.problem}\n→ {self.fix}"
