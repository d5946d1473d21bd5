"""Who holds an account that is being cleaned, judged by real processes."""

import os
import signal
import subprocess
from dataclasses import replace

from components.account_pool.core.holders import Holder, cleaner_of, cleaning_token, is_running


def test_a_holder_is_alive_while_anything_of_its_group_is() -> None:
    script = ["sh", "-c", "sleep 600 & echo $!; exec >&-; read _"]
    pipe = subprocess.PIPE
    with subprocess.Popen(script, stdin=pipe, stdout=pipe, start_new_session=True) as leader:
        assert leader.stdin
        assert leader.stdout
        child = int(leader.stdout.readline())
        holder = Holder.of_process(leader.pid)
        assert holder is not None
        assert is_running(holder)
        assert is_running(replace(holder, started="1")) is False
        for elsewhere in ({"boot": "another"}, {"spaces": "1-2"}, {"host": "another"}, {"pid": "-1"}):
            assert is_running(replace(holder, **elsewhere)) is None
        leader.stdin.close()
        os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
        assert is_running(holder)
        os.kill(child, signal.SIGKILL)
        while is_running(holder):
            pass
    assert is_running(holder) is False


def test_a_token_names_its_cleaner_and_its_holder_whatever_they_are_called() -> None:
    holder = Holder("a/b&c=d", "boot", "1-2", "3", "4", "ns/pod/uid")
    token = cleaning_token("team/nightly?", "5", holder)
    assert (cleaner_of(token), Holder.of_token(token)) == ("team/nightly?", holder)
    for older in ("nightly/0f3a", "x", "", "nightly/0f3a?host=h&odd=1"):
        assert Holder.of_token(older) is None
