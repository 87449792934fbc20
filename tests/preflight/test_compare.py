"""The comparison: each kind of difference is found and named, healthy hosts get no word, and 1,024 get a short page."""

import random

import pytest
from healthy_hosts import HEALTHY, answers, names
from hypothesis import given, settings
from hypothesis import strategies as st
from suite.cases import for_each

from tools.preflight import compare, words
from tools.preflight.catalog.row import Equal, Least, Near, Nothing, Shared, Yes
from tools.preflight.catalog.rows import COLLECTORS, ROWS, knows
from tools.preflight.difference import BLOCKS, LEVELS, SLOWS, SURPRISES, Answer
from tools.preflight.words import Found

# {fact: (value of the one host that differs, level)}
DIFFERENT = {
    "mindspore": ("2.5.0", BLOCKS),
    "cann": ("8.3.RC1", BLOCKS),
    "python": ("3.11.8", BLOCKS),
    "package:numpy": ("2.0.0", SURPRISES),
    "uncompiled": (("numpy (/opt/numpy)",), SLOWS),
    "driver": ("24.1.0", SURPRISES),
    "firmware": (None, SURPRISES),
    "glibc": ("2.34", SURPRISES),
    "machine": ("x86_64", SURPRISES),
    "os": ("Ubuntu 22.04", SURPRISES),
    "kernel": ("5.10.0-61", SURPRISES),
    "memory_free": (1 << 28, BLOCKS),
    "cpus": (96, SLOWS),
    "cpu_limit": (8.0, SLOWS),
    "memory": (1 << 38, SURPRISES),
    "memory_limit": (1 << 37, SURPRISES),
    "open_files": (255, BLOCKS),
    "processes": (100, BLOCKS),
    "locked_memory": (65536, SURPRISES),
    "time_zone": ("+0000", SURPRISES),
    "clock_kept": (False, SURPRISES),
    "shm": (False, SURPRISES),
    "shm_free": (1 << 23, BLOCKS),
    "tmp_free": (0, BLOCKS),
    "folder": (False, BLOCKS),
    "logs_writable": (False, BLOCKS),
    "logs_free": (1 << 20, BLOCKS),
    "logs_inodes": (0, BLOCKS),
    "logs_place": ("boot 1 2", SURPRISES),
    "more_files": ("0123", BLOCKS),
    "file:/x/train.py": ("ffff", BLOCKS),
    "table_file": ("ffff", BLOCKS),
    "data": (False, BLOCKS),
    "data_entries": (99, SURPRISES),
    "data_bytes": (1, SURPRISES),
    "variable:HCCL_BUFFSIZE": ("200", SURPRISES),
    "busy_ports": (("60000",), BLOCKS),
    "first_address": ("127.0.1.1", BLOCKS),
    "mtu": (9000, SLOWS),
    "link_speed": (10000, SLOWS),
    "firewall": ("ufw", SURPRISES),
    "short_of": (("7",), BLOCKS),
    "short_of_gpus": (("7",), BLOCKS),
    "gpus": ("8 x NVIDIA A100", SURPRISES),
    "gpu_driver": ("535.1", SURPRISES),
    "gpus_held": (("3: pid 4711, 8 MiB",), SLOWS),
    "gpus_hot": (("3",), SLOWS),
    "gpu_memory_errors": (("3: 1",), SURPRISES),
    "nvidia_smi": ("no driver", SURPRISES),
    "generation": ("910A", BLOCKS),
    "ill": (("3: Alarm",), BLOCKS),
    "held": (("0: python (pid 4711)",), BLOCKS),
    "link_down": (("5",), BLOCKS),
    "without_address": (("5",), BLOCKS),
    "tls": ("1", BLOCKS),
    "devices": ("0-6", SURPRISES),
    "hot": (("2: 95 C",), SLOWS),
    "hccp": (("hccp_service.bin (pid 7)",), SURPRISES),
    "ailing": (("3: Warning",), SURPRISES),
    "memory_errors": (("3: 12",), SURPRISES),
    "npu_smi": ("dcmi module initialize failed", SURPRISES),
    "table_server": (False, BLOCKS),
    "table_devices": (("7",), BLOCKS),
    "table_addresses": (("3: 10.0.0.9 != 10.0.0.8",), BLOCKS),
}
OF_ALL = {"file:/x/train.py": "0123", "data_bytes": 2}  # what the healthy hosts have of facts that are not usual


