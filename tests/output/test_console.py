"""The reader that shows the ranks' logs: what a pipe gets, what a terminal gets, and when."""

import json
import os
import pty
import random
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tools.output import console, console_ways

READER = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from tools.output import console
given = json.loads(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
console.follow(patience=console.Patience(**given.pop("patience")), **given)
with open("kilobytes", "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""
ENVIRONMENT = {**os.environ, "TERM": "xterm", "LAUNCH_LANG": "en"}
ENVIRONMENT.pop("NO_COLOR", None)


class Reader:
    """A process that follows logs.  `out`: where the test reads what it prints."""

    def __init__(self, root, logs, out, theirs, variables=None, patience=None):
        self.out, self.seen = out, b""
        control, self.control = os.pipe()
        given = {"logs": logs, "numbers": list(range(len(logs))), "control": control, "world": len(logs)}
        given = json.dumps({**given, "name": "ascend.sh", "patience": patience or {}})
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", READER, root, given],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs if os.isatty(theirs) else subprocess.PIPE,
            pass_fds=[control],
            env={**ENVIRONMENT, **(variables or {})},
        )
        os.close(control)
        os.close(theirs)

    def more(self):
        """Reads all that has come; empty at the end."""
        assert select.select([self.out], [], [], 60)[0], self.seen
        try:
            got = os.read(self.out, 1 << 16)
        except OSError:  # a terminal that nobody has open
            got = b""
        self.seen += got
        return got

    def until(self, *texts):
        while not any(text in self.seen for text in texts):
            assert self.more(), (texts, self.seen)

    def close(self):
        """The launcher closes its pipe."""
        os.close(self.control)

    def rest(self):
        """All that it prints, up to its end."""
        self.close()
        while self.more():
            pass
        os.close(self.out)
        error = self.process.communicate(timeout=300)[1]
        assert self.process.returncode == 0 and not error
        return self.seen


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """logs(TEXT, ...): the paths of logs with these texts, in the current folder."""
    monkeypatch.chdir(tmp_path)

    def of(*texts):
        names = [f"rank_{number}.log" for number in range(len(texts))]
        for name, text in zip(names, texts):
            (tmp_path / name).write_bytes(text)
        return names

    return of


@pytest.fixture
def piped(root, logs):
    """piped(TEXT, ...): a reader of such logs, whose stdout is a pipe."""
    return lambda *texts, **more: Reader(str(root), logs(*texts), *os.pipe(), **more)


@pytest.fixture
def on_terminal(root, logs):
    """on_terminal(TEXT, ...): the same on a terminal."""
    return lambda *texts, **more: Reader(str(root), logs(*texts), *pty.openpty(), **more)


def append(name, text):
    with open(name, "ab") as file:
        file.write(text)


# ---- a pipe ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        ([b""], b""),
        ([b"a\nb"], b"a\nb\n"),
        ([b"a\r\nb\r\n"], b"a\r\nb\r\n"),
        ([b"\r 1%\r 50%\r100%"], b"100%\n"),
        ([b"\r 1%\r100%\ndone\n"], b"100%\ndone\n"),
        ([b"1%\r50%\r100%\r"], b"100%\n"),
        ([b"1%\r100%\r\nend\n"], b"100%\nend\n"),
        ([b"\r100%\r     \r\nend"], b"100%\nend\n"),
        ([b"\n\na\n\n\nx\rb\n\n\n"], b"\n\na\n\n\nb\n\n\n"),
        ([b"\x1b[31m\xe4\xb8\x96\x1b[0m\xe7\x95\x8c"], b"\x1b[31m\xe4\xb8\x96\x1b[0m\xe7\x95\x8c\n"),
        ([b"\r\r\r\n"], b"\n"),
        ([b"\0a\0\xff\n\xffb\0"], b"\0a\0\xff\n\xffb\0\n"),
        ([b"\r 1%\r100%\na", b"\nb\n1%\r9%"], b"[0] 100%\n[1] \n[1] b\n[0] a\n[1] 9%\n"),
        ([b"a\r\n\xe4\xb8\x96\n", b"b"], b"[0] a\r\n[0] \xe4\xb8\x96\n[1] b\n"),
        ([b"\0\xff\n", b"\xffb\0"], b"[0] \0\xff\n[1] \xffb\0\n"),
    ],
)
def test_a_pipe_gets_lines_as_they_are_and_of_a_redrawn_line_the_last_state(piped, texts, shown):
    assert piped(*texts).rest() == shown


