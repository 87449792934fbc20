import re

import pytest
from suite.cases import for_each

from hccl_tools.hosts import hostfile


def refusal(text):
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(hostfile.HostfileError) as error:
        hostfile.parse(data, "hosts")
    said = str(error.value)
    assert said.startswith("hosts") and len(said.splitlines()) == 1
    return said


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("10.0.0.1\n10.0.0.2\n", ["10.0.0.1", "10.0.0.2"]),
        ("10.0.0.2 slots=8\nnode1 slots = 8 max_slots=8\n", ["10.0.0.2", "node1"]),
        ("# a comment\n\n  \nnode1 # slots=0\n", ["node1"]),
        ("node1\r\nnode2\r\n", ["node1", "node2"]),
        ("root@node1 slots=8\n", ["node1"]),
        ("a-b.example.com\tmax-slots=4", ["a-b.example.com"]),
        ("node1 slots=8\nnode2 slots=8 spare # for later\nnode3 spare\n", ["node1", "node2", "node3"]),
    ],
)
def test_hosts_are_read_in_the_order_of_the_file(text, hosts):
    assert [host.name for host in hostfile.parse(text.encode(), "hosts").hosts] == hosts


@for_each(
    "text, words",
    [
        ("", "there is no host in it"),
        ("# node1\n", "there is no host in it"),
        ("node1\n".encode("utf-16")[:-1], "is not UTF-8"),
        (b"node1\n\xff\n", "byte 7 is not UTF-8"),
        ("node1\nfd00::1\n", "hosts:2: fd00::1 is an IPv6 address"),
        ("[fd00::1] slots=8\n", "hosts:1: [fd00::1] is an IPv6 address"),
        ("node1 slots=0\n", "hosts:1: slots=0: a host without slots runs nothing"),
        ("node1 slots=x\n", "slots=x: the number of slots is not a number"),
        ("node1 slots=-1\n", "slots=-1: the number of slots is not a number"),
        ("node1 slots\n", "slots: only slots=N can follow a host"),
        ("node1 node2\n", "node2: only slots=N can follow a host"),
        ("node1 cpus=8\n", "cpus=8: no such key; write slots=N"),
        ("node1\nnode2 slots=8 spares\n", "hosts:2: spares: no such word; for a spare host write the word spare"),
        ("node1 SPARE\n", "SPARE: no such word"),
        ("node1 spare=1\n", "spare=1: no such word"),
        ("node1 slots=1 spar\n", "spar: only slots=N can follow a host"),
        ("node1:x\n", "hosts:1: node1:x has no number of ranks from 1 to 65536; write HOST:8,HOST:8"),
        ("node[1-\n", "hosts:1: node[1-: unbalanced brackets; write sets as node[1-4] or node[1,3]"),
        ("node[1-4] slots=8\nnode3\n", "hosts:2: node3 is in line 1 too"),
        ("slots=8\n", "slots=8: the host is missing before it"),
        ("node1\nslots=8\n", "hosts:2: slots=8: the host is missing before it"),
        ("node1, slots\n", "hosts:1: slots: the host is missing before it"),
        ("node1\n\nnode1 slots=4\n", "hosts:3: node1 is in line 1 too"),
        ("node1\nNODE1\n", "hosts:2: NODE1 is in line 1 too"),
        ("a@node1\nb@node1\n", "node1 is in line 1 too"),
        ("node1\n-Fevil@10.0.0.9 slots=1\n", ":2: -Fevil@10.0.0.9 is neither a host's name nor an IPv4 address"),
        ("-oProxyCommand=id\n", "-oProxyCommand=id is neither a host's name"),
        ("-J\n", "-J is neither a host's name"),
        ("node\x1b]0;x\x07\n", "node\\x1b]0;x\\x07 is neither"),
        ("node\u202e1\n", "node\\u202e1 is neither"),
        ("10.0.0.256\n", "10.0.0.256 is not an IPv4 address"),
        ("10.0.0\n", "10.0.0 is not an IPv4 address"),
        ("+n1\n", "+n1 is neither a host's name nor an IPv4 address"),
        ("^node1\n", "^node1 is neither"),
        ("-x\n", "-x is neither"),
        ("node1;reboot\n", "node1;reboot is neither"),
        ("机器\n", "机器 is neither"),
        ("a\x00b\n", "a\\x00b is neither"),
    ],
)
def test_what_open_mpi_would_stumble_over_is_said_with_its_line(text, words):
    assert words in refusal(text)


def test_a_file_that_is_not_there_is_said(world):
    with pytest.raises(hostfile.HostfileError, match="hosts cannot be read: No such file or directory"):
        hostfile.logins("hosts")


def test_a_file_of_another_kind_is_refused_by_its_size(world, monkeypatch):
    (world / "hosts").write_bytes(b"node1\n" * 10)
    monkeypatch.setattr(hostfile, "MAX_BYTES", 10)
    with pytest.raises(hostfile.HostfileError, match="has more than 10 bytes"):
        hostfile.logins("hosts")