def found(given_answers):
    return compare.compare(given_answers)


def test_healthy_hosts_get_no_word():
    for number in (1, 2, 3, 16):
        assert found(answers(number)) == []


def test_every_fact_of_the_catalogue_has_a_case_here():
    assert {key.partition(":")[0] + (":" if ":" in key else "") for key in DIFFERENT} == {row.key for row in ROWS}
    assert {row.collector for row in ROWS} | {"links"} == set(COLLECTORS)
    assert all(knows(key) for key in DIFFERENT)
    assert not any(map(knows, ("", "package", "package:", "mindspore:x", "no such fact")))


@for_each("key", DIFFERENT)
def test_one_host_that_differs_is_named_alone_with_what_it_has(key):
    value, level = DIFFERENT[key]
    everywhere = {key: OF_ALL[key]} if key in OF_ALL else {}
    (one,) = found(answers(4, {n: everywhere for n in (0, 1, 3)} | {2: {key: value}}))
    assert (one.key, one.level) == (key, level)
    assert [list(group.hosts) for group in one.groups] == [["node2"]]
    shown = words.line(one, names(4))
    assert shown.startswith("node2: ") and "{" not in shown
    assert one.others is None or list(one.others.hosts) == ["node0", "node1", "node3"]
    rules = {type(row.rule) for row in ROWS if row.key in (key, key.partition(":")[0] + ":")}
    assert (one.others is not None) == (rules & {Equal, Near} != set() and Least not in rules)


@for_each("key", [key for key, value in HEALTHY.items() if value is not None])
def test_a_fact_that_a_host_does_not_know_is_not_compared(key):
    hosts = answers(3)
    hosts["node1"] = Answer(facts={name: value for name, value in HEALTHY.items() if name != key})
    lacking = found(hosts)
    assert [each.key for each in lacking] == ([key] if ":" in key else [])  # of a family it is "not there"


def test_a_package_that_one_host_lacks_stops_the_job_and_another_version_does_not():
    (one,) = found(answers(3, {1: {"package:numpy": None}}))
    assert (one.level, words.line(one, names(3))) == (BLOCKS, "node1: no numpy; the other 2 hosts: 1.26.4")
    (one,) = found(answers(3, {1: {"package:numpy": None}, 2: {"package:numpy": "2.0.0"}}))
    assert one.level == SURPRISES
    assert words.line(one, names(3)) == "node0: numpy 1.26.4; node1: no numpy; node2: numpy 2.0.0"


def test_hosts_that_agree_are_one_range():
    (one,) = found(answers(32, {n: {"cann": "8.1"} for n in (3, 7, 8, 9)}))
    assert words.line(one, names(32)) == "node[3,7-9]: CANN 8.1; the other 28 hosts: 8.2.RC1"


def test_two_hosts_are_both_named_because_there_is_no_majority():
    (one,) = found(answers(2, {1: {"mindspore": None}}))
    assert words.line(one, names(2)) == "node0: MindSpore 2.6.0; node1: no MindSpore"


def test_facts_of_a_family_by_which_hosts_are_grouped_alike_are_one_line():
    changed = {1: {"variable:HCCL_A": "1", "variable:HCCL_B": "2"}, 2: {"variable:MS_C": "3"}}
    first, second = found(answers(4, changed))
    assert words.line(first, names(4)) == (
        "node1: HCCL_A=1, HCCL_B=2; the other 3 hosts: HCCL_A is not set, HCCL_B is not set"
    )
    assert words.line(second, names(4)) == "node2: MS_C=3; the other 3 hosts: MS_C is not set"
    assert first.groups[0].values == {"variable:HCCL_A": "1", "variable:HCCL_B": "2"}


def test_a_host_below_the_first_limit_is_not_told_again_by_the_second():
    few = found(answers(3, {0: {"open_files": 100}, 1: {"open_files": 1000}}))
    assert [(each.level, list(each.groups[0].hosts)) for each in few] == [(BLOCKS, ["node0"]), (SURPRISES, ["node1"])]
    assert words.line(few[0], names(3)) == "node0: 100 open files (ulimit -n); at least 256 is needed"


def test_limits_that_are_large_enough_are_alike():
    assert found(answers(3, {0: {"open_files": 1 << 20}, 1: {"open_files": None}})) == []
    assert found(answers(3, {0: {"open_files": 2048}}))[0].level == SURPRISES


