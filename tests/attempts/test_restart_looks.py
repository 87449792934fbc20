"""How far attempts came, and of what ranks died: from logs and checkpoints, when an attempt has ended."""

import os

import pytest

from tools.attempts import look, saves
from tools.attempts.look import Asked, Looks
from tools.attempts.saves import Saves
from tools.progress import lines

PATTERNS = lines.load({})


@pytest.fixture
def looks(tmp_path):
    """looks(LOG OF RANK 0, LOG OF RANK 1, failed=1, status=1): what the next attempt of one job came to."""
    job = Looks(PATTERNS, Saves([str(tmp_path / "ckpt")]))

    def attempt(*logs, failed=1, status=1):
        folder = tmp_path / f"attempt_{len(os.listdir(tmp_path))}"
        folder.mkdir()
        for rank, text in enumerate(logs):
            if text is not None:
                (folder / f"rank_{rank}.log").write_text(text)
        return job.look(Asked(logs=str(folder), ranks=range(len(logs)), failed=failed, status=status))

    return attempt


def steps(first, last, stride=1, epoch=1):
    return "".join(f"epoch: {epoch} step: {step}, loss is 0.5\n" for step in range(first, last + 1, stride))


def raises(text):
    return f'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    step()\n{text}\n'


def test_the_first_attempt_that_makes_a_step_is_further_than_none(looks):
    came = looks(steps(1, 12), steps(1, 11))
    assert (came.reached, came.before, came.steps, came.further) == (12, 0, 12, True)


def test_one_that_begins_again_and_comes_to_the_same_step_is_no_further(looks):
    looks(steps(1, 12), steps(1, 12))
    came = looks(steps(1, 12), steps(1, 12))
    assert (came.reached, came.before, came.steps, came.further) == (12, 12, 12, False)
    assert looks(steps(10, 13), "").further


def test_steps_that_an_attempt_made_count_from_where_it_went_on(looks):
    assert looks(steps(10, 100, stride=10)).steps == 100
    assert looks(steps(110, 150, stride=10)).steps == 50
    assert looks(steps(7, 7)).steps == 1


def test_an_epoch_later_is_further_though_its_step_is_less(looks):
    looks(steps(1, 100) + steps(1, 20, epoch=2))
    came = looks(steps(21, 100, epoch=2) + steps(1, 5, epoch=3))
    assert (came.reached, came.before, came.steps) == (205, 120, 85)


def test_logs_without_a_step_say_nothing(looks):
    came = looks("begins\n", None)
    assert (came.reached, came.steps, came.place, came.further) == (0, None, "", False)


def test_the_same_error_at_the_same_step_is_counted_whatever_its_numbers(looks):
    for number in range(1, 4):
        error = raises(f"RuntimeError: cannot allocate 0x{number}f00 on port 1000{number}")
        came = looks(steps(1, 5), steps(1, 5) + error)
        assert came.alike == tuple(range(1, number + 1))
    assert came.place == "at step 5 of epoch 1"
    assert came.error == "RuntimeError: cannot allocate 0x3f00 on port 10003"


@pytest.mark.parametrize("what", ["error", "step", "status", "rank"])
def test_other_errors_steps_exit_codes_and_ranks_are_not_the_same(looks, what):
    for number in range(3):
        error = raises(f"ValueError: {'abc'[number]}" if what == "error" else "ValueError: a")
        log = steps(1, 5 + number if what == "step" else 5) + error
        failed = number % 2 if what == "rank" else 1
        came = looks(log, log, failed=failed, status=number + 1 if what == "status" else 1)
        assert len(came.alike) < 3


def test_a_rank_that_prints_no_step_died_at_that_of_the_others(looks):
    for _ in range(3):
        came = looks(steps(1, 5), raises("ValueError: a"))
    assert (came.place, came.alike) == ("at step 5 of epoch 1", (1, 2, 3))


def test_a_rank_that_makes_no_step_although_others_attempts_had_some_died_before_its_first(looks):
    looks(steps(1, 5), raises("ValueError: a"))
    for _ in range(3):
        came = looks("", raises("ValueError: a"))
    assert (came.place, came.alike, came.steps) == ("before its first step", (2, 3, 4), 0)


def test_where_no_log_has_a_step_nobody_knows_whether_it_was_the_same(looks):
    for _ in range(3):
        came = looks("", raises("ValueError: a"))
    assert (came.alike, came.error) == ((), "ValueError: a")


