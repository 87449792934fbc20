import pytest

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
    assert hostfile.parse(text.encode(), "hosts") == hosts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no host in it"),
        ("# node1\n", "there is no host in it"),
        (b"\xef\xbb\xbfnode1\n", "a byte-order mark, which Open MPI reads as a host"),
        ("node1\n".encode("utf-16"), "a byte-order mark"),
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
        ("node1:8\n", "hosts:1: node1:8: number of slots after a colon; write node1 slots=N"),
        ("slots=8\n", "slots=8: the host is missing before it"),
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
    assert hostfile.spares("hosts") == ["root@node2", "node3"]
    assert hostfile.slots("hosts") == [("node1", 8), ("root@node2", 8), ("node3", 4)]
