"""The process beside each launcher of several hosts: what it decides, and what strangers can send to it."""

import contextlib
import json
import os
import resource
import select
import socket
import subprocess
import sys

import documents
import pytest
from suite.cases import for_each

from hccl_tools.hosts import elsewhere
from tools.attempts import verdict, wire
from tools.launch.hosts import launchers
from tools.launch.request import Request

JOB = "0123456789abcdef"
ALIKE = [["--max_restarts", "2", "2"], ["the command", "c0ffee", "python x.py"]]
PATIENCE = 60  # seconds


# ---- what is decided ----------------------------------------------------------------------------------


@pytest.fixture
def job():
    """Attempts of three hosts with one restart in a row, which remember what they tell."""
    told = []
    attempts = verdict.Attempts(["a", "b", "c"], 1, 3, 1000, told.append)
    attempts.told_all = told
    return attempts


def begin(job, number):
    for host in range(3):
        assert job.told_all[-1:] != [["begin", number]]
        job.ready(host, number)
    assert job.told_all[-1] == ["begin", number]


def test_an_attempt_begins_when_all_are_ready_for_it(job):
    job.ready(0, 0)
    job.ready(0, 0)
    job.ready(1, 1)
    job.ready(1, 0)
    assert job.told_all == []
    job.ready(2, 0)
    job.ready(2, 0)
    assert job.told_all == [["begin", 0]]


def come(job, number, *rows):
    """All hosts tell how far the attempt came: (step, step before, checkpoint, text)."""
    for host, row in enumerate(rows):
        job.came(host, number, *row)


HERE = (10, 10, 0, "")  # no further than before


def test_the_first_failure_of_an_attempt_counts_and_restarts_in_vain_end_the_job(job):
    begin(job, 0)
    job.failed(2, 0, 7, "rank 5")
    job.failed(1, 0, 8, "rank 3")
    assert job.told_all[1:] == [["again", 0, 7, "c", "rank 5"]]
    job.ready(0, 0)
    job.ready(0, 1)
    come(job, 0, (10, 0, 0, ""), HERE)
    come(job, 7, HERE, HERE, HERE)
    assert len(job.told_all) == 2  # one host has not told it
    job.came(2, 0, *HERE)
    assert job.told_all[2:] == [["restart", 1, 0]]
    job.failed(1, 1, 8, "it has not begun")
    begin(job, 1)
    job.failed(1, 0, 8, "an old attempt")
    job.failed(0, 1, 9, "rank 0")
    come(job, 1, HERE, HERE, HERE)
    why = "no further step after 1 restart, the most that --max_restarts allows"
    assert job.told_all[4:] == [["again", 1, 9, "a", "rank 0"], ["over", 1, 1, why]]
    job.left(1, "it has gone home")
    assert len(job.told_all) == 6


@pytest.mark.parametrize("row", [(11, 10, 0, ""), (10, 10, 1, "")])
def test_what_one_host_has_seen_of_progress_counts_for_all_up_to_the_limit(job, row):
    for number in range(3):
        begin(job, number)
        job.failed(1, number, 7, "rank 3")
        come(job, number, HERE, row, HERE)
        assert job.told_all[-1] == ["restart", number + 1, 0]
    begin(job, 3)
    job.failed(1, 3, 7, "rank 3")
    come(job, 3, HERE, row, HERE)
    assert job.told_all[-1] == ["over", 3, 0, "the job has had 3 restarts, the most that --restart_limit allows"]


def test_a_step_that_another_host_has_made_before_is_no_progress(job):
    begin(job, 0)
    job.failed(1, 0, 7, "rank 3")
    come(job, 0, HERE, HERE, HERE)
    begin(job, 1)
    job.failed(1, 1, 7, "rank 3")
    come(job, 1, (10, 9, 0, ""), HERE, HERE)
    assert job.told_all[-1][:3] == ["over", 1, 1]


def test_a_rank_that_dies_of_the_same_again_ends_the_job_though_restarts_are_left(job):
    begin(job, 0)
    job.failed(1, 0, 7, "rank 3")
    come(job, 0, HERE, (10, 10, 0, "rank 3 died three times"), HERE)
    assert job.told_all[-1] == ["over", 0, 0, "rank 3 died three times"]


