import io
import json
import signal
import subprocess
import sys
import time

import json_pages
import pytest

from hccl_tools.commands import check_network
from hccl_tools.common import project, typed
from hccl_tools.hosts.cards import Card
from hccl_tools.hosts.cards_judge import Finding
from hccl_tools.table import rank_table

pytestmark = pytest.mark.thorough

PROGRAM = "hccl_tools/check_network.py"


class Network:
    """Eight cards of this host, 192.168.100.1 to .8, which the table's server 127.0.0.1 has."""

    def __init__(self, cards, here, run):
        self.cards, self.here, self.run_program = cards, here, run

    def write(self, name, text):
        (self.cards.folder / name).write_text(text + "\n")

    def read(self, name):
        path = self.cards.folder / name
        return path.read_text().strip() if path.exists() else None

    def conf(self, lines):
        with open(self.cards.folder / "hccn.conf", "a") as file:
            file.write(lines + "\n")

    def check(self, *arguments):
        return self.run_program(PROGRAM, *arguments, "table.json")

    def problems(self, *arguments):
        ended = self.check("--format", "json", *arguments)
        assert ended.returncode == 1, ended.stderr
        return [(p["server"], p["device"], p["check"], p["code"]) for p in json.loads(ended.stdout)["problems"]]


@pytest.fixture
def network(cards, table, world, run):
    document = table(8, 8, edits={"/server_list/0/server_id": "127.0.0.1"})
    (world / "table.json").write_text(json.dumps(document))
    cards.set({device: f"192.168.100.{device + 1}" for device in range(8)})
    found = Network(cards, world, run)
    found.conf("\n".join(f"netmask_{device}=255.255.0.0" for device in range(8)))
    return found


def test_without_a_word_it_says_what_to_type(capsys):
    with pytest.raises(SystemExit) as ended:
        check_network.main([])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith(f"usage: {typed.as_typed('bash scripts/check_network.sh')} [options] RANK_TABLE_FILE\n")
    assert "required: RANK_TABLE_FILE" in said.err


def test_a_network_that_is_well_is_exit_0_and_a_matrix_of_ok(network):
    ended = network.check()
    assert (ended.returncode, ended.stdout.count("ok")) == (0, 8), ended.stderr
    assert "8 devices asked on 1 of 2 servers, 0 with a problem" in ended.stdout
    assert "server 10.0.0.2 is not this host and was not checked; --hostfile FILE checks all servers" in ended.stderr


def test_without_rich_that_is_said_before_a_card_is_asked(network, tmp_path, monkeypatch):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "rich.py").write_text("raise ModuleNotFoundError('hidden', name='rich')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hidden"))
    ended = network.check()
    assert (ended.returncode, ended.stdout, network.cards.calls()) == (2, "", [])
    (line,) = ended.stderr.splitlines()
    assert line.startswith("check_network.sh: this needs rich 9.4.0 or later; ")
    assert network.check("--format", "json").returncode == 0


@pytest.mark.parametrize(
    ("file", "text", "check", "code"),
    [
        ("link_3", "DOWN", "link", "EI0009"),
        ("health_3", "Socket fail", "health", "EI0006"),
        ("health_3", "Init\nReceive timeout", "health", "EI0006"),
        ("health_3", "Unknown", "health", None),
        ("link_3", "???", "link", None),
        ("fault_3", "absent", "ip", None),
        ("fault_3", "denied", "detect", None),
    ],
)
def test_each_cause_is_named_with_the_device(network, file, text, check, code):
    network.write(file, text)
    assert ("127.0.0.1", 3, check, code) in network.problems()
    assert {device for _, device, _, _ in network.problems()} == {3}


@pytest.mark.parametrize(
    ("line", "check", "code"),
    [
        ("address_5=192.168.100.77", "ip", "EI0014"),
        ("address_5=", "ip", "EI0009"),
        ("netmask_5=255.255.255.0", "netmask", "EI0006"),
        ("tls_enable_5=1", "tls", "EI0016"),
    ],
)
def test_each_mistake_in_the_cards_configuration_is_named(network, line, check, code):
    network.conf(line)
    assert network.problems() == [("127.0.0.1", 5, check, code)]