def test_redrawn_lines_and_characters_that_are_cut_anywhere_come_out_whole(piped):
    bar = "".join(f"\r{n:3}%|世界| {n}/100" for n in range(101)) + "\n"
    text = "".join(f"epoch {n}\n\n{bar}\rloss {n}\n" for n in range(60)).encode()
    expected = "".join(f"epoch {n}\n\n100%|世界| 100/100\nloss {n}\n" for n in range(60)).encode()
    assert piped(text).rest() == expected
    both = piped(text, text).rest().splitlines(keepends=True)
    for prefix in (b"[0] ", b"[1] "):
        assert b"".join(line[4:] for line in both if line.startswith(prefix)) == expected


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("prefix", [b"", b"[3] "])
def test_the_same_comes_out_however_the_bytes_come(prefix, seed):
    bar = b"".join(b"\r%3d%%" % n for n in range(30))
    text = bar + b"\nx\n\n" + b"line\n" * 20 + bar + b"\r    \rend\n" + b"y" * 9000 + b"\n"
    chance, written, out = random.Random(seed), [], console_ways.Stdout(1)
    out.write = written.append
    way = console_ways.Lines(out, 10, prefix) if prefix else console_ways.States(out, 10)
    while text:
        size = chance.choice((1, 2, 3, 7, 100))
        way.show(text[:size], 0)
        text = text[size:]
    way.end()
    expected = [b" 29%", b"x", b"", *[b"line"] * 20, b"end", b"y" * 9000]
    assert b"".join(written) == b"".join(prefix + line + b"\n" for line in expected)


def test_megabytes_of_a_progress_bar_are_one_line(piped):
    assert piped(b"".join(b"\r%9d" % n for n in range(200000))).rest() == b"   199999\n"


def test_binary_passes(piped):
    text = b"\2" + random.Random(7).randbytes(300000)
    assert piped(text).rest() == text + (b"" if text.endswith(b"\n") else b"\n")


def test_a_line_that_never_ends_comes_in_pieces_with_its_rank(piped):
    found = piped(b"x" + "世".encode() * 100000, b"short\n").rest().splitlines()
    pieces = [line[4:] for line in found if line.startswith(b"[0] ")]
    assert len(pieces) > 10 and b"[1] short" in found
    assert all(len(piece.decode()) < 20000 for piece in pieces)  # no character is cut
    assert all(piece.endswith(b" ...") for piece in pieces[:-1])
    assert all(piece.startswith(b"... ") for piece in pieces[1:])
    assert b"\n".join(pieces).replace(b" ...\n... ", b"") == b"x" + "世".encode() * 100000


@pytest.mark.parametrize("others", [(), (b"",)])
def test_a_state_that_is_too_long_does_not_wait(piped, others):
    reader = piped(b"\r" + b"z" * 20000, *others)
    reader.until(b"z ...\n")
    append("rank_0.log", b"\r 2%")
    found = reader.rest().replace(b"[0] ", b"")
    assert found.startswith(b"z" * 20000 + b" ...\n") and found.endswith(b" 2%\n")


def test_an_unfinished_line_comes_at_once_and_a_state_now_and_then(piped):
    reader = piped(b"loading", patience={"state_every": 0.05})
    reader.until(b"loading")
    append("rank_0.log", b" done\n\r 1%")
    reader.until(b" 1%\n")
    append("rank_0.log", b"\r 2%\r 3%")
    reader.until(b" 3%\n")
    append("rank_0.log", b"\n")
    assert reader.rest() in (b"loading done\n 1%\n 3%\n", b"loading done\n 1%\n 2%\n 3%\n")


def test_a_log_that_is_not_there_or_is_a_fifo_is_empty(root, logs):
    names = logs(b"here\n")
    os.mkfifo("rank_2.log")
    assert Reader(str(root), ["none", names[0], "rank_2.log"], *os.pipe()).rest() == b"[1] here\n"


def test_it_ends_silently_when_nobody_reads_its_stdout(piped):
    reader = piped(b"a\n")
    reader.until(b"a\n")
    os.close(reader.out)
    append("rank_0.log", b"b\n")
    assert reader.process.communicate(timeout=300) == (None, b"") and reader.process.returncode == 0
    reader.close()


def test_it_waits_for_a_stdout_that_does_not_block(root, logs):
    out, theirs = os.pipe()
    os.set_blocking(theirs, False)
    text = b"0123456789abcde\n" * 65536
    reader = Reader(str(root), logs(text), out, theirs)
    assert reader.rest() == text


# ---- logs that grow fast ---------------------------------------------------------------------------------------------


