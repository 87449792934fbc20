"""Real connections between hosts that are addresses of the loopback interface: 127.0.0.2, .3 and so on."""

import contextlib
import errno
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time

import pytest

from hccl_tools.machine import sockets
from tools.preflight import links
from tools.preflight.links import calls, names, talk
from tools.preflight.links.exchange import Exchange
from tools.preflight.links.pairs import Ports

WELL = 60  # seconds: a test whose connections all succeed ends long before
BRIEF = 0.05  # of one whose connections fail, which takes that long


def free_ports(number):
    """Ports that nobody uses on any address of this machine, below those that the kernel gives to connections."""
    with contextlib.ExitStack() as stack:
        found = []
        while len(found) < number:
            plug = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # somebody has it
                plug.bind(("0.0.0.0", random.randrange(20000, 32000)))
                found.append(plug.getsockname()[1])
        return tuple(found)


def planned(hosts, ours=2, scheduler=1, others=()):
    ports = free_ports(ours + scheduler)
    names_of = [f"node{i}" for i in range(hosts)]
    addresses = {host: f"127.0.0.{i + 2}" for i, host in enumerate(names_of)}
    return links.plan(names_of, addresses, Ports(ours=ports[:ours], scheduler=ports[ours:], others=others))


def asked(plan, host, seconds=WELL, **values):
    return {**links.question(plan, host, "secret"), "seconds": seconds, "quiet": seconds, **values}


def answers(plan, seconds=WELL, clocks=None, **values):
    """The answers of all hosts, each in a thread, through JSON."""
    found = {}

    def take_part(host):
        clock = (clocks or {}).get(host, time.time)
        found[host] = json.loads(json.dumps(links.listen_and_connect(asked(plan, host, seconds, **values), clock)))

    threads = [threading.Thread(target=take_part, args=[host]) for host in plan]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def statuses(answer):
    return {tuple(link[:2]): link[2] for link in answer["links"]}


@pytest.fixture
def at_once(monkeypatch):
    """What has no answer at the end of a test's short time counts, without the second that the kernel needs."""
    monkeypatch.setattr(calls, "SURELY", 0)


# ---- all well ------------------------------------------------------------------------------------


def test_five_hosts_connect_measure_and_end_by_themselves():
    plan = planned(5)
    found = answers(plan)
    assert {status for answer in found.values() for status in statuses(answer).values()} == {"ok"}
    for host, answer in found.items():
        assert len(answer["links"]) == len(plan[host]["connects"])
        assert answer["busy"] == {} and answer["here"] is True and answer["strangers"] == 0
        assert answer["began"] <= answer["ended"] < answer["began"] + WELL
        for (_, _, _, what), (_, _, _, details) in zip(plan[host]["connects"], answer["links"]):
            assert details["source"] == details["seen"] == "127.0.0.1"
            assert 0 <= details["rtt"] < WELL
            assert 0 <= details["trip"] < WELL and abs(details["offset"]) <= details["trip"]
            assert ("took" in details) == (what == "full")
    assert [each for each in links.judge(found, plan) if each.key != "slow"] == []


@pytest.mark.thorough
def test_64_hosts():
    plan = planned(64)
    found = answers(plan)
    assert {status for answer in found.values() for status in statuses(answer).values()} == {"ok"}
    assert [each for each in links.judge(found, plan) if each.key != "slow"] == []


@pytest.mark.thorough
def test_hosts_in_processes_of_their_own(root):
    plan = planned(3)
    program = (
        "import json, sys; from tools.preflight import links; "
        "print(json.dumps(links.listen_and_connect(json.loads(sys.argv[1]))))"
    )
    started = {
        host: subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(asked(plan, host))], cwd=root, stdout=subprocess.PIPE, text=True
        )
        for host in plan
    }
    found = {host: json.loads(process.communicate()[0]) for host, process in started.items()}
    assert [each for each in links.judge(found, plan) if each.key != "slow"] == []


