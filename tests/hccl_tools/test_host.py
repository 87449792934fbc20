import socket

import pytest

from hccl_tools.machine import host

# npu-smi info -m, by generation, as documented.
MAP_910A = """\
\tNPU ID                         Chip ID                        Chip Logic ID                  Chip Name
\t0                              0                              0                              Ascend 910A
\t1                              0                              1                              Ascend 910A
"""
MAP_A2 = """\
\tNPU ID                         Chip ID                        Chip Logic ID                  Chip Name
\t0                              0                              0                              Ascend 910B3
\t0                              1                              -                              Mcu
\t5                              0                              1                              Ascend 910B3
\t5                              1                              -                              Mcu
"""
MAP_A3 = """\
\tNPU ID                         Chip ID                        Chip Logic ID                  \
Chip Phy-ID                    Chip Name
\t4                              0                              0                              \
8                              Ascend910
\t4                              1                              1                              \
9                              Ascend910
\t4                              2                              -                              \
-                              Mcu
"""
MAP_950 = """\
\tNPU ID                         Slot ID                        Chip ID                        \
Chip Phy-ID                    Chip Name
\t3                              7                              0                              \
6                              Ascend950
"""


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        pytest.param(MAP_910A, {0, 1}, id="910A"),
        pytest.param(MAP_A2, {0, 1}, id="A2 has rows of the board's controller"),
        pytest.param(MAP_A3, {8, 9}, id="A3 has a column of physical ids"),
        pytest.param(MAP_950, {6}, id="950 has other columns before it"),
        pytest.param("There is no NPU card on this server.\n", set(), id="no card"),
        pytest.param("", set(), id="nothing"),
        pytest.param("\n\n", set(), id="blank lines"),
    ],
)
def test_the_map_of_npu_smi_names_the_devices(text, devices):
    assert set(host.npu_chips(text)) == devices


# ---- devices -------------------------------------------------------------------------------------


@pytest.fixture
def dev(monkeypatch):
    """dev("davinci0"): the files that /dev has of those that are asked for."""

    def have(*names):
        monkeypatch.setattr(host.os, "listdir", lambda folder: [*names, "null", "tty1"])

    have()
    return have


@pytest.fixture
def npu_smi(world, tmp_path):
    """npu_smi(text, status): a npu-smi on PATH that prints the text."""

    def make(text, status=0):
        program = tmp_path / "programs" / "npu-smi"
        lines = ["#!/usr/bin/env bash", "[[ $* == 'info -m' ]] || exit 99", f"printf '%s' '{text}'", f"exit {status}"]
        program.write_text("\n".join(lines) + "\n")
        program.chmod(0o755)

    return make


@pytest.mark.parametrize(
    ("files", "answer", "devices"),
    [
        pytest.param(["davinci10", "davinci8", "davinci1"], None, [1, 8, 10], id="in order of their numbers"),
        pytest.param(["davinci0", "davinci0_manager", "davinci1.old"], None, [0], id="what only starts like a device"),
        pytest.param(["davinci0"], (MAP_A3, 0), [0], id="npu-smi is not asked where dev has devices"),
        pytest.param([], (MAP_A3, 0), [8, 9], id="npu-smi is asked where dev has none"),
        pytest.param([], (MAP_A3, 1), [], id="a npu-smi that fails names none"),
        pytest.param([], None, [], id="a host without NPU"),
    ],
)
def test_devices_are_those_of_dev_or_else_of_npu_smi(world, dev, npu_smi, files, answer, devices):
    dev(*files)
    if answer:
        npu_smi(*answer)
    assert host.devices() == devices


# ---- address -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resolved", "address"), [("10.1.2.3", "10.1.2.3"), ("127.0.1.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")]
)
def test_the_address_is_that_of_the_hosts_name_unless_it_is_a_loopback(monkeypatch, resolved, address):
    monkeypatch.setattr(socket, "gethostbyname", lambda name: resolved)
    assert host.address() == address


def test_a_name_that_cannot_be_resolved_stands_for_the_loopback(monkeypatch):
    def fail(_):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "gethostbyname", fail)
    assert host.address() == "127.0.0.1"


