import base64
import functools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import zlib

import pytest

from hccl_tools.check import verdict
from hccl_tools.commands import build as hccl_tools
from hccl_tools.hosts import answering, ask, cards_collect, elsewhere, ssh, together
from hccl_tools.machine import host
from hccl_tools.machine.programs import Ended
from hccl_tools.table import rank_table

NONCE = "0123456789abcdef"


class Cluster:
    """The simulated hosts; tests/fixtures/bin/ssh starts the generator for each."""

    def __init__(self, folder, here):
        self.folder, self.here = folder, here

    def set(self, *entries):
        """The hostfile has these entries; device D of host N has 192.168.N.D+1."""
        (self.here / "hosts").write_text("".join(f"{entry} slots=8\n" for entry in entries))
        for number, name in enumerate(entries):
            cards = self.folder / name.rpartition("@")[2]
            cards.mkdir()
            lines = [f"address_{device}=192.168.{number}.{device + 1}\n" for device in range(16)]
            (cards / "hccn.conf").write_text("".join(lines))

    def fault(self, name, word):
        (self.folder / f"fault_{name}").write_text(word + "\n")

    def card_fault(self, name, device, word):
        (self.folder / name / f"fault_{device}").write_text(word + "\n")

    def calls(self):
        """(login, command) of every call so far, in any order."""
        path = self.folder / "calls"
        return [tuple(line.split("\t")) for line in path.read_text().splitlines()] if path.exists() else []

    def options(self):
        return (self.folder / "options").read_text().split()


def answer(name, content=None, lines=()):
    return ask.Answer(host=name, content=content, lines=list(lines))


@pytest.fixture
def hosts(world, tmp_path, monkeypatch, root):
    """Two simulated hosts, 10.99.0.3 and 10.99.0.2, which are not this machine's addresses."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    for name in ("hccn_tool", "ssh"):
        (tmp_path / "programs" / name).symlink_to(root / "tests" / "fixtures" / "bin" / name)
    for name in ("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_plm_ssh_args"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSH_SIM", str(folder))
    found = Cluster(folder, world)
    found.set("10.99.0.3", "10.99.0.2")
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


@pytest.mark.slow
def test_one_command_makes_the_table_of_the_whole_cluster(hosts, build, world):
    status, out, err = build("--device_num", "[0,2)")
    assert (status, out) == (0, f"{world}/hccl_2s_4p.json\n"), err
    table, problems = verdict.check_file(out.strip())
    assert [problem for problem in problems if getattr(problem, "severity", "error") == "error"] == []
    assert [server["server_id"] for server in table["server_list"]] == ["10.99.0.2", "10.99.0.3"]
    addresses = [device["device_ip"] for server in table["server_list"] for device in server["device"]]
    assert addresses == ["192.168.1.1", "192.168.1.2", "192.168.0.1", "192.168.0.2"]
    assert "10.99.0.3: 2 ranks on devices 0,1, addresses from hccn_tool, server 10.99.0.3" in err


def test_hosts_are_in_the_order_of_the_file_whichever_answers_first(monkeypatch):
    names = {f"10.99.1.{number}": f"10.99.1.{number}" for number in range(9)}
    empty = {"lines": [], "version": elsewhere.own().words()}

    def backwards(hosts, call, seconds, news):
        sent = {name: answering.unpacked(call(name).sent) for name in hosts}
        ends = {
            name: Ended(0, answering.frame({**empty, "content": name}, sent[name]["nonce"]).decode(), "")
            for name in reversed(list(hosts))
        }
        return {name: ends[name] for name in hosts}

    monkeypatch.setattr(together, "run", backwards)
    answers, lines = ask.ask(asker(names), ["hccl_tools.py"], lambda _name: None)
    assert [(each.host, each.content) for each in answers] == [(name, name) for name in names] and lines == []


def asker(logins, news=print):
    return ask.Asker(logins=logins, agent=[sys.executable], news=news)


@pytest.mark.slow
def test_stdout_is_the_table_only_when_it_is_asked_for(hosts, build, world):
    status, out, _ = build("--device_num", "0", "--stdout")
    assert (status, json.loads(out)["server_count"]) == (0, "2")
    assert os.listdir(world) == ["hosts"]


@pytest.mark.slow
def test_every_host_runs_the_same_command_wherever_it_has_the_project(hosts, build, root, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/some/where with a blank")
    hosts.set("me@10.99.0.4")
    (hosts.here / "hosts").write_text("me@10.99.0.4 slots=8\n10.99.0.2 slots=8\n")
    build("--device_num", "[0,2)", "--generation", "A2")
    program = root / "hccl_tools" / "hccl_tools.py"
    conf = os.path.abspath("no.conf")
    usual = """file=$1; shift; test -r "$file" && shift 5; exec "$@\""""
    command = (
        f"echo; cd / && exec /usr/bin/env PATH={os.environ['PATH']} 'PYTHONPATH=/some/where with a blank' "
        f"LAUNCH_LANG=en /bin/sh -c {shlex.quote(usual)} sh {program} {shlex.join(elsewhere.question())} "
        f"{sys.executable} {program} --answer '--devices=[0,2)' "
        f"--hccn_conf={conf} --generation=A2"
    )
    assert sorted(hosts.calls()) == [("10.99.0.2", command), ("me@10.99.0.4", command)]
    assert hosts.options() == [
        *("-T", "-x", "-a", "-oBatchMode=yes", "-oClearAllForwardings=yes", "-oConnectTimeout=8"),
        *("-oServerAliveInterval=5", "-oServerAliveCountMax=3"),
    ]