def test_no_port_of_the_job_stays_taken_by_a_connection_that_has_ended():
    plan = planned(3, ours=1, scheduler=0)
    answers(plan)
    port = plan["node0"]["listens"][0]
    assert not [each for each in sockets.all_tcp() if port in (sockets.port(each.local), sockets.port(each.remote))]
    for part in plan.values():
        with socket.socket() as plug:
            plug.bind((part["address"], port))  # without SO_REUSEADDR


def test_a_clock_that_is_off_is_found():
    plan = planned(4)
    found = answers(plan, clocks={"node2": lambda: time.time() - 700})
    (clock,) = [each for each in links.judge(found, plan) if each.key == "clock"]
    assert clock.hosts == ("node2",) and "behind most hosts" in clock.text and "Kerberos" in clock.text


def test_a_port_of_a_program_of_the_host_is_opened_and_closed():
    with socket.create_server(("127.0.0.3", 0)) as server:
        plan = planned(2, others=(server.getsockname()[1],))
        plan["node1"]["connects"] = [each for each in plan["node1"]["connects"] if each[3] != "open"]
        found = answers(plan)
        assert set(statuses(found["node0"]).values()) == {"ok"}
        plug, _ = server.accept()
        with plug, pytest.raises(ConnectionResetError):
            plug.recv(1)


def test_a_host_behind_a_translation_of_addresses_listens_at_all_of_its_own():
    plan = planned(2)
    plan["node1"] |= {"address": "192.0.2.1", "connects": []}  # an example of RFC 5737, which no machine has
    plan["node0"] |= {"listens": [], "expects": []}
    found = answers(plan)
    assert (found["node0"]["here"], found["node1"]["here"]) == (True, False)
    assert set(statuses(found["node0"]).values()) == {"ok"}


def test_names_are_looked_up_on_the_host_that_connects(monkeypatch):
    looked_up = []

    def look_up(asked_for):
        looked_up.extend(asked_for)
        return {name: {"one.example": "127.0.0.2", "two.example": "127.0.0.3"}.get(name) for name in asked_for}

    monkeypatch.setattr(names.addresses, "of", look_up)
    plan = links.plan(["node0", "node1"], {"node0": "one.example", "node1": "two.example"}, Ports(ours=free_ports(1)))
    found = answers(
        {**plan, "node0": {**plan["node0"], "address": "127.0.0.2"}, "node1": {**plan["node1"], "address": "127.0.0.3"}}
    )
    assert set(statuses(found["node0"]).values()) == {"ok"} and sorted(looked_up) == ["one.example", "two.example"]


# ---- what fails ----------------------------------------------------------------------------------


def alone(plan, seconds=BRIEF):
    """The status of each link of node0, which expects nobody; final ones end it."""
    return set(statuses(links.listen_and_connect(asked(plan, "node0", seconds, expects=[]))).values())


def one_link():
    return planned(2, ours=1, scheduler=0)


def test_nobody_listens():
    assert alone(one_link()) == {"refused"}


def test_a_name_without_an_address(monkeypatch):
    monkeypatch.setattr(names.addresses, "of", lambda asked_for: dict.fromkeys(asked_for))
    plan = one_link()
    plan["node0"]["connects"][0][1] = "nowhere.example"
    assert alone(plan) == {"unresolved"}


def test_a_name_server_that_does_not_answer_ends_with_the_time(monkeypatch):
    hangs = threading.Event()
    monkeypatch.setattr(names.addresses, "of", lambda asked_for: hangs.wait(WELL) and dict.fromkeys(asked_for))
    plan = one_link()
    plan["node0"]["connects"][0][1] = "nowhere.example"
    assert alone(plan) == {"unresolved"}
    hangs.set()


def test_no_way_there():
    plan = one_link()
    plan["node0"]["connects"][0][1] = "255.255.255.255"
    assert alone(plan) <= {"no route", "denied"}


def test_packets_that_get_no_answer(at_once):
    plan = one_link()
    place = ("127.0.0.3", plan["node1"]["listens"][0])
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())  # nobody accepts, and one waits: the kernel drops what comes
        full.bind(place)
        full.listen(0)
        stack.enter_context(socket.create_connection(place))
        for _ in range(3):
            plug = stack.enter_context(socket.socket())
            plug.setblocking(False)
            assert plug.connect_ex(place) == errno.EINPROGRESS
        assert alone(plan) == {"timeout"}


