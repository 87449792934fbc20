"""The command: which hosts it asks, what it refuses, and what it prints of hosts that are simulated."""

import json
import os
import socket

import good_tables
import jsonschema
import pytest
from healthy_hosts import HEALTHY

from hccl_tools.common import project
from hccl_tools.hosts import ask
from hccl_tools.hosts.ask import Answer
from hccl_tools.machine import addresses
from tools.preflight import main
from tools.preflight.trial import search, trial
from tools.preflight.trial.judge import Figure
from tools.preflight.trial.search import Outcome


class Asked:
    """Hosts that answer in this process: `facts` by host, or no answer; `questions` that came."""

    def __init__(self):
        self.facts, self.silent, self.questions, self.addresses, self.links = {}, {}, {}, {}, {}

    def ask(self, asker, words, question, seconds):
        assert words == [project.path("tools", "preflight", "probe.py")] and seconds < 60
        self.questions = {name: question(name) for name in asker.logins}
        json.dumps(self.questions)
        found = [
            Answer(host=name, content=self.content(name), lines=[]) for name in asker.logins if name not in self.silent
        ]
        return json_like(found), [f"{name}: {self.silent[name]}" for name in asker.logins if name in self.silent]

    def content(self, name):
        return {"facts": {**HEALTHY, **self.facts.get(name, {})}, "failed": {}, "links": self.links.get(name)}


def json_like(found):
    return [each.replace(content=json.loads(json.dumps(each.content))) for each in found]


@pytest.fixture
def hosts(monkeypatch, world):
    found = Asked()
    monkeypatch.setattr(ask, "ask", found.ask)
    monkeypatch.setattr(addresses, "of", lambda names: {name: found.addresses.get(name) for name in names})
    return found


@pytest.fixture
def check(hosts, in_process):
    return lambda *words: in_process(main.main, *words)


def test_hosts_that_are_alike_are_one_line_and_exit_0(check, hosts):
    assert check("-H", "node[1-16]:8") == (0, "16 hosts agree; nothing blocks\n", "")
    first = hosts.questions["node3"]
    assert (first["host"], first["hosts"], first["first"], first["slots"]) == ("node3", 16, "node1", 8)


def test_differences_are_exit_1_and_what_stops_the_job_is_exit_78(check, hosts):
    hosts.facts["b"] = {"kernel": "6.6"}
    status, out, err = check("-H", "a,b,c")
    assert (status, err) == (1, "")
    assert out == (
        "This may surprise:\n  b: kernel 6.6; the other 2 hosts: 5.10.0-60\n"
        "3 hosts, 1 finding: 1 surprising; nothing blocks\n"
    )
    hosts.facts["c"] = {"mindspore": None}
    status, out, err = check("-H", "a,b,c")
    assert status == 78 and out.startswith("This stops the job:\n  c: no MindSpore; the other 2 hosts: 2.6.0\n    -> ")


def test_a_host_that_does_not_answer_stops_the_job_and_is_named_with_the_reason(check, hosts):
    hosts.silent["b"] = "no answer; it printed nothing (exit 255)"
    status, out, _ = check("-H", "a,b")
    assert status == 78 and "  b: no answer; it printed nothing (exit 255)\n" in out
    document = json.loads(check("-H", "a,b", "--json")[1])
    assert (document["verdict"], document["silent"]) == ("blocks", ["b"])


def test_an_answer_of_another_form_is_a_host_without_an_answer(check, hosts, monkeypatch):
    monkeypatch.setattr(ask, "ask", lambda *_: ([Answer(host="a", content=[1], lines=[])], []))
    status, out, _ = check("-H", "a,b")
    assert status == 78 and "a: its answer cannot be read" in out