@pytest.mark.parametrize("is_there", [True, False])
def test_only_a_host_that_has_the_project_elsewhere_looks_for_it(tmp_path, monkeypatch, is_there):
    """With a Python that says its words."""
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(ask.project, "ROOT", str(tmp_path))
    (tmp_path / "hccl_tools").mkdir()
    program = tmp_path / "hccl_tools" / "x.py"
    if is_there:
        program.touch()
    ended = subprocess.run(["sh", "-c", ask.command(["x.py", "a b"])], capture_output=True, text=True, check=True)
    usual = [str(program), "--answer", "a b"]
    looks = [*elsewhere.question()[1:], sys.executable]
    assert ended.stdout.splitlines() == ["", *([] if is_there else looks), *usual]


def test_this_host_is_asked_without_ssh(hosts, build, monkeypatch):
    monkeypatch.setenv("HCCN_SIM", str(hosts.folder / "10.99.0.2"))
    (hosts.here / "hosts").write_text("localhost slots=8\n")
    assert build("--device_num", "[0,2)", "--output", "t.json")[0] == 0
    assert hosts.calls() == []


@pytest.mark.slow
def test_the_users_command_reaches_the_hosts(hosts, build, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "ssh -p 7")
    monkeypatch.setenv("OMPI_MCA_plm_rsh_args", "-q")
    build("--device_num", "0")
    assert hosts.options()[:3] == ["-p", "7", "-q"]
    build("--device_num", "0", "--ssh", "ssh -F 'my config'")
    assert hosts.options()[:3] == ["-F", "my", "config"]  # one a line; the word has a blank


@pytest.mark.slow
def test_noise_of_a_host_does_no_harm(hosts, build):
    hosts.fault(0, "noise")
    hosts.fault(1, "noise")
    assert build("--device_num", "0")[0] == 0


# ---- a host that fails ---------------------------------------------------------------------------


def two_bad_hosts(hosts):
    hosts.card_fault("10.99.0.3", 0, "garbage")
    hosts.card_fault("10.99.0.2", 1, "denied")


def same_addresses(hosts):
    shutil.copy(hosts.folder / "10.99.0.3" / "hccn.conf", hosts.folder / "10.99.0.2" / "hccn.conf")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda hosts: hosts.card_fault("10.99.0.2", 1, "garbage"),
            ["10.99.0.2: no address for devices 0,1: hccn_tool failed for device 1"],
        ),
        (two_bad_hosts, ["10.99.0.3: no address", "10.99.0.2: no address", "permission denied"]),
        (
            lambda hosts: hosts.fault("10.99.0.2", "unreached"),
            ["10.99.0.2: no answer; ssh: connect to host HOST port 22: No route to host (exit 255)"],
        ),
        (lambda hosts: hosts.fault("10.99.0.2", "silent"), ["10.99.0.2: no answer; it printed nothing (exit 0)"]),
        (lambda hosts: hosts.fault("10.99.0.2", "cut"), ["10.99.0.2: no answer"]),
        (lambda hosts: hosts.fault("10.99.0.2", "old"), ["10.99.0.2: no answer"]),
        (same_addresses, ['10.99.0.2: device_ip "192.168.0.1" of server "10.99.0.2" belongs to']),
    ],
    ids=["a bad card", "two bad hosts", "not reached", "silent", "cut", "another run's", "same addresses"],
)
def test_hosts_that_fail_are_named_with_the_message_and_nothing_is_written(hosts, build, spoil, words):
    spoil(hosts)
    refused(build("--device_num", "[0,2)"), 1, *words)


