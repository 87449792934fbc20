"""A trial around its jobs: lines of ranks that are taken, how a job has ended, advice, and what is printed."""

import json
import os
import shlex

import pytest
from suite.cases import for_each

from hccl_tools.common.refusal import Refusal
from tools.launch.devices import excluded
from tools.preflight import words
from tools.preflight.trial import command, jobs, judge, program, report, search, trial
from tools.preflight.trial import setting as settings
from tools.preflight.trial.judge import Figure
from tools.preflight.trial.search import Outcome

NUMBER = "5a" * 12


def line(**more):
    return json.dumps({"trial": NUMBER, "rank": 1, "device": 0, "measure": "join", "seconds": 1.5, **more})


def test_a_line_of_ours_is_taken_with_the_number_of_its_rank_in_front():
    assert jobs.take(f"[1] {line()}", NUMBER, 2) == jobs.Line(1, 0, "join", 1.5)
    assert jobs.take(line(peer=3), NUMBER, 2).peer == 3


@for_each(
    "text",
    [
        "loss is 1",
        line(trial="other"),
        line(trial="other", measured=NUMBER),
        line(rank=2),
        line(rank=-1),
        line(rank=True),
        line(rank="0"),
        line(device=None),
        line(measure="\x1b[2J"),
        line(measure="x"),
        line(measure=["join"]),
        line(seconds=-1),
        line(seconds="1"),
        line(seconds=float("inf")),
        line(seconds=float("nan")),
        line()[:-1],
        f"{NUMBER} and no object",
        f"[1, {json.dumps(NUMBER)}]",
        line(pad="x" * 2000),
        "{" * 900 + NUMBER,
    ],
)
def test_any_other_line_is_not(text):
    assert jobs.take(text, NUMBER, 2) is None


def setting(tmp_path, **more):
    base = {"starter": settings.MPIRUN, "target": "CPU", "number": NUMBER, "folder": str(tmp_path)}
    return settings.Setting(**{**base, "logins": {"a": "me@a", "b": "b"}, "slots": {"a": 1, "b": 1}, **more})


@pytest.fixture
def launched(monkeypatch, tmp_path):
    """Jobs whose launch is this test's; `commands` that ran."""

    class Launched:
        commands, status, output, record, stderr = [], 0, [], {}, ""

    made = Launched()
    made.commands = []

    def wait(command, folder, limit):
        made.commands.append(command)
        os.makedirs(f"{folder}/latest")
        for path, text in (("stdout.txt", "\n".join(made.output)), ("stderr.txt", made.stderr)):
            with open(f"{folder}/{path}", "w") as file:
                file.write(text)
        if made.record:
            with open(f"{folder}/latest/launch.json", "w") as file:
                json.dump(made.record, file)
        return made.status

    monkeypatch.setattr(jobs, "wait", wait)
    return made


RANKS = {"ranks": [{"rank": 0, "host": "a"}, {"rank": 1, "host": "b"}]}


def test_a_job_that_passes_has_the_figures_of_its_hosts(launched, tmp_path):
    launched.record = RANKS
    launched.output = [
        line(rank=rank, measure=name, **more)
        for rank in (0, 1)
        for name, more in (("join", {}), ("pair_0", {"peer": 1 - rank}), ("end", {}))
    ]
    outcome = jobs.Jobs(setting(tmp_path, data="/d", ssh="ssh -F x")).run(["a", "b"])
    assert outcome.passed
    assert [(each.host, each.measure, each.peer) for each in outcome.figures] == [
        ("a", "join", ""),
        ("a", "pair_0", "b"),
        ("b", "join", ""),
        ("b", "pair_0", "a"),
    ]
    words_ = launched.commands[0]
    with open(words_[words_.index("ssh -F x") + 1]) as file:
        assert file.read() == "me@a slots=1\nb slots=1\n"
    assert words_[words_.index("--data") + 1] == "/d" and words_[1].endswith("run_mpirun_2.sh")


def test_a_rank_that_ends_with_0_and_without_its_measures_has_failed(launched, tmp_path):
    launched.record, launched.output = RANKS, [line(rank=0, measure="end")]
    outcome = jobs.Jobs(setting(tmp_path)).run(["a", "b"])
    assert not outcome.passed and outcome.suspects == ["b"] and "rank 1 ended without all measures" in outcome.why


