"""Confines a program before it runs; a separate script, `confined.py PROGRAM ARGUMENT…`.

The program runs in its own namespaces: its only network is its own loopback, it sees no other processes, and
only the files in its specification, an empty home and an empty temporary folder. Its environment is that of
the specification, it cannot gain privileges, and its time and memory are limited. The specification is JSON
on standard input: {readable, writable, hidden: paths, environment, folder, seconds, size, nests}. nests:
whether it can confine other programs, so that it sees processes. This script imports nothing of this package.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

REFUSED: Final = 97
"""Exit code if the kernel does not allow the isolation."""

_NEW_USER_AND_NETWORK: Final = 0x10000000 | 0x40000000
_APART: Final = 0x00020000 | 0x20000000 | 0x08000000 | 0x04000000
"""New namespaces for mounts, processes, IPC and host name."""
_BIND, _RECURSIVE, _PRIVATE, _NOSUID, _NODEV, _DETACH = 0x1000, 0x4000, 0x40000, 2, 4, 2
_MOUNT_SETATTR, _AT_RECURSIVE, _AT_FDCWD = 442, 0x8000, -100
_PIVOT_ROOT, _KEYCTL = {"x86_64": (155, 250), "aarch64": (41, 219)}.get(os.uname().machine, (-1, -1))
_JOIN_SESSION_KEYRING: Final = 1
_READ_ONLY: Final = 1 | 2 | 4
"""Attributes of mount_setattr: read-only, no set-user-ID, no devices."""
_PDEATHSIG, _DUMPABLE, _NO_NEW_PRIVS, _SIGKILL = 1, 4, 38, 9
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache")
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_PROCESSES_SHOWN: Final = ("/proc",)
_HOME, _TEMPORARY = Path("/private/home"), Path("/private/tmp")
_FILE_BYTES: Final = 64 << 20
_PROCESSES: Final = 512
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def main(spec: dict[str, Any], command: list[str]) -> int:
    """Confine this process, run the command in a child, and return its exit code."""
    _LIBC.prctl(_PDEATHSIG, _SIGKILL)
    leave_network(1000, 1000, _APART)
    top = Path(tempfile.gettempdir())
    _done(_LIBC.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "mount")
    writable = (*_DEVICES, *spec["writable"], *(_PROCESSES_SHOWN if spec["nests"] else ()))
    opened = {path: os.open(path, os.O_PATH) for path in _outermost((*_SYSTEM, *spec["readable"], *writable))}
    _done(_LIBC.mount(b"tmpfs", os.fsencode(top), b"tmpfs", _NOSUID | _NODEV, b"size=256m"), "mount tmpfs")
    root = top / "root"
    root.mkdir()
    if spec["nests"]:
        _done(
            _LIBC.mount(b"tmpfs", os.fsencode(root), b"tmpfs", _NOSUID | _NODEV, b"size=256m"), "mount tmpfs"
        )
    for path, descriptor in opened.items():
        _show(path, descriptor, root, read_only=str(path) not in writable)
        os.close(descriptor)
    for path in spec["hidden"]:
        if (place := root / Path(path).relative_to("/")).is_dir():
            _done(_LIBC.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 1, b"size=4k"), f"hide {path}")
    for path in (_HOME, _TEMPORARY):
        (root / path.relative_to("/")).mkdir(parents=True)
    os.chdir(root if spec["nests"] else top)
    child = os.fork()
    if child == 0:
        _LIBC.prctl(_PDEATHSIG, _SIGKILL)
        os.setsid()  # otherwise its parent's group would get its signals to its own
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        _done(_LIBC.syscall(_PIVOT_ROOT, b".", b"."), "pivot_root")
        _done(_LIBC.umount2(b".", _DETACH), "umount")
        if not spec["nests"]:
            os.chroot(root.name)  # in a chroot, the kernel denies new user namespaces
        os.chdir(spec["folder"])
        _leave_keys()
        for limit, most in (
            (resource.RLIMIT_AS, spec["size"]),
            (resource.RLIMIT_CPU, spec["seconds"]),
            (resource.RLIMIT_FSIZE, _FILE_BYTES),
            (resource.RLIMIT_NPROC, _PROCESSES),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(limit, (most, most))
        _LIBC.prctl(_DUMPABLE, int(spec["nests"]), 0, 0, 0)
        _done(_LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        at_home = {"HOME": str(_HOME), "TMPDIR": str(_TEMPORARY), "PATH": "/usr/bin", "LANG": "C.UTF-8"}
        os.execve(command[0], command, {**at_home, **spec["environment"]})  # noqa: S606 - no shell

    def end(*_: object) -> None:
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(spec["seconds"])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def leave_network(user: int, group: int, others: int = 0) -> None:
    """Move this process to new namespaces: user, network with only a loopback, and others.

    user, group: its IDs inside. Raises OSError if the kernel denies it.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, f"{sys.platform} has no namespaces: run this on Linux")
    outer_user, outer_group = os.getuid(), os.getgid()
    _done(_LIBC.unshare(_NEW_USER_AND_NETWORK | others), "unshare")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {outer_group} 1", encoding="ascii")
    with socket.socket() as loopback:  # the SDK serves callbacks there, to this process alone
        fcntl.ioctl(loopback, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def _outermost(paths: Iterable[str]) -> list[Path]:
    """Return the existing paths that are not inside another one."""
    found: list[Path] = []
    for path in map(Path, sorted(paths)):
        if path.exists() and not any(path.is_relative_to(each) for each in found):
            found.append(path)
    return found


def _show(path: Path, descriptor: int, root: Path, *, read_only: bool) -> None:
    """Mount an outside file or folder at its path in the new root, where it can be hidden."""
    place = root / path.relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        place.symlink_to(path.readlink())
        return
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        place.mkdir(exist_ok=True)
    else:
        place.touch()
    source = f"/proc/self/fd/{descriptor}".encode()
    _done(_LIBC.mount(source, os.fsencode(place), None, _BIND | _RECURSIVE, None), f"mount {path}")
    if read_only:
        attributes = struct.pack("QQQQ", _READ_ONLY, 0, 0, 0)
        call = _LIBC.syscall(
            _MOUNT_SETATTR, _AT_FDCWD, os.fsencode(place), _AT_RECURSIVE, attributes, len(attributes)
        )
        _done(call, f"make {path} read-only")


def _leave_keys() -> None:
    """Leave the session keyring, which namespaces do not isolate; without the call there are no keys."""
    if _LIBC.syscall(_KEYCTL, _JOIN_SESSION_KEYRING, None) < 0:
        number = ctypes.get_errno()
        if number not in (errno.ENOSYS, errno.EPERM):
            raise OSError(number, f"keyctl: {os.strerror(number)}")


def _done(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    try:
        sys.exit(main(json.load(sys.stdin), sys.argv[1:]))
    except OSError as error:
        sys.stderr.write(f"{error.strerror}\n")
        sys.exit(REFUSED)
