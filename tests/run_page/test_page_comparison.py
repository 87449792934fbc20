"""The page of several runs: what they are called, what is different between them, and which of them is best."""

import json
import math
import re

import pytest

from tools.progress import lines
from tools.run_page import document, plans, reading, results, surroundings, unlike
from tools.run_page.results import Result

ENDED = {"ended": "2026-01-31T12:01:00Z", "exit": 0, "members": {"0": {"status": 0, "seconds": 60.0, "pid": 1}}}
FAILED = {**ENDED, "exit": 1, "first_failure": "0"}


@pytest.fixture
def run(tmp_path):
    """run(name, losses, config, **changes of launch.json): the data of a run."""

    def make(name, losses=(2.0, 1.0), config=None, **changes):
        folder = tmp_path / name
        folder.mkdir()
        log = "".join(f"epoch: 1 step: {step}, loss is {loss}\n" for step, loss in enumerate(losses, 1))
        (folder / "rank_0.log").write_text(log)
        if config is not None:
            (folder / "train.yaml").write_text(json.dumps(config))
        launch = {
            **{"script": "ascend2p.sh", "typed": "ascend2p.sh train.yaml", "started": "2026-01-31T12:00:00Z"},
            **{"host": "laptop", "folder": str(folder), "run_dir": str(folder), "device_target": "CPU"},
            **{"exports": {}, "scheduler": [], "ranks": [{"rank": 0, "device": 0, "log": "rank_0.log"}]},
            "trainer": ["python", "-u", "tools/train.py", "--config", f"{folder}/train.yaml"],
            **{"outcome": ENDED, **changes},
        }
        (folder / "launch.json").write_text(json.dumps(launch))
        return reading.read(str(folder), lines.load())

    return make


def ranks(number):
    return [{"rank": rank, "device": rank, "log": f"rank_{rank}.log"} for rank in range(number)]


def plan(data):
    return plans.plan_of(data, surroundings.of(data))


def result(**changes):
    empty = {"failed": False, "runs": False, "seconds": 60, "steps": 10, "loss": None, "lowest": None, "cause": ""}
    return Result(**{**empty, "measured": {}, "step_ms": None, **changes})


# ---- what differs ----------------------------------------------------------------------------------------------------


def test_what_always_differs_is_not_listed(run):
    runs = []
    for number, name in enumerate(("ascend2p-20260131T120000Z-106", "ascend2p-20260201T121500Z-2107")):
        table = f"../logs/{name}/rank_table.json"
        exports = {
            **{"MS_SCHED_PORT": str(8118 + number), "MS_SCHED_HOST": f"10.0.0.{number}", "LAUNCH_JOB": f"{number}" * 8},
            **{"ADDRESS": f"10.0.0.{number}:{8118 + number}", "WHERE": f"node1:{20000 + number}"},
            **{
                "RANK_TABLE_FILE": table,
                "LOG": f"/home/u/logs/{name}/x",
                "OF_JOB": f"job {number}{number * 1111111:07}",
            },
            "MOMENT": f"2026-01-31 12:00:0{number}",
        }
        exports["LAUNCH_JOB"] = exports["OF_JOB"][4:]
        typed = f"ascend2p.sh --log_dir logs/{name} train.yaml"
        runs.append(run(name, exports=exports, typed=typed, started=f"2026-01-31T12:0{number}:00Z"))
    assert unlike.of([plan(data) for data in runs]) == []