def test_a_gateway_makes_other_subnets_reachable(network):
    network.conf("netmask_5=255.255.255.0\ngateway_5=192.168.100.254")
    assert network.check().returncode == 0


def test_ping_asks_for_the_like_device_of_the_other_server(network):
    network.write("lost_2", "66.67")
    assert network.check().returncode == 0
    ended = network.check("--ping")
    assert ended.returncode == 1
    assert "127.0.0.1 device 2 (rank 2): 66.67 % of the packets to 192.168.101.3 are lost" in ended.stdout


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ("denied", "permission denied: pls check this cmd run permission. (exit 12)"),
        ("garbage", "error: something went wrong (exit 1)"),
        ("silent", "no output (exit 0)"),
        ("unsupported", "The command is not supported on this product. (exit 13)"),
        ("... packet loss", "device 2 PING 192.168.101.3 (exit 0)"),
        ("crash", "no output (signal 11)"),
    ],
)
def test_a_ping_without_an_answer_is_no_loss(network, instead, said):
    if instead == "... packet loss":
        network.write("lost_2", "...")
    else:
        network.write("no_ping_2", instead)
    ended = network.check("--ping")
    assert ended.returncode == 1
    assert f"127.0.0.1 device 2 (rank 2): hccn_tool did not report ping: {said}, to 192.168.101.3" in ended.stdout
    assert "of the packets" not in ended.stdout and "EI0" not in ended.stdout


def test_a_device_that_loses_everywhere_is_not_asked_on_and_on(network, table):
    document = table(*[8] * 20, edits={"/server_list/0/server_id": "127.0.0.1"})
    (network.here / "table.json").write_text(json.dumps(document))
    network.write("lost_2", "100.00")
    ended = network.check("--ping")
    pings = [words.split()[1] for _, words in network.cards.calls() if "-ping" in words]
    assert (pings.count("2"), pings.count("3")) == (4, 19)
    assert ended.stdout.count("100 % of the packets") == 4


def test_a_detect_address_that_cannot_be_read_is_not_replaced(network):
    network.write("netdetect_4", "1.2.3.4")
    network.write("no_netdetect_4", "denied")
    assert "hccn_tool did not report detect: permission denied" in network.check().stdout
    assert network.read("netdetect_4") == "1.2.3.4"
    assert not [words for _, words in network.cards.calls() if words.startswith("-i 4 -netdetect -s")]


def test_the_detect_address_is_the_partner_and_is_put_back_where_there_was_one(network):
    network.write("netdetect_4", "1.2.3.4")
    assert "device 0,1,2,3,5,6,7 had no detect address before" in network.check().stderr
    asked = [words for _, words in network.cards.calls()]
    assert asked.index("-i 4 -netdetect -s address 192.168.101.5") < asked.index("-i 4 -net_health -g")
    assert asked.index("-i 4 -net_health -g") < asked.index("-i 4 -netdetect -s address 1.2.3.4")
    assert network.read("netdetect_4") == "1.2.3.4"


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_an_interrupted_check_puts_the_detect_address_back(network, root, name):
    for device in range(8):
        network.write(f"netdetect_{device}", "1.2.3.4")
    network.write("health_7", "Init")  # never ready: the check waits
    process = subprocess.Popen(
        [sys.executable, str(root / PROGRAM), "table.json"], stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 20
    while "-i 7 -net_health -g" not in [words for _, words in network.cards.calls()]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(getattr(signal, "SIG" + name))
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 128 + getattr(signal, "SIG" + name), stderr
    assert "interrupted" in stderr and "Traceback" not in stderr
    assert {network.read(f"netdetect_{device}") for device in range(8)} == {"1.2.3.4"}


def test_json_has_what_every_device_said(network):
    document = json.loads(network.check("--json").stdout)
    assert document["ok"] is True
    network.write("link_3", "DOWN")
    network.write("lost_2", "50.00")
    json_pages.check("check_network.sh", json.loads(network.check("--json", "--ping").stdout))
    first, second = document["servers"]
    assert (first["answered"], second["answered"]) == (True, False)
    assert first["devices"][7] == {
        **{"device_id": 7, "rank_id": 7, "device_ip": "192.168.100.8", "ip": "192.168.100.8"},
        **{"netmask": "255.255.0.0", "link": "UP", "tls": "0", "gateway": None, "health": "Success", "lost": {}},
    }


def test_the_table_may_come_by_standard_input(network, run):
    with open("table.json", encoding="utf-8") as table:
        ended = run(PROGRAM, "-", stdin=table)
    assert (ended.returncode, ended.stdout) == (0, network.check().stdout)
    ended = run(PROGRAM, "-")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("check_network.sh: standard input: ") and "[not-json]" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["no.json"], "no.json cannot be read"),
        ([], f"usage: bash {project.ROOT}/scripts/check_network.sh [options] RANK_TABLE_FILE\n"),
        (["--hostfile", "no", "table.json"], "no cannot be read"),
        (["--server_id", "10.9.9.9", "table.json"], "--server_id 10.9.9.9 is not in the table"),
        (["--hostfile", "h", "--server_id", "x", "table.json"], "--server_id is for one host"),
    ],
)
def test_what_cannot_be_asked_is_exit_2(network, run, arguments, text):
    ended = run(PROGRAM, *arguments)
    assert (ended.returncode, text in ended.stderr + ended.stdout) == (2, True)
    assert network.cards.calls() == []


