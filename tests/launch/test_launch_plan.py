"""Pieces of the plan; whole launches are in tests/scripts."""

import os
import socket

import pytest
from launching import request
from suite.cases import for_each

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import programs
from tools.config import config_file
from tools.launch import plan, planned, run_folder
from tools.launch.engines import ports, slurm
from tools.launch.engines.facts import Cluster, LocalFacts, MpirunFacts, OpenMpi, SrunFacts
from tools.launch.planned import Plan
from tools.launch.pods.pod_table import WatchedTable
from tools.launch.programs import trainer_command


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], []),
        (["-o", "a=1", "b=2"], ["a=1", "b=2"]),
        (["--opt", "a=1", "--x", "c=3"], ["a=1"]),
        (["x=1"], []),
        (["-o", "a=1", "-o", "b=2"], ["a=1", "b=2"]),
    ],
)
def test_overrides_are_what_follows_o_or_opt(arguments, found):
    assert trainer_command.settings(arguments) == found


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ([], ["-o", "system.device_target=CPU"]),
        (["--x"], ["--x", "-o", "system.device_target=CPU"]),
        (["-o", "a=1", "--x"], ["-o", "a=1", "system.device_target=CPU", "--x"]),
        (["-o", "a=1", "--x", "-o", "b=2"], ["-o", "a=1", "--x", "-o", "b=2", "system.device_target=CPU"]),
    ],
)
def test_the_target_joins_the_last_override(tmp_path, arguments, result):
    path = tmp_path / "c.yaml"
    path.write_text("system: {device_target: Ascend}\n")
    asked = request(*arguments, device_target="CPU", config=str(path))
    command = trainer_command.command("other.py", asked, config_file.load(str(path)), str(path), arguments)
    assert command[1:] == ["-u", "other.py", "--config", str(path), *result]


# ---- the scheduler's port --------------------------------------------------------------------------


@pytest.fixture
def unset(monkeypatch):
    monkeypatch.delenv("MS_SCHED_PORT", raising=False)


def test_no_server_can_listen_at_a_port_that_is_taken():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        assert ports.fault(holder.getsockname()[1]) == "Address already in use"


def test_the_schedulers_port_is_below_those_of_outgoing_connections(unset):
    assert all(10000 <= ports.free(seed) < 30000 for seed in (1, 4711, 4194304))


def test_a_schedulers_port_in_use_is_passed_over_and_if_no_port_is_free_the_launch_refused(unset, monkeypatch):
    first = ports.free(1)
    monkeypatch.setattr(ports, "fault", lambda port: "in use" if port == first else None)
    assert ports.free(1) == first + 1
    monkeypatch.setattr(ports, "fault", lambda port: "in use")
    with pytest.raises(Refusal, match="no free port on this host"):
        ports.free(1)


@pytest.mark.parametrize(("text", "port"), [("", None), ("1024", 1024), ("65535", 65535)])
def test_the_port_that_the_user_names(monkeypatch, text, port):
    monkeypatch.setenv("MS_SCHED_PORT", text)
    assert ports.named() == port


@pytest.mark.parametrize("text", ["1023", "65536", "x", " 2000"])
def test_what_is_not_a_port_is_refused(monkeypatch, text):
    monkeypatch.setenv("MS_SCHED_PORT", text)
    with pytest.raises(Refusal, match="is not a port; unset it, or set one of 1024 to 65535"):
        ports.named()


# ---- two launches at once, on hosts or in containers that share the folder for logs ---------------------


def test_a_run_folder_is_none_that_is_there(tmp_path, monkeypatch):
    moment = run_folder.time.gmtime(0)
    monkeypatch.setattr(run_folder.time, "gmtime", lambda: moment)
    for expected in ("run-19700101T000000Z-24", "run-19700101T000000Z-24-2", "run-19700101T000000Z-24-3"):
        path = run_folder.free_name(request(log_dir=str(tmp_path)))
        assert path == str(tmp_path / expected)
        run_folder.make(path)


def test_a_folder_that_another_host_makes_in_between_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plans = []

    def make(asked):
        empty = {"hosts": [], "sizes": [1], "engine": LocalFacts(), "cluster": Cluster(), "table": None, "about": "x"}
        empty.update(trainer=[], scheduler=[], exports={})
        plans.append(Plan(request=asked, run_dir=run_folder.free_name(asked), ranks=[(0, 0)], **empty))
        if len(plans) == 1:
            os.makedirs(plans[0].run_dir)  # the other host's
        return plans[-1]

    monkeypatch.setattr(plan, "make", make)
    assert plan.begin(request(device_target="CPU")) == plans[1]
    assert plans[1].run_dir == plans[0].run_dir + "-2"
    assert (tmp_path / "logs" / "latest" / "launch.json").exists()
    assert not os.listdir(plans[0].run_dir)


