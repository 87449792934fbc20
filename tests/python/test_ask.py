import base64
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib

import pytest
from needs import needs

from hccl_tools.check import verdict
from hccl_tools.commands import build as hccl_tools
from hccl_tools.hosts import ask, cards_collect, hostfile
from hccl_tools.machine import host
from hccl_tools.table import rank_table

NONCE = "0123456789abcdef"
MPIRUN = shutil.which("mpirun")


class Cluster:
    """The simulated hosts; tests/fixtures/bin/mpirun starts the generator for each."""

    def __init__(self, folder, here):
        self.folder, self.here = folder, here

    def set(self, *entries):
        """The hostfile has these entries; device D of host N has 192.168.N.D+1."""
        (self.here / "hosts").write_text("".join(f"{entry} slots=8\n" for entry in entries))
        for number in range(len(entries)):
            cards = self.folder / f"host_{number}"
            cards.mkdir()
            lines = [f"address_{device}=192.168.{number}.{device + 1}\n" for device in range(16)]
            (cards / "hccn.conf").write_text("".join(lines))

    def fault(self, number, word):
        (self.folder / f"fault_{number}").write_text(word + "\n")

    def card_fault(self, number, device, word):
        (self.folder / f"host_{number}" / f"fault_{device}").write_text(word + "\n")

    def fail(self, status):
        (self.folder / "status").write_text(f"{status}\n")

    def argv(self):
        return (self.folder / "argv").read_text().splitlines()

    def asked(self):
        return (self.folder / "argv").exists()


def answer(entry, content=None, lines=()):
    return ask.Answer(entry=entry, name="node1", content=content, lines=list(lines))


