"""What a trial calls slow: hosts, devices and pairs, and what it leaves alone."""

import pytest

from tools.preflight.trial import judge, program
from tools.preflight.trial.judge import Figure


def figures(measure, seconds, ranks=2):
    """Of hosts node0, node1 ...: a number, or one for each of its ranks."""
    found = []
    for host, each in enumerate(seconds):
        for device in range(ranks):
            value = each[device] if isinstance(each, list) else each
            found.append(Figure(host * ranks + device, f"node{host}", device, measure, value))
    return found


def named(found):
    return [(each.hosts, each.devices, each.measure) for each in found]


def test_a_host_all_of_whose_devices_are_slow_is_named_as_a_whole():
    assert named(judge.slow(figures("matmul", [0.01, 0.0101, 0.03, 0.0102]))) == [(("node2",), (), "matmul")]


def test_a_device_that_is_slow_is_named_with_its_host():
    found = judge.slow(figures("matmul", [0.01, [0.01, 0.03], 0.01]))
    assert named(found) == [(("node1",), (1,), "matmul")] and found[0].factor == pytest.approx(3)


def test_of_one_host_devices_are_compared_and_reading_is_not():
    assert named(judge.slow(figures("matmul", [[0.01, 0.05]]))) == [(("node0",), (1,), "matmul")]
    assert judge.slow(figures("read", [[0.01, 0.09]])) == []


def test_who_reads_first_for_others_of_its_host_is_not_slow():
    assert judge.slow(figures("read", [[0.01, 0.09], [0.01, 0.01], [0.01, 0.01]])) == []
    assert named(judge.slow(figures("read", [0.01, 0.01, 0.09]))) == [(("node2",), (), "read")]


def test_differences_that_mean_nothing_are_not_slow():
    assert judge.slow(figures("matmul", [0.0001, 0.0002, 0.0019])) == []
    assert judge.slow(figures("matmul", [0.010, 0.011, 0.0145])) == []
    assert judge.slow(figures("matmul", [0.01 + 0.002 * at for at in range(12)])) == []


def test_two_hosts_can_be_compared():
    assert named(judge.slow(figures("matmul", [0.01, 0.05], ranks=1))) == [(("node1",), (), "matmul")]


def test_what_all_wait_for_is_not_judged():
    assert judge.slow(figures("allreduce_16m", [0.01, 0.01, 9])) == judge.slow(figures("join", [1, 1, 60])) == []


def pairs(number, slow):
    """The pairs of a ring, as the program measures them; slow: pairs, or hosts of which all are."""
    found = []
    for at, of_round in enumerate(program.rounds(range(number))):
        for pair in of_round:
            seconds = 0.5 if pair in slow or set(pair) & {each for each in slow if isinstance(each, int)} else 0.02
            for host, peer in (pair, pair[::-1]):
                found.append(Figure(host, f"node{host}", 0, f"pair_{at}", seconds, f"node{peer}"))
    return found


@pytest.mark.parametrize("number", [3, 4, 5, 8, 64])
def test_a_host_that_is_slow_with_both_neighbours_is_named_alone(number):
    assert named(judge.slow(pairs(number, [1]))) == [(("node1",), (), "pair")]


def test_a_pair_that_is_slow_is_named_by_both():
    assert named(judge.slow(pairs(8, [(3, 4)]))) == [(("node3", "node4"), (), "pair")]
    assert judge.slow(pairs(8, [])) == judge.slow(pairs(2, [(0, 1)])) == []


@pytest.mark.parametrize("number", range(1, 10))
def test_each_round_has_a_host_once_and_each_host_two_neighbours(number):
    rounds = list(program.rounds([10 * at for at in range(number)]))
    for pairs_ in rounds:
        flat = [host for pair in pairs_ for host in pair]
        assert len(set(flat)) == len(flat)
    every = [frozenset(pair) for pairs_ in rounds for pair in pairs_]
    assert len(rounds) <= 3 and len(set(every)) == len(every) == (number if number > 2 else number - 1)


def test_the_summary_has_the_middle_and_the_slowest():
    found = judge.summary([*figures("join", [1, 2, 9], ranks=1), *pairs(4, [])])
    assert found == {"join": (2, 9, "node2"), "pair": (0.02, 0.02, found["pair"][2])}