def test_a_folder_that_cannot_be_made_is_not_tried_again(tmp_path):
    (tmp_path / "logs").write_text("")
    with pytest.raises(OSError):
        run_folder.make(str(tmp_path / "logs" / "run"))


# ---- the words of the plan -----------------------------------------------------------------------------

GOOD = {
    **{
        "run_dir": "/runs/1",
        "ranks": [(0, 4)],
        "hosts": ["me@n1"],
        "sizes": [1],
        "engine": MpirunFacts(mpi=OpenMpi(version="4.1"), ranks=1, hosts=["me@n1:1"]),
        "cluster": Cluster(),
        "table": None,
        "about": "x",
    },
    **{"trainer": ["python", "-x\n\udcff"], "scheduler": ["python"], "exports": {"A": "b\x1bc"}},
}


@for_each(
    "field, value, words",
    [
        ("run_dir", "/a\0b", 'the run_dir "/a\\x00b" cannot be a word of the plan; it comes from --log_dir'),
        ("run_dir", "/a\ud800", "the run_dir"),
        ("run_dir", "", "the run_dir"),
        ("exports", {"A": "b\0trainer"}, "it comes from the environment of the ranks"),
        ("exports", {"A B": "c"}, "the export"),
        ("exports", {"A\0B": "c"}, "the export"),
        *(
            ("hosts", [name], "it comes from the hostfile")
            for name in ("", "-l", "a b", "a\n", "n\x1b[2J", "n\0", "\u202e")
        ),
        ("engine", GOOD["engine"].replace(hosts=["n1\0trainer\0/evil:8"]), 'the engine "hosts n1\\x00trainer'),
        ("engine", GOOD["engine"].replace(mpi=OpenMpi(version="4.1", ssh="a\0")), 'the engine "ssh a\\x00"'),
        ("engine", SrunFacts(nodes=["n1", "n2\0"], per_node=1, kill_wait=30), 'the engine "nodes n1,n2\\x00"'),
        ("cluster", Cluster(scheduler_node="n\0"), 'the engine "scheduler_node n\\x00"'),
        ("watched_table", WatchedTable(path="/a\0b", digest=""), 'the engine "watch_table /a\\x00b"'),
        ("restart", ["a\ud800"], "it comes from --restart_args"),
        ("lost", ["n1 \0"], "the lost"),
        ("trainer", ["a\0"], "the trainer"),
        ("scheduler", ["a\0"], "the scheduler"),
    ],
)
def test_a_word_that_no_command_can_hold_or_that_would_be_another_is_refused(field, value, words):
    planned.check(Plan(request=request(), **GOOD))
    with pytest.raises(Refusal, match="cannot be a word of the plan") as refusal:
        planned.check(Plan(request=request(), **{**GOOD, field: value}))
    assert refusal.value.status == 78
    assert words in refusal.value.lines[0]


def test_every_byte_but_nul_may_be_in_a_word_of_a_command():
    words = ["", "世界\n\t'\"$(id)\x1b[2J", *map(chr, range(1, 128)), *map(chr, range(0xDC80, 0xDD00))]
    exports = {"A": "".join(words), "B": ""}
    planned.check(Plan(request=request(), **{**GOOD, "trainer": words, "scheduler": words, "exports": exports}))


@pytest.mark.parametrize(
    ("nodes", "answer", "words"),
    [
        ("-x", "n1\n", "SLURM_JOB_NODELIST -x is not a list of nodes"),
        ("n[1-2]", "n1\n-oProxyCommand\n", "-oProxyCommand is neither a host's name"),
        ("n1", "n1\x1b[2J\n", "n1\\x1b[2J is neither a host's name"),
    ],
)
def test_names_of_nodes_are_names(monkeypatch, nodes, answer, words):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", nodes)
    monkeypatch.setattr(slurm.programs, "on_path", lambda _: True)
    monkeypatch.setattr(slurm.programs, "ask", lambda *_: programs.Ended(0, answer, ""))
    with pytest.raises(Refusal) as refusal:
        slurm.allocated_nodes()
    assert words in refusal.value.lines[0]
