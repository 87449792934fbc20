"""tools/progress/phases.py: the phases of a training, as lines of its log tell them."""

from pathlib import Path

import pytest

from tools.progress import lines, phases
from tools.progress.phases import COMPILE, EVAL, IMPORT, JOIN, PREPARE, SAVE, STEPS, STOP, Mark

HEALTHY = Path(__file__).parents[1] / "fixtures" / "healthy_logs"
HEAD = "[{level}] DISTRIBUTED(31887,7ff466a38b80,python):2026-11-25-20:39:{second:02}.128.683 [mindspore/ccsrc/x.cc:1] "
KINDS = lines.Kinds(lines.load({}))


def phases_of(text, kinds=KINDS):
    """(phase, over) of each mark."""
    return [(mark.phase, mark.over) for mark in phases.marks(text.encode(), kinds)]


def test_a_rank_of_mindspore_joins_and_then_takes_steps():
    log = (HEALTHY / "msrun" / "worker_0.log").read_text()
    assert phases_of(log)[:3] == [(JOIN, False), (JOIN, True), (STEPS, False)]
    begins, joined = phases.marks(log.encode())[:2]
    assert joined.at - begins.at == pytest.approx(14.234, abs=0.001)


def test_the_scheduler_says_who_has_come():
    log = (HEALTHY / "local" / "scheduler.log").read_text()
    assert phases_of(log) == [(JOIN, False), (JOIN, True), (STOP, False)]


def test_mindspores_own_lines_of_import_and_compiling():
    log = (
        HEAD.format(level="INFO", second=1)
        + "RegGraphExecutor] Start GraphExecutorPy...\n"
        + HEAD.format(level="WARNING", second=2)
        + "BuildCluster] Topology build timed out., retry(1/1200).\n"
        + HEAD.format(level="INFO", second=3)
        + "Compile] Start compiling, phase: train.1.2\n"
    )
    found = phases.marks(log.encode())
    assert [mark.phase for mark in found] == [IMPORT, JOIN, COMPILE]
    assert [mark.at - found[0].at for mark in found] == [0, 1, 2]


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("rank 3 of 8: 156 steps an epoch, 10 epochs", COMPILE),
        ("rank 3，共 8 个：每个 epoch 156 步，10 个 epoch", COMPILE),
        ("2026-03-01 10:00:01,101 - mindformers[a.py:1] - INFO - .........Build Dataset For Train..........", PREPARE),
        (
            "[INFO] 2023-07-11 10:38:43,585 [a.py:610] x: .........Model Compiling, Please Wait a Moment...........",
            COMPILE,
        ),
        ("2026-03-01 10:00:01,101 - mindformers[a.py:1] - INFO - ......Saving ckpt......", SAVE),
        ("[2026-03-02 08:02:01] mindcv.utils.callbacks INFO - Saving model to ./ckpt/resnet18-1_195.ckpt", SAVE),
        ("***** Running Evaluation *****", EVAL),
        ("epoch: 3, early_stop ends the training: no improvement on the 12% of epoch 1", STOP),
    ],
)
def test_a_line_of_each_trainer(line, phase):
    assert phases_of(f"before\n{line}\nbehind\n", None) == [(phase, False)]


@pytest.mark.parametrize(
    "line",
    [
        "saving checkpoints every 100 steps",
        "checkpoints will be saved to ./ckpt",
        "the user saved time",
        "30 ranks are connected by roads",
        "MS_ROLE",
        "Saving",
        "",
    ],
)
def test_other_lines_tell_nothing(line):
    assert phases_of(line) == []


def test_steps_go_on_after_a_checkpoint_and_a_measurement():
    log = (
        "epoch: 1 step: 1, loss is 2.5\nepoch: 1 step: 2, loss is 2.4\n......Saving ckpt......\n"
        "epoch: 1 step: 3, loss is 2.3\nepoch: 1, accuracy on held-out data: 97.21%\nepoch: 2 step: 1, loss is 2.2\n"
    )
    assert phases_of(log) == [(STEPS, False), (SAVE, False), (STEPS, False), (EVAL, True), (STEPS, False)]
    told = phases.marks(log.encode(), KINDS)
    assert [phases.after(told[:number]) for number in range(1, 6)] == [STEPS, SAVE, STEPS, STEPS, STEPS]


def test_what_comes_after_the_end_of_a_phase_is_known_or_nobody_says_it():
    assert phases.after([]) is None
    assert phases.after([], COMPILE) == COMPILE
    assert phases.after([Mark(JOIN, None, True)]) == PREPARE
    assert phases.after([Mark(EVAL, None, True)]) is None
    assert phases.after([Mark(SAVE, None, True)], STEPS) == STEPS
    assert phases.after([Mark(STOP, None), Mark(SAVE, None, True)], STEPS) is None


def test_a_log_of_nothing_but_such_lines_has_few_marks():
    line = b"......Saving ckpt......\nepoch: 1 step: 3, loss is 2.3\n"
    assert len(phases.marks(line * 5000, KINDS)) <= phases.MOST


def test_any_bytes_and_a_line_without_end():
    assert phases.marks(b"\xff\x00" * 1000 + b"......Saving ckpt......" + b"\xff" * 100_000) == [Mark(SAVE, None)]
    assert phases.marks(b"x" * 1_000_000 + b"Saving model to a") == []