def test_hosts_that_fail_for_one_reason_are_one_line(hosts, build):
    names = [f"10.99.2.{number}" for number in range(1, 9)]
    (hosts.here / "hosts").write_text("".join(f"{name} slots=8\n" for name in names))
    for name in names:
        hosts.fault(name, "unreached")
    _, _, err = build("--device_num", "0")
    assert "10.99.2.[1-8]: no answer; ssh: connect to host HOST port 22" in err
    assert err.count("no answer") == 1


@pytest.mark.parametrize(
    ("slots", "devices", "words"), [(0, "0", "hosts:1: slots=0: a host without slots"), (8, "[4,4)", "names no device")]
)
def test_a_bad_hostfile_or_range_of_devices_is_told_once_and_no_host_is_asked(
    hosts, build, world, slots, devices, words
):
    (world / "hosts").write_text(f"10.0.0.1 slots={slots}\n")
    refused(build("--device_num", devices), 2, words)
    assert hosts.calls() == []


def test_without_ssh_that_is_told(hosts, build, tmp_path):
    (tmp_path / "programs" / "ssh").unlink()
    refused(build(), 1, "ssh is not on PATH; install an ssh client")


def test_a_command_that_is_no_command_is_told(hosts, build):
    refused(build("--ssh", "ssh 'x"), 2, "--ssh ssh 'x cannot be read as a command: No closing quotation")


def test_one_server_ip_for_many_hosts_is_exit_2(hosts, build):
    status, out, err = build("--server_ip", "10.0.0.1")
    assert (status, out) == (2, "")
    assert "--server_ip is for one host" in err


def test_hosts_that_know_only_their_loopback_address_are_told_so():
    table = rank_table.build([(0, "192.168.0.1")], host.LOOPBACK)
    answers = [answer(name, table) for name in ("node1", "node2")]
    lines = ask._without_address(answers)
    assert [line.partition(":")[0] for line in lines] == ["node1", "node2"]
    assert "its name does not resolve to an address that other hosts can reach" in lines[0]
    assert ask._without_address(answers[:1]) == []


# ---- frames --------------------------------------------------------------------------------------


def sixteen():
    return rank_table.build([(n, f"fd00:1234:5678:9abc:def0:1234:5678:{n:x}") for n in range(16)], "10.0.0.1")


def framed(whole):
    return answering.frame({"content": whole.content, "lines": whole.lines}, NONCE)


def test_a_frame_comes_back_whatever_is_around_it():
    whole = answer("10.0.0.1", sixteen(), ["a line", "机器"])
    noise = b"x <<hccl_tools " + NONCE.encode() + b" 1 AAAA>> y"
    assert ask.unframed(noise + framed(whole) + noise, NONCE, "10.0.0.1") == whole


def test_a_frame_of_another_run_is_not_ours():
    assert ask.unframed(answering.frame({"content": sixteen(), "lines": []}, "f" * 16), NONCE, "10.0.0.1") is None


def test_no_damaged_frame_is_taken_for_a_table():
    whole = framed(answer("10.0.0.1", sixteen()))
    for place in range(2, len(whole) - 1):
        assert ask.unframed(whole[:place] + b"ab" + whole[place:], NONCE, "10.0.0.1") is None


# ---- ssh -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("root@node1: Permission denied (publickey,password).", "ssh-copy-id HOST"),
        ("Host key verification failed.", "type ssh HOST once"),
        ("kex_exchange_identification: Connection closed by remote host", "raise MaxStartups"),
        ("ssh: connect to host node1 port 22: No route to host", ""),
    ],
)
def test_what_to_do_about_ssh_is_said(said, hint):
    (line,) = ask._about_silent({"node1": Ended(255, "", said)})
    assert said.replace("node1", "HOST") in line
    assert line.endswith("(exit 255)") if not hint else hint in line


