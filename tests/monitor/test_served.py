"""--metrics :PORT: the pages, what they say of a job, and what nobody can do to the process that serves them."""

import json
import socket

import pytest
from launch.launching import request

from hccl_tools.common.refusal import Refusal
from tools.launch import monitored
from tools.monitor import http_server, main
from tools.monitor import served as served_module
from tools.monitor.http_server import MOST_CONNECTIONS, MOST_REQUEST, TEXT, Server
from tools.monitor.metrics import Family
from tools.monitor.served import PROMETHEUS, STARTS, Health, Served

# ---- whether the job moves -------------------------------------------------------------------------------------------


class Rank:
    def __init__(self):
        self.steps_done = 0


class Looks:
    """A job at which somebody looks every 10 s of a clock that the test sets."""

    def __init__(self, limit=100):
        self.time, self.ranks = 0.0, [Rank(), Rank()]
        self.health = Health(limit, self.time)

    def during(self, seconds, *, lines=False, steps=False):
        """So long the ranks write lines, or do steps; returns the state at the end, and the status of HTTP."""
        end = self.time + seconds
        while self.time < end:
            self.time += 10
            self.ranks[0].steps_done += steps
            self.health.look(self.time, self.ranks, lines or steps)
        status, told, _ = self.health.told()
        return told["state"], status


def test_before_the_first_look_the_job_starts():
    status, told, _ = Health(100, 0.0).told()
    assert (status, told["state"], told["step_age_seconds"]) == (200, "starting", None)


def test_a_job_that_steps_runs_and_one_that_is_silent_stands_still():
    job = Looks()
    assert job.during(500, steps=True) == ("running", 200)
    assert job.during(100) == ("running", 200)
    assert job.during(10) == ("stalled", 503)
    _, told, looked = job.health.told()
    assert (told["progress_age_seconds"], looked) == (110.0, job.time)
    assert job.during(10, steps=True) == ("running", 200)  # it was only slow


def test_before_the_first_step_it_may_take_longer():
    job = Looks()
    assert job.during(STARTS * 100) == ("no step yet", 200)
    assert job.during(10) == ("stalled", 503)


def test_a_job_that_only_writes_is_not_killed_at_once_because_it_may_evaluate():
    job = Looks()
    job.during(50, steps=True)
    assert job.during(STARTS * 100, lines=True) == ("running", 200)
    assert job.during(10, lines=True) == ("stalled", 503)  # a warning that comes for ever does not count


def test_a_trainer_without_steps_moves_while_it_writes():
    assert Looks().during(5000, lines=True) == ("no step yet", 200)


def test_an_attempt_or_a_rank_that_begins_again_has_the_time_of_a_start():
    job = Looks()
    job.during(50, steps=True)
    job.during(120)
    job.health.begin(job.time)
    assert job.during(STARTS * 100) == ("no step yet", 200)


# ---- the server ------------------------------------------------------------------------------------------------------


class Site:
    """A server whose looks the test takes."""

    def __init__(self):
        self.listener = monitored.listen("127.0.0.1", 0)
        self.server = Server(self.listener, {"/a": (200, TEXT, b"yes\n"), "/big": (200, TEXT, b"x" * 3_000_000)}.get)

    def connect(self):
        peer = socket.create_connection(self.listener.getsockname())
        peer.settimeout(30)
        return peer

    def ask(self, text):
        """The whole answer to these bytes."""
        with self.connect() as peer:
            peer.sendall(text)
            peer.setblocking(False)
            found, looks = b"", 0
            while looks < 10_000:
                self.server.look(0.01)
                looks += 1
                try:
                    block = peer.recv(1 << 20)
                except BlockingIOError:
                    continue
                if not block:
                    return found
                found += block
        raise AssertionError("no end")


@pytest.fixture
def site():
    found = Site()
    yield found
    for one in found.server._connections.values():
        one.peer.close()
    found.listener.close()


