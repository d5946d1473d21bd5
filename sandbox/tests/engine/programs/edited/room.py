"""A component, in a module that the program imports."""

import pulumi

WORD = "first"


class Room(pulumi.ComponentResource):
    """It tells its word."""

    word: pulumi.Output[str]

    def __init__(self, name: str) -> None:
        super().__init__("test:index:Room", name)
        self.word = pulumi.Output.from_input(WORD)
        self.register_outputs({"word": self.word})