def test_a_failed_job_says_which_rank_and_why(launched, tmp_path):
    raised = {"exception": {"type": "RuntimeError", "message": "no \x1b[2J memory"}}
    outcome = {"first_failure": "1", "members": {"1": {"status": 7}}, "diagnosis": raised}
    launched.record, launched.status = {**RANKS, "outcome": outcome}, 7
    found = jobs.Jobs(setting(tmp_path)).run(["a", "b"])
    assert not found.passed and found.suspects == ["b"] and found.why.isprintable()
    assert found.why == "rank 1 ended with exit code 7: RuntimeError: no \\x1b[2J memory"


def test_at_the_end_of_its_time_those_are_suspect_that_are_behind(launched, tmp_path):
    launched.record, launched.status = RANKS, 124
    launched.output = [line(rank=0), line(rank=0, measure="matmul"), line(rank=1)]
    found = jobs.Jobs(setting(tmp_path)).run(["a", "b"])
    assert found.suspects == ["b"] and found.why.endswith("it did not end in 190 s; rank 1 stopped after join")
    launched.output = []
    assert jobs.Jobs(setting(tmp_path / "2")).run(["a", "b"]).suspects == []


@pytest.mark.parametrize("outcome", [None, [], {"first_failure": "99"}, {"first_failure": None, "members": 3}])
def test_a_launch_json_of_another_form_is_a_failure_without_a_host(launched, tmp_path, outcome):
    launched.record, launched.status = {**RANKS, "outcome": outcome}, 5
    found = jobs.Jobs(setting(tmp_path)).run(["a", "b"])
    assert (found.suspects, found.why) == ([], "the launch ended with exit code 5")


def test_a_launch_that_is_refused_ends_the_trial_with_its_words_and_later_is_a_failed_job(launched, tmp_path):
    launched.status, launched.stderr = 78, "run_mpirun_2.sh: b: no answer\n"
    trials = jobs.Jobs(setting(tmp_path))
    with pytest.raises(Refusal) as raised:
        trials.run(["a", "b"])
    assert raised.value.lines[-1] == "run_mpirun_2.sh: b: no answer"
    later = trials.run(["b"])
    assert not later.passed and "no answer" in later.why


def test_this_host_alone_is_launched_without_mpirun(launched, tmp_path):
    launched.status = 1
    here = {"starter": settings.HERE, "logins": {}}
    jobs.Jobs(setting(tmp_path, **here, slots={"a": 4})).run(["a"])
    jobs.Jobs(setting(tmp_path / "2", **here, slots={"a": 2}, devices="4,5")).run(["a"])
    first, second = launched.commands
    assert first[1].endswith("launch.sh") and first[first.index("-n") + 1] == "4" and "-n" not in second
    assert second[second.index("--devices") + 1] == "4,5"


def test_in_an_allocation_srun_starts_as_many_ranks_on_each_node_that_is_not_left_out(launched, tmp_path):
    launched.status = 1
    of_slurm = setting(tmp_path, starter=settings.SRUN, logins={}, slots=dict.fromkeys(["n1", "n2", "n3"], 4))
    trials = jobs.Jobs(of_slurm)
    for hosts in (["n1", "n2", "n3"], ["n2"]):
        trials.run(hosts)
    whole, one = launched.commands
    assert whole[1].endswith("run_slurm.sh") and "--exclude" not in whole and "-n" not in whole
    assert whole[whole.index("--ntasks_per_node") + 1] == "4"
    assert one[one.index("--exclude") + 1] == "n1,n3"