def test_without_restarts_the_first_failure_ends_the_job_at_once():
    told = []
    job = verdict.Attempts(["a", "b"], 0, 100, 1000, told.append)
    job.ready(0, 0)
    job.ready(1, 0)
    job.failed(1, 0, 7, "rank 1")
    assert told[1:] == [["end", 0, 7, "b", "rank 1"]]


def test_a_host_that_is_done_waits_for_the_others_and_begins_again_with_them(job):
    begin(job, 0)
    job.done(0, 0)
    job.done(0, 0)
    job.done(2, 0)
    job.failed(1, 0, 1, "rank 2")
    come(job, 0, HERE, HERE, HERE)
    begin(job, 1)
    for host in range(3):
        assert job.told_all[-1] == ["begin", 1]
        job.done(host, 1)
    assert job.told_all[-1] == ["end", 1, 0, "c", ""]


def test_a_lost_host_ends_the_job(job):
    job.left(1, "lost")
    for host in range(3):
        job.ready(host, 0)
    assert job.told_all == [["end", 0, 255, "b", "lost"]]


def test_who_waits_is_told_once_for_whom_and_not_for_ever(job):
    job.ready(1, 0)
    job.check_time()
    assert job.told_all == []
    job.since -= 11
    job.check_time()
    job.check_time()
    assert job.told_all == [["say", "waiting for a, c: 2 of 3 hosts"]]
    job.since -= 1000
    job.check_time()
    assert job.told_all[1:] == [["end", 0, 78, "a", "is not ready after 1000 s (a, c: 2 of 3 hosts)"]]
    assert not job.waits()


def test_a_running_attempt_has_no_limit(job):
    begin(job, 0)
    assert not job.waits()
    job.since -= 10**6
    job.check_time()
    assert job.told_all == [["begin", 0]]


# ---- what comes over the network ----------------------------------------------------------------------


@for_each(
    "line",
    [
        b"",
        b"GET / HTTP/1.1",
        b"\x00\xff\xfe",
        b"[" * 5000,
        b"{}",
        b"[]",
        b"[1]",
        b'["unknown"]',
        b'["ready"]',
        b'["ready", "0"]',
        b'["ready", true]',
        b'["ready", 0.5]',
        b'["ready", -1]',
        b'["ready", 1000000001]',
        b'["ready", 1' + b"0" * 6000 + b"]",
        b'["ready", NaN]',
        b'["ready", 0, 0]',
        b'["failed", 0, 1, ["text"]]',
        b'["failed", 0, 1, null]',
    ],
)
def test_a_line_that_is_no_message_is_lost(line):
    with pytest.raises(wire.Lost):
        wire.take(wire.message(line), wire.FROM_HOSTS)


def test_a_text_of_another_host_is_short_and_prints():
    word, values = wire.take(["failed", 0, 9, "a\nb\x1b[2J\u202e\ud800" + "x" * 9000], wire.FROM_HOSTS)
    assert (word, values[:2]) == ("failed", [0, 9])
    assert values[2].startswith("a\\nb\\x1b[2J\\u202e\\ud800x") and values[2].isprintable()
    assert len(values[2]) <= wire.LONGEST_TEXT


