"""tools/together: what is found of a job that trains the wrong thing, and that nothing is found of a good one."""

import json
import math
import os
import random
import subprocess
import sys
import threading
import time

import jsonschema
import pytest
from suite.cases import for_each

from tools.together import files, findings, look, losses, programs, saves

STEPS = 60


def curve(seed, level=2.0, begin=1, end=STEPS, rate=0.05):
    """The losses of a rank: they fall, and have noise of their own."""
    noise = random.Random(seed)
    return {(1, step): level * math.exp(-rate * step) * (1 + 0.2 * noise.random()) for step in range(begin, end + 1)}


def kinds(found, own=True):
    return [row["kind"] for row in losses.find(found, lambda: own)]


# ---- losses ----------------------------------------------------------------------------------------------------------


def test_ranks_with_data_of_their_own_are_good():
    assert kinds({rank: curve(rank) for rank in range(4)}) == []


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("steps", [1, 7, 30, 300])
def test_good_runs_are_never_named(ranks, steps):
    for seed in range(50):
        assert kinds({rank: curve(seed * 10 + rank, end=steps) for rank in range(ranks)}) == []


def test_the_same_losses_are_named_where_each_rank_prints_its_own():
    (row,) = losses.find({rank: curve(1) for rank in range(4)}, lambda: True)
    assert (row["kind"], row["ranks"], row["steps"], row["epoch"], row["step"]) == (
        "same-data",
        [0, 1, 2, 3],
        60,
        1,
        60,
    )


@pytest.mark.parametrize(
    ("one", "own"),
    [
        (curve(1), False),  # nobody knows: it may be the mean over all ranks
        (curve(1, end=7), True),  # few steps
        ({(1, step): round(2 / step, 2) for step in range(1, 60)}, True),  # few digits
        ({(1, step): 0.69314718 for step in range(1, 60)}, True),  # it does not learn, whatever its data is
    ],
)
def test_the_same_losses_may_be_right(one, own):
    assert kinds({0: one, 1: dict(one)}, own) == []


def test_one_rank_has_no_other_to_be_compared_with():
    assert kinds({}) == kinds({0: curve(1)}) == []


def test_a_rank_that_leaves_losses_that_were_all_the_same():
    left = {**curve(1), **{(1, step): 5.0 for step in range(31, 61)}}
    (row,) = losses.find({0: curve(1), 1: curve(1), 2: left}, lambda: False)
    assert (row["kind"], row["ranks"], row["steps"], row["step"], row["loss"]) == ("parted", [2], 30, 31, 5.0)


@pytest.mark.parametrize("factor", [1.0001, 1.009])
def test_the_last_digits_may_part(factor):
    near = {place: loss * (factor if place > (1, 30) else 1) for place, loss in curve(1).items()}
    assert kinds({0: curve(1), 1: curve(1), 2: near}) == []


def test_of_two_ranks_the_second_one_differs_from_the_first():
    left = {**curve(1), **{(1, step): 5.0 for step in range(31, 61)}}
    (row,) = losses.find({0: curve(1), 1: left}, lambda: False)
    assert (row["kind"], row["ranks"]) == ("parted", [1])


def test_without_a_majority_nobody_knows_which_rank_parts():
    left = {**curve(1), **{(1, step): 5.0 for step in range(31, 61)}}
    assert kinds({0: curve(1), 1: curve(1), 2: left, 3: left}) == []


def test_a_rank_that_does_not_learn():
    stays = curve(7, rate=0)
    (row,) = losses.find({0: curve(0), 1: stays, 2: curve(2), 3: curve(3)}, lambda: True)
    assert (row["kind"], row["ranks"], row["steps"]) == ("drifts", [1], 20)
    assert row["loss"] > 1.9 and row["others"] < 0.4


def test_of_two_ranks_the_one_that_does_not_learn():
    for stays, learns in ((0, 1), (1, 0)):
        (row,) = losses.find({stays: curve(7, rate=0), learns: curve(1)}, lambda: True)
        assert (row["kind"], row["ranks"]) == ("drifts", [stays])
        assert row["loss"] > 1.9 and row["others"] < 0.4