@pytest.mark.parametrize(
    ("variables", "devices", "ranks", "target"),
    [
        ({}, [None, None], 1, "CPU"),
        ({"SLURM_TASKS_PER_NODE": "2(x2)"}, [None, None], 2, "CPU"),
        ({"SLURM_TASKS_PER_NODE": "2,1"}, [None, None], 1, "CPU"),
        ({"SLURM_TASKS_PER_NODE": "1(x2)"}, ["0-7", "0-6"], 7, "Ascend"),
        ({"SLURM_NTASKS_PER_NODE": "4"}, ["0-7", "0-7"], 4, "Ascend"),
        ({"SLURM_TASKS_PER_NODE": "3(x2)"}, ["0-7", "\x1b"], 3, "CPU"),
    ],
)
def test_a_node_has_the_ranks_of_the_allocation_or_one_for_each_npu(
    variables, devices, ranks, target, tmp_path, monkeypatch
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    facts = {f"n{at}": {"devices": each} for at, each in enumerate(devices)}
    wanted = command.Wanted(hosts=list(facts), logins={}, slots={}, log_dir=str(tmp_path), slurm=True)
    chosen = command.setting(wanted, facts)
    assert (chosen.starter, chosen.slots, chosen.target) == (settings.SRUN, dict.fromkeys(facts, ranks), target)


def test_a_launch_has_our_environment_but_for_what_belongs_to_other_launches(tmp_path, monkeypatch):
    monkeypatch.setenv("MSLAUNCH_OPTIONS", "--exclude 3")
    monkeypatch.setenv("RANK_TABLE_FILE", "/t.json")
    monkeypatch.setenv("MINE", "a b")
    monkeypatch.setenv("PYTHONPATH", "near:/far")
    monkeypatch.chdir(tmp_path)
    names = "${MSLAUNCH_OPTIONS-}/${RANK_TABLE_FILE-}/$MINE/$PYTHONPATH/$PWD"
    command_ = ["bash", "-c", f'echo "{names}"; echo why >&2; exit 5']
    assert jobs.wait(command_, str(tmp_path), 60) == 5
    assert (tmp_path / "stdout.txt").read_text() == f"//a b/{tmp_path}/near:/far//\n" and (
        tmp_path / "stderr.txt"
    ).read_text() == "why\n"


def test_the_advice_is_what_excludes_and_quotes():
    found = trial.advice_of(["node1", "node2"], {"node4": [3, 5]}, {"node1": 2, "node2": 2}, 1.8e9)
    texts = {each.kind: each.text for each in found}
    assert texts["exclude"] == "--exclude node1@node2@node4:3,5"
    parts = excluded.parse(shlex.split(texts["exclude"])[1])
    merged = {}
    for host, devices in parts:
        merged[host] = merged.get(host, frozenset()) | devices
    assert merged == {"node1": frozenset(), "node2": frozenset(), "node4": frozenset({3, 5})}
    assert shlex.split(texts["slurm"])[2] == "nodename=node[1-2]" and len(shlex.split(texts["slurm"])) == 5
    assert texts["kubernetes"] == "kubectl cordon node1 node2"
    assert trial.advice_of([], {}, {}, 0) == []


def test_slurm_gets_its_nodes_whole_and_no_other_system_a_word(tmp_path):
    found = {each.kind: each.text for each in trial.for_slurm(["n1", "n2", "n4"])}
    assert found["exclude"] == "--exclude n1,n2,n4" and list(found) == ["exclude", "sbatch", "slurm"]
    assert shlex.split(found["sbatch"]) == ["--exclude=n[1-2,4]"]
    assert shlex.split(found["slurm"])[:4] == ["scontrol", "update", "nodename=n[1-2,4]", "state=drain"]
    assert trial.for_slurm([]) == []


def test_the_config_map_has_the_form_of_the_manual():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(trial.config_map({"n1": [0, 1]}, 1.8e9))
    assert found["metadata"]["labels"] == {"mc-consumer-publicfault": "true"}
    message = json.loads(found["data"]["PublicFault"])
    assert len(str(message["timestamp"])) == 13 and 8 <= len(message["id"]) <= 128
    fault = message["faults"][0]
    assert fault["influence"] == [{"nodeName": "n1", "deviceIds": [0, 1]}] and len(fault["faultCode"]) == 9
    many = yaml.safe_load(trial.config_map({f"N{at}": range(64) for at in range(1024)}, 1.8e9))
    influence = json.loads(many["data"]["PublicFault"])["faults"][0]["influence"]
    assert len(influence) == 1000 and influence[0] == {"nodeName": "n0", "deviceIds": list(range(32))}


SLOW = judge.Slow(("b",), (), "matmul", 0.03, 0.01)


def job(seconds, passed=True):
    ran = []

    def run(hosts):
        ran.append(hosts)
        return Outcome(passed=passed, figures=[Figure(0, "b", 0, "matmul", seconds)])

    return run, ran


def test_what_is_not_slow_again_beside_a_good_host_is_left_out():
    run, ran = job(0.03)
    assert trial.confirmed([SLOW], ["a", "b", "c"], run) == [SLOW] and ran == [("b", "a")]
    assert trial.confirmed([SLOW], ["a", "b"], job(0.011)[0]) == []
    assert trial.confirmed([SLOW], ["a", "b"], job(0.011, passed=False)[0]) == [SLOW]
    assert trial.confirmed([SLOW._replace(devices=(1,))], ["b"], job(0.01)[0]) == []
    assert trial.confirmed([], ["a", "b"], None) == []


def test_only_a_few_slow_hosts_get_a_job_of_their_own():
    run, ran = job(0.001)
    many = [SLOW._replace(hosts=(f"n{at}",)) for at in range(9)]
    assert len(trial.confirmed(many, [f"n{at}" for at in range(20)], run)) == 5 and len(ran) == 4


def result(**more):
    base = {"faults": [], "left": ["a", "b"], "outcome": Outcome(passed=True), "jobs": 3}
    found = search.Found(**{**base, **more})
    return trial.Result(ranks=2, seconds=1.0, jobs=3, found=found, figures=(), slow=[])


def said(found, hosts=("a", "b", "c")):
    differences = report.differences(found, list(hosts))
    both = words.Found(hosts=list(hosts), differences=differences, trial=found)
    return words.page(both, False), words.verdict(both)


def test_faults_stop_the_job_and_name_the_evidence():
    outcome = Outcome(passed=False, why="rank 0 ended with exit code 1", log="logs/x")
    text, verdict = said(result(faults=[search.Fault(hosts=("c",), outcome=outcome, paired="a")]))
    assert verdict == "blocks" and "  c: a job on c" not in text
    assert "  c: a job on it and a fails, jobs without it pass: rank 0 ended with exit code 1\n" in text
    assert "    -> the logs are in logs/x\n" in text
    text, _ = said(result(faults=[search.Fault(hosts=("b", "c"), outcome=outcome)]))
    assert "  b, c: a job on these hosts together fails, on fewer of them it passes: rank 0" in text


def test_a_common_cause_and_an_early_end_are_one_line():
    outcome = Outcome(passed=False, why="x", log="l")
    faults = [search.Fault(hosts=(host,), outcome=outcome) for host in "abc"]
    text, verdict = said(result(faults=faults, common=True, left=(), outcome=outcome))
    assert (
        verdict == "blocks" and text.count("\n  ") == 2 and "none of 3 jobs on several of these hosts passed: x" in text
    )
    text, _ = said(result(faults=faults[:1], unknown=["b", "c"], left=(), outcome=outcome))
    assert "more may fail among these hosts" in text and "a job on it alone fails" in text


def test_what_is_slow_slows_the_job():
    text, verdict = said(result().replace(slow=[SLOW, SLOW._replace(devices=(1, 2))]))
    assert verdict == "differs" and "This slows it:\n  b: matmul took 30 ms, 3.0 times the usual 10 ms\n" in text
    assert "  b: devices 1,2; matmul took" in text


def test_nothing_starts_while_something_stops_the_job(tmp_path):
    found = words.Found(hosts=["a"], differences=[], silent=["a"])
    wanted = command.Wanted(hosts=["a"], logins={}, slots={}, log_dir=str(tmp_path / "logs"))
    lines_ = []
    assert command.added(found, wanted, lines_.append) is found
    assert not (tmp_path / "logs").exists() and "does not start" in lines_[0]


def test_hosts_without_mpirun_and_a_folder_that_cannot_be_made_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    wanted = command.Wanted(hosts=["a"], logins={}, slots={"a": 3}, log_dir=str(tmp_path / "file"))
    with pytest.raises(Refusal, match="log_dir") as _:
        command.setting(wanted, {})
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Refusal, match="mpirun"):
        command.setting(wanted.replace(logins={"a": "a"}), {})
    chosen = command.setting(wanted.replace(log_dir=str(tmp_path / "logs"), slots={}), {})
    assert chosen.slots == {"a": 2} and os.path.isdir(chosen.folder)


def test_the_program_works_in_a_folder_of_its_own_and_repeats_its_measures_at_the_end(tmp_path, monkeypatch, capsys):
    (tmp_path / "data").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "_join", lambda target, device: 1)
    monkeypatch.setattr(program, "_multiply", lambda teller: open("written", "w").close())
    assert program.main(["--trial", NUMBER, "--target", "CPU", "--data", f"{tmp_path}/data"]) == 0
    told = [json.loads(text)["measure"] for text in capsys.readouterr().out.splitlines()]
    assert told == ["join", "read", "end"] * 2 and os.listdir(tmp_path) == ["data"]


def test_the_files_of_the_data_are_read_in_one_order_and_no_further(tmp_path, monkeypatch, capsys):
    (tmp_path / "b").write_bytes(b"x" * 700)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "c").write_bytes(b"x" * 700)
    monkeypatch.setenv("RANK_ID", "1")
    program.read(program.Teller(NUMBER), str(tmp_path), 1000)
    told = json.loads(capsys.readouterr().out)
    assert (told["measure"], told["bytes"], told["rank"]) == ("read", 1000, 1)
    program.read(program.Teller(NUMBER), str(tmp_path / "b"), 1000)
    assert json.loads(capsys.readouterr().out)["bytes"] == 700