def test_numbers_that_are_near_are_alike_and_those_that_are_not_are_named():
    assert found(answers(5, {n: {"memory": (1 << 40) + n * (1 << 34)} for n in range(5)})) == []
    (one,) = found(answers(5, {4: {"memory": 1 << 39}}))
    assert words.line(one, names(5)) == "node4: 512.0 GiB of memory; the other 4 hosts: 1024.0 GiB"


def test_a_log_folder_of_each_host_alone_is_as_usual():
    assert found(answers(4, {n: {"logs_place": f"boot{n} 1 2"} for n in range(4)})) == []
    assert found(answers(2, {0: {"logs_place": "boot 1 2"}})) == []


def test_a_collector_that_gives_up_costs_only_its_own_facts():
    hosts = answers(3)
    known = {key: value for key, value in HEALTHY.items() if not key.startswith(("logs_", "package:", "folder"))}
    hosts["node1"] = Answer(facts=known, failed={"log_folder": "no answer within 5 s", "software": "OSError: x"})
    first, second = found(hosts)
    assert (first.level, words.line(first, names(3))) == (
        BLOCKS,
        "node1: the log folder could not be checked: no answer within 5 s",
    )
    assert (second.level, second.key) == (SURPRISES, "software")


def test_the_worst_comes_first():
    order = [each.level for each in found(answers(3, {0: {"kernel": "6", "cpus": 1, "cann": "7", "os": "Debian"}}))]
    assert order == [BLOCKS, SLOWS, SURPRISES, SURPRISES]


VALUES = {
    Equal: st.sampled_from(["a", "b", None]),
    Near: st.integers(1, 1 << 40),
    Least: st.one_of(st.none(), st.integers(0, 1 << 40)),
    Shared: st.sampled_from(["a", "b", "c"]),
    Yes: st.booleans(),
    Nothing: st.lists(st.sampled_from(["0", "1"]), max_size=2).map(tuple),
}


@st.composite
def facts(draw):
    chosen = draw(st.lists(st.sampled_from(ROWS), max_size=6))
    return {row.key + ("x" if row.is_family else ""): draw(VALUES[type(row.rule)]) for row in chosen}


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.lists(facts(), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_any_facts_give_lines_that_name_hosts_once_and_do_not_depend_on_their_order(many, shuffled):
    hosts = {f"n{n}": Answer(facts=each) for n, each in enumerate(many)}
    result = found(hosts)
    for each in result:
        named = [host for group in each.groups for host in group.hosts]
        others = list(each.others.hosts) if each.others else []
        assert named and len(set(named + others)) == len(named + others) <= len(hosts)
        assert not each.others or 2 * len(others) > len(named) + len(others)
        assert words.line(each, list(hosts)).isprintable()
    assert [LEVELS.index(each.level) for each in result] == sorted(LEVELS.index(each.level) for each in result)
    other_order = list(hosts.items())
    shuffled.shuffle(other_order)

    def known(differences):
        return {
            (each.key, each.level, frozenset(frozenset(group.hosts) for group in each.groups), each.others is None)
            for each in differences
        }

    assert known(found(dict(other_order))) == known(result)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(facts(), min_size=1, max_size=1), st.integers(2, 6))
def test_hosts_with_the_same_facts_never_differ_from_one_another(many, number):
    alike = found({f"n{n}": Answer(facts=many[0]) for n in range(number)})
    assert all(each.others is None and len(each.groups) == 1 for each in alike)
    assert all(len(each.groups[0].hosts) == number for each in alike)


def test_1024_hosts_are_compared_and_the_page_stays_short():
    chance = random.Random(7)
    changes = {n: {key: DIFFERENT[key][0] for key in chance.sample(sorted(DIFFERENT), 2)} for n in range(0, 1024, 64)}
    changes |= {n: {"held": (f"0: python (pid {n})",)} for n in range(1, 1024, 2)}
    hosts = answers(1024, changes)
    page = words.page(Found(hosts=list(hosts), differences=found(hosts)), colour=False)
    assert len(page) < 20_000
    assert "node1: NPUs that a process holds: 0: python (pid 1); node3: " in page
    assert "506 hosts more differ, too" in page


def test_one_processor_is_not_called_several():
    said = answers(4, {2: {"cpus": 1, "cpu_limit": 1.0}})
    texts = [group.text for each in compare.compare(said) for group in each.groups]
    assert texts == ["1 processor", "the time of 1 processor by the control group"]