@pytest.mark.parametrize(
    ("edits", "status", "said"),
    [
        ({"/status": "started"}, 1, "/status"),
        ({}, 2, "no server of the table is this host (10.0.0.1); say which one with --server_id ID"),
    ],
)
def test_a_table_that_is_bad_or_not_for_this_host_is_said_and_no_card_asked(network, table, edits, status, said):
    (network.here / "table.json").write_text(json.dumps(table(2, edits=edits)))
    ended = network.check()
    assert (ended.returncode, network.cards.calls()) == (status, []) and said in ended.stderr
    assert network.check("--server_id", "10.0.0.1").returncode == bool(edits)


def test_without_hccn_tool_there_is_nothing_to_ask(network, tmp_path):
    (tmp_path / "programs" / "hccn_tool").unlink()
    ended = network.check()
    assert ended.returncode == 2 and "hccn_tool is not on PATH" in ended.stderr


# ---- all hosts -----------------------------------------------------------------------------------


@pytest.fixture
def two(network, tmp_path, root, monkeypatch, table):
    """Two simulated hosts, 10.99.0.2 and 10.99.0.3, and their table."""
    (tmp_path / "programs" / "ssh").symlink_to(root / "tests" / "fixtures" / "bin" / "ssh")
    folder = tmp_path / "hosts"
    monkeypatch.setenv("SSH_SIM", str(folder))
    for number in range(2):
        cards = folder / f"10.99.0.{number + 2}"
        cards.mkdir(parents=True)
        lines = [f"address_{d}=192.168.{100 + number}.{d + 1}\nnetmask_{d}=255.255.0.0\n" for d in range(4)]
        (cards / "hccn.conf").write_text("".join(lines))
    edits = {f"/server_list/{n}/server_id": f"10.99.0.{n + 2}" for n in range(2)}
    (network.here / "table.json").write_text(json.dumps(table(4, 4, edits=edits)))
    (network.here / "hosts").write_text("10.99.0.2 slots=4\n10.99.0.3 slots=4\n")
    return folder


def test_all_hosts_are_asked_and_judged_together(network, two):
    assert network.check("--hostfile", "hosts").returncode == 0
    (two / "10.99.0.3" / "link_2").write_text("DOWN\n")
    for device in range(4):  # on both hosts each for itself all devices are alike
        with (two / "10.99.0.3" / "hccn.conf").open("a") as file:
            file.write(f"tls_enable_{device}=1\n")
    found = network.problems("--hostfile", "hosts")
    assert ("10.99.0.3", 2, "link", "EI0009") in found
    assert [(server, device) for server, device, check, _ in found if check == "tls"] == [
        ("10.99.0.3", device) for device in range(4)
    ]


def test_each_host_gets_its_own_questions_only(network, two):
    """What a host is sent must not grow with the number of hosts."""
    (two / "10.99.0.2" / "lost_1").write_text("66.67\n")
    found = network.problems("--hostfile", "hosts", "--ping")
    assert found == [("10.99.0.2", 1, "ping", "EI0006")]
    calls = (two / "calls").read_text()
    assert calls.count("check_network.py --answer -\n") == 2


