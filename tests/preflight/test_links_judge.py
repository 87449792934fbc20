"""What the judge says of simulated networks: each fault once, by the hosts that it is about, and nothing else."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import PORTS, Net, number, plan

from tools.preflight import links
from tools.preflight.links import pairs, shapes
from tools.preflight.links.pairs import Ports


def net(hosts, **values):
    found = Net(plan(hosts))
    for name, value in values.items():
        setattr(found, name, value)
    return found


def short(found):
    """(level, key, hosts, peers, ports) of the entries."""
    return [(each.level, each.key, each.hosts, each.peers, each.ports) for each in found]


# ---- the plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize("hosts", [2, 3, 4, 5, 8, 63, 64, 65, 100, 1000, 1024])
def test_every_host_has_partners_in_both_directions_and_all_are_joined(hosts):
    near = {host: pairs.partners(host, hosts) for host in range(hosts)}
    assert all(len(set(others)) == len(others) >= min(3, hosts - 1) for others in near.values())
    assert all(host in near[other] and host != other for host, others in near.items() for other in others)
    seen, left = {0}, [0]
    while left:
        left += (new := set(near[left.pop()]) - seen)
        seen |= new
    assert len(seen) == hosts


def test_a_plan_has_what_each_host_expects_from_whom():
    planned = plan(5)
    for host, part in planned.items():
        for target, address, port, what in part["connects"]:
            assert target != host and address == planned[target]["address"]
            assert ([host, port] in planned[target]["expects"]) == (what != "open")
            assert (port in planned[target]["listens"]) == (what != "open")
    assert planned["node0"]["listens"] == [60000, 60015, 8118] and planned["node1"]["listens"] == [60000, 60015]
    assert planned["node0"]["expects"].count(["node3", 8118]) == 1
    assert links.plan([], {}, PORTS) == {}


def test_1024_hosts_have_thousands_of_links_and_no_million():
    per_port = plan(1024, Ports(ours=(60000,)))
    assert sum(len(part["connects"]) for part in per_port.values()) == 10240


def test_each_pair_is_measured_once_in_each_direction():
    full = [
        (host, target) for host, part in plan(9).items() for target, _, _, what in part["connects"] if what == "full"
    ]
    assert len(full) == len(set(full)) == sum(len(pairs.partners(host, 9)) for host in range(9))


def test_the_question_goes_through_json_and_gives_many_hosts_more_time():
    few, many = (links.question(plan(hosts), "node1", "secret") for hosts in (4, 1024))
    assert json.loads(json.dumps(few)) == few and few["host"] == "node1" and few["nonce"] == "secret"
    assert few["quiet"] < few["seconds"] < many["seconds"] <= 30 and few["quiet"] < many["quiet"] <= 10


# ---- broken links --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 16, 64, 1024])
def test_of_a_network_without_faults_nothing_is_said(hosts):
    assert net(hosts).judged() == []


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.data())
def test_one_link_that_breaks_is_named_by_its_two_hosts_and_its_direction(hosts, data):
    source = data.draw(st.integers(0, hosts - 1))
    target = data.draw(st.sampled_from(pairs.partners(source, hosts)))
    ends = f"node{source}", f"node{target}"
    (found,) = net(hosts, fault=lambda *link: "timeout" if link[:2] == ends and link[2] != 8118 else None).judged()
    assert short([found]) == [("blocks", "link", ends[:1], ends[1:], (22, 60000, 60015))]
    assert found.line() == (
        f"{ends[0]}: no connection to {ends[1]} succeeds at ports 22,60000,60015; those from there succeed: "
        "nothing comes back: a firewall drops the packets, or they are not routed; look at firewalls, cables and "
        "routes; to try: "
        f"ssh {ends[0]} 'ip route get 10.0.0.{target + 1}; ping -c 3 10.0.0.{target + 1}'"
    )


def test_a_pair_that_does_not_reach_each_other_is_one_entry():
    (found,) = net(8, fault=lambda *link: "no route" if {"node3", "node5"} == set(link[:2]) else None).judged()
    assert short([found]) == [("blocks", "link", ("node3",), ("node5",), (22, 60000, 60015))]
    assert found.text.startswith("no connection to node5, or from there, succeeds") and "of the kernel" in found.text


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [3, 4, 16, 64, 1024])
def test_a_host_without_any_link_is_named_alone(hosts):
    (found,) = net(hosts, fault=lambda *link: "timeout" if "node1" in link[:2] else None).judged()
    assert short([found]) == [("blocks", "link", ("node1",), (), (22, 8118, 60000, 60015))]
    assert found.text.startswith("no connection from other hosts, or to them, succeeds at ports 22,8118,60000,60015: ")


@pytest.mark.parametrize("hosts", [4, 16, 64])
def test_ports_that_a_firewall_drops_are_named_with_the_host_behind_it(hosts):
    blocked = {"node1", "node2"}
    found = net(hosts, fault=lambda s, t, port: "timeout" if t in blocked and port == 60015 else None).judged()
    assert short(found) == [("blocks", "link", ("node1", "node2"), (), (60015,))]
    assert found[0].text.startswith("no connection from other hosts succeeds at port 60015: ")


def test_a_host_whose_own_firewall_lets_nothing_out_is_named():
    (found,) = net(16, fault=lambda source, *_: "denied" if source == "node4" else None).judged()
    assert short([found]) == [("blocks", "link", ("node4",), (), (22, 8118, 60000, 60015))]
    assert "no connection to other hosts succeeds" in found.text and "ssh node4 'nft" in found.remedy


def test_a_port_that_all_firewalls_reject_is_one_entry():
    (found,) = net(16, fault=lambda *link: "refused" if link[2] == 60000 else None).judged()
    assert found.hosts == tuple(sorted(f"node{i}" for i in range(16))) and found.ports == (60000,)
    assert found.line().startswith("node[0-15]: no connection from other hosts, or to them, succeeds at port 60000: ")


@pytest.mark.slow
@pytest.mark.parametrize(("hosts", "half"), [(4, 2), (16, 8), (64, 32), (64, 3), (1024, 512)])
def test_two_groups_behind_two_switches_are_named(hosts, half):
    planned = Net(plan(hosts, Ports(ours=(60000, 60015))))
    planned.fault = lambda source, target, _: "no route" if (number(source) < half) != (number(target) < half) else None
    (found,) = planned.judged()
    groups = {frozenset(map(number, group)) for group in (found.hosts, found.peers)}
    assert groups == {frozenset(range(half)), frozenset(range(half, hosts))}
    assert found.ports == (60000, 60015) and ", or from there, " in found.text


def test_three_groups_are_named_one_against_the_others_then_two():
    planned = Net(plan(12, Ports(ours=(60000,))))
    planned.fault = lambda source, target, _: "timeout" if number(source) // 4 != number(target) // 4 else None
    two, four = sorted(planned.judged(), key=lambda found: len(found.hosts))
    assert [len(set(map(number, group))) for group in (two.hosts, two.peers, four.hosts, four.peers)] == [4, 4, 8, 4]
    groups = {tuple(sorted({number(host) // 4 for host in group})) for group in (two.hosts, two.peers, four.peers)}
    assert groups == {(0,), (1,), (2,)} and set(four.hosts) == set(two.hosts) | set(two.peers)


def test_a_group_that_cannot_reach_another_one_but_is_reached_is_named_with_the_direction():
    found = net(16, fault=lambda s, t, port: "timeout" if number(s) < 8 <= number(t) and port == 60000 else None)
    (line,) = found.lines()
    assert line.startswith("node[0-7]: no connection to node[8-15] succeeds at port 60000; those from there succeed: ")


def test_hosts_that_do_not_reach_the_scheduler_are_one_entry():
    lost = {"node3", "node7", "node8"}
    found = net(16, fault=lambda s, t, port: "refused" if s in lost and port == 8118 else None).judged()
    assert short(found) == [("blocks", "link", ("node3", "node7", "node8"), ("node0",), (8118,))]
    assert "ssh node0 'nft list ruleset" in found[0].remedy
    (nobody,) = net(16, fault=lambda *link: "timeout" if link[2] == 8118 else None).judged()
    assert short([nobody]) == [("blocks", "link", ("node0",), (), (8118,))]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(2, 24), st.randoms(use_true_random=False), st.sampled_from([0.02, 0.1, 0.5, 0.9, 1]))
def test_entries_are_about_all_links_that_are_broken_and_about_no_good_one(hosts, chance, part):
    tested = {(f"node{i}", f"node{j}") for i in range(hosts) for j in pairs.partners(i, hosts)}
    broken = {pair for pair in sorted(tested) if chance.random() < part}
    found = shapes.find(tested, broken)

    assert broken == {pair for shape in found for pair in shape.of(tested)}
    for shape in found:
        assert shape.hosts and shape.example in shape.of(broken)
        assert shape.peers or set(shape.hosts) & set(shape.example)


def test_many_faults_are_bounded_and_the_last_entry_counts_the_rest():
    chance = random.Random(1)
    planned = Net(plan(200, Ports(ours=(60000,))))
    planned.fault = lambda *_: "timeout" if chance.random() < 0.3 else None
    found = planned.judged()
    assert len(found) == 40 and "more faults like those above" in found[-1].text


def test_a_name_or_an_address_in_a_command_is_quoted():
    planned = links.plan(
        ["a b", "c;d", "e"], {"a b": "10.0.0.1", "c;d": "$(id)", "e": "10.0.0.3"}, Ports(ours=(60000,))
    )
    simulated = Net(planned)
    simulated.fault = lambda source, target, _: "unresolved" if (source, target) == ("a b", "c;d") else None
    (found,) = simulated.judged()
    assert found.remedy.endswith(r"ssh a\ b getent hosts \$\(id\)")


@pytest.mark.parametrize(
    "status", ["refused", "timeout", "no route", "reset", "foreign", "mute", "denied", "unresolved", "other"]
)
def test_every_way_to_fail_has_a_reason_and_a_remedy_of_its_own(status):
    (found,) = net(4, fault=lambda *link: status if link[:3] == ("node1", "node2", 60000) else None).judged()
    assert found.level == "blocks" and found.text.partition(": ")[2] and found.remedy.count("ssh node") == 1


# ---- links that show nothing ---------------------------------------------------------------------


def test_a_port_in_use_is_named_and_not_the_links_to_it():
    held = net(8, fault=lambda s, t, port: "foreign" if (t, port) == ("node2", 60000) else None)
    held.changes = {"node2": {"busy": {"60000": "process 7 listens there: python train.py"}}}
    (found,) = held.judged()
    assert short([found]) == [("blocks", "port", ("node2",), (), (60000,))]
    assert found.text == "port 60000 cannot be used: on node2, process 7 listens there: python train.py"


def test_a_port_that_will_be_free_in_a_minute_blocks_nothing():
    held = net(8, fault=lambda s, t, port: "refused" if (t, port) == ("node2", 60000) else None)
    why = {"60000": "a connection that has just ended has it", "8118": "process 7 listens there: x"}
    held.changes = {"node2": {"busy": why, "passing": [60000]}}
    blocks, passes = held.judged()
    assert short([blocks, passes]) == [
        ("blocks", "port", ("node2",), (), (8118,)),
        ("surprises", "port", ("node2",), (), (60000,)),
    ]
    assert passes.text == "port 60000 cannot be used: on node2, a connection that has just ended has it"


def test_who_refuses_while_clocks_may_differ_by_more_than_a_part_lasts_is_not_blamed():
    unsure = net(8, fault=lambda s, t, port: "refused" if (s, port) == ("node2", 60000) else None)
    assert short(unsure.judged()) == [("blocks", "link", ("node2",), (), (60000,))]
    unsure.trip = lambda *ends: 9.0 if "node2" in ends else 0.0002
    assert [found for found in unsure.judged() if found.level == "blocks"] == []


def test_links_to_hosts_that_have_not_answered_are_left_out():
    silent = net(8, fault=lambda *link: "timeout" if "node2" in link[:2] else None)
    answers = silent.answers()
    del answers["node2"]
    assert links.judge(answers, silent.plan) == []


@pytest.mark.parametrize(("later", "said"), [(0, 1), (1.5, 1), (2.5, 0), (-2.5, 0)])
def test_a_refusal_counts_only_while_the_other_host_listens(later, said):
    """Host 2 begins so much later than the others; its clock is wrong by an hour, which the other links tell."""
    late = net(8, ahead={"node2": 3600}, fault=lambda s, t, _: "refused" if (s, t) == ("node1", "node2") else None)
    began = 1e9 + 3600 + later
    late.changes = {"node2": {"began": began, "ended": began + 2}}
    assert len([found for found in late.judged() if found.key == "link"]) == said


def test_hosts_that_were_never_there_together_are_named_as_not_tested():
    apart = net(4, fault=lambda *link: "untested" if "node3" in link[:2] else None)
    (found,) = apart.judged()
    assert short([found]) == [("surprises", "untested", ("node3",), (), ())]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("node1") | st.just("ok"),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["links", "busy", "here", "trip"]), inner)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(JSON, st.sampled_from(["links", "busy", "passing", "here", "began", "ended", "interfaces", None]))
def test_an_answer_of_any_form_ends_nothing(odd, where):
    planned = net(3)
    answers = planned.answers()
    answers["node1"] = {**answers["node1"], where: odd} if where else odd
    for found in links.judge(answers, planned.plan):
        assert found.line().isprintable()


def test_an_answer_of_another_form_is_named():
    answers = net(3).answers()
    answers["node1"]["links"].append(["node2", 99, "ok", {}])
    (found,) = links.judge(answers, plan(3))
    assert found.line().startswith("node1: its answer about the links has another format; ")
