"""Which process holds an account that is being cleaned: the token of a run says it, so that others can look.

Pids mean nothing elsewhere, and are given away again. So a holder is a process by its start time, in the pid
namespace and since the boot of one host. The pod it runs in can be asked about from everywhere.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode

from components.account_pool.core.keys import CLEANING_TOKEN
from components.account_pool.core.model import Member

Look: TypeAlias = Callable[["Holder"], bool | None]
"""Says whether a holder is alive; None where that cannot be seen here."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process with all that it started. host: its name. spaces: inodes of its pid and time namespaces.

    started: in ticks since the boot. pod: namespace, name and uid, empty outside of one.
    """

    host: str
    boot: str
    spaces: str
    pid: str
    started: str
    pod: str = ""

    @classmethod
    def of_process(cls, pid: int, pod: str = "") -> Holder | None:
        """Name a process of this host; None where the system does not say what tells it from others."""
        own = Path("/proc/self/ns")
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            spaces = "-".join(str(each.stat().st_ino) for each in (own / "pid", *own.glob("time")))
            process = _Process.read(pid)
        except OSError:
            return None
        return process and cls(socket.gethostname(), boot, spaces, str(pid), process.started, pod)

    @classmethod
    def of_token(cls, token: str) -> Holder | None:
        """Return whom a cleaning token names; None for one of a version that named none."""
        try:
            return cls(**dict(parse_qsl(token.rpartition("/")[2].partition("?")[2])))
        except TypeError:
            return None

    def __str__(self) -> str:
        """Where to look for it."""
        return f"{self.host}, pid {self.pid}"


def cleaning_token(cleaner: str, run: str, holder: Holder | None) -> str:
    """Name a run of a cleaner, and the process that holds an account for it."""
    return f"{cleaner}/{run}" + (f"?{urlencode(asdict(holder))}" if holder else "")


def cleaner_of(token: str) -> str:
    """Return the id of the cleaner whose run a token names."""
    return token.rpartition("/")[0]


def holder_of(member: Member) -> Holder | None:
    """Return who cleans a member, where its token names one."""
    return Holder.of_token(member.annotations.get(CLEANING_TOKEN, ""))


def is_running(holder: Holder) -> bool | None:
    """Whether a process of this host, or anything else in its group, runs; None for one of another host."""
    if not re.fullmatch("[1-9][0-9]{0,6}", holder.pid):
        return None
    here, pid = Holder.of_process(os.getpid()), int(holder.pid)
    if here is None or (here.host, here.boot, here.spaces) != (holder.host, holder.boot, holder.spaces):
        return None
    leader = _Process.read(pid)
    if leader and leader.started != holder.started:
        return False  # the number was given away again, which it is not before the group is empty
    known = (_Process.read(int(name)) for name in os.listdir("/proc") if name.isdecimal())
    group = [each for each in known if each and each.group == pid]
    hides_some = (not leader and _answers(os.kill, pid)) or (not group and _answers(os.killpg, pid))
    return hides_some or any(not each.is_over for each in (leader, *group) if each)


def _answers(send: Callable[[int, int], None], pid: int) -> bool:
    """Whether there is such a process or group; /proc may hide those of other users."""
    try:
        send(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(frozen=True, slots=True)
class _Process:
    """What the kernel says of one. is_over: it is not reaped yet, and none of its threads runs."""

    group: int
    started: str
    is_over: bool

    @classmethod
    def read(cls, pid: int) -> _Process | None:
        """Read it; None for one that is gone, or another user's where /proc hides those."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return cls(int(fields[2]), fields[19], fields[0] in "ZX" and int(fields[17]) <= 1)
