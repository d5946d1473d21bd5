"""Digests of assets and archives, as the genuine engine computes them: by content, not by where it lies."""

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Archive, Asset, Properties, Secret, Value

_ARCHIVE_SUFFIXES: Final = (".tar", ".tgz", ".tar.gz", ".zip", ".jar")
_BLOCK: Final = 512


def hashed(properties: Properties, root: Path | None) -> Properties:
    """Return the properties with the hash of every asset and archive filled in; paths are relative to `root`.

    root: None for a program that nobody trusts: none of the files that it names is read.
    Raises SandboxError `asset-unreadable`, for a file that is not there; `asset-unsupported`, for a URI.
    """
    return cast(Properties, _hashed(properties, root))


def _hashed(value: Value, root: Path | None) -> Value:
    match value:
        case list():
            return [_hashed(item, root) for item in value]
        case dict():
            return {key: _hashed(item, root) for key, item in value.items()}
        case Secret():
            return Secret(_hashed(value.value, root))
        case Asset() | Archive() if root is None:
            raise _unsupported("an asset of a program that is shut in")
        case Asset() | Archive() if root:
            return _digested(value, root)
        case _:
            return value


def _digested(value: Asset | Archive, root: Path) -> Asset | Archive:
    """Return an asset or archive with its digest, and those of all that an archive is made of."""
    if isinstance(value, Archive) and value.assets:
        members = {name: _digested(member, root) for name, member in value.assets.items()}
        value = replace(value, assets=members)
    return value if value.hash else replace(value, hash=hashlib.sha256(_content(value, root)).hexdigest())


def _content(value: Asset | Archive, root: Path) -> bytes:
    """Return what is digested: an asset's bytes, an archive file's, or the members packed into a tar."""
    if isinstance(value, Asset):
        return _asset(value, root)
    if value.path and value.path.endswith(_ARCHIVE_SUFFIXES):
        return _read(root / value.path)
    return b"".join(_packed(name, data) for name, data in _members(value, root)) + bytes(2 * _BLOCK)


def _asset(value: Asset, root: Path) -> bytes:
    if value.path:
        return _read(root / value.path)
    if value.uri:
        raise _unsupported(value.uri)
    return (value.text or "").encode()


def _members(value: Archive, root: Path) -> Iterator[tuple[str, bytes]]:
    if value.uri:
        raise _unsupported(value.uri)
    if value.path:
        directory = root / value.path
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                yield path.relative_to(directory).as_posix(), _read(path)
    for name, member in sorted((value.assets or {}).items()):
        if isinstance(member, Asset):
            yield name, _asset(member, root)
        else:
            for inner, data in _members(member, root):
                yield f"{name}/{inner}", data


def _packed(name: str, data: bytes) -> bytes:
    """Return one member of a tar: header and content in whole blocks, with device numbers as Go has them."""
    info = tarfile.TarInfo(name)
    info.mode, info.size = 0o600, len(data)
    header = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    header[329:345] = b"0000000\0" * 2
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data + bytes(-len(data) % _BLOCK)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SandboxError(
            code="asset-unreadable",
            place=str(path),
            cause=f"the program uses this file as an asset, and it cannot be read ({error.strerror})",
            mend="correct the path; it is relative to the program",
        ) from None


def _unsupported(uri: str) -> SandboxError:
    return SandboxError(
        code="asset-unsupported",
        place=uri,
        cause="the embedded engine fetches no assets from elsewhere",
        mend="use a file, or run this program with the Pulumi CLI",
    )
