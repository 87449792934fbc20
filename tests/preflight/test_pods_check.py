"""The check of pods: whom the meeting lets in, and what each pod hears.  The lab has it whole."""

import json
import resource
import socket
import threading
import time

import pytest
from healthy_hosts import HEALTHY

from hccl_tools.common.refusal import Refusal
from tools.attempts import door
from tools.preflight import check, probe
from tools.preflight.pods import asked, command, entrance, hub, messages
from tools.preflight.pods.place import Place
from tools.preflight.reach import Way

ALIKE = [("the version", "aa", "1.0")]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()[1]


class Meeting:
    """A hub without ranks, in a thread, and pods in others; `facts` are those of each by its number."""

    def __init__(self, pods, wait=60):
        self.port, self.said, self.ended = free_port(), [], {}
        self.pods, self.wait, self.threads = pods, wait, []
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.hub = hub.Hub(self.of(None, True), ALIKE, self.said.append)
        self.hub.open()
        self.hub.open = lambda: None  # so that nobody has to wait until it listens

    def of(self, number, is_hub=False, **more):
        return Place(
            **{
                **{"kind": "check", "pods": None if is_hub else self.pods, "number": number, "is_hub": is_hub},
                **{"host": "127.0.0.1", "port": self.port, "job": "j", "wait": self.wait, "address": "127.0.0.1"},
                **more,
            }
        )

    def comes(self, number, alike=ALIKE, **more):
        there = self.of(number, **more)

        def take_part():
            try:
                mine = asked.own(check.Job(quick=True), there)
                self.ended[number] = command.read(hub.take_part(there, alike, mine, self.said.append))
            except Refusal as refusal:
                self.ended[number] = refusal.lines[0]

        self.threads.append(threading.Thread(target=take_part, daemon=True))
        self.threads[-1].start()

    def checks(self):
        self.hub.meet()
        way = Way(hosts=self.hub.names(), slots={}, ask=self.hub.ask, addresses={})
        found = check.run(way, check.Job(quick=True))
        self.hub.tell(command.for_pods(found, "hub"))
        self.hub.close()
        for thread in self.threads:
            thread.join(60)
        return found


@pytest.fixture
def facts(monkeypatch, world):
    """{number: facts} of pods; each has those of a healthy host besides."""
    found = {}
    monkeypatch.setattr(messages, "own_name", lambda: "")

    def of(question):
        return {"facts": {**HEALTHY, **found.get(question.host, {})}, "failed": {}, "links": None}

    monkeypatch.setattr(probe, "facts", of)
    return found


def greeting(meeting_, *words_):
    plug = socket.create_connection(("127.0.0.1", meeting_.port), 60)
    plug.sendall(b"".join(words_))
    return plug