@pytest.fixture
def hosts(world, tmp_path, monkeypatch, root):
    """Two simulated hosts, 127.0.0.2 and 127.0.0.3: addresses that are this machine's own."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    for name in ("hccn_tool", "mpirun"):
        (tmp_path / "programs" / name).symlink_to(root / "tests" / "fixtures" / "bin" / name)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MPIRUN_SIM", str(folder))
    found = Cluster(folder, world)
    found.set("127.0.0.3", "127.0.0.2")
    return found


@pytest.fixture
def build(world, in_process):
    """build("--device_num", "[0,4)"): the command with --hostfile hosts."""
    return functools.partial(in_process, hccl_tools.main, "--hostfile", "hosts", "--hccn_conf", str(world / "no.conf"))


def refused(answer, status, *words):
    """The command refused: this exit code, nothing on stdout, the words on stderr, and wrote nothing."""
    found, out, err = answer
    assert (found, out) == (status, ""), err
    assert [word for word in words if word not in err] == [], err
    assert [line for line in err.splitlines() if not line.startswith("hccl_tools.py: ")] == []
    assert os.listdir() == ["hosts"]


# ---- the table of all hosts ----------------------------------------------------------------------


def test_one_command_makes_the_table_of_the_whole_cluster(hosts, build, world):
    status, out, err = build("--device_num", "[0,2)")
    assert (status, out) == (0, f"{world}/hccl_2s_4p.json\n"), err
    table, problems = verdict.check_file(out.strip())
    assert [problem for problem in problems if getattr(problem, "severity", "error") == "error"] == []
    assert [server["server_id"] for server in table["server_list"]] == ["127.0.0.2", "127.0.0.3"]
    addresses = [device["device_ip"] for server in table["server_list"] for device in server["device"]]
    assert addresses == ["192.168.1.1", "192.168.1.2", "192.168.0.1", "192.168.0.2"]
    assert "127.0.0.3: 2 ranks on devices 0,1, addresses from hccn_tool, server 127.0.0.3" in err


def test_hosts_are_in_the_order_of_the_file_whichever_answers_first(hosts, monkeypatch):
    names = hostfile.read("hosts")

    def backwards(words):
        nonce = words[words.index("--answer") + 1]
        answers = [answer(name) for name in reversed(names)]
        return 0, b"".join(ask.frame(answer, nonce) for answer in answers), ""

    monkeypatch.setattr(ask, "_mpirun", backwards)
    answers, lines = ask.ask("hosts", "hccl_tools.py", [])
    assert [answer.entry for answer in answers] == names and lines == []


def test_stdout_is_the_table_only_when_it_is_asked_for(hosts, build, world):
    status, out, _ = build("--device_num", "0", "--stdout")
    assert (status, json.loads(out)["server_count"]) == (0, "2")
    assert os.listdir(world) == ["hosts"]


def test_mpirun_is_asked_for_one_process_a_host_unbound_with_path_and_folder(hosts, build, root, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/some/where")
    build("--device_num", "[0,2)", "--generation", "A2")
    argv = hosts.argv()
    at = argv.index("--answer")
    nonce = argv.pop(at + 1)
    assert len(nonce) == 16
    assert argv == [
        *("--hostfile", os.path.abspath("hosts"), "--map-by", "ppr:1:node", "--bind-to", "none", "--timeout", "300"),
        *("-x", "PATH", "-x", "PYTHONPATH", "-wdir", str(root), sys.executable),
        *(str(root / "hccl_tools" / "hccl_tools.py"), "--answer", "--device_num=[0,2)"),
        *("--hccn_conf=" + os.path.abspath("no.conf"), "--generation=A2", "--hosts", "127.0.0.3", "127.0.0.2"),
    ]


@pytest.mark.parametrize(("user", "lines"), [(0, 2), (1000, 0)])
def test_only_root_tells_open_mpi_that_root_is_meant(hosts, build, monkeypatch, user, lines):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    build("--device_num", "0")
    assert "PYTHONPATH" not in hosts.argv()  # what is not set is not carried
    assert len((hosts.folder / "environ").read_text().splitlines()) == lines


def test_noise_of_a_host_does_no_harm(hosts, build):
    hosts.fault(0, "noise")
    hosts.fault(1, "noise")
    assert build("--device_num", "0")[0] == 0


# ---- a host that fails ---------------------------------------------------------------------------


def two_bad_hosts(hosts):
    hosts.card_fault(0, 0, "garbage")
    hosts.card_fault(1, 1, "denied")


def lost_host(word, hosts):
    hosts.fault(1, word)
    hosts.fail(255)


def same_addresses(hosts):
    shutil.copy(hosts.folder / "host_0" / "hccn.conf", hosts.folder / "host_1" / "hccn.conf")


NO_ANSWER = ["127.0.0.2: no answer; mpirun: ssh: connect to host 10.0.0.9 port 22", "255"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda hosts: hosts.card_fault(1, 1, "garbage"),
            ["127.0.0.2: no address for devices 0,1: hccn_tool failed for device 1"],
        ),
        (two_bad_hosts, ["127.0.0.3: no address", "127.0.0.2: no address", "permission denied"]),
        (functools.partial(lost_host, "silent"), NO_ANSWER),
        (functools.partial(lost_host, "cut"), NO_ANSWER),
        (lambda hosts: hosts.fault(0, "twice"), ["1 more answers than hosts"]),
        (lambda hosts: hosts.fail(3), ["mpirun failed though all hosts answered: ssh: connect", "(exit 3)"]),
        (same_addresses, ['127.0.0.2: device_ip "192.168.0.1" of server "127.0.0.2" belongs to']),
    ],
    ids=["a bad card", "two bad hosts", "silent", "cut", "two answers", "mpirun fails in the end", "same addresses"],
)
def test_hosts_that_fail_are_named_with_the_message_and_nothing_is_written(hosts, build, spoil, words):
    spoil(hosts)
    refused(build("--device_num", "[0,2)"), 1, *words)


@pytest.mark.parametrize(
    ("slots", "devices", "words"), [(0, "0", "hosts:1: slots=0: a host without slots"), (8, "[4,4)", "names no device")]
)
def test_a_bad_hostfile_or_range_of_devices_is_told_once_and_no_host_is_asked(
    hosts, build, world, slots, devices, words
):
    (world / "hosts").write_text(f"10.0.0.1 slots={slots}\n")
    refused(build("--device_num", devices), 2, words)
    assert not hosts.asked()


def test_without_mpirun_the_other_way_is_named(hosts, build, tmp_path):
    (tmp_path / "programs" / "mpirun").unlink()
    refused(build(), 1, "mpirun is not on PATH; install Open MPI", "hccl_tools/merge_hccl.py")


def test_one_server_ip_for_many_hosts_is_exit_2(hosts, build):
    status, out, err = build("--server_ip", "10.0.0.1")
    assert (status, out) == (2, "")
    assert "--server_ip is for one host" in err


def test_hosts_that_know_only_their_loopback_address_are_told_so():
    table = rank_table.build([(0, "192.168.0.1")], host.LOOPBACK)
    answers = [answer(name, table) for name in ("node1", "node2")]
    lines = ask._without_address(answers)
    assert [line.partition(":")[0] for line in lines] == ["node1", "node2"]
    assert "its name resolves to no address that other hosts reach" in lines[0]
    assert ask._without_address(answers[:1]) == []


def test_when_hosts_do_not_know_their_entry_the_candidates_are_named():
    table = rank_table.build([(0, "192.168.0.1")], "10.0.0.1")
    (line,) = ask._faults([answer(None, table)], ["a", "b"], 1, "---\nORTE said\n")
    assert line == "one of a, b: no answer; mpirun: ORTE said (exit 1)"


# ---- frames --------------------------------------------------------------------------------------


def sixteen():
    return rank_table.build([(n, f"fd00:1234:5678:9abc:def0:1234:5678:{n:x}") for n in range(16)], "10.0.0.1")


def test_a_frame_comes_back_whatever_is_around_it():
    whole = answer("10.0.0.1", sixteen(), ["a line", "机器"])
    noise = b"x <<hccl_tools " + NONCE.encode() + b" 1 AAAA>> y"
    assert ask.frames(noise + ask.frame(whole, NONCE) + noise, NONCE) == [whole]


def test_a_frame_of_another_run_is_not_ours():
    assert ask.frames(ask.frame(answer("10.0.0.1", sixteen()), "f" * 16), NONCE) == []


def test_a_frame_is_short_enough_for_one_write_of_mpirun():
    assert len(ask.frame(answer("10.0.0.1", sixteen(), ["x" * 200]), NONCE)) < 4096
    facts = {
        device: {
            **{"ip": f"10.78.{device}.{device * 7 % 256}", "netmask": "255.255.0.0", "link": "DOWN", "tls": "0"},
            **{"gateway": f"10.78.{device}.254", "health": "Receive timeout", "kept": f"10.79.3.{device}"},
            "lost": {f"10.{80 + other}.{device}.{other}": 66.67 for other in range(4)},
            "failed": {"ip": f"The device {device} is not exist! (exit 4)", "link": "no answer within 20 s (exit 124)"},
        }
        for device in range(16)
    }
    assert len(ask.frame(answer("10.0.0.1", ["10.0.0.1", facts]), NONCE)) < 4096


def test_no_damaged_frame_is_taken_for_a_table():
    whole = ask.frame(answer("10.0.0.1", sixteen()), NONCE)
    for place in range(2, len(whole) - 1):
        assert ask.frames(whole[:place] + b"ab" + whole[place:], NONCE) in ([],)


# ---- who am I ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "rank", "entry"),
    [
        (["10.255.255.1", "127.0.0.2"], "0", "127.0.0.2"),
        (["127.0.0.2", "127.0.0.3"], "1", "127.0.0.3"),
        (["127.0.0.2", "127.0.0.3", "10.255.255.1"], "2", "127.0.0.2"),
        (["127.0.0.2", "127.0.0.3"], "", "127.0.0.2"),
        (["127.0.0.2", "127.0.0.3"], "9" * 30, "127.0.0.2"),
        (["10.255.255.1", "node8.example.com"], "0", None),
        (["node6", "node7"], "0", "node7"),
    ],
)
def test_a_host_finds_its_own_line_and_its_own_name(monkeypatch, entries, rank, entry):
    monkeypatch.setattr(socket, "gethostname", lambda: "node7.example.com")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
    assert ask.own_entry(entries) == entry


# ---- mpirun and ssh ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("root@node1: Permission denied (publickey,password).", "ssh-copy-id HOST"),
        ("Host key verification failed.", "type ssh HOST once"),
        ("ssh: connect to host node1 port 22: No route to host", ""),
    ],
)
def test_what_to_do_about_ssh_is_said(said, hint):
    (line,) = ask._faults([], ["node1"], 1, said)
    assert said in line
    assert line.endswith("(exit 1)") if not hint else hint in line


def test_ssh_neither_asks_nor_waits_unless_the_user_has_settings_of_their_own(monkeypatch):
    monkeypatch.delenv("OMPI_MCA_plm_rsh_agent", raising=False)
    monkeypatch.delenv("OMPI_MCA_plm_rsh_args", raising=False)
    assert "BatchMode=yes" in ask._environment()["OMPI_MCA_plm_rsh_args"]
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "rsh")
    assert "OMPI_MCA_plm_rsh_args" not in ask._environment()


def test_an_interrupt_ends_mpirun_by_sigterm_which_it_hands_on(world, tmp_path, root):
    program = tmp_path / "programs" / "mpirun"
    program.write_text(
        "#!/usr/bin/env bash\ntrap 'printf ended >ended; exit 1' TERM\nprintf up >up\nsleep 30 >/dev/null 2>&1 & wait\n"
    )
    program.chmod(0o755)
    (world / "hosts").write_text("10.0.0.1 slots=8\n")
    words = [sys.executable, str(root / "hccl_tools" / "hccl_tools.py"), "--hostfile", "hosts"]
    (tmp_path / "programs" / "env").symlink_to("/usr/bin/env")
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 20
    while not os.path.exists("up"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert (world / "ended").read_text() == "ended"


@needs("mpirun")
def test_the_real_mpirun_asks_this_host(cards, build, world, monkeypatch):
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + os.path.dirname(MPIRUN) + ":/usr/bin:/bin")
    (world / "hosts").write_text("# this machine\nlocalhost slots=1\n")
    status, out, err = build("--device_num", "[0,4)", "--output", "t.json")
    assert (status, out) == (0, f"{world}/t.json\n"), err
    (server,) = json.loads((world / "t.json").read_text())["server_list"]
    assert [device["device_ip"] for device in server["device"]] == [f"192.168.100.{n}" for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("content", [b"[]", b'{"entry": 1}', b"[" * 9999, b"\xff", b"nothing"])
def test_a_frame_of_another_version_is_no_answer(content):
    data = base64.b64encode(zlib.compress(content))
    framed = b"<<hccl_tools %s %d %s>>" % (NONCE.encode(), zlib.crc32(data), data)
    assert ask.frames(framed, NONCE) == []
    data = base64.b64encode(content)
    assert ask.frames(b"<<hccl_tools %s %d %s>>" % (NONCE.encode(), zlib.crc32(data), data), NONCE) == []


@pytest.mark.parametrize(
    "content", [["10.0.0.1", {"0": {"odd": 1}}], ["x"], "xy", {"a": 1}, ["h", []], ["h", {"a": {}}]]
)
def test_cards_that_another_version_describes_are_told_and_not_judged(monkeypatch, content):
    monkeypatch.setattr(ask, "ask", lambda *_: ([answer("10.0.0.1", content)], []))
    found, (line,) = cards_collect.of_all_hosts("hosts", [], False)
    assert found == {} and "another version of this project answers there; install the same on all hosts" in line