def test_what_matters_is_listed_by_name(run):
    one = run("a", exports={"RANK_SIZE": "1", "OMP_NUM_THREADS": "4", "DATA": "/data/small/train"})
    trainer = ["python", "-u", "tools/train.py", "--config", "train.yaml", "-o", "scheduler.lr=0.2", "--amp"]
    exports = {"RANK_SIZE": "2", "OMP_NUM_THREADS": "4", "DATA": "/data/all/train"}
    other = run("b", ranks=ranks(2), device_target="Ascend", exports=exports, trainer=trainer, host="server")
    found = {row.name: (row.values, row.also) for row in unlike.of([plan(one), plan(other)])}
    assert found == {
        "device_target": (("CPU", "Ascend"), ()),
        "ranks": (("1", "2"), ("RANK_SIZE",)),
        "names of hosts": (("laptop", "server"), ()),
        "-o scheduler.lr": ((None, "0.2"), ()),
        "--amp": ((None, plans.GIVEN), ()),
        "DATA": (("/data/small/train", "/data/all/train"), ()),
    }


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["python", "-u", "train.py", "--x", "1", "-y=2"], {"trainer": "python -u train.py", "--x": "1", "-y": "2"}),
        (["train", "-o", "a.b=1", "-o", "c=2"], {"trainer": "train", "-o a.b": "1", "-o c": "2"}),
        (["a.py", "-o", "a=1", "b.c=", "--x", "d=2"], {"trainer": "a.py", "-o a": "1", "-o b.c": "", "--x": "d=2"}),
        (["train.py", "--flag", "--x", "a b", "c"], {"trainer": "train.py", "--flag": "", "--x": "a b", "words": "c"}),
        (["train.py", "--api_key", "word-of-mine"], {"trainer": "train.py", "--api_key": "<masked>"}),
        (["train.py", "-o", "hub.token=word-of-mine"], {"trainer": "train.py", "-o hub.token": "<masked>"}),
        ([], {}),
        ("no list", {"trainer": "no", "words": "list"}),
        ([7, None], {}),
    ],
)  # fmt: skip
def test_a_command_is_compared_by_its_options(run, command, found):
    data = run("a", trainer=command, typed=None, host=None, ranks=[], exports={})
    assert {key: value for key, value in plan(data).items() if key not in ("script", "device_target", "ranks")} == found


def test_a_typed_command_with_an_open_quote_is_one_text(run):
    assert plan(run("a", typed="ascend2p.sh 'x"))["typed"] == "ascend2p.sh 'x"


def test_devices_are_listed_where_they_do_not_follow_from_the_ranks(run):
    assert "devices" not in plan(run("a", ranks=ranks(4)))
    last = [{"rank": rank, "device": 4 + rank, "log": f"rank_{rank}.log"} for rank in range(4)]
    assert plan(run("b", ranks=last))["devices"] == "4-7"


def test_a_folder_beside_ours_is_not_ours(run, tmp_path):
    found = plan(run("run", exports={"A": f"{tmp_path}/run/x", "B": f"{tmp_path}/run2/x", "C": f"{tmp_path}/run"}))
    assert (found["A"], found["B"], found["C"]) == ("x", f"{tmp_path}/run2/x", ".")


def test_configs_are_compared_flat_and_masked(run):
    data = run("a", config={"optimizer": {"lr": 0.1, "api_key": "word-of-mine"}, "steps": [1, 2]})
    found = plans.config_of(data, surroundings.of(data))
    assert found == {"optimizer.lr": "0.1", "optimizer.api_key": "<masked>", "steps": "[1, 2]"}
    assert plans.config_of(run("b"), surroundings.of(data)) is None  # it is gone


def test_a_config_has_what_the_command_set(run):
    trainer = ["python", "train.py", "--config", "train.yaml", "-o", "optimizer.lr=0.5", "seed=3"]
    data = run("a", config={"optimizer": {"lr": 0.1}}, trainer=trainer)
    assert plans.config_of(data, surroundings.of(data)) == {"optimizer.lr": "0.5", "seed": "3"}


# ---- what they are called --------------------------------------------------------------------------------------------


def called(*flat, started=None):
    rows = unlike.of(flat)
    return [label.text for label in unlike.labels(len(flat), rows, started or [None] * len(flat))]


def test_a_label_says_what_is_different():
    one, two = {"optimizer.lr": "0.1", "ranks": "8"}, {"optimizer.lr": "0.2", "ranks": "8"}
    assert called(one, two, {"optimizer.lr": "0.4", "ranks": "4"}) == ["A: lr 0.1", "B: lr 0.2", "C: lr 0.4, 4 ranks"]
    assert called(one, two) == ["A: lr 0.1", "B: lr 0.2"]


def test_a_label_has_the_whole_name_where_the_last_part_says_too_little():
    one = {"train.batch": "1", "eval.batch": "2"}
    assert called(one, {"train.batch": "3", "eval.batch": "4"})[0] == "A: train.batch 1, eval.batch 2"


def test_a_label_begins_with_what_a_reader_asks_first():
    one = {"seed": "1", "model.name": "lenet5", "optimizer.lr": "0.1", "--config": "a.yaml", "ranks": "1"}
    two = {"seed": "2", "model.name": "resnet50", "optimizer.lr": "0.2", "--config": "b.yaml", "ranks": "2"}
    assert called(one, two) == ["A: a.yaml, 1 rank, model lenet5", "B: b.yaml, 2 ranks, model resnet50"]