def test_a_log_without_end_does_not_keep_the_others_waiting(root, logs):
    (name,) = logs(b"")
    reader = Reader(str(root), ["/dev/zero", name], *os.pipe())
    for _ in range(100):  # it is at work
        assert reader.more()
    reader.seen = b""
    append(name, b"here\n")
    while b"[1] here\n" not in reader.seen[-(2 << 16) :]:
        assert reader.more() and len(reader.seen) < 64 << 20
    reader.rest()
    assert int(Path("kilobytes").read_text()) < 8 << 10


def test_what_comes_after_the_end_of_the_job_is_not_shown(logs):
    (name,) = logs(b"job\n")
    file = console.File(name, console_ways.Bytes(console_ways.Stdout(1)))
    assert file.read() == b"job\n"
    append(name, b"last\n")
    file.stop()
    append(name, b"left behind\n")
    assert (file.read(), file.read()) == (b"last\n", b"")


def test_the_rest_of_a_log_comes_after_the_end(piped):
    text = b"0123456789abcde\n" * 400000
    reader = piped(text)
    assert reader.rest() == text


# ---- a terminal ------------------------------------------------------------------------------------------------------


def test_a_terminal_gets_a_bar_as_it_is_written(on_terminal):
    reader = on_terminal(b"\r 10%|\x1b[32m#\x1b[0m")
    reader.until(b"\r 10%|\x1b[32m#\x1b[0m")
    append("rank_0.log", b"\r100%|#")
    assert reader.rest() == b"\r 10%|\x1b[32m#\x1b[0m\r100%|#\r\n"


def test_the_status_is_below_an_unfinished_line_and_goes_without_a_trace(on_terminal):
    reader = on_terminal(b"line\n\r 10%", patience={"status_after": 0.1})
    reader.until(*(b"no output for 0:0%d\x1b8" % seconds for seconds in range(10)))
    before = reader.seen.rpartition(b"ascend.sh: 1 rank running")[0]
    assert b" 10%\x1bD\x1b[A\x1b7\x1bD\r\x1b[K" in before, reader.seen
    append("rank_0.log", b"\r 20%")
    reader.until(b"\x1b8\x1b7\x1bD\r\x1b[K\x1b8\r 20%")
    reader.rest()


def test_the_status_behind_whole_lines_is_on_a_line_of_its_own(on_terminal):
    reader = on_terminal(b"line\n", patience={"status_after": 0, "waits": (0.02,)})
    reader.until(b"line\r\n\r\x1b[Kascend.sh: 1 rank running, no output for 0:00")
    append("rank_0.log", b"more\n")
    reader.until(b"\r\x1b[Kmore\r\n")
    assert reader.rest().endswith(b"\r\x1b[K")


def test_a_dumb_terminal_gets_no_status(on_terminal):
    reader = on_terminal(b"line\n", patience={"status_after": 0}, variables={"TERM": "dumb"})
    reader.until(b"line\r\n")  # in the same round there would be a status
    assert reader.rest() == b"line\r\n"


def test_several_logs_on_a_terminal_states_now_and_then(on_terminal):
    every = {"state_every_terminal": 0.05, "state_every": 1000}
    reader = on_terminal(b"\r 1%\r 2%", b"a\n", patience=every, variables={"NO_COLOR": "1"})
    reader.until(b"[1] a\r\n")
    reader.until(b"[0]  2%\r\n")
    append("rank_0.log", b"\r 2%\n")
    assert reader.rest().count(b"2%") == 1


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)])
def test_ranks_have_colours_on_a_terminal(on_terminal, variables, coloured):
    shown = on_terminal(b"a\n", b"b\n", variables=variables).rest()
    expected = b"\x1b[36m[0]\x1b[0m a\r\n\x1b[33m[1]\x1b[0m b\r\n" if coloured else b"[0] a\r\n[1] b\r\n"
    assert shown == expected


# ---- as many as may be open ------------------------------------------------------------------------------------------


def test_all_logs_are_shown_unless_too_many_files_would_be_open(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 4096))
    assert console.shown(range(236)) == (range(236), None)
    ranks, why = console.shown(range(8, 408))
    assert list(ranks) == [8]
    few = "--console all shows rank 8 only: it needs 464 open files, but ulimit -n is 300"
    assert why == f"{few}; type: ulimit -n 4096"
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 400))
    assert console.shown(range(8, 408))[1].startswith(f"{few}; raise nofile in /etc/security/limits.conf to ")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert console.can_open(1 << 40, "nothing") is None
