"""What the page of a run says first: who failed, why, what to do; and why each attempt ended."""

import html
import json
import os
import re

import pytest

from tools.diagnosis import hang, main
from tools.logs import known_failures, remedies
from tools.pages import example_states
from tools.progress import lines
from tools.run_page import attempts, document, explained, hosts, named, reading

MEMBERS = {str(rank): {"status": 0, "seconds": 60.0, "pid": 1} for rank in range(2)}
END = {"ended": "2026-01-31T12:01:02Z", "exit": 0, "first_failure": None, "stopped_by": None, "members": MEMBERS}
FAILED = {**END, "exit": 1, "first_failure": "1"}
PLAN = {
    **{"script": "ascend2p.sh", "started": "2026-01-31T12:00:00Z", "host": "elsewhere", "folder": "/home/user"},
    **{"device_target": "CPU", "run_dir": "x", "exports": {}, "trainer": ["python", "train.py"]},
    "ranks": [{"rank": rank, "device": rank, "log": f"rank_{rank}.log"} for rank in range(2)],
}
OUT_OF_MEMORY = "RuntimeError: Malloc for kernel input failed, Memory isn't enough"


def traceback(last):
    return f'Traceback (most recent call last):\n  File "train.py", line 8, in main\n    step()\n{last}\n'


@pytest.fixture
def run(tmp_path):
    """run(outcome, {path: text}, **changes): the data of a run with these files."""

    def make(outcome, files=None, **changes):
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        document = {**PLAN, **changes, **({"outcome": outcome} if outcome else {})}
        (folder / "launch.json").write_text(json.dumps(document))
        for name, text in (files or {"rank_0.log": "", "rank_1.log": ""}).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        return reading.read(str(folder), [])

    return make


def states(name, above):
    return [reading.read(folder, lines.load({})) for folder in example_states.make(name, str(above))]


# ---- why an attempt ended --------------------------------------------------------------------------------------------

SAVED = {"seconds": 0.8, "epoch": 3, "step": 5, "saved": [0, 1], "not_saved": []}


def test_a_run_that_was_asked_to_end_says_how_to_go_on(run):
    page = document.of_runs([run({**END, "exit": 143, "stopped_by": "SIGTERM", "asked": SAVED})])
    assert "Asked to end (SIGTERM) at step 5 of epoch 3, saved" in page
    assert "he same command with --resume=" in page
    page = document.of_runs([run({**END, "exit": 143, "stopped_by": "SIGTERM", "asked": {**SAVED, "not_saved": [1]}})])
    assert "--resume=" not in page


def test_each_attempt_says_why_it_ended(tmp_path):
    (data,) = states("restarted", tmp_path)
    assert [attempts.why(data, number) for number in range(2)] == [
        "rank 5 (host node2, device 1) failed first: the network needs more memory than the device has",
        "ended well",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stopped_by": "SIGTERM", "exit": 143}, "the launcher got SIGTERM, and stopped the ranks"),
        ({"stopped_by": "timeout", "exit": 124}, "the time limit of --timeout was reached"),
        ({"stopped_by": "stop_before", "exit": 124}, "the time of --stop_before was reached"),
        ({"stopped_by": "SIGUSR1", "asked": SAVED}, "asked to end (SIGUSR1) at step 5 of epoch 3, saved"),
        ({"stopped_by": "SIGUSR1", "asked": {**SAVED, "saved": []}}, "the launcher got SIGUSR1, and stopped the ranks"),
        ({"stopped_by": "hang", "exit": 124}, "the job hung: no rank wrote to its log, and no stack is known"),
        ({"stopped_by": "node7", "exit": 1}, "node7 ended the job"),
        ({"lost_host": "node7", "exit": 1}, "the host node7 was lost"),
        ({"exit": 3}, "ended with exit code 3"),
        ({"exit": None}, "its end is not known"),
        ({"first_failure": "mpirun", "exit": 1}, "mpirun failed: exit status None"),
        ({"first_failure": "../../x", "exit": 1}, "../../x failed: exit status None"),
    ],
)
def test_what_else_ends_an_attempt(run, changes, said):
    assert attempts.why(run({**END, **changes}), 0) == said