@pytest.mark.parametrize("name", ["n" * 64, "a..b"], ids=["64 letters", "an empty label"])
def test_a_name_that_dns_cannot_express_stands_for_the_loopback(monkeypatch, name):
    monkeypatch.setattr(socket, "gethostname", lambda: name)  # Linux takes both
    assert host.address() == "127.0.0.1"


# ---- owns ----------------------------------------------------------------------------------------


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "node1.example.com")


@pytest.mark.parametrize("server_id", ["127.0.0.1", "localhost", "node1.example.com", "node1"])
def test_a_host_owns_its_addresses_and_its_name(named, server_id):
    assert host.owns(server_id)


@pytest.mark.parametrize("server_id", ["203.0.113.7", "2001:db8::7", "node2", "node", ""])
def test_a_host_does_not_own_what_belongs_to_another(named, server_id):
    assert not host.owns(server_id)


def test_a_host_without_ipv6_owns_no_ipv6_address(monkeypatch):
    def fail(*_):
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", fail)
    assert not host.owns("2001:db8::7")


# ---- which server of a table ---------------------------------------------------------------------

OTHER, OURS = "203.0.113.7", "127.0.0.1"


@pytest.mark.parametrize(
    ("servers", "here"),
    [
        pytest.param([([OTHER], {}), ([OURS], {0: "10.9.9.9"})], [1], id="by its server_id"),
        pytest.param([([OTHER], {}), ([OTHER, OURS], {})], [1], id="by one of its names"),
        pytest.param([([OURS], {}), ([OTHER], {0: "192.168.100.1"})], [0], id="the server_id comes before the cards"),
        pytest.param([([OTHER], {0: "10.9.9.9"}), ([OTHER], {0: "192.168.100.1"})], [1], id="by its cards"),
        pytest.param([([], {0: "10.9.9.9,192.168.100.1", 1: None})], [0], id="by one address of several"),
        pytest.param([([OTHER], {0: "192.168.100.1", 1: "10.9.9.9"})], [], id="not all cards fit"),
        pytest.param([([OTHER], {0: None})], [], id="no address to compare"),
        pytest.param([([OTHER], {77: "192.168.100.1"})], [], id="a card that is not here"),
        pytest.param([], [], id="no server"),
    ],
)
def test_this_host_is_found_among_the_servers_of_a_table(cards, servers, here):
    assert host.servers_here(servers, "no.conf") == here


@pytest.fixture
def look_up(monkeypatch):
    """A name server that knows two names; the names that it was asked for."""
    asked = []

    def answer(name, *_):
        asked.append(name)
        known = {"here.example.com": OURS, "there.example.com": OTHER}
        if name not in known:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[name], 0))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return asked


@pytest.mark.parametrize(
    ("names", "here"),
    [
        ([["there.example.com"], ["here.example.com"]], [1]),
        ([["there.example.com"], ["job-1"]], []),
        ([[OTHER, "here.example.com"]], []),  # where it has an address, that counts
    ],
)
def test_a_server_is_found_by_what_its_name_stands_for(world, look_up, names, here):
    assert host.servers_here([(each, {}) for each in names], "no.conf") == here


def test_names_are_not_looked_up_where_addresses_tell_or_where_they_are_very_many(world, look_up):
    assert host.servers_here([([OURS], {}), (["job-1"], {})], "no.conf") == [0]
    assert host.servers_here([([f"node{n}"], {}) for n in range(1000)], "no.conf") == []
    assert host.servers_here([(["here.example.com"], {})], "no.conf", looks_up=False) == []
    assert look_up == []


@pytest.mark.parametrize(
    ("names", "device_ips", "possible"),
    [
        (["job-1"], {0: None}, True),
        (["job-1"], {0: "10.9.9.9"}, True),  # nobody can be asked for the cards' addresses here
        (["10.9.0.256"], {}, True),
        ([OTHER], {}, False),
        (["there.example.com"], {}, False),
        ([OTHER, "job-1"], {}, False),
    ],
)
def test_a_server_whose_name_is_no_hosts_may_be_this_one(world, look_up, names, device_ips, possible):
    assert host.may_be_here(names, device_ips, "no.conf") is possible


def test_a_server_is_another_one_where_its_cards_say_so(cards, look_up):
    assert not host.may_be_here(["job-1"], {0: "10.9.9.9"}, "no.conf")
