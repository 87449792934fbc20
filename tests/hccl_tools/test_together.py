"""Many commands at the same time: what is bounded, what is tried again, and that one that hangs delays no other."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from hccl_tools.hosts import together
from hccl_tools.hosts.ssh import MOST_KEPT, Call

DROPPED = "echo kex_exchange_identification: Connection closed by remote host >&2; exit 255"


def shell(text, sent=None):
    return Call(["/bin/sh", "-c", text], sent)


def run(texts, seconds=30, **options):
    """{host: Ended} of {host: shell command}."""
    return together.run(texts, lambda host: shell(texts[host]), seconds, **options)


def test_the_answers_are_in_the_order_of_the_hosts_whichever_ends_first(tmp_path):
    os.mkfifo(tmp_path / "last")
    texts = {"a": f"read x <{tmp_path}/last; echo a $x", "b": f"echo b >{tmp_path}/last; echo b"}
    ended = run(texts)
    assert list(ended) == ["a", "b"]
    assert [(end.status, end.stdout) for end in ended.values()] == [(0, "a b\n"), (0, "b\n")]


def test_status_and_both_outputs_come_back():
    (ended,) = run({"a": "echo out; echo wrong >&2; exit 3"}).values()
    assert ended == (3, "out\n", "wrong\n")


def test_what_cannot_be_started_is_127():
    ended = together.run(["a"], lambda _: Call(["/no/such/program"]), 5)
    assert ended["a"].status == 127 and "No such file" in ended["a"].stderr


def test_stdin_gets_what_is_sent_and_stays_open():
    sent = b"x" * 300_000 + b"\n"  # more than a pipe takes at once
    ended = together.run(["a"], lambda _: shell("read line; echo ${#line}", sent), 30)
    assert ended["a"] == (0, "300000\n", "")


def test_a_command_that_does_not_read_its_stdin_harms_nobody():
    ended = together.run(["a", "b"], lambda _: shell("exec <&-; echo ok", b"x" * 300_000), 30)
    assert [end.stdout for end in ended.values()] == ["ok\n", "ok\n"]


def test_no_more_than_a_bounded_part_of_the_output_is_kept():
    (ended,) = run({"a": f"head -c {3 * MOST_KEPT} /dev/zero; head -c {3 * MOST_KEPT} /dev/zero >&2"}).values()
    assert (len(ended.stdout), len(ended.stderr)) == (MOST_KEPT, MOST_KEPT)


def test_hosts_that_hang_delay_no_other_and_are_stopped_at_their_limit(monkeypatch):
    monkeypatch.setattr(together, "PATIENCE", 0.05)
    monkeypatch.setattr(together, "ARRIVING", 2)
    texts = {**{f"hang{n}": "exec sleep 300" for n in range(4)}, **{f"well{n}": "echo ok" for n in range(20)}}
    stopped = {}  # {host: those that had ended by their limit when it began}

    def call(host):
        stopped[host] = [name for name, end in work.ended.items() if end.status == 124]
        return shell(texts[host])

    work = together._Work(list(texts), call, 3)
    work.do()
    work.close()
    assert [work.ended[host].status for host in texts] == [124] * 4 + [0] * 20
    assert {host: names for host, names in stopped.items() if names} == {}


def test_no_more_than_a_bounded_number_log_in_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.setattr(together, "ARRIVING", 3)
    monkeypatch.setattr(together, "PATIENCE", 60)
    counted = f"cd {tmp_path}; : >in.$$; ls in.* | wc -l >seen.$$; sleep 0.05; rm in.$$; echo; sleep 0.1"
    run({str(number): counted for number in range(12)})
    seen = [int(path.read_text()) for path in tmp_path.glob("seen.*")]
    assert len(seen) == 12 and max(seen) <= 3
    assert not list(tmp_path.glob("in.*"))


def test_a_connection_that_sshd_drops_is_tried_again_and_fewer_begin_at_a_time(tmp_path):
    text = f"cd {tmp_path}; [ -e $0 ] || {{ : >$0; {DROPPED}; }}; echo here"
    dropped = []
    call = lambda host: Call(["/bin/sh", "-c", text, host])  # noqa: E731
    work = together._Work(["a", "b"], call, 30, dropped=dropped.append)
    work.do()
    work.close()
    assert sorted(dropped) == ["a", "b"]
    assert [end.stdout for end in work.ended.values()] == ["here\n", "here\n"]
    assert work.width == together.ARRIVING // 2  # once for both, which began together


@pytest.mark.parametrize("text", ["exit 255", f"echo in; {DROPPED}", "echo Connection closed by peer >&2; exit 1"])
def test_other_failures_are_not_tried_again(tmp_path, text):
    run({"a": f"echo x >>{tmp_path}/tries; {text}"})
    assert (tmp_path / "tries").read_text() == "x\n"


def test_a_connection_that_is_always_dropped_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(together, "TRIES", 2)
    (ended,) = run({"a": f"echo x >>{tmp_path}/tries; {DROPPED}"}).values()
    assert ended.status == 255 and (tmp_path / "tries").read_text() == "x\nx\n"


def test_a_command_whose_stderr_stays_open_has_ended_all_the_same():
    """A ControlPersist master of ssh keeps the stderr of the first connection."""
    (ended,) = run({"a": "sleep 20 >/dev/null & echo done"}, seconds=15).values()
    assert ended == (0, "done\n", "")


def test_few_descriptors_are_enough_for_many_hosts():
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))\n"
        "from hccl_tools.hosts import together\n"
        "from hccl_tools.hosts.ssh import Call\n"
        "ended = together.run(map(str, range(60)), lambda _: Call(['/bin/sh', '-c', 'sleep 0.02; echo ok'], b''), 30)\n"
        "print({end.stdout for end in ended.values()})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "{'ok\\n'}\n", done.stderr


def test_a_process_that_the_kernel_refuses_waits_for_another_to_end(monkeypatch):
    alive, real = [], subprocess.Popen

    def refuse(*arguments, **options):
        if len([process for process in alive if process.poll() is None]) >= 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        alive.append(real(*arguments, **options))
        return alive[-1]

    monkeypatch.setattr(together.subprocess, "Popen", refuse)
    ended = run({str(number): "echo ok" for number in range(9)})
    assert {end.stdout for end in ended.values()} == {"ok\n"}


def test_those_that_have_not_ended_are_named_from_time_to_time(monkeypatch):
    monkeypatch.setattr(together, "FIRST_NEWS", 0.2)
    heard = []
    run({"fast": "echo", "slow": "echo; exec sleep 300"}, seconds=1, news=heard.append)
    assert heard == [["slow"]]


def test_after_an_interrupt_those_with_stdin_may_finish_and_the_others_are_killed(tmp_path):
    texts = {"cleans": f"cat; echo clean >{tmp_path}/clean", "hangs": "exec sleep 300"}

    def pids():
        return [path.read_text().strip() for path in map(tmp_path.joinpath, texts) if path.exists()]

    def call(host):
        if host == "interrupt":
            deadline = time.monotonic() + 20
            while len(list(filter(None, pids()))) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            signal.raise_signal(signal.SIGINT)  # in this thread: kill(2) chooses any
        return shell(f"echo $$ >{tmp_path}/{host}; {texts.get(host, ':')}", b"" if host == "cleans" else None)

    with pytest.raises(KeyboardInterrupt):
        together.run([*texts, "interrupt"], call, 300)
    assert [pid for pid in pids() if os.path.exists(f"/proc/{pid}")] == []
    assert (tmp_path / "clean").read_text() == "clean\n"


def test_the_number_of_commands_follows_from_the_limit_of_descriptors(monkeypatch):
    for limit, most in [(-1, together.MOST), (1 << 20, together.MOST), (364, 100), (10, 1)]:
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert together._most() == most


def test_an_interrupt_while_a_command_begins_waits_for_its_end_only(monkeypatch):
    @contextlib.contextmanager
    def interrupted():
        yield
        raise KeyboardInterrupt  # as signals_held does for a signal that came meanwhile

    told = []
    monkeypatch.setattr(together, "signals_held", interrupted)
    monkeypatch.setattr(together, "FIRST_NEWS", 5.0)
    with pytest.raises(KeyboardInterrupt):
        together.run(["a"], lambda _: shell("read line; cat", b"x\n"), 30, news=told.append)
    assert told == []  # else it has waited for a command that has ended