def test_a_page(site):
    head, _, content = site.ask(b"GET /a?x=1 HTTP/1.1\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    assert (first, content) == (b"HTTP/1.1 200 OK", b"yes\n")
    assert fields == [b"Content-Type: text/plain; charset=utf-8", b"Content-Length: 4", b"Connection: close"]
    assert site.ask(b"HEAD /a HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\n")
    assert site.ask(b"GET /big HTTP/1.1\r\n\r\n").count(b"x") > 2_999_999


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /a HTTP/1.1\r\n\r\n", 405),
        (b"DELETE /a HTTP/1.1\r\n\r\n", 405),
        (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"GET /\xff\x1b HTTP/1.1\r\n\r\n", 404),
        (b"GET /a\r\n\r\n", 400),
        (b"\x16\x03\x01" + b"\0" * 100 + b"\n\n", 400),
        (b"GET /".ljust(MOST_REQUEST, b"a"), 400),  # without an end
    ],
    ids=["post", "delete", "path", "bytes", "no version", "tls", "no end"],
)
def test_what_is_no_question_gets_a_short_no(site, request_, status):
    answer = site.ask(request_)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert len(answer) < 300 and b"\x1b" not in answer


def test_connections_that_say_nothing_keep_nobody_out(site):
    silent = []
    for _ in range(MOST_CONNECTIONS + 5):
        silent.append(site.connect())
        site.server.look(0.1)
    assert site.ask(b"GET /a HTTP/1.1\r\n\r\n").endswith(b"yes\n")
    assert len(site.server._connections) <= MOST_CONNECTIONS
    for peer in silent:
        peer.close()


def test_a_connection_ends_after_its_time(site, monkeypatch):
    monkeypatch.setattr(http_server, "WITHIN", 0.0)
    with site.connect() as peer:
        peer.sendall(b"GET /a")
        for _ in range(3):
            site.server.look(0.05)
        assert site.server._connections == {}


def test_one_that_goes_before_its_answer_ends_nothing(site):
    peer = site.connect()
    peer.sendall(b"GET /big HTTP/1.1\r\n\r\n")
    peer.close()
    assert site.ask(b"GET /a HTTP/1.1\r\n\r\n").endswith(b"yes\n")


# ---- its pages -------------------------------------------------------------------------------------------------------


@pytest.fixture
def served():
    with monitored.listen("127.0.0.1", 0) as listener:
        yield Served(listener, "run\n1", 100.0), listener.getsockname()


def test_the_pages_of_a_job(served):
    pages, address = served
    assert pages.page("/metrics")[:2] == (200, PROMETHEUS) and pages.page("/metrics")[2].startswith(b"# ")
    pages.begin()
    rank = Rank()
    pages.look([rank], True)
    pages.take([Family("running", "gauge", "1.", [({"run": "r"}, 1)])])
    assert b'mindspore_launch_running{run="r"} 1\n' in pages.page("/metrics")[2]
    status, kind, content = pages.page("/healthz")
    assert (status, kind, json.loads(content)["state"]) == (200, "application/json", "no step yet")
    assert (pages.page("/x"), pages.page("/")[0]) == (None, 200)
    with socket.create_connection(address) as peer:  # the thread answers
        peer.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert peer.makefile("rb").read().startswith(b"HTTP/1.1 200 OK\r\n")


def test_healthz_says_how_old_the_last_look_is(served, monkeypatch):
    pages, _ = served
    pages.look([Rank()], True)
    now = served_module.time.monotonic()
    monkeypatch.setattr(served_module.time, "monotonic", lambda: now + 7)
    assert 7.0 <= json.loads(pages.page("/healthz")[2])["looked_seconds_ago"] < 100


def test_an_order_tells_that_a_rank_was_started_again():
    told = []

    class Monitor:
        def started_again(self):
            told.append("again")

    assert (list(main.obey(Monitor(), [["again"], ["end", "3"]])), told) == ([3], ["again"])


# ---- the option ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (":9100", ("", 9100)),
        ("127.0.0.1:9100", ("127.0.0.1", 9100)),
        ("[::1]:9100", ("::1", 9100)),
        ("./:9100", None),
        ("job.prom", None),
        ("a:9100", None),
        (":910000", None),
        ("٣:9100", None),
    ],
)
def test_a_port_or_a_file(text, place):
    assert monitored.address(text) == place


def refused(**given):
    with pytest.raises(Refusal) as error:
        monitored.check(request(**given))
    return str(error.value)


def test_a_port_that_nobody_can_have_is_refused():
    assert "--metrics :0: a port is a number" in refused(metrics=":0")
    assert "a port is a number" in refused(metrics=":70000")
    with monitored.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert "nobody can listen there: Address already in use (process " in refused(metrics=f":{port}")
        monitored.check(request(metrics=f":{port}", dry_run="1"))
    assert "nobody can listen there" in refused(metrics="203.0.113.9:9100")
