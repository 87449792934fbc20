"""What the page of a run says first: who failed, why, what to do; and why each attempt ended."""

import json

import pytest

from tools.logs import remedies
from tools.pages import example_states
from tools.progress import lines
from tools.run_page import attempts, explained, reading

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
    """A rank may go on after a line that is a known failure: that is no reason of its end."""
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


def test_the_steps_of_a_chinese_remedy():
    assert remedies.for_target("用 npu-smi 查看；调小 batch_size；重试", "CPU") == "调小 batch_size；重试"