class Beside:
    """The program, with this process as its launcher."""

    def __init__(self, number, hosts, port, **facts):
        facts = {
            "launcher": os.getpid(),
            "hosts": hosts,
            "number": number,
            "address": "127.0.0.1",
            "port": port,
            "job": JOB,
            "alike": ALIKE,
            "restarts": 2,
            "limit": 100,
            "wait": PATIENCE,
            "late": 78,
            **facts,
        }
        command = [sys.executable, "-S", "-m", "tools.attempts.main"]
        self.process = subprocess.Popen(command, cwd=documents.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.says(json.dumps(facts))

    def says(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hears(self):
        """Its next event."""
        assert select.select([self.process.stdout], [], [], PATIENCE)[0], "it says nothing"
        return os.read(self.process.stdout.fileno(), 4096).decode()

    def leaves(self):
        """How it ends when the launcher leaves."""
        self.says("leave")
        return self.process.wait(PATIENCE)


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as plug:
        return plug.getsockname()[1]


@pytest.fixture
def beside():
    """Starts the program; at the end none runs."""
    started = []

    def start(*arguments, **facts):
        started.append(Beside(*arguments, **facts))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        each.process.stdin.close()
        each.process.stdout.close()


def guest(port):
    """A connection to the program, once it listens."""
    for _ in range(PATIENCE * 50):
        try:
            plug = socket.create_connection(("127.0.0.1", port), PATIENCE)
        except ConnectionRefusedError:
            select.select([], [], [], 0.02)
        else:
            return plug
    raise AssertionError("nobody listens")


def hello(number, job=JOB, alike=ALIKE):
    words = ["hello", job, number, *(word for _, *pair in alike for word in pair)]
    return json.dumps(words).encode() + b"\n"


def answer(plug):
    """The next messages of the program; empty: it has closed the connection."""
    try:
        return plug.recv(4096).decode()
    except ConnectionResetError:
        return ""


HOSTILE = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"x" * 20000,
    b"[" * 8000 + b"\n",
    b"\n\n\n",
    b'["hello"]\n',
    b'["hello", 1, 1]\n',
    b'["hello", "\\ud800", 1]\n',
    b'["hello", "%s", 1.5]\n' % JOB.encode(),
    b'["ready", 0]\n["stop", 1, "you"]\n',
    hello(1, job="another"),
    hello(1, alike=ALIKE[:1]),
    hello(1, alike=[ALIKE[0], ["", "bad", "python \x1b[2J"]]),
    hello(0),
    hello(7),
]


def test_strangers_neither_join_nor_end_the_job(beside, port):
    ours = beside(0, ["first", "second"], port)
    ours.says("ready 0")
    for data in HOSTILE:
        with guest(port) as plug:
            with contextlib.suppress(OSError):  # the connection may be closed already
                plug.sendall(data)
                plug.shutdown(socket.SHUT_WR)
            last = answer(plug)
            assert last == "" or '"refused"' in last
            assert JOB not in last
    with guest(port) as silent, guest(port) as second:
        second.sendall(hello(1))
        assert answer(second) == '["welcome"]\n'
        second.sendall(b'["ready", 0]\n')
        assert answer(second) == '["begin", 0]\n'
        assert answer(silent) == ""  # nobody is let in any more
        heard = ours.hears()
        while "begin" not in heard:
            heard += ours.hears()
        assert "\x1b" not in heard and r"second has python \x1b[2J" in heard
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)
        second.sendall(b'["failed", 0, 9, "rank 3"]\n')
        assert ours.hears() == "again 0 9 second rank 3\n"
        ours.says("came 0 5 0 0 ")
        second.sendall(b'["came", 0, 5, 0, 0, ""]\n')
        assert ours.hears() == "restart 1 0\n"
        second.sendall(b"junk\n")
        assert ours.hears().startswith(
            "end 1 255 second its launcher is disconnected: it sent something that is not JSON"
        )
    assert ours.leaves() == 0


def test_a_host_that_comes_twice(beside, port):
    ours = beside(0, ["first", "second", "third"], port)
    with guest(port) as second, guest(port) as again:
        second.sendall(hello(1))
        assert answer(second) == '["welcome"]\n'
        again.sendall(hello(1))
        assert "second has already joined: the command was typed there twice" in answer(again)
        assert "typed there twice" in ours.hears()
    assert ours.hears().startswith("end 0 255 second its launcher is disconnected: ")