def test_a_line_before_the_exception_is_not_its_cause(run):
    """A rank may go on after a line that is a known failure: that does not explain its end."""
    data = run(FAILED, {"rank_1.log": f"{OUT_OF_MEMORY}\nbut it goes on\n{traceback('OddError: no nail')}"})
    found = explained.of(data, 0)
    assert attempts.why(data, 0) == "rank 1 (device 1) failed first: OddError: no nail"
    assert found.cause is None and [one.sure for one in found.known] == [False]


def test_an_error_of_a_wait_is_a_guess(run):
    data = run(FAILED, {"rank_1.log": traceback("RuntimeError: EI0006: Getting socket times out")})
    assert explained.of(data, 0).certainty == "guess"


def test_an_attempt_has_the_plan_that_it_had(run):
    """After the loss of a host the ranks are elsewhere; who failed before was on the old one."""
    first = {**FAILED, "logs": "."}
    before = [{**row, "host": "old"} for row in PLAN["ranks"]]
    files = {"rank_1.log": traceback("OddError: x"), "restart_1/rank_1.log": ""}
    now = [{**row, "host": "new"} for row in PLAN["ranks"]]
    last = {**END, "logs": "restart_1", "attempts": [first]}
    data = run(last, files, ranks=now, earlier_plans=[{"until": 0, "ranks": before}])
    assert attempts.why(data, 0) == "rank 1 (host old, device 1) failed first: OddError: x"


# ---- what to do ------------------------------------------------------------------------------------------------------

REMEDY = 'see it with "npu-smi info"; check with "npu-smi info" (or nvidia-smi; not both); lower batch_size'


@pytest.mark.parametrize(("target", "steps"), [("CPU", [2]), ("GPU", [1, 2]), ("Ascend", [0, 1, 2]), (None, [0, 1, 2])])
def test_a_step_with_tools_of_other_hardware_is_left_out(target, steps):
    every = remedies.steps(REMEDY)
    assert len(every) == 3
    assert remedies.steps_for(REMEDY, target) == [every[number] for number in steps]


def test_steps_that_are_all_for_other_hardware():
    assert remedies.for_target('run "nvidia-smi"', "Ascend") == 'run "nvidia-smi"'
    assert remedies.for_target('run "nvidia-smi"', "CPU") == ""


def test_the_steps_of_a_chinese_remedy():
    assert remedies.for_target("用 npu-smi 查看；调小 batch_size；重试", "CPU") == "调小 batch_size；重试"


def test_the_terminal_gives_the_same_steps(run, capsys):
    for target, shown in (("CPU", False), ("Ascend", True)):
        data = run(FAILED, {"rank_1.log": traceback(OUT_OF_MEMORY)}, device_target=target)
        assert main.explain_run(data.folder, known_failures.load(), 0) == 0
        assert main.explain_run(data.folder, known_failures.load(), 0, as_json=True) == 0
        out = capsys.readouterr().out
        assert out.count("lower batch_size") == 3 and ("npu-smi" in out) == shown, target


def test_every_known_failure_of_a_cpu_has_steps_without_tools_of_npus():
    entries, _ = known_failures.load()
    for entry in entries:
        for text in (entry.remedy, entry.zh[1] if entry.zh else ""):
            assert not re.search("npu-smi|nvidia-smi|hccn_tool", remedies.for_target(text, "CPU")), entry.code
            assert remedies.for_target(text, "Ascend" if "Ascend" in entry.targets else "GPU"), entry.code


# ---- the head of the page --------------------------------------------------------------------------------------------