def test_without_an_exception_the_last_line_that_sounds_like_an_error_is_one(looks):
    came = looks(steps(1, 2), steps(1, 2) + "[ERROR] HCCL(7): no memory for rank 1\nConnection reset by peer\nbye\n")
    assert came.error == "[ERROR] HCCL(7): no memory for rank 1"
    assert looks(steps(1, 2), steps(1, 2)).error == ""


def test_an_error_cannot_command_the_terminal_and_is_short(looks):
    came = looks(steps(1, 2), steps(1, 2) + raises("ValueError: \x9b2J\u202e" + "x" * 5000))
    assert came.error.isprintable() and len(came.error) <= 300


def test_a_log_that_is_a_pipe_or_a_folder_is_left_out(looks, tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    os.mkfifo(folder / "rank_0.log")
    (folder / "rank_1.log").mkdir()
    job = Looks(PATTERNS, Saves([]))
    came = job.look(Asked(logs=str(folder), ranks=[0, 1, 2], failed=0, status=1))
    assert (came.reached, came.error) == (0, "")


def test_of_many_ranks_some_logs_are_read_and_that_of_the_one_that_failed():
    chosen = look.chosen(range(1000), 777)
    assert len(chosen) <= look.MOST_LOGS and {0, 777, 999} <= set(chosen)
    assert look.chosen([3, 4], 4) == [3, 4]


# ---- checkpoints -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """save(NAME): saves a checkpoint of that name there."""
    times = iter(range(10**9, 2 * 10**9))

    def save(name, text="weights"):
        path = tmp_path / "ckpt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (next(times),) * 2)

    save.path = str(tmp_path / "ckpt")
    return save


@pytest.mark.parametrize(
    ("before", "after", "further"),
    [
        ("rank_0/net-1_16.ckpt", "rank_0/net-1_16.ckpt", False),
        ("rank_0/net-1_16.ckpt", "rank_0/net_1-1_16.ckpt", False),  # MindSpore does not overwrite
        ("rank_0/net-1_16.ckpt", "rank_1/net-1_20.ckpt", True),
        ("net-1_16.ckpt", "net-2_3.ckpt", True),
        ("net-2_3.ckpt", "net-1_16.ckpt", False),
        ("checkpoint-500/model.safetensors", "checkpoint-1000/model.safetensors", True),
        ("checkpoint-500/model.safetensors", "checkpoint-500/model.safetensors", False),
        ("iter_0000100/model.pt", "iter_0000050/model.pt", False),
        ("last.ckpt", "last.ckpt", False),
        ("a.ckpt", "b.ckpt", True),
        ("a.ckpt", ".b.part.ckpt", False),
        ("a.ckpt", "b.txt", False),
    ],
)
def test_a_checkpoint_is_further_by_its_place_else_by_a_new_name(folder, before, after, further):
    watched = Saves([folder.path])
    folder(before)
    assert watched.new()
    folder(after)
    assert bool(watched.new()) == further
    assert watched.new() == ""


def test_what_was_there_before_the_job_is_not_of_it(folder):
    folder("net-9_99.ckpt")
    watched = Saves([folder.path])
    assert watched.new() == ""
    folder("net-1_16.ckpt")  # the job began from nothing
    assert watched.new().endswith("/net-1_16.ckpt")


def test_an_empty_checkpoint_is_none_and_a_folder_that_is_missing_has_none(folder):
    watched = Saves([folder.path, "/nowhere", "nul\0"])
    folder("net-1_16.ckpt", "")
    assert watched.new() == ""


def test_a_checkpoint_alone_brings_the_job_further(looks, folder):
    looks("", "")
    folder("net-1_16.ckpt")
    came = looks("", "")
    assert (came.further, os.path.basename(came.saved)) == (True, "net-1_16.ckpt")
    assert not looks("", "").further


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["python", "train.py"], []),
        (["python", "train.py", "--save", "/a", "--load", "/b"], ["/a"]),
        (["python", "train.py", "--save-dir=/a", "--output_dir", "c"], ["/a", "c"]),
        (["python", "train.py", "--save", "--lr", "1"], []),
        (["python", "train.py", "--save"], []),
    ],
)
def test_where_ranks_save_is_in_their_words(words, found):
    assert saves.folders(words, None, "/run") == ["/run/ckpt", *found]
    assert saves.folders(words, "/own", "/run") == ["/run/ckpt", "/own", *found]