def test_without_a_second_to_wait_a_missing_answer_says_nothing():
    plan = one_link()
    with socket.create_server(("127.0.0.3", plan["node1"]["listens"][0])):
        assert alone(plan) == {"untested"}


@contextlib.contextmanager
def program_at(place, serve):
    """Another program listens there: `serve` gets each connection."""
    with socket.create_server(place) as server:

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    plug, _ = server.accept()
                    with plug:
                        serve(plug)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("says", [b"220 mail.example ESMTP\r\n", b"mslaunch welcome" + b"0" * 80, b"x"])
def test_another_program_answers(says):
    plan = one_link()
    with program_at(("127.0.0.3", plan["node1"]["listens"][0]), lambda plug: (plug.sendall(says), plug.recv(1))):
        assert alone(plan, WELL) == {"foreign"}


def test_an_echo_is_no_welcome():
    plan = one_link()
    with program_at(("127.0.0.3", plan["node1"]["listens"][0]), lambda plug: plug.sendall(plug.recv(4096))):
        assert alone(plan, WELL) == {"foreign"}


@contextlib.contextmanager
def running(question):
    """The part of a host, which ends when the block does."""
    exchange = Exchange(question, time.time)
    thread = threading.Thread(target=exchange.run)
    thread.start()
    try:
        yield exchange
    finally:
        exchange.end = 0
        with contextlib.suppress(OSError):  # it has ended by itself
            socket.create_connection((question["address"], question["listens"][0])).close()
        thread.join()
        exchange.close()


def test_a_check_with_another_secret_is_a_stranger():
    plan = one_link()
    with running(asked(plan, "node1", nonce="another", connects=[])) as other:
        assert alone(plan) <= {"reset", "refused", "mute", "untested"}
    assert other.answer()["strangers"] > 1  # one is the end of the block


def test_a_program_that_says_nothing(at_once):
    plan = one_link()
    with socket.create_server(("127.0.0.3", plan["node1"]["listens"][0])):
        assert alone(plan) == {"mute"}


def test_a_program_that_closes_at_once():
    plan = one_link()
    with program_at(("127.0.0.3", plan["node1"]["listens"][0]), lambda _: None):
        assert alone(plan) <= {"reset", "refused"}


def half_hearted(plan):
    """node1 welcomes and says the time, and reads nothing of the big transfer."""
    port = plan["node1"]["listens"][0]
    welcome = talk.welcome("secret", "node0", "node1", port)

    def serve(plug):
        plug.recv(48)
        plug.sendall(welcome + b"127.0.0.1".ljust(48))
        for _ in range(talk.ROUNDS):
            plug.recv(1)
            plug.sendall(bytes(16))
        plug.recv(1, socket.MSG_PEEK)
        begun.set()
        stays.wait(WELL)

    begun, stays = threading.Event(), threading.Event()
    return begun, stays, program_at(("127.0.0.3", port), serve)


@pytest.mark.parametrize(("nothing_arrives", "status"), [(False, "crawls"), (True, "black hole")])
def test_a_big_message_that_does_not_arrive(at_once, monkeypatch, nothing_arrives, status):
    plan = one_link()
    if nothing_arrives:  # what the kernel says where no packet of the message arrives
        monkeypatch.setattr(calls, "unconfirmed", lambda _: talk.BIG + 1)
    begun, stays, program = half_hearted(plan)
    with program:
        with running(asked(plan, "node0")) as exchange:
            begun.wait(WELL)
        stays.set()
    ((_, _, found, details),) = exchange.answer()["links"]
    assert found == status and details["mtu"] > 500 and details["trip"] >= 0


def test_a_port_in_use_is_named_with_its_process():
    plan = planned(2, ours=1)
    port = plan["node0"]["listens"][0]
    with socket.create_server(("127.0.0.2", port)):
        answer = links.listen_and_connect(asked(plan, "node0", BRIEF))
    assert list(answer["busy"]) == [str(port)]
    assert answer["busy"][str(port)].startswith(f"process {os.getpid()} listens there: ")


