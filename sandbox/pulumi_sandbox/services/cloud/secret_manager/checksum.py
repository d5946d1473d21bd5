"""CRC32C (Castagnoli), by which Secret Manager notices bytes that changed on their way."""

from typing import Final

_POLYNOMIAL: Final = 0x82F63B78


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_REMAINDERS: Final = tuple(map(_remainder, range(256)))


def crc32c(data: bytes) -> int:
    """Return the checksum of some bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _REMAINDERS[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