@pytest.fixture
def few_files():
    """A soft limit that the meeting raises."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 4096), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_pods_meet_and_each_hears_its_part(facts, few_files):
    facts["pod-1"] = {"mtu": 9000}
    there = Meeting(3)
    for number in range(3):
        there.comes(number)
    found = there.checks()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == there.limits
    assert [each.key for each in found.differences] == ["mtu"] and not found.lines
    assert there.ended[1].line.startswith("pod-1: MTU 9000; the other 2 hosts: ")
    assert there.ended[0].line.startswith("pod-0: nothing was found on it; the log of hub has all: 3 hosts, ")
    assert {each.verdict for each in there.ended.values()} == {"differs"}
    assert there.ended[2].findings[0]["level"] == "slows"


def test_strangers_are_let_in_nowhere_and_delay_nobody(facts):
    there = Meeting(1)
    hello = json.dumps(["hello", "another", 0, "", "", "1", "00", "aa", "1.0"]).encode() + b"\n"
    launcher = json.dumps(["hello", "digest", 1, "c0ffee", "2"]).encode() + b"\n"
    plugs = [
        greeting(there, *said) for said in ([hello], [launcher], [b"\x00\xff\n"], [b"x" * 20_000], [], [b'["hello"]\n'])
    ]
    there.comes(0)
    assert not there.checks().lines
    answers = [json.loads(plug.makefile("rb").readline() or b"[]") for plug in plugs[:2]]
    assert [answer[0] for answer in answers] == ["refused", "refused"]
    assert there.hub.strangers == 2 and there.ended[0].verdict == "good"
    for plug in plugs:
        plug.close()


def is_closed(plug):
    """Whether the other side has closed it."""
    plug.settimeout(0.01)
    try:
        return plug.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(("said", "seconds"), [(b"x" * 20_000, 600.0), (b"", 0.0)], ids=["too long", "silent"])
def test_a_guest_that_says_too_much_or_nothing_is_sent_away(facts, monkeypatch, said, seconds):
    monkeypatch.setattr(door, "HELLO_WITHIN", seconds)
    there = Meeting(2)
    with greeting(there, said) as plug:
        left = time.monotonic() + 60
        seen = False
        while not (seen and not there.hub.door.guests) and time.monotonic() < left:
            there.hub.step(0.01)
            seen = seen or bool(there.hub.door.guests) or is_closed(plug)
        assert not there.hub.door.guests and not there.hub.come and is_closed(plug)
    there.hub.close()


def test_a_pod_of_another_version_is_named_at_once_and_the_others_are_compared(facts):
    there = Meeting(2)
    there.comes(1, alike=[("the version", "bb", "2.0")])
    there.comes(0)
    found = there.checks()
    assert there.ended[1].startswith("the version: ") and "pod-1 has 2.0" in there.ended[1]
    assert list(found.silent) == ["pod-1"] and not there.hub.is_late() and "pod-1 has 2.0" in found.lines[0]
    assert there.ended[0].verdict == "blocks"


@pytest.mark.parametrize(
    ("number", "more", "said"),
    [
        (0, {}, "another pod has number 0"),
        (5, {}, "no host number 5"),
        (1, {"pods": 9}, "the job has 9 pods"),
        (1, {"pods": 1 << 20}, "the job has"),
    ],
)
def test_a_pod_that_does_not_fit_is_told_why(facts, number, more, said):
    there = Meeting(2, wait=0)
    there.hub.come[0] = entrance.Pod(messages.connection(socket.socket()), "", "")
    there.hub.pods = 2
    there.comes(number, **more)
    while there.threads[0].is_alive():
        there.hub.step(0.01)
    assert said in there.ended[number]
    there.hub.close()


def test_pods_that_do_not_come_are_one_line_with_the_limit(facts):
    there = Meeting(3)
    there.comes(1)
    while 1 not in there.hub.come:
        there.hub.step(60)
    there.hub.place = there.hub.place.replace(wait=0)
    found = there.checks()
    assert list(found.lines) == ["pod-[0,2]: no answer; it has not connected within 0 s; see: kubectl get pods -o wide"]
    assert list(found.silent) == ["pod-0", "pod-2"] and there.hub.is_late() and there.ended[1].verdict == "blocks"


def test_a_pod_whose_answer_is_none_stops_the_job(facts, monkeypatch):
    monkeypatch.setattr(probe, "facts", lambda question: ["x"])
    there = Meeting(1)
    there.comes(0)
    assert "its answer cannot be read" in there.checks().lines[0]


def test_a_listener_that_does_not_know_the_job_asks_nothing(facts):
    with socket.create_server(("127.0.0.1", 0)) as door:
        there = Place(
            kind="check",
            pods=2,
            number=1,
            is_hub=False,
            host="127.0.0.1",
            port=door.getsockname()[1],
            job="j",
            wait=5,
        )

        def listens():
            plug, _ = door.accept()
            with plug, plug.makefile("rb") as lines:
                lines.readline()
                plug.sendall(b'["welcome", "00", 5]\n["asked", "x"]\n')
                lines.readline()

        listener = threading.Thread(target=listens, daemon=True)
        listener.start()
        with pytest.raises(Refusal) as refused:
            hub.take_part(there, ALIKE, asked.own(check.Job(), there), lambda _: None)
        listener.join(60)
        assert refused.value.status == 78 and "does not know this job" in refused.value.lines[0]


def test_a_port_that_somebody_has_is_said_with_who_has_it(facts):
    with socket.create_server(("127.0.0.1", 0)) as door:
        there = Place(
            kind="check",
            pods=2,
            number=0,
            is_hub=True,
            host="h",
            port=door.getsockname()[1],
            job="j",
            wait=5,
            address="127.0.0.1",
        )
        with pytest.raises(Refusal) as refused:
            command.as_hub(there, check.Job(), [], lambda _: None, lambda _: None)
        assert f"cannot listen at 127.0.0.1 port {there.port}" in refused.value.lines[0]