def test_the_document_fits_the_schema(check, hosts):
    hosts.facts["b"] = {"mindspore": None, "held": ["0: python"], "cpus": 2, "package:numpy": "2"}
    with open(project.path("schemas", "preflight.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    status, out, _ = check("-H", "a,b,c", "--json")
    jsonschema.validate(json.loads(out), schema)
    assert (status, out.isascii()) == (78, True)


def test_a_trial_adds_to_the_findings_and_its_document_fits_the_schema(check, hosts, monkeypatch):
    outcome = Outcome(passed=False, why="rank 0 ended with exit code 1", log="logs/x")
    fault = search.Fault(hosts=("b",), outcome=outcome, paired="a")
    found = search.Found(faults=[fault], left=["a"], outcome=Outcome(passed=True), jobs=4)
    figures = [Figure(0, "a", 0, "join", 1.5), Figure(0, "a", 0, "pair_0", 0.1, "c")]
    advised = [trial.Advice("exclude", "for the launch", "--exclude b")]
    made = []

    def run(setting):
        made.append(setting)
        return trial.Result(ranks=9, seconds=1.5, jobs=4, found=found, figures=figures, slow=[], advice=advised)

    monkeypatch.setattr(trial, "run", run)
    monkeypatch.setattr("hccl_tools.machine.programs.on_path", lambda name: name == "mpirun")
    status, out, err = check("-H", "a:2,me@b", "--trial", "--json", "--data", "d", "--ssh", "ssh -F x")
    assert status == 78 and "the trial starts 10 ranks on 2 hosts: " in err
    told = json.loads(out)
    with open(project.path("schemas", "preflight.schema.json"), encoding="utf-8") as file:
        jsonschema.validate(told, json.load(file))
    assert told["differences"][0]["fact"] == "trial:failed" and told["trial"]["figures"][1]["peer"] == "c"
    assert (dict(made[0].logins), made[0].slots) == ({"a": "a", "b": "me@b"}, {"a": 2, "b": 8})
    assert (made[0].ssh, os.path.basename(made[0].data), made[0].target) == ("ssh -F x", "d", "Ascend")
    hosts.silent["b"] = "no answer"
    assert check("-H", "a,b", "--trial")[0] == 78 and len(made) == 1


def test_a_rank_table_alone_names_the_hosts_and_asks_each_about_its_part(check, hosts, table, world):
    (world / "t.json").write_text(json.dumps(table(2, 2)))
    assert check("t.json")[0] == 0
    assert list(hosts.questions) == ["10.0.0.1", "10.0.0.2"]
    second = hosts.questions["10.0.0.2"]
    assert second["first"] == "10.0.0.1" and second["place"]["names"] == ["10.0.0.2"]
    assert list(second["place"]["devices"]) == ["0", "1"] and second["table"][0] == str(world / "t.json")


def test_a_table_of_version_2_0_needs_the_hosts_of_its_ranks(check, hosts, world):
    (world / "t.json").write_text(json.dumps(good_tables.hosts_of_950(0, 1, size=2)))
    status, out, err = check("t.json")
    assert (status, out, hosts.questions) == (78, "", {})
    assert "which does not say on which hosts its ranks are; name them in the order of the ranks: -H node1:8" in err
    status, _, err = check("-H", "10.0.0.1:2,10.0.0.2:1", "t.json")
    assert status == 78 and "-H: t.json has 4 ranks, the hosts have room for 3" in err and not hosts.questions
    assert check("-H", "10.0.0.1:2,10.0.0.2:2", "t.json")[0] == 0
    second = hosts.questions["10.0.0.2"]
    assert second["first"] == "10.0.0.1"
    assert second["place"] == {"names": ["10.0.0.2"], "devices": {"0": None, "1": None}}
    (world / "t.json").write_text(json.dumps({**good_tables.hosts_of_950(0, 1, size=2), "rank_count": 5}))
    assert "[count-mismatch]" in check("-H", "10.0.0.1:2,10.0.0.2:2", "t.json")[2]


def test_hosts_that_the_table_does_not_have_stop_the_job(check, hosts, table, world):
    (world / "t.json").write_text(json.dumps(table(2, 2)))
    status, out, _ = check("-H", "10.0.0.1,10.9.9.9", "t.json")
    assert status == 78
    assert "  10.9.9.9: the rank table does not have this host\n" in out
    assert "  10.0.0.2: this server of the rank table is not among the hosts\n" in out


def test_a_bad_table_is_refused_before_anybody_is_asked(check, hosts, table, world):
    (world / "t.json").write_text(json.dumps(table(2, 2, edits={"/server_list/1/device/0/rank_id": "0"})))
    status, out, err = check("t.json")
    assert (status, out, hosts.questions) == (78, "", {}) and "[" in err


def test_a_table_whose_servers_have_no_address_needs_a_list_of_hosts(check, hosts, table, world):
    (world / "t.json").write_text(json.dumps(table(2, edits={"/server_list/0/server_id": "-x y"})))
    status, _, err = check("t.json")
    assert status == 2 and "name the hosts by -H or --hostfile" in err and not hosts.questions


def test_hosts_with_addresses_connect_to_one_another_and_broken_links_are_differences(check, hosts):
    hosts.addresses = {name: f"10.0.0.{number}" for number, name in enumerate("abc", 1)}
    well = {"busy": {}, "passing": [], "here": True, "began": 1.0, "ended": 2.0, "interfaces": {}}
    for name in "abc":
        others = [other for other in "abc" if other != name]
        status = {other: "timeout" if other == "c" else "ok" for other in others}
        hosts.links[name] = {**well, "links": [[o, port, status[o], {}] for o in others for port in (60000, 60015)]}
    status, out, _ = check("-H", "a,b,c,only-for-ssh")
    assert status == 78 and "\n  c: " in out and out.count("\n  ") == 2, out
    assert hosts.questions["only-for-ssh"]["links"] is None
    assert [each[:2] for each in hosts.questions["a"]["links"]["connects"]][0] == ["b", "10.0.0.2"]


def test_links_of_another_form_are_one_surprise(check, hosts):
    hosts.addresses = {"a": "10.0.0.1", "b": "10.0.0.2"}
    hosts.links = {"a": {"links": "\x1b[2J"}, "b": [1]}
    status, out, _ = check("-H", "a,b")
    assert (
        status == 1 and "its answer about the links has another format" in out and out.replace("\n", "").isprintable()
    )


def test_without_hosts_it_looks_at_this_one(check, hosts):
    assert check() == (0, f"{socket.gethostname()}: nothing blocks\n", "")
    assert list(hosts.questions) == [socket.gethostname()]


def test_program_config_data_and_devices_go_into_the_question(check, hosts, world, monkeypatch):
    (world / "train.py").write_text("import numpy\n")
    (world / "c.yaml").write_text("a: 1\n")
    monkeypatch.setenv("MS_SCHED_PORT", "8118")
    monkeypatch.setenv("HCCL_CONNECT_TIMEOUT", "600")
    words = ["--train_script", "train.py", "--config", "c.yaml", "--data", "d", "--devices", "[0,2)", "--log_dir", "l"]
    check("-H", "a,b", *words)
    one = hosts.questions["b"]
    assert sorted(one["files"]) == [f"{world}/c.yaml", f"{world}/train.py"] and one["modules"] == ["numpy"]
    assert (one["data"], one["devices"], one["ports"]) == (f"{world}/d", [0, 1], [8118])
    assert (one["log_dir"], one["folder"], one["set_here"]) == (
        f"{world}/l",
        str(world),
        ["HCCL_CONNECT_TIMEOUT", "MS_SCHED_PORT"],
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-H", "a", "--hostfile", "x"], "leave out one of them"),
        (["--hostfile", "none"], "none cannot be read"),
        (["-H", "-oProxyCommand=x"], "-H"),
        (["-H", ""], "--hosts is empty"),
        (["-H", "a;b"], "-H: "),
        (["-H", "a", "--train_script", "no.py"], "no.py cannot be read"),
        (["-H", "a", "--devices", "x"], "--devices"),
        (["--data="], "--data is empty"),
        (["none.json"], "none.json cannot be read"),
        (["--no_such_option"], "unrecognized arguments"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_exit_2(check, hosts, words, said):
    status, out, err = check(*words)
    assert (status, out, hosts.questions) == (2, "", {}) and said in err


def test_another_language_says_the_same(check, hosts, monkeypatch):
    from hccl_tools.common import language

    hosts.facts["b"] = {"cpus": 4}
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    language.use("zh")
    try:
        status, out, _ = check("-H", "a,b,c")
    finally:
        monkeypatch.setenv("LAUNCH_LANG", "en")
        language.use("en")
    assert status == 1 and out.startswith("会使任务变慢：\n  b：4 个处理器；其余 2 个主机：192\n")


@pytest.mark.slow
def test_this_host_really_answers(run):
    """The one test here that asks a probe: whatever this machine lacks, there is a verdict and no traceback."""
    ended = run("tools/preflight/main.py", "--json")
    assert ended.stderr == "" and ended.returncode in (0, 1, 78)
    document = json.loads(ended.stdout)
    assert (document["hosts"], document["silent"], document["reasons"]) == (1, [], [])