@pytest.mark.parametrize("said", ["bash: cd: /x: No such file or directory", "/usr/bin/env: '/p': No such file"])
def test_a_host_without_the_project_is_told_so(said):
    (line,) = ask._about_silent({"node1": Ended(127, "", said)})
    assert (
        "; that host needs Python at " in line and "with this project in it or at " in line and sys.executable in line
    )


def versions(monkeypatch, **words):
    """The lines of ask.ask about hosts that answer with these words in the place of their version."""

    def run(hosts, call, seconds, news):
        nonce = answering.unpacked(call("n1").sent)["nonce"]
        frames = {
            name: {"content": name, "lines": [], **({} if version is None else {"version": version})}
            for name, version in words.items()
        }
        return {name: Ended(0, answering.frame(frame, nonce).decode(), "") for name, frame in frames.items()}

    monkeypatch.setattr(together, "run", run)
    answers, lines = ask.ask(asker(dict.fromkeys(words, "x")), ["hccl_tools.py"], lambda _name: None)
    return [answer.host for answer in answers], lines


def test_hosts_of_another_version_are_told_in_few_lines_and_not_believed(monkeypatch):
    own, other = elsewhere.own().words(), ["9.9.9", "b" * 64]
    hosts, lines = versions(monkeypatch, n1=other, n2=own, n3=other, n4=None, n5=["$(x)", {}], n6=[[1]])
    assert hosts == ["n2"]
    assert [line.partition(";")[0] for line in lines] == [
        "n[1,3]: another version of this project: 9.9.9",
        "n[4-6]: another version of this project: unknown",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("version", [None, ["9.9.9", "b" * 64], "x"])
def test_a_host_does_nothing_for_an_asker_of_another_version(root, version):
    asked = {
        "nonce": NONCE,
        "host": "n1",
        "question": ["/no/table", "text"],
        **({"version": version} if version else {}),
    }
    program = root / "hccl_tools" / "commands" / "place_table.py"
    words = [sys.executable, str(program), "--answer"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(answering.packed(asked) + b"\n")
        process.stdin.flush()
        said = process.stdout.read()  # its stdin ends after that: then it would end by SIGTERM
    assert ask.unframed(said, NONCE, "n1") == answer("n1").replace(version=elsewhere.own().words())


def test_another_program_than_ssh_gets_no_options_of_ssh():
    assert ssh.words(["rsh", "-k"], "node1", "true", listens=True) == ["rsh", "-k", "node1", "true"]


@pytest.mark.slow
def test_an_interrupt_ends_what_runs_on_the_hosts(hosts, root):
    for name in ("10.99.0.3", "10.99.0.2"):
        for device in range(8):
            hosts.card_fault(name, device, "hang")
    words = [sys.executable, str(root / "hccl_tools" / "hccl_tools.py"), "--hostfile", "hosts"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 20
    while len(children(process.pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    left = children(process.pid)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (130, "hccl_tools.py: interrupted\n")
    assert [pid for pid in left if os.path.exists(f"/proc/{pid}")] == []


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


@pytest.mark.parametrize("content", [b"[]", b'{"entry": 1}', b"[" * 9999, b"\xff", b"nothing"])
def test_a_frame_of_another_version_is_no_answer(content):
    for data in (base64.b64encode(zlib.compress(content)), base64.b64encode(content)):
        text = b"<<hccl_tools %s %d %s>>" % (NONCE.encode(), zlib.crc32(data), data)
        assert ask.unframed(text, NONCE, "node1") is None


@pytest.mark.parametrize("content", [{"0": {"odd": 1}}, ["x"], "xy", {"a": 1}, ["h", []], {"a": {}}])
def test_cards_that_another_version_describes_are_told_and_not_judged(monkeypatch, content):
    servers = [rank_table.Server("", "10.0.0.1", [], ["10.0.0.1"])]
    monkeypatch.setattr(ask, "ask", lambda *_: ([answer("10.0.0.1", content)], []))
    found, (line,) = cards_collect.of_all_hosts(asker({"10.0.0.1": "10.0.0.1"}), servers, False)
    assert found == {} and "has another version of this project; install the same version on all hosts" in line