@pytest.mark.parametrize(
    "ranks",
    [
        {0: curve(0), 1: curve(1, level=3.0, rate=0)},  # its data is harder from the first step on
        {0: curve(0), 1: curve(1), 2: curve(2, level=4.0)},  # its data is harder from the first step on
        {0: curve(0), 1: curve(1), 2: curve(2, rate=0, end=30)},  # short
        {0: curve(0), 1: curve(1), 2: {place: loss * 3 for place, loss in curve(2, level=0.01).items()}},
        {0: curve(0), 1: curve(1, rate=0), 2: curve(2), 3: curve(3, rate=0)},  # as many as those that learn
    ],
)
def test_losses_that_differ_may_be_right(ranks):
    assert kinds(ranks) == []


def test_the_first_rank_with_nan_is_named_with_its_step():
    def ends(step):
        return {place: math.nan if place >= (1, step) else loss for place, loss in curve(step).items()}

    (row,) = losses.find({0: ends(13), 1: ends(12), 2: ends(13)}, lambda: True)
    values = {"loss": "nan", "epoch": 1, "step": 12, "later_epoch": 1, "later_step": 13}
    assert row == {"kind": "not-finite", "ranks": [1], **values}
    assert findings.says(row).endswith("was nan first, in epoch 1 step 12; the others' only from epoch 1 step 13 on")
    (row,) = losses.find({0: curve(0), 1: {**curve(1), (1, 5): math.inf}}, lambda: True)
    assert findings.says(row) == "the loss of rank 1 was inf first, in epoch 1 step 5; the others' stayed finite"


def test_where_all_have_nan_at_once_no_rank_is_named():
    bad = {place: math.nan for place in curve(1)}
    assert kinds({0: bad, 1: dict(bad)}) == []
    assert kinds({0: {**curve(0), (1, 61): math.nan}, 1: curve(1)}) == []  # rank 1 has not come there


# ---- the size of the job ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "rank_size: 1\nepoch: 1 step: 1, loss is 2.3\nepoch: 1 step: 2, loss is 2.3\nepoch: 1 step: 3, loss is 2.1",
        "rank_id: 0, device_num: 1",
        "[INFO] 2026-01-01 12:00:00 world_size=1",
        "group_size is 1",
        "\x1b[32mworld_size = 1\x1b[0m",
    ],
)
def test_a_trainer_that_counts_itself_alone(tmp_path, text):
    (tmp_path / "log").write_text(text + "\n")
    said = files.wrong_size(files.sizes_of(str(tmp_path / "log")), {4})
    assert said and (said.line, said.size) == (1, 1)


def test_a_trainer_that_counts_more_ranks_than_there_are(tmp_path):
    (tmp_path / "log").write_text("world_size=8\n")
    said = files.wrong_size(files.sizes_of(str(tmp_path / "log")), {4, 2})
    assert said and said.size == 8
    row = findings.row("world-size", range(4), said=said.text, size=said.size, line=said.line, number=4)
    assert findings.says(row).endswith(
        "but the job has 4 ranks: if the program divides the data by that number, part of the data is never read"
    )


@pytest.mark.parametrize(
    "text",
    [
        "rank_size: 4",
        "device_num: 1\nlater\nrank_size: 4",  # a default that init() has changed
        "local_world_size: 1",
        "group_size: 2",  # of a group in the job
        "device_num: 8",  # of another machine, before it is set
        "device_num: 1.5",
        "lr: 0.1\nbatch_size: 32\nepochs: 90\ndevice_num: 1\nrun_eval: False\n",  # a list of settings
        "Namespace(device_num=1, lr=0.1)",
        "{'device_num': 1, 'lr': 0.1}",
        "lr=0.1, batch=32, epochs=90, device_num=1, eval=False",
        "x" * 200 + " device_num: 1",
        "\n" * 500 + "rank_size: 1",
    ],
)
def test_what_may_be_right_or_a_list_of_settings(tmp_path, text):
    (tmp_path / "log").write_text(text)
    assert files.wrong_size(files.sizes_of(str(tmp_path / "log")), {4}) is None