def test_a_label_says_a_thing_once():
    one = {"system.device_target": "CPU", "device_target": "CPU", "lr": "1"}
    assert called(one, {"system.device_target": "GPU", "device_target": "GPU", "lr": "2"})[0] == "A: CPU, lr 1"


def test_a_label_names_what_is_missing_and_stays_short():
    assert called({"--amp": ""}, {}) == ["A: amp", "B: without amp"]
    assert len(called({"x" * 500: "y" * 500}, {"x" * 500: "z"})[0]) < 100


def test_runs_without_a_difference_are_told_apart_by_their_start():
    assert called({}, {}, started=["12:00", "12:15"]) == ["A: started 12:00", "B: started 12:15"]
    assert called({}, {}) == ["A", "B"]


def test_letters_do_not_end():
    assert [unlike.letter(place) for place in (0, 25, 26, 27, 701, 702)] == ["A", "Z", "AA", "AB", "ZZ", "AAA"]


# ---- which of them is best -------------------------------------------------------------------------------------------


def test_the_answer_says_which_is_best_and_which_failed():
    runs = [
        result(lowest=(0.2, 398), measured={"accuracy %": 96.0}, seconds=50),
        result(lowest=(0.12, 400), measured={"accuracy %": 97.5}),
        result(lowest=(0.1, 390), measured={"accuracy %": 99.0}, failed=True, cause="out of memory", seconds=55),
    ]
    assert results.title(runs) == "3 runs compared: 2 ended well, 1 failed"
    assert results.answer(runs, ["A", "B", "C"]) == [
        "B reached the lowest loss: 0.12 at step 400. C had reached 0.1 before it failed.",
        "B ended with the highest accuracy: 97.5 %.",
        "A took the least time: 0:00:50.",
        "C failed after 0:00:55: out of memory",
    ]


def test_times_are_compared_only_where_the_same_was_done():
    say = "The times are not comparable: the runs did not do the same number of steps."
    assert results.answer([result(), result(steps=20, seconds=90)], ["A", "B"]) == [say]
    same = results.answer([result(), result()], ["A", "B"])
    assert same == ["Those that ended well took the same time: 0:01:00."]
    two = results.answer([result(), result(), result(seconds=120)], ["A", "B", "C"])
    assert two == ["A, B took the least time: 0:01:00."]
    assert results.fastest([result(seconds=1000), result(seconds=1001)]) == []


def test_only_the_failures_are_said_where_all_failed():
    runs = [result(failed=True, seconds=None)] * 6
    assert results.answer(runs, list("ABCDEF"))[-2:] == ["D failed after ?.", "2 more failed; the table has them."]


def test_a_run_is_named_in_full_once(run):
    text = page_of(run("a", (2.0, 1.0), {"lr": 0.1}), run("b", (2.0, 0.5), {"lr": 0.2}, outcome=FAILED))
    said = re.findall("<li>(.*?)</li>", text.partition("</header>")[0])
    assert said[-1].startswith("B (lr 0.2) failed after 0:01:00") and "B (lr 0.2)" not in "".join(said[:-1])


def test_what_still_runs_is_not_the_fastest():
    runs = [result(runs=True, seconds=5), result()]
    assert results.fastest(runs) == []
    assert results.answer(runs, ["A", "B"]) == ["Still running: A. Their numbers are those of now."]


@pytest.mark.parametrize(
    ("metric", "low"),
    [
        *(("accuracy %", False), ("top_1", False), ("bleu", False), ("mAP", False), ("share %", False)),
        *(("perplexity", True), ("error %", True), ("val_loss", True), ("wer", True), ("speed", None), ("power", None)),
    ],
)
def test_which_way_a_metric_is_better(metric, low):
    assert results.lower_is_better(metric) is low


def test_a_loss_that_is_no_number_is_not_the_best():
    assert results.best([result(loss=math.nan), result(loss=2.0)], lambda one: one.loss, low=True) == []
    runs = [result(loss=math.nan), result(loss=2.0), result(loss=1.0)]
    assert results.best(runs, lambda one: one.loss, low=True) == [2]


def test_what_a_run_reached(run):
    found = results.of(run("a", (2.0, 0.5, 0.7)))
    assert (found.loss, found.lowest, found.steps, found.seconds, found.failed) == (0.7, (0.5, 2), 3, 60, False)
    assert math.isnan(results.of(run("b", (2.0, "nan"))).loss)
    assert results.of(run("c", (), outcome=FAILED)).lowest is None