def test_a_host_that_does_not_answer_is_named_and_the_others_are_shown(network, two):
    (two / "fault_10.99.0.3").write_text("silent\n")
    ended = network.check("--hostfile", "hosts")
    assert ended.returncode == 1
    assert "10.99.0.3: no answer" in ended.stderr
    assert "no answer" in ended.stdout and "4 devices asked on 1 of 2 servers" in ended.stdout


def test_a_host_of_the_hostfile_that_is_not_in_the_table_says_so(network, two, table):
    (network.here / "table.json").write_text(json.dumps(table(4, edits={"/server_list/0/server_id": "10.99.0.2"})))
    ended = network.check("--hostfile", "hosts")
    assert ended.returncode == 1
    assert "10.99.0.3: not a server of the rank table; remove it from the hostfile" in ended.stderr
    assert "4 devices asked on 1 of 1 servers" in ended.stdout


def test_a_host_whose_name_does_not_tell_which_server_it_is_is_asked(network, two, table):
    edits = {"/server_list/0/server_id": "127.0.0.1", "/server_list/1/server_id": "10.99.0.3"}
    (network.here / "table.json").write_text(json.dumps(table(4, 4, edits=edits)))
    (network.here / "hosts").write_text("me@login.invalid slots=4\n10.99.0.3 slots=4\n")
    (two / "10.99.0.2").rename(two / "login.invalid")
    ended = network.check("--hostfile", "hosts")
    assert "8 devices asked on 2 of 2 servers, 0 with a problem" in ended.stdout, ended.stderr
    assert {line.split("\t")[0] for line in (two / "calls").read_text().splitlines()} == {
        "me@login.invalid",
        "10.99.0.3",
    }


def test_two_lines_that_are_one_server_do_not_check_it_twice_at_the_same_time(network, two, table):
    (network.here / "table.json").write_text(json.dumps(table(4, 4, edits={"/server_list/0/server_id": "127.0.0.1"})))
    (network.here / "hosts").write_text("127.0.0.1 slots=4\nlocalhost slots=4\n")
    ended = network.check("--hostfile", "hosts")
    assert "localhost is server 127.0.0.1, and so is 127.0.0.1; remove one from the hostfile" in ended.stderr
    assert "4 devices asked on 1 of 2 servers" in ended.stdout


def test_ctrl_c_ends_the_checks_on_all_hosts_which_put_the_detect_addresses_back(network, two, root):
    for name in ("10.99.0.2", "10.99.0.3"):
        (two / name / "netdetect_0").write_text("1.2.3.4\n")
        (two / name / "health_0").write_text("Init\n")  # never ready: the check waits
    words = [sys.executable, str(root / PROGRAM), "--hostfile", "hosts", "table.json"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 20
    detect = [two / name / "netdetect_0" for name in ("10.99.0.2", "10.99.0.3")]
    while any(file.read_text() == "1.2.3.4\n" for file in detect):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130 and "Traceback" not in stderr, stderr
    assert [file.read_text() for file in detect] == ["1.2.3.4\n"] * 2


class Terminal(io.StringIO):
    """A stdout that says it is one."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("term", "coloured"), [("xterm", True), ("dumb", False)])
def test_the_matrix_has_colours_on_a_terminal(monkeypatch, term, coloured):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", term)
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    devices = [rank_table.Device("/d", str(number), "192.168.0.1", str(number)) for number in range(2)]
    servers = [rank_table.Server("/s", "10.0.0.1", devices)]
    fine = Card(ip="", netmask="", link="", tls="", gateway="", health="", lost={}, failed={})
    found = Finding("10.0.0.1", 1, 1, "link", "EI0009", "it is DOWN", "look at the cable")
    check_network.print_text(
        check_network.Network(servers=servers, facts={"10.0.0.1": {0: fine, 1: fine}}, findings=[found], silent=[])
    )
    text = out.getvalue()
    assert "ok" in text and "10.0.0.1 device 1 (rank 1)" in text
    assert ("\x1b[32mok" in text, "\x1b[1;31mlink" in text, "\x1b[1;31m10.0.0.1 device 1" in text) == (coloured,) * 3
    assert coloured or "\x1b" not in text