def test_one_rank_a_host_may_count_its_host(tmp_path):
    (tmp_path / "log").write_text("device_num: 1\n")
    assert files.wrong_size(files.sizes_of(str(tmp_path / "log")), {4, 1}) is None


# ---- programs --------------------------------------------------------------------------------------------------------

GOOD = "context.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, all_reduce_fusion_config=[85])\n"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (GOOD, True),
        ('set_auto_parallel_context(parallel_mode="data_parallel")', True),
        ("reducer = nn.DistributedGradReducer(optimizer.parameters)", True),
        ("nothing of the kind", False),
        (GOOD + "mode = ParallelMode.SEMI_AUTO_PARALLEL", False),
        (GOOD + "loss = ops.AllReduce()(loss)", False),
        (GOOD + "full_batch=True", False),
        (GOOD + "import helper", False),
    ],
)
def test_whether_each_rank_prints_its_own_loss(tmp_path, text, known):
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "helper.py").write_text("from mindspore.ops import AllGather")
    assert programs.prints_own_losses(["python", "-u", str(tmp_path / "train.py"), "--lr", "1"]) is known


def test_the_file_that_python_runs_is_read(tmp_path):
    (tmp_path / "train.py").write_text(GOOD)
    train = str(tmp_path / "train.py")
    assert programs.prints_own_losses(["nohup", "python", "-W", "ignore", train])
    assert programs.prints_own_losses(["bash", "run.sh", train])
    assert not programs.prints_own_losses(["python", "-m", "train", train])


def test_our_trainer_deals_out_the_data_itself(root):
    assert not programs.prints_own_losses(["python", str(root / "tools/train.py"), "--config", "x.yaml"])
    assert not programs.prints_own_losses(["python", "-m", "train"])


# ---- files -----------------------------------------------------------------------------------------------------------

WARNING = "[WARNING] ME(7): Rename failed, can't find /x/net.tmp, it is possible that multiple processes have simult.."
TRACEBACK = """\
  File "/x/mindspore/train/serialization.py", line 387, in _exec_save
    os.remove(ckpt_file_name)
{}FileNotFoundError: [Errno 2] No such file or directory: '/x/net.ckpt'
"""


def test_what_mindspore_says_of_a_file_that_another_process_removed():
    (row,) = files.lost({0: "good\n", 1: f"{WARNING}\n", 2: f"{WARNING}\n"})
    assert (row["kind"], row["ranks"], row["path"]) == ("lost-file", [1, 2], "/x/net.tmp")
    for mark in ("", "    ~~~~~~~~~^^^^^\n"):
        (row,) = files.lost({3: TRACEBACK.format(mark)})
        assert (row["ranks"], row["path"]) == ([3], "/x/net.ckpt")


def test_a_file_that_is_missing_for_another_reason_is_no_finding():
    text = (
        "  File \"/x/train.py\", line 7, in load\nFileNotFoundError: [Errno 2] No such file or directory: 'net.ckpt'\n"
    )
    assert files.lost({0: text}) == []


# ---- a look, and its rows --------------------------------------------------------------------------------------------


def job(folder, ranks=4, **changes):
    values = {"sizes": [ranks], "mark": "nobody", "words": ["python", "train.py"], "runs": True}
    return look.Job(**{"logs": str(folder), "ranks": list(range(ranks)), **values, **changes})


def test_a_look_at_logs_and_processes(tmp_path):
    for rank in range(3):  # that of rank 3 is on another host
        text = "rank_size: 1\n" + "".join(f"epoch: 1 step: {s}, loss is {rank + 1 / s}\n" for s in range(1, 20))
        (tmp_path / f"rank_{rank}.log").write_text(text)
    *rows, has_loss = look.look(job(tmp_path))
    assert has_loss is True and [(row["kind"], row["ranks"]) for row in rows] == [("world-size", [0, 1, 2])]
    reading, writing = os.pipe()
    look.tell(writing, job(tmp_path))
    assert [json.loads(line) for line in os.read(reading, 9999).splitlines()] == [*rows, has_loss]
    os.close(reading)
    os.close(writing)


