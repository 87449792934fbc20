"""tools/diagnosis/hang.py: the one verdict about a job that hung."""

from types import SimpleNamespace

import pytest

from tools.diagnosis import hang, stacks
from tools.diagnosis.main import explain
from tools.features.hang_stacks import HangStacks
from tools.output import modules_line
from tools.run_page import outliers
from tools.run_page.reading import Curve
from tools.supervise.members import Member, Members


def stack(line, held=False):
    begin = "State: stopped\n" if held else ""
    head = "Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):"
    return f'{begin}{head}\n  File "/home/me/train.py", line {line} in step\n'


@pytest.fixture
def run(tmp_path):
    """run(stacks): (launch.json, folder) of a job that hung, with these stacks."""

    def make(stacks, stopped_by="hang", ranks=4):
        for rank, text in stacks.items():
            (tmp_path / f"rank_{rank}.stack").write_text(text)
        return {
            "ranks": [{"rank": rank} for rank in range(ranks)],
            "outcome": {"stopped_by": stopped_by, "first_failure": None},
        }, str(tmp_path)

    return make


@pytest.mark.parametrize(
    ("stacks", "said"),
    [
        ({}, ": no rank wrote to its log, and no stack is known"),
        (dict.fromkeys(range(4), stack(5)), ": all ranks were in step (/home/me/train.py:5)"),
        (
            {0: stack(5), 1: stack(9), 2: stack(5), 3: stack(5)},
            ": most ranks were in step (/home/me/train.py:5), but rank 1 in step (/home/me/train.py:9)",
        ),
        ({0: stack(5), 1: stack(9), 2: stack(9), 3: stack(5)}, ": the ranks were at 2 places, see rank_N.stack"),
        (
            {0: stack(5), 1: stack(5), 2: stack(9, held=True), 3: stack(5)},
            ": rank 2 did not run, stopped by SIGSTOP or a debugger",
        ),
        (
            dict.fromkeys(range(3), stack(5)),
            " with ranks 0-2 in step (/home/me/train.py:5); no stack is known for rank 3",
        ),
        (
            {0: stack(5), 1: stack(9), 2: stack(5), 3: "no frames"},
            ": most ranks were in step (/home/me/train.py:5), but rank 1 in step (/home/me/train.py:9); no stack "
            "is known for rank 3",
        ),
        ({2: "State: stopped\n", 3: "State: stopped\n"}, ": ranks 2,3 did not run, stopped by SIGSTOP or a debugger"),
    ],
)
def test_the_verdict_names_the_rank_that_differs(run, capsys, stacks, said):
    launch, folder = run(stacks)
    assert hang.of_run(launch, folder) == f"the job hung{said}"
    assert not explain(launch, folder, ([], []), 0)
    assert capsys.readouterr().out == f"the job hung{said}\n"


def test_where_stacks_are_on_other_hosts_what_was_told_counts(tmp_path):
    told = {0: "in f (a.py:1)", 1: "in f (a.py:1)", 2: "in g (a.py:2)"}
    said = "the job hung: most ranks were in f (a.py:1), but rank 2 in g (a.py:2)"
    assert hang.verdict(str(tmp_path), [0, 1, 2], told) == said


@pytest.mark.parametrize("answer", [None, stacks.place("")])
def test_a_rank_that_gave_no_answer_or_whose_stack_is_unknown_is_named(tmp_path, answer):
    told = {0: "in f (a.py:1)", 1: "in f (a.py:1)", **({2: answer} if answer else {})}
    said = "the job hung with ranks 0,1 in f (a.py:1); no stack is known for rank 2"
    assert hang.verdict(str(tmp_path), [0, 1, 2], told) == said


def test_the_launcher_asks_about_all_ranks_of_the_job_and_not_only_those_that_answered(tmp_path):
    members, said = Members(), []
    members.add([Member(str(rank), rank=rank, device=rank, log="") for rank in range(4)])
    members.by_name["3"].status = 0
    supervisor = SimpleNamespace(members=members, stacks=dict.fromkeys("01", "in f (a.py:1)"), ask_stacks=lambda: None)
    engine = SimpleNamespace(name="mpirun")
    run = SimpleNamespace(supervisor=supervisor, logs=str(tmp_path), engine=engine, say=said.append)
    HangStacks(run).hangs()
    assert said[-1] == "the job hung with ranks 0,1 in f (a.py:1); no stack is known for rank 2"


@pytest.mark.parametrize("launch", [{}, {"outcome": []}, {"outcome": {"stopped_by": "timeout"}}])
def test_another_run_has_no_such_verdict(tmp_path, launch):
    assert hang.of_run(launch, str(tmp_path)) == ""


@pytest.mark.parametrize("ranks", [None, [], [None, {"rank": "x"}]])
def test_a_hang_of_unknown_ranks(tmp_path, ranks):
    launch = {"ranks": ranks, "outcome": {"stopped_by": "hang"}}
    assert hang.of_run(launch, str(tmp_path)) == "the job hung: no rank wrote to its log, and no stack is known"


def test_a_rank_whose_log_ends_a_few_steps_before_the_others_does_not_drift():
    def curve(steps):
        return Curve(steps=list(range(1, steps + 1)), values=[2.0 / step for step in range(1, steps + 1)])

    assert outliers.find({"loss": {0: curve(33), 1: curve(27), 2: curve(33), 3: curve(33)}}) == []


# --- the line of all extension modules --------------------------------------------------------------------------------

MODULES = b"Extension modules: numpy.core._multiarray_umath, numpy.linalg._umath_linalg (total: 13)\n"
OTHERS = b"E\nExtension modules: none (here)\nExtension\n x Extension modules: a (total: 1)\n"
LOG = b"epoch 1\nExit\n" + MODULES + OTHERS
SHOWN = LOG.replace(MODULES, b"")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 1000])
def test_the_line_of_all_modules_is_left_out_however_it_comes(size):
    without = modules_line.Without()
    parts = [without.take(LOG[place : place + size]) for place in range(0, len(LOG), size)]
    assert b"".join(parts) + without.rest() == SHOWN


def test_a_log_that_ends_with_it_or_within_it():
    without = modules_line.Without()
    assert without.take(MODULES[:-1]) + without.rest() == b""
    assert without.take(MODULES[:30]) + without.rest() == MODULES[:30]


def test_a_line_that_never_ends_is_not_held_for_ever():
    without, text = modules_line.Without(), b"Extension modules: " + b"a" * 100_000
    assert without.take(text) + without.take(b"b") == text + b"b"


def test_a_job_of_one_rank_has_no_all_ranks(run):
    assert hang.of_run(*run({0: stack(5)}, ranks=1)) == "the job hung: its only rank was in step (/home/me/train.py:5)"
