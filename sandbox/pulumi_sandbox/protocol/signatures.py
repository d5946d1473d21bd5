"""The marks by which special values are recognised inside plain JSON, on the wire and in the state alike.

Values of the protocol: Pulumi publishes them in its SDKs.
"""

from typing import Final

KEY: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the public mark of a secret, not one
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
UNKNOWNS: Final = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