# ---- the page --------------------------------------------------------------------------------------------------------


def page_of(*runs):
    return document.of_runs(list(runs))


def table(text, name):
    """The rows of a section's table, as lists of the cells' words."""
    body = re.search(rf'<section id="{name}">.*?</section>', text, re.DOTALL)[0]
    rows = re.findall(r"<tr>(<td.*?)</tr>", body, re.DOTALL)
    return [[re.sub(r"<[^>]+>", " ", cell).split() for cell in re.findall(r"<td.*?>(.*?)</td>", row)] for row in rows]


def test_the_outcomes_have_differences_to_the_first_run(run):
    later = {**ENDED, "ended": "2026-01-31T12:02:00Z"}
    text = page_of(
        run("a", (2.0, 1.0), {"lr": 0.1}),
        run("b", (2.0, 0.5), {"lr": 0.2}),
        run("c", (2.0, 1.0), {"lr": 0.3}, outcome=later),
    )
    first, second, third = table(text, "runs")
    assert first[0] == ["A", "lr", "0.1", "a"] and first[2] == ["0:01:00", "best"]
    assert second[3:] == [["2", "the", "same"], ["0.5", "−0.5"], ["0.5", "best", "−0.5", "at", "step", "2"]]
    assert 'class="worse">100 % more' in text
    assert third[2] == ["0:02:00", "100", "%", "more"] and third[4] == ["1", "the", "same"]
    assert table(text, "configs") == [[["lr"], ["0.1"], ["0.2"], ["0.3"]]]


def test_more_time_for_more_steps_is_not_worse(run):
    text = page_of(run("a"), run("b", (2.0, 1.0, 0.5), outcome={**ENDED, "ended": "2026-01-31T12:02:00Z"}))
    assert "100 % more" in text and "worse" not in text.partition("</style>")[2]


def test_a_failed_run_has_its_cause_and_no_share_of_time(run):
    text = page_of(run("a"), run("b", outcome={**FAILED, "ended": "2026-01-31T12:00:30Z"}))
    assert "1 ended well, 1 failed" in text
    assert table(text, "runs")[1][2] == ["0:00:30"]


def test_nothing_of_a_run_is_markup_or_a_secret(run):
    evil = "<script>alert(1)</script>"
    exports = {"WANDB_API_KEY": "0123456789abcdef", "A": "key is 0123456789abcdef", "B": evil}
    text = page_of(
        run("a", config={evil: 1, "b": "0123456789abcdef"}, exports=exports),
        run("b", config={evil: 2, "b": evil}, device_target="<b>", exports={"B": "x"}),
    )
    assert "alert(1)</script>" not in text and "<b>&" not in text and "0123456789abcdef" not in text


def test_a_value_without_a_letter_is_shown(run):
    trainer = ["train.py", "--amp"]
    text = page_of(
        run("a", config={"name": ""}), run("b", config={"name": "x"}, trainer=[*trainer, "--config", "train.yaml"])
    )
    assert table(text, "configs") == [[["name"], ["&quot;&quot;"], ["x"]]]
    assert [["--amp"], ["not", "set"], ["given"]] in table(text, "differences")


def test_configs_that_are_gone_are_said(run):
    text = page_of(run("a", config={"lr": 1}), run("b"))
    assert "The configs of these runs cannot be read: B. So the configs are not compared." in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "value", [None, 7, "x", "\ud800", [], [None, "'"], {"a": []}, True, "-o", ["-o", "a", "b=", "-"]]
)
def test_any_value_in_launch_json_is_compared(run, value):
    keys = ("script", "typed", "host", "folder", "run_dir", "device_target", "exports", "scheduler", "ranks", "trainer")
    odd = [run(f"odd{number}", **{key: value}) for number, key in enumerate(keys)]
    text = page_of(run("usual"), *odd, run("all", **dict.fromkeys(keys, value)))
    assert f"{len(keys) + 2} runs compared" in text


@pytest.mark.slow
def test_thirty_runs_have_thirty_letters(run):
    text = page_of(*[run(f"run{number}", (2.0, 1.0 + number)) for number in range(30)])
    assert [row[0][0] for row in table(text, "runs")] == [unlike.letter(place) for place in range(30)]
    assert "A reached the lowest loss: 1 at step 2." in text
