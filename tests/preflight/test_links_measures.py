"""What the judge says of clocks, speeds, big messages and addresses, and when it says nothing."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import Net, plan
from suite.cases import for_each

from tools.preflight import links
from tools.preflight.links import speeds
from tools.preflight.links.answers import Link
from tools.preflight.links.pairs import Ports


def net(hosts, **values):
    found = Net(plan(hosts))
    for name, value in values.items():
        setattr(found, name, value)
    return found


# ---- clocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "text"),
    [
        (
            2.5,
            "2.500 s ahead of most hosts (± 0.001 s): certificates, the order of logs and make depend on it",
        ),
        (
            -7,
            "the clock is 7.000 s behind most hosts (± 0.001 s): certificates, the order of logs and make depend on it",
        ),
        (299, "the clock is 299.000 s ahead"),
        (400, "make depend on it; Kerberos refuses more than 300 s"),
    ],
)
def test_a_clock_that_is_off_is_named_and_stops_no_job(ahead, text):
    (found,) = net(16, ahead={"node5": ahead}).judged()
    assert (found.level, found.key, found.hosts) == ("surprises", "clock", ("node5",)) and text in found.text
    assert ("Kerberos" in found.text) == (abs(ahead) > 300)
    assert found.remedy.endswith("ssh node5 'timedatectl set-ntp true; chronyc tracking'")


@pytest.mark.parametrize(("ahead", "trip", "said"), [(0.9, 0, 0), (1.1, 0, 1), (-1.1, 0, 1), (1.5, 2, 0), (9, 2, 1)])
def test_a_clock_is_off_by_more_than_a_second_and_the_error_of_its_measurement(ahead, trip, said):
    found = net(16, ahead={"node5": ahead}, trip=lambda *_: trip).judged()
    assert len([each for each in found if each.key == "clock"]) == said


def test_hosts_whose_clocks_are_ahead_are_one_entry_and_those_behind_another():
    found = net(16, ahead={"node1": 3, "node2": 4, "node9": -60}).lines()
    assert [line.partition(" (")[0] for line in found] == [
        "node[1-2]: the clock is 4.000 s ahead of most hosts",
        "node9: the clock is 60.000 s behind most hosts",
    ]
    assert "at most" in found[0] and "at most" not in found[1]


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.integers(2, 40), st.randoms(use_true_random=False))
def test_offsets_are_right_within_their_error_however_the_trips_are_split(hosts, chance):
    truth = {f"node{i}": chance.uniform(-1000, 1000) for i in range(hosts)}
    found = []
    for number in range(1, hosts):
        one, other = f"node{number}", f"node{chance.randrange(number)}"
        there, back = chance.random(), chance.random()
        offset = truth[other] - truth[one] + (there - back) / 2
        found.append(Link(one, other, 1, "ok", True, trip=there + back, offset=offset))
    ahead = speeds.clocks_of(found)
    assert ahead.keys() == truth.keys()
    middle = next(host for host, clock in ahead.items() if clock.offset == 0)
    for host, clock in ahead.items():
        assert abs(clock.offset - (truth[host] - truth[middle])) <= clock.error + 1e-9


def test_hosts_without_links_between_them_have_a_median_of_their_own():
    apart = net(4, ahead={"node0": 100, "node1": 100}, fault=lambda *link: "timeout" if link[2] else None)
    apart.fault = lambda s, t, _: "timeout" if {s, t} != {"node0", "node1"} and {s, t} != {"node2", "node3"} else None
    assert [found.key for found in apart.judged()] == ["link"]


# ---- speeds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("hosts", [3, 4, 16])
def test_a_host_with_long_round_trips_is_named_with_the_figures(hosts):
    (found,) = net(hosts, rtt=lambda *ends: 0.05 if "node1" in ends else 0.0002).judged()
    assert (found.level, found.key, found.hosts, found.peers) == ("slows", "slow", ("node1",), ())
    assert found.text == "a round trip takes 50 ms, on most links 0.2 ms"
    assert found.remedy.endswith("ssh node1 'ip -s link; tc qdisc'")


def test_a_host_with_slow_transfers_is_named_with_the_figures():
    (found,) = net(8, took=lambda *ends: 0.0262144 if "node1" in ends else 0.000262144).judged()
    assert (found.hosts, found.text) == (("node1",), "10 MB/s, on most links 1e+03 MB/s")


def test_a_host_with_slow_transfers_is_not_named_again_for_a_round_trip_that_waited_behind_one():
    def took(*ends):
        return 0.5 if "node2" in ends else 0.001

    for slow in ({"node2", "node14"}, {"node2", "node3"}):
        queued = net(16, rtt=lambda *ends, slow=slow: 0.011 if set(ends) == slow else 0.0002, took=took)
        assert [(found.hosts, found.peers) for found in queued.judged()] == [(("node2",), ())]
    both = net(16, rtt=lambda *ends: 0.011 if "node2" in ends else 0.0002, took=took)
    assert [(found.hosts, found.peers) for found in both.judged()] == [(("node2",), ())]


def test_a_host_that_crawls_is_not_named_again_for_its_links_that_are_slow_only():
    peer = next(target for target, _, _, what in net(16).plan["node2"]["connects"] if what == "full")
    through = ("node2", peer)
    some = net(16, took=lambda *ends: 2.6 if "node2" in ends else 0.0002)
    some.big = lambda *ends: "crawls" if "node2" in ends and ends not in (through, through[::-1]) else None
    assert [(found.hosts, found.peers) for found in some.judged()] == [(("node2",), ())]


@for_each("seed", range(20))
def test_a_host_that_sends_slowly_is_found_on_busy_hosts(seed):
    chance = random.Random(seed)
    # as 16 hosts on two busy processors measured it: 256 KiB at 20 Mbit/s take 0.1 s, the others what the load leaves
    took = {False: lambda: chance.uniform(0.002, 0.06), True: lambda: chance.uniform(0.1, 0.2)}
    (found,) = net(16, took=lambda source, _: took[source == "node2"]()).judged()
    assert (found.hosts, found.peers) == (("node2",), ())


def test_a_single_slow_link_is_named_by_its_two_hosts():
    (found,) = net(16, rtt=lambda *ends: 0.05 if set(ends) == {"node3", "node4"} else 0.0002).judged()
    assert found.line().startswith("node3: to node4: a round trip takes 50 ms, on most links 0.2 ms; ")


def test_one_long_measurement_of_a_link_says_nothing():
    assert net(16, rtt=lambda *ends: 0.05 if ends == ("node3", "node4") else 0.0002).judged() == []
    assert net(16, took=lambda *ends: 0.5 if ends == ("node3", "node4") else 0.002).judged() == []


@for_each("seed", range(20))
def test_on_busy_hosts_whose_figures_all_differ_nothing_is_said(seed):
    chance = random.Random(seed)
    busy = net(16, rtt=lambda *_: chance.expovariate(200), took=lambda *_: chance.expovariate(50))
    assert busy.judged() == []


def test_two_hosts_have_nobody_to_be_compared_with():
    assert net(2, rtt=lambda *_: 0.05, took=lambda *_: 3).judged() == []


# ---- big messages ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        (lambda s, t: s == "node2", "big messages to other hosts do not arrive"),
        (lambda s, t: t == "node2", "big messages from other hosts do not arrive"),
        (lambda s, t: "node2" in (s, t), "big messages from other hosts, or to them, do not arrive"),
        (lambda s, t: (s, t) == ("node2", "node3"), "big messages to node3 do not arrive; those from there do"),
        (lambda s, t: {s, t} == {"node2", "node3"}, "big messages to node3, or from there, do not arrive"),
    ],
)
def test_an_mtu_black_hole_is_named_with_its_direction_and_a_ping_to_try(lost, text):
    (found,) = net(8, big=lambda s, t: "black hole" if lost(s, t) else None).judged()
    assert (found.level, found.key, found.hosts) == ("blocks", "mtu", ("node2",))
    assert found.text == f"{text}: small ones do; packets of 9000 bytes are lost on the way, so an MTU is too big"
    assert "ping -c 3 -M do -s 8972 10.0.0." in found.remedy


def test_big_messages_that_arrive_late_slow_the_job_down():
    (found,) = net(8, big=lambda *ends: "crawls" if "node2" in ends else None).judged()
    assert (found.level, found.key, found.hosts) == ("slows", "slow", ("node2",))
    assert "256 KiB take longer than 1 s" in found.text


@pytest.mark.parametrize("other", ["mute", "timeout", "reset", "refused", "black hole"])
def test_connections_of_a_host_that_crawls_are_slow_however_they_fail_and_no_firewall_is_blamed(other):
    def fails(source, target):
        return ("crawls" if source < target else other) if "node2" in (source, target) else None

    (found,) = net(8, fault=lambda source, target, port: fails(source, target), big=fails).judged()
    assert (found.level, found.key, found.hosts) == ("slows", "slow", ("node2",))
    assert "is slow: 256 KiB take longer than 1 s" in found.text and "tc qdisc" in found.remedy


def test_a_firewall_beside_a_link_that_crawls_is_named_all_the_same():
    def fails(source, target, port):
        return {("node2", "node3"): "crawls", ("node4", "node5"): "timeout"}.get((source, target))

    found = net(8, fault=fails).judged()
    assert [(each.level, each.hosts, each.peers) for each in found if each.key == "link"] == [
        ("blocks", ("node4",), ("node5",))
    ]


def interface(*sources):
    return {"interfaces": {"eth0": list(sources), "lo": ["127.0.0.1"]}}


# ---- addresses -----------------------------------------------------------------------------------


def test_a_host_that_uses_another_address_than_the_listed_one_is_named():
    planned = net(4)
    planned.changes = {"node1": interface("192.168.7.2"), "node2": interface("127.0.0.1")}
    (found,) = planned.judged()
    assert (found.level, found.key, found.hosts) == ("surprises", "address", ("node1",))
    assert found.text == "it reaches others by eth0, from 192.168.7.2, not 10.0.0.2"
    planned.changes = {"node1": interface("192.168.7.2", "10.0.0.2"), "node2": interface(""), "node3": interface()}
    assert planned.judged() == []


def test_a_host_without_its_address_and_translated_connections_are_named():
    planned = net(4)
    answers = planned.answers()
    answers["node1"]["here"] = False
    for link in answers["node2"]["links"]:
        link[3] |= {"seen": "10.9.9.9"} if "seen" in link[3] else {}
    absent, translated = links.judge(answers, planned.plan)
    assert (absent.hosts, absent.text) == (("node1",), "it does not have the address 10.0.0.2 itself")
    assert (translated.hosts, translated.text) == (
        ("node2",),
        "its connections leave from 10.0.0.3 and arrive from 10.9.9.9",
    )


def test_of_names_instead_of_addresses_no_source_is_wrong():
    planned = Net(links.plan(["a", "b"], {"a": "a.example", "b": "b.example"}, Ports(ours=(60000,))))
    planned.changes = {"a": interface("192.168.7.2")}
    for answer in (answers := planned.answers()).values():
        answer["interfaces"] = interface("192.168.7.2")["interfaces"]
    assert links.judge(answers, planned.plan) == []