@pytest.mark.slow
def test_a_thousand_hosts(beside, port):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1300:
        pytest.skip("needs 1300 open files: ulimit -n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1300), hard))
    try:
        ours = beside(0, [f"host{number}" for number in range(1000)], port)
        ours.says("ready 0")
        plugs = []
        for number in range(1, 1000):
            plugs.append(guest(port))
            plugs[-1].sendall(hello(number))
        for plug in plugs:
            assert answer(plug) == '["welcome"]\n'
            plug.sendall(b'["ready", 0]\n')
        for plug in plugs:
            assert answer(plug) == '["begin", 0]\n'
        assert ours.hears() == "begin 0\n"
        plugs[500].sendall(b'["failed", 0, 9, "rank 4008"]\n')
        for plug in plugs:
            assert answer(plug) == '["again", 0, 9, "host501", "rank 4008"]\n'
            plug.sendall(b'["came", 0, 5, 0, 0, ""]\n')
        ours.says("came 0 5 0 0 ")
        for plug in plugs:
            assert answer(plug) == '["restart", 1, 0]\n'
        ours.says("stop 143 SIGTERM")
        ours.says("leave")
        for plug in plugs:
            assert '["end", 1, 143, "host0", "SIGTERM"]\n' in answer(plug)
            plug.close()
        assert ours.process.wait(PATIENCE) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.parametrize("reply", [b"junk\n", b'["end", 0, 300, 1, "x"]\n', b'["ready", 0]\n', b"x" * 20000, b""])
def test_an_answer_of_something_else_is_no_verdict(beside, port, reply):
    with socket.create_server(("127.0.0.1", port)) as server:
        ours = beside(1, ["first", "second"], port)
        ours.says("ready 0")
        server.settimeout(PATIENCE)
        plug, _ = server.accept()
        assert plug.recv(4096) == hello(1)
        plug.sendall(b'["welcome"]\n')
        assert plug.recv(4096) == b'["ready", 0]\n'
        plug.sendall(b'["begin", 0]\n')
        assert ours.hears() == "begin 0\n"
        plug.sendall(reply)
        plug.close()
        assert ours.hears().startswith("end 0 255 first its launcher is disconnected: ")
        assert ours.leaves() == 0


def test_it_ends_with_its_launcher(beside, port):
    ours = beside(0, ["first", "second"], port)
    ours.process.stdin.close()
    assert ours.process.wait(PATIENCE) == 0
    other = beside(1, ["first", "second"], port, launcher=1)  # it has ended before: another process is our parent
    assert other.process.wait(PATIENCE) == 0


# ---- what the plan says about the hosts --------------------------------------------------------------


def a_request(**values):
    return Request(
        script="x.sh",
        job_pid=1,
        engine="local",
        device_target="CPU",
        max_restarts=3,
        restart_limit=100,
        **values,
    )


VERSION = elsewhere.Version(number="1.0.0", digest="a" * 64)


def a_meeting(number=1, port=23456):
    return launchers.Meeting(hosts=["a b", "c"], number=number, address="127.0.0.1", scheduler_port=port, job="j")


def test_the_places_of_python_the_project_and_checkpoints_may_differ_between_hosts(monkeypatch, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("a: 1\n")
    words = ["-u", "{}/tools/train.py", "--config", "config.yaml", "-o", "train.resume_from={}/ckpt", "a=b"]
    found = []
    monkeypatch.setattr(launchers.elsewhere, "own", lambda: VERSION)
    for root, python in (("/one", "/one/python"), ("/another", "python3")):
        monkeypatch.setattr(launchers.project, "path", lambda _, root=root: f"{root}/")
        monkeypatch.setenv("PYTHON", python)
        command = [python, *(word.format(root) for word in words)]
        found.append(launchers.alike(a_request(), [command, []], str(config)))
    assert found[0] == found[1]
    assert [words for _, _, words in found[0]][:4] == [
        "1.0.0, with files aaaaaaaa",
        "3",
        "100",
        "python -u tools/train.py --config config.yaml -o train.resume_from= a=b",
    ]
    assert found[0] != launchers.alike(a_request(), [["python3", "x.py"], []], str(config))


@pytest.mark.parametrize("version", [VERSION.replace(number="1.0.1"), VERSION.replace(digest="b" * 64)])
def test_launchers_of_different_versions_are_told_apart_first_of_all(monkeypatch, version):
    found = []
    for own in (VERSION, version):
        monkeypatch.setattr(launchers.elsewhere, "own", lambda own=own: own)
        found.append(launchers.alike(a_request(), [["x"], []], None)[0])
    assert found[0][0] == found[1][0] == "the version of this project"
    assert found[0][1] != found[1][1] and found[0][2] != found[1][2]


def test_the_port_is_beside_that_of_the_scheduler_and_the_time_that_of_the_ranks(monkeypatch):
    monkeypatch.delenv("MS_TOPO_TIMEOUT", raising=False)
    found = json.loads(launchers.agreement(a_request(), a_meeting(), [["x"], []], None).line())
    assert (found["port"], found["wait"], found["hosts"]) == (23457, 600, ["a_b", "c"])
    monkeypatch.setenv("MS_TOPO_TIMEOUT", "30")
    found = json.loads(launchers.agreement(a_request(), a_meeting(port=65535), [["x"], []], None).line())
    assert (found["port"], found["wait"]) == (65534, 30)
