"""A module of the user's, one frame further down."""


def blow_up() -> None:
    """Raise, as a mistake in a program would."""
    raise ValueError("something went wrong")