def test_a_look_at_a_job_that_has_printed_nothing(tmp_path):
    assert list(look.look(job(tmp_path))) == [False]


def test_of_many_ranks_some_are_looked_at():
    assert look.chosen(range(5)) == [0, 1, 2, 3, 4]
    few = look.chosen(range(65536))
    assert len(few) == len(set(few)) == 256 and few[0] == 0


EXAMPLES = [
    findings.row("alone", range(2), number=2),
    findings.row("not-joined", [2], others=findings.listed([0, 1, 3])),
    findings.row("same-data", range(4), steps=60, loss=0.5, epoch=1, step=60),
    findings.row("parted", [2], steps=60, loss=0.5, others=0.25, epoch=1, step=60),
    findings.row("drifts", [2], steps=20, loss=0.7047, others=0.25),
    findings.row("not-finite", [2], loss="nan", epoch=1, step=60, later_epoch=0, later_step=0),
    findings.row("world-size", range(4), said="rank_size: 1", size=1, line=1, number=4),
    findings.row("one-file", range(4), path="/x/net.ckpt"),
    findings.row("lost-file", range(4), path="/x/net.ckpt"),
    findings.row("differs", [4, 5], what="NumPy", here="2.0", there="1.26", host="node1"),
]


@pytest.mark.slow
def test_every_kind_has_a_sentence_a_form_in_launch_json_and_a_row_in_both_documents(root):
    schema = json.loads((root / "schemas/launch.schema.json").read_text())
    part = {"$defs": schema["$defs"], "$ref": "#/$defs/finding"}
    for row in EXAMPLES:
        jsonschema.validate(row, part)
        assert findings.rows_of(json.loads(json.dumps([row]))) == [row]
        assert "{" not in findings.says(row)
    every = schema["$defs"]["finding"]["properties"]["kind"]["enum"]
    assert [row["kind"] for row in EXAMPLES] == every
    for page in ("docs/when_it_fails.md", "docs/zh/when_it_fails.md"):
        assert all(f"| `{kind}` |" in (root / page).read_text() for kind in every)


@for_each("change", [{"ranks": []}, {"ranks": [True]}, {"ranks": [1, 1]}, {"kind": 3}, {"more": 1}])
@for_each("value", [{"number": "2"}, {"number": -1}, {}])
def test_what_is_no_row_is_left_out(change, value):
    assert findings.rows_of([{**EXAMPLES[0], **change, **value}, 7]) == []
    assert findings.rows_of({"kind": "alone"}) == []


def test_a_finding_of_each_attempt_is_told_once():
    launch = {"outcome": {"findings": EXAMPLES[:1], "attempts": [{"findings": EXAMPLES[:2]}, 7]}}
    assert [row["kind"] for row in findings.all_of(launch)] == ["alone", "not-joined", "alone"]
    assert len(findings.report(findings.all_of(launch))) == 2
    many = [findings.row("one-file", [0, 1], path=str(number)) for number in range(30)]
    assert findings.report(many)[20:] == ["10 more findings are in launch.json"]


def test_what_follows_from_ranks_that_did_not_join_is_not_told():
    assert findings.without_effects([*EXAMPLES[:1], *EXAMPLES[2:5], *EXAMPLES[:1]]) == EXAMPLES[:1]
    assert findings.without_effects(EXAMPLES[2:5]) == EXAMPLES[2:5]


# ---- who saves -------------------------------------------------------------------------------------------------------


