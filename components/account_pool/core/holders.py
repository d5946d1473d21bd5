"""Process that holds an account for cleaning, named in the run's token so that others can check on it.

A pid means nothing on another host and can be reused. A holder is therefore a process with its start time, in
a pid namespace, since a boot of one host. The pod it runs in can be looked up from everywhere.
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
"""Returns whether a holder is alive; None if that cannot be determined here."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Process with its children. `host`: host name. `spaces`: inodes of its pid and time namespaces.

    `started`: clock ticks since boot. `pod`: namespace, name and uid; empty outside a pod.
    """

    host: str
    boot: str
    spaces: str
    pid: str
    started: str
    pod: str = ""

    @classmethod
    def of_process(cls, pid: int, pod: str = "") -> Holder | None:
        """Identify a process of this host; None if the system does not expose the required data."""
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
        """Return the holder that a cleaning token names; None for a token of an old version."""
        try:
            return cls(**dict(parse_qsl(token.rpartition("/")[2].partition("?")[2])))
        except TypeError:
            return None

    def __str__(self) -> str:
        """Return where to find the process."""
        return f"{self.host}, pid {self.pid}"


def cleaning_token(cleaner: str, run: str, holder: Holder | None) -> str:
    """Return the token of a cleaner's run and of the process that holds an account for it."""
    return f"{cleaner}/{run}" + (f"?{urlencode(asdict(holder))}" if holder else "")


def cleaner_of(token: str) -> str:
    """Return the id of the cleaner in a token."""
    return token.rpartition("/")[0]


def holder_of(member: Member) -> Holder | None:
    """Return the process that cleans a member, if its token names one."""
    return Holder.of_token(member.annotations.get(CLEANING_TOKEN, ""))


def is_running(holder: Holder) -> bool | None:
    """Return whether the process or another of its group runs; None if it is on another host."""
    if not re.fullmatch("[1-9][0-9]{0,6}", holder.pid):
        return None
    here, pid = Holder.of_process(os.getpid()), int(holder.pid)
    if here is None or (here.host, here.boot, here.spaces) != (holder.host, holder.boot, holder.spaces):
        return None
    leader = _Process.read(pid)
    if leader and leader.started != holder.started:
        return False  # the pid was reused, which happens only once the group is empty
    known = (_Process.read(int(name)) for name in os.listdir("/proc") if name.isdecimal())
    group = [each for each in known if each and each.group == pid]
    hides_some = (not leader and _answers(os.kill, pid)) or (not group and _answers(os.killpg, pid))
    return hides_some or any(not each.is_over for each in (leader, *group) if each)


def _answers(send: Callable[[int, int], None], pid: int) -> bool:
    """Return whether the process or group exists; /proc might hide those of other users."""
    try:
        send(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(frozen=True, slots=True)
class _Process:
    """Kernel data of a process. `is_over`: it is a zombie or dead, and none of its threads runs."""

    group: int
    started: str
    is_over: bool

    @classmethod
    def read(cls, pid: int) -> _Process | None:
        """Read /proc; None if the process is gone, or is hidden because another user owns it."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return cls(int(fields[2]), fields[19], fields[0] in "ZX" and int(fields[17]) <= 1)