def test_hosts_that_stand_by_are_marked_with_a_word(world):
    (world / "hosts").write_text("node1 slots=8\nroot@node2 slots=8 spare\nnode3 spare slots = 4\n")
    hosts = hostfile.read("hosts").hosts
    assert [host.login for host in hosts if host.spare] == ["root@node2", "node3"]
    assert [(host.login, host.slots) for host in hosts] == [("node1", 8), ("root@node2", 8), ("node3", 4)]


# What machines write, and Open MPI does not always read; plain: it reads the file as we do.
@pytest.mark.parametrize(
    ("text", "hosts", "plain"),
    [
        ("a slots=8\nb slots = 8 max_slots=8 # new, big\n\n", [("a", 8), ("b", 8)], True),
        ("a\tcount=8\nb cpu=4\n", [("a", 8), ("b", 4)], True),
        ("a\nb\n", [("a", None), ("b", None)], False),
        ("a\na\nb\na\n", [("a", 3), ("b", None)], False),
        ("a slots=8\r\n# b\r\n", [("a", 8)], False),
        ("\ufeffa slots=8\n", [("a", 8)], False),
        ("a slots=8\n".encode("utf-16"), [("a", 8)], False),
        ("a:8\nb:4\n", [("a", 8), ("b", 4)], False),
        ("a:2,b:2,\n", [("a", 2), ("b", 2)], False),
        ("a,slots=8\nb , slots = 4, max_slots=4\n", [("a", 8), ("b", 4)], False),
        ("a slots=8, # b\n", [("a", 8)], False),
        ("n[1-2]:8\n", [("n1", 8), ("n2", 8)], False),
        ("n[08-10, 12] slots=8\n", [("n08", 8), ("n09", 8), ("n10", 8), ("n12", 8)], False),
        ("10.0.0.[1-2] slots=8\n", [("10.0.0.1", 8), ("10.0.0.2", 8)], False),
        ("a slots=8\nb slots=8 spare\n", [("a", 8), ("b", 8)], False),
    ],
)
def test_what_a_machine_wrote_is_read(text, hosts, plain):
    found = hostfile.parse(text if isinstance(text, bytes) else text.encode(), "hosts")
    assert [(host.login, host.slots) for host in found.hosts] == hosts
    assert found.plain == plain


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a,b,", [("a", None), ("b", None)]),
        ("a, a,,b ,\n", [("a", 2), ("b", None)]),
        ("a b\nc", [("a", None), ("b", None), ("c", None)]),
        ("a:2,root@10.0.0.1:8", [("a", 2), ("root@10.0.0.1", 8)]),
        ("a:2,b,a:3,a", [("a", 6), ("b", None)]),
        ("a slots=8,b slots = 4,", [("a", 8), ("b", 4)]),
        ("a,slots=8,b,slots=4", [("a", 8), ("b", 4)]),
        ("n[1-3,7]:8,m[1,2]", [*((f"n{number}", 8) for number in (1, 2, 3, 7)), ("m1", None), ("m2", None)]),
        ("r[1-2]n[01-02]-ib", [(f"r{rack}n0{node}-ib", None) for rack in (1, 2) for node in (1, 2)]),
    ],
)
def test_hosts_of_a_command_line(text, hosts):
    assert [(host.login, host.slots) for host in hostfile.parse_words(text)] == hosts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n[]", "the brackets are empty"),
        ("n[3-1]", "3-1 is neither a number nor a range"),
        ("n[a-b]", "a-b is neither a number nor a range"),
        ("n[1-2", "unbalanced brackets"),
        ("n1-2]", "unbalanced brackets"),
        ("n[0-999999999]", "has more than 65536 hosts"),
        ("n[1-999][1-999]", "has more than 65536 hosts"),
        ("n[0-65535,0-65535]", "has more than 65536 hosts"),
        ("n[1,2", "n[1: unbalanced brackets"),
        ("n[1-2]x;y", "n[1-2]x;y is neither a host's name"),
    ],
)
def test_what_is_no_set_of_hosts(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        hostfile.parse_words(text)


@pytest.mark.slow
def test_the_time_for_a_long_list_grows_with_its_length(monkeypatch):
    """A search that looked for the end of the list behind each comma would take minutes."""
    names = [f"node{number}" for number in range(60_000)]
    assert [host.login for host in hostfile.parse_words(",".join(names))] == names
    assert len(hostfile.parse_words("node[1-60000]:8," + ",".join(names))) == 60_001
    monkeypatch.setattr(hostfile, "MAX_HOSTS", 100)
    with pytest.raises(hostfile.HostfileError, match="h:2: more than 100 hosts"):
        hostfile.parse(b"n[1-60]\nm[1-60]\n", "h")


@pytest.mark.slow
def test_a_line_of_blanks_takes_no_time():
    """To try each run of blanks from each of its blanks on would take minutes: the suite's limit of time ends it."""
    blanks = " " * 2_000_000
    found = hostfile.parse(f"a{blanks}slots{blanks}={blanks}8{blanks}\n".encode(), "h")
    assert [(host.login, host.slots) for host in found.hosts] == [("a", 8)]