def head(data):
    """The text of the head of the page, and its h1."""
    text = document.of_runs([data])
    found = re.search(r"(?s)<header.*?</header>", text)[0]
    h1 = re.search(r"(?s)<h1>(.*?)</h1>", found)[1]
    return [html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", one))).strip() for one in (found, h1)]


@pytest.mark.slow
def test_a_failure_is_which_rank_why_and_what_to_do(tmp_path):
    (data,) = states("failed", tmp_path)
    text, h1 = head(data)
    assert h1 == "Rank 5 (host node2, device 1) failed first: the network needs more memory than the device has"
    order = [
        *(
            "exit 1",
            h1,
            "The last step in its log is 399 (epoch 10); it ended 0:00:54 after its start",
            "How sure: likely",
        ),
        *(
            "RuntimeError: Malloc for kernel",
            "raised at",
            "What to do",
            "Lower batch_size",
            "code: out-of-device-memory",
        ),
        "started (UTC)",
    ]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    page = document.of_runs([data])
    assert page.count("RuntimeError: Malloc for kernel input failed") == 2  # here, and where the log ends
    assert "<mark>RuntimeError: Malloc" in page and "<h3>out-of-device-memory" not in page


def test_a_hang_is_which_ranks_and_where(tmp_path):
    (data,) = states("hang", tmp_path)
    text, h1 = head(data)
    assert h1 == "The job hung: most ranks were in step (train.py:88), but rank 6 in __getitem__ (data.py:31)"
    assert "What to do Look at rank 6 first: the others may only have waited" in text


def test_a_good_run_is_one_line(tmp_path):
    (data,) = states("good", tmp_path)
    text, h1 = head(data)
    assert re.fullmatch(r"Ended well: last loss 0\.\d+, accuracy \d\d\.\d+ %", h1)
    assert "What to do" not in text and text.count("last loss") == 1


@pytest.mark.slow
def test_a_good_run_names_the_ranks_that_differ(tmp_path):
    (data,) = states("straggler", tmp_path)
    text, h1 = head(data)
    assert h1.startswith("Ended well") and "rank 41: " in text and "rank 7: " in text


@pytest.mark.slow
def test_a_restarted_run_says_why_it_was(tmp_path):
    (data,) = states("restarted", tmp_path)
    text, h1 = head(data)
    assert h1.startswith("Ended well, after 1 restart: last loss")
    assert "Attempt 1: rank 5 (host node2, device 1) failed first: the network needs more memory" in text
    page = document.of_runs([data])
    rows = re.findall(r'<td data-label="(?:steps|exit code)">(.*?)</td>', page)
    assert rows == ["1 – 199", "1", "181 – 399", "0"]
    times = re.findall(r'<td data-label="from – to">(.*?)</td>', page)
    assert times == ["0:00:00 – 0:00:38", "0:00:40 – 0:01:17"]


@pytest.mark.parametrize(
    ("outcome", "changes", "said"),
    [
        (None, {}, "The launcher was killed: how the ranks ended is not known"),
        (None, {"host": "elsewhere"}, "The run still goes on"),
        ({**END, "exit": 143, "stopped_by": "SIGTERM"}, {}, "The launcher got SIGTERM, and stopped the ranks"),
        ({**END, "exit": 3}, {}, "Ended with exit code 3"),
        ({**END, "exit": "x"}, {}, "Its end is not known"),
        ({**FAILED, "members": {"1": {"status": 9}}}, {}, "Rank 1 (device 1) failed first: exit status 9"),
    ],
)
def test_other_ends(run, outcome, changes, said):
    assert head(run(outcome, **{"host": os.uname().nodename, **changes}))[1] == said


def test_a_cause_that_is_not_sure_is_not_the_answer(run):
    data = run(FAILED, {"rank_1.log": f"{OUT_OF_MEMORY}\nbut it goes on\n{traceback('OddError: no nail')}"})
    text, h1 = head(data)
    assert h1.endswith("failed first: OddError: no nail") and "memory" not in text
    assert "diagnose" in text  # what to do, where no cause is known
    page = document.of_runs([data])
    assert "<h3>The network needs more memory than the device has</h3>" in page
    assert "the rank may have failed for another reason" in page


def test_the_root_is_the_answer_and_its_cause_is_told(run):
    root = {"sentence": "rank 0 failed first in truth", "certainty": "sure", "why": "because", "ranks": [0], "next": []}
    faults = [{"code": "odd", "rank": rank, "cause": f"cause {rank}", "remedy": "r", "line": "x"} for rank in (0, 1)]
    faults[1]["code"] = "other"
    said = {"exception": None, "matches": [], "root": root, "faults": faults}
    text, h1 = head(run({**FAILED, "diagnosis": said}))
    assert h1 == "Rank 0 failed first in truth" and "cause: cause 0" in text and "How sure: sure; because" in text
    assert "cause 1" not in text


def test_the_exception_of_another_rank_than_the_root_is_said_to_be_its(run):
    root = {"sentence": "rank 0 failed first in truth", "certainty": "likely", "why": "w", "ranks": [0], "next": []}
    raised = {"type": "OddError", "message": "x", "file": "a.py", "line": 1}
    data = run({**FAILED, "diagnosis": {"exception": raised, "matches": [], "root": root}})
    text, _ = head(data)
    assert "OddError: x rank 1 (device 1) ended first, raised at a.py:1" in text
    assert "after its start" in text and list(named.of(data, []))[:1] == [0]
    assert {rank: one.how for rank, one in hosts.states_of(data, {}).items()} == {0: "first", 1: "failed"}


@pytest.mark.parametrize("ranks", [None, 7, ["x", -1, 10**30, None, True], []], ids=ascii)
def test_any_ranks_of_a_root(run, ranks):
    said = {"exception": None, "matches": [], "root": {"sentence": "s", "ranks": ranks}}
    data = run({**FAILED, "diagnosis": said})
    assert explained.roots_of(data) == [1] and head(data)[1] == "S"


def test_steps_beyond_three_are_folded_and_commands_can_be_copied(run):
    match = {"code": "odd", "rank": 1, "cause": "c", "remedy": 'a "x <y>" b; run "ls -l"; three; four', "line": None}
    page = document.of_runs([run({**FAILED, "diagnosis": {"exception": None, "matches": [match]}})])
    assert '<li>Run <code class="type">ls -l</code></li>' in page and "<y>" not in page
    assert '<details><summary>1 more</summary><ol start="4"><li>Four</li></ol></details>' in page


# ---- the stacks of a hang --------------------------------------------------------------------------------------------

STACK = 'Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  File "{}", line {} in {}\n'


def hung(run, stacks):
    members = {str(rank): {"status": 134, "seconds": 1} for rank in range(len(stacks))}
    ranks = [{"rank": rank, "device": rank, "log": f"rank_{rank}.log"} for rank in range(len(stacks))]
    files = {f"rank_{rank}.stack": stack for rank, stack in enumerate(stacks) if stack}
    return run({**END, "exit": 124, "stopped_by": "hang", "members": members}, files, ranks=ranks)


def stacks_of(data):
    page = document.of_runs([data])
    return [one.strip() for one in re.findall(r'<div class="stack"><h3>(?:<i[^>]*></i>)*([^<]*)', page)], page


def test_the_odd_ranks_come_first_and_have_a_colour(run):
    waits, loads = STACK.format("/usr/lib/python3.9/x.py", 8, "wait"), STACK.format("data.py", 3, "load")
    data = hung(run, [waits, waits, loads, waits, ""])
    assert hang.apart(data.launch, data.folder) == [2]
    assert list(named.of(data, [])) == [2] and named.of(data, [])[2].why == (named.HUNG,)
    groups, page = stacks_of(data)
    assert groups == ["rank 2", "ranks 0,1,3"]
    assert '<li class="own"><b>load</b> <span>data.py:3</span></li>' in page and "<li><b>wait</b>" in page
    assert "No stack is known of rank 4." in page


def test_held_ranks_are_apart(run):
    waits = STACK.format("a.py", 8, "wait")
    data = hung(run, ["State: stopped\n" + waits, waits, waits])
    assert hang.apart(data.launch, data.folder) == [0]
    assert stacks_of(data)[0] == ["rank 0", "ranks 1,2"]


def test_less_than_half_of_the_ranks_are_apart(run):
    data = hung(run, [STACK.format("a.py", rank // 3, "wait") for rank in range(5)])
    assert hang.apart(data.launch, data.folder) == [3, 4]


def test_ranks_at_as_many_places_are_not_apart(run):
    data = hung(run, [STACK.format("a.py", rank, "wait") for rank in range(2)])
    assert hang.apart(data.launch, data.folder) == []


def test_groups_of_stacks_are_bounded(run):
    groups, page = stacks_of(hung(run, [STACK.format("a.py", rank, "wait") for rank in range(40)]))
    assert len(groups) == 12 and "28 more places" in page
    assert len(named.of(hung(run, [STACK.format("a.py", rank // 30, "f") for rank in range(61)]), [])) <= 30


def test_the_text_of_a_stack_is_text(run):
    _, page = stacks_of(hung(run, [STACK.format("<img src=x>", 1, "<b>f</b>")]))
    assert "<img" not in page and "<b>f</b>" not in page and "&lt;img src=x&gt;:1" in page