def test_folders_with_weights_are_found_but_not_all_of_a_disk(tmp_path, monkeypatch):
    for name in (
        "a/b/c/net-1_8.ckpt",
        "a/b/c/d/too_deep.ckpt",
        "old/net.ckpt",
        "run/net.ckpt",
        "x.safetensors",
        "y.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    os.utime(tmp_path / "old/net.ckpt", (1000, 1000))
    monkeypatch.chdir(tmp_path)
    without = str(tmp_path / "run")
    assert sorted(saves.folders(".", without, since=2000)) == [".", "./a/b/c"]
    assert saves.folders("none", without, since=0) == []
    monkeypatch.setattr(saves, "_MOST_ENTRIES", 3)
    assert "./a/b/c" not in saves.folders(".", without, since=2000)


def test_links_that_lead_nowhere_hide_no_other_weights(tmp_path):
    (tmp_path / "below").mkdir()
    for number in range(20):
        (tmp_path / f"{number}.ckpt").symlink_to("gone")
    for folder in (tmp_path, tmp_path / "below"):
        (folder / "net.ckpt").write_text("")
    assert saves.folders(str(tmp_path), "", since=2000) == [str(tmp_path), str(tmp_path / "below")]


def test_a_descriptor_that_closes_meanwhile_hides_no_other(tmp_path, monkeypatch):
    def readlink(path, link=os.readlink):
        if path.endswith("/fd/0"):
            raise FileNotFoundError
        return link(path)

    monkeypatch.setattr(os, "readlink", readlink)
    with open(tmp_path / "net.ckpt", "wb"):
        assert files.written("self") == [str(tmp_path / "net.ckpt")]


@pytest.fixture
def rank(tmp_path):
    """A process of rank 0, and LAUNCH_JOB of its job."""
    job = f"job of {tmp_path}"
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "LAUNCH_JOB": job, "RANK_ID": "0"}) as process:
        yield job
        process.kill()


def test_only_who_opens_weights_makes_us_look_at_the_ranks(tmp_path, monkeypatch, rank):
    (tmp_path / "sample").write_text("")
    looks, reads = [], []
    monkeypatch.setattr(files, "written", lambda pid: looks.append(pid) or [])

    def read():
        while len(reads) < 200:
            reads.append((tmp_path / "sample").read_text())
            time.sleep(0.001)
        for _ in range(saves.ENOUGH):
            (tmp_path / "net.ckpt").write_text("")

    reader = threading.Timer(0.1, read)
    reader.start()
    found = list(saves.watch([str(tmp_path)], rank, 60.0))
    reader.join()
    assert len(reads) == 200 and found[-1] >= saves.ENOUGH and 1 < len(looks) < 100


def test_who_watches_ends_when_nobody_waits_for_it(tmp_path, rank):
    reading, writing = os.pipe()
    threading.Timer(0.1, os.close, [writing]).start()
    began = time.monotonic()
    assert list(saves.watch([str(tmp_path)], rank, 600.0, reading)) == [0]
    assert time.monotonic() < began + 60
    os.close(reading)


WRITER = """
import os, sys, time
while os.path.exists(sys.argv[1]):
    with open(sys.argv[2], "wb") as file:
        for _ in range(100):
            file.write(bytes(100_000))
    time.sleep(0.02)
"""


@pytest.mark.slow
@pytest.mark.parametrize("names", [("net.ckpt", "net.ckpt"), ("rank_0.ckpt", "rank_1.ckpt")])
def test_who_writes_small_files_is_seen(tmp_path, names):
    (tmp_path / "go").write_text("")
    writers = []
    for rank, name in enumerate(names):
        environment = {**os.environ, "LAUNCH_JOB": f"job of {tmp_path}", "RANK_ID": str(rank)}
        words = [sys.executable, "-c", WRITER, str(tmp_path / "go"), str(tmp_path / name)]
        writers.append(subprocess.Popen(words, env=environment))
    try:
        while not all((tmp_path / name).exists() for name in names):
            time.sleep(0.01)
        found, number = [], 0
        for _ in range(50):
            *rows, number = saves.watch([str(tmp_path)], f"job of {tmp_path}", 60.0)
            found += rows
            if found or names[0] != names[1]:
                break
    finally:
        (tmp_path / "go").unlink()
        for writer in writers:
            writer.wait()
    assert [(row["kind"], row["ranks"], row["path"]) for row in found] == (
        [("one-file", [0, 1], str(tmp_path / "net.ckpt"))] if names[0] == names[1] else []
    )
    assert number >= saves.ENOUGH


def test_where_no_rank_lives_nobody_watches(tmp_path):
    assert list(saves.watch([str(tmp_path)], f"job of {tmp_path}", 60.0)) == [0]