def test_a_port_of_a_connection_that_has_just_ended():
    plan = planned(2, ours=1, scheduler=0)
    port = plan["node0"]["listens"][0]
    with socket.create_server(("127.0.0.9", 0)) as server:
        with socket.socket() as ssh:
            ssh.bind(("127.0.0.2", port))  # as the kernel gives it to a connection
            ssh.connect(server.getsockname())
            other, _ = server.accept()
        assert other.recv(1) == b""  # the side that ends first keeps the port
        other.close()
    answer = links.listen_and_connect(asked(plan, "node0", BRIEF))
    assert answer["busy"] == {str(port): "a connection that has just ended keeps it for about a minute"}
    assert answer["passing"] == [port]


@pytest.mark.parametrize(
    ("times", "transfers"), [([0.001, 0.002, 0.001], 3), ([0.03] * 20, 12), ([0.03] * 5 + [0.001], 6), ([0.2] * 9, 3)]
)
def test_transfers_that_are_all_slow_are_tried_more_often(monkeypatch, times, transfers):
    now = [0.0]
    monkeypatch.setattr(talk.time, "perf_counter", lambda: now[0])
    found, made = {}, 0
    side = talk.call(b"", b"", "full", lambda: 0.0, found)
    want = next(side)
    with contextlib.suppress(StopIteration):
        while True:
            if want.begins == b"K":
                now[0] += times[made]
                made += 1
            want = side.send(bytes(want.size))
    assert made == transfers and found["took"] == pytest.approx(min(times[:made]))


def test_who_waits_for_a_big_transfer_when_the_other_part_ends_has_no_reset(monkeypatch):
    monkeypatch.setattr(calls, "SURELY", 0.0)
    plan = planned(2, ours=1, scheduler=0)
    question = asked(plan, "node0")
    host, port = question["connects"][0][1:3]
    confirmed = talk.welcome(question["nonce"], "node0", "node1", port)
    seen, look = threading.Event(), calls.Call.look

    def looks(call):
        changed = look(call)
        if call.stage == "big":
            seen.set()
        return changed

    monkeypatch.setattr(calls.Call, "look", looks)

    def leave():
        plug, _ = server.accept()
        plug.recv(64)
        plug.sendall(confirmed + b" " * 48)
        for _ in range(talk.ROUNDS):
            plug.recv(1)
            plug.sendall(bytes(16))
        left = talk.BIG + 1
        while left:
            left -= len(plug.recv(left))
        assert seen.wait(WELL)  # else the whole transfer may come before the caller has looked once
        plug.close()  # without a word

    with socket.create_server((host, port)) as server:
        other = threading.Thread(target=leave)
        other.start()
        answer = links.listen_and_connect({**question, "expects": []})
        other.join()
    assert [status for _, _, status, _ in answer["links"]] == ["crawls"]


def test_strangers_are_counted_and_disturb_nobody():
    plan = planned(2, ours=1, scheduler=0)
    exchange = Exchange(asked(plan, "node1"), time.time)
    place = ("127.0.0.3", plan["node1"]["listens"][0])
    with contextlib.ExitStack() as stack:
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"mslaunch hello  " + b"0" * 32, b"\0" * 4096, b""):
            plug = stack.enter_context(socket.create_connection(place))
            plug.sendall(said)
            plug.shutdown(socket.SHUT_WR)
        first = threading.Thread(target=links.listen_and_connect, args=[asked(plan, "node0")])
        first.start()
        try:
            exchange.run()
        finally:
            exchange.close()
        first.join()
    answer = exchange.answer()
    assert set(statuses(answer).values()) == {"ok"} and answer["strangers"] == 4


# ---- routes --------------------------------------------------------------------------------------


def test_a_route_has_an_interface_and_our_address_on_it():
    assert names.route("127.0.0.9") == ("lo", "127.0.0.1")
    assert names.route("no address") == ("", "")


def test_the_routes_of_a_host_are_by_interface():
    assert names.interfaces(["127.0.0.9", "127.0.0.9", "127.0.0.8"]) == {"lo": ["127.0.0.1"]}
