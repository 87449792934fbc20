"""tools/report.py and its rooms: what the page of a run says, whatever its logs and launch.json have."""

import json
import os
import re
import stat
from pathlib import Path

import json_pages
import pytest
from suite.needs import needs_root

from hccl_tools.common import language
from tools import report
from tools.pages import example_run
from tools.progress import lines
from tools.run_page import at_end, curves, document, outliers, reading
from tools.run_page.reading import Curve

PLAN = {
    **{"script": "ascend2p.sh", "started": "2026-01-31T12:00:00Z", "host": "elsewhere", "folder": "/home/user"},
    **{"device_target": "CPU", "run_dir": "x", "exports": {"RANK_SIZE": "2"}, "scheduler": []},
    "trainer": ["python", "-u", "tools/train.py", "--config", "configs/a.yaml"],
    "ranks": [{"rank": rank, "device": rank, "log": f"rank_{rank}.log"} for rank in range(2)],
}
MEMBERS = {str(rank): {"status": 0, "seconds": 60.0, "pid": 1} for rank in range(2)}
END = {"ended": "2026-01-31T12:01:02Z", "exit": 0, "first_failure": None, "stopped_by": None, "members": MEMBERS}
LOG = "".join(f"epoch: 1 step: {step}, loss is {3 / step}\n" for step in range(1, 9))


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(tmp_path):
    """run(logs by rank, outcome, **changes): a run's folder."""

    def make(logs=(LOG, LOG), outcome=END, name="run", **changes):
        folder = tmp_path / name
        folder.mkdir()
        document = {**PLAN, **changes, **({"outcome": outcome} if outcome else {})}
        (folder / "launch.json").write_text(json.dumps(document))
        for rank, log in enumerate(logs):
            if log is not None:
                (folder / f"rank_{rank}.log").write_bytes(log if isinstance(log, bytes) else log.encode())
        return folder

    return make


@pytest.fixture
def said(capsys):
    """said(WORD...): (exit status, stdout, stderr) of the command."""

    def call(*words):
        status = report.main([str(word) for word in words])
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.fixture
def page(said):
    """page(folder): the text of its page, and the data of its charts."""

    def write(*folders):
        status, out, err = said(*folders)
        assert (status, err) == (0, ""), err
        with open(out.strip(), encoding="utf-8") as file:
            text = file.read()
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
        return text, json.loads(found[1], parse_constant=pytest.fail) if found else None

    return write


def charts(data):
    return {chart["title"]: chart for chart in data["charts"]} if data else {}


# ---- what the page says ----------------------------------------------------------------------------------------------


def test_the_page_is_in_the_runs_folder_and_its_owner_may_read_it(run, said):
    folder = run()
    assert said(folder) == (0, f"{folder}/report.html\n", "")
    assert stat.S_IMODE(os.stat(folder / "report.html").st_mode) == 0o600
    assert said(folder)[0] == 0  # our own page may be replaced


def test_json_is_the_path_of_the_page(run, said):
    folder = run()
    status, out, err = said(str(folder), "--json")
    assert (status, err, json.loads(out)) == (0, "", {"file": f"{folder}/report.html", "runs": [str(folder)]})
    json_pages.check("report.py", json.loads(out))


def test_the_newest_run_is_the_default(run, said, tmp_path):
    run(name="logs")
    (tmp_path / "logs" / "latest").symlink_to(tmp_path / "logs")
    assert said()[1] == "logs/latest/report.html\n"


def test_outcome_cause_and_curves(run, page):
    failed = {**END, "exit": 3, "first_failure": "1", "diagnosis": {"exception": None, "matches": [{"cause": "why"}]}}
    text, data = page(run(outcome=failed))
    assert '<span class="state failed">exit 3</span>' in text
    assert "<h1>Rank 1 (device 1) failed first: why</h1>" in re.sub("<i.*?</i>", "", text)
    loss = charts(data)["Loss"]
    assert loss["x"] == list(range(1, 9))
    assert [(line["label"], line["y"][1]) for line in loss["lines"]] == [("rank 0", 1.5), ("rank 1", 1.5)]


def test_the_diagnosis_says_nothing_twice(run, page):
    root = {"sentence": "rank 1 failed first: OddError: no nail", "certainty": "sure", "why": "because", "chain": []}
    fault = {"code": "odd", "cause": "c", "remedy": "r", "line": "OddError: no nail"}
    said = {"exception": {"type": "OddError", "message": "no nail", "file": "a.py", "line": 3}}
    said |= {"root": {**root, "next": []}, "matches": [fault], "faults": [fault]}
    text, _ = page(run(outcome={**END, "exit": 3, "first_failure": "1", "diagnosis": said}))
    assert text.count("OddError: no nail") == 1 and "a.py:3" in text and text.count("code: odd") == 1


def test_nothing_is_loaded_and_only_known_scripts_run(run, page):
    text, _ = page(run())
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert "//" not in re.sub(r"(?s)<script.*?</script>|<style>.*?</style>", "", text)


def test_text_of_logs_and_of_launch_json_is_text(run, page):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    failed = {
        **{**END, "exit": 1, "first_failure": "1"},
        "diagnosis": {"exception": {"type": evil, "message": evil, "file": evil, "line": 1}, "matches": []},
    }
    log = LOG + f"epoch: 1, x on held-out data: 1%\n{evil}\n"
    text, data = page(run((log, log), failed, script=evil, started=evil, device_target=evil, host=evil, folder=evil))
    assert "alert(1)" in text  # it is shown
    assert "<script>alert" not in text and "<img src=x" not in text
    assert text.count("</script>") == 3
    metric = {**PLAN["ranks"][0], "host": evil}
    text, _ = page(run((log,), failed, name="b", ranks=[metric]))
    assert "<script>alert" not in text and text.count("</script>") == 3


def test_an_end_of_script_in_the_charts_data_ends_nothing(run, page, tmp_path, monkeypatch):
    table = tmp_path / "mine.yaml"
    table.write_text("progress:\n  - {name: mine, pattern: 'at (?P<step>\\d+) (?P<metric>\\S+) (?P<value><number>)'}\n")
    monkeypatch.setenv("LAUNCH_PROGRESS", str(table))
    text, data = page(run(("at 1 </script><b> 5\nat 2 </script><b> 6\n",)))
    assert [title for title in charts(data) if "</script>" in title]
    assert "</script><b>" not in text


def test_attempts_are_one_curve_and_the_last_one_counts(tmp_path):
    data = reading.read(example_run.make(str(tmp_path)), lines.load({}))
    steps = data.curves["loss"][0].steps
    assert steps == sorted(set(steps)) and (steps[0], steps[-1]) == (2, 1200)
    names = {(one.kind, one.field, one.rank) for one in outliers.find(data.curves)}
    assert names == {("drift", "loss", 6), ("slow", "data_ms", 3)}


@pytest.mark.parametrize(("first", "found"), [(1, [(1, None, None)]), (301, [(1, 301, 400)]), (391, [])])
def test_a_rank_that_becomes_slow_late_is_named_with_its_steps(first, found):
    """The rank is slow from the step `first` on, of 400."""
    steps = list(range(1, 401))
    ranks = {
        rank: Curve(steps=steps, values=[30.0 if rank == 1 and step >= first else 5.0 for step in steps])
        for rank in range(4)
    }
    times = {rank: Curve(steps=steps, values=[100.0] * len(steps)) for rank in range(4)}
    slow = outliers.find({"step_ms": times, "before_ms": ranks})
    assert [(one.rank, one.since, one.until) for one in slow] == found


def test_a_rank_that_the_launcher_named_is_on_the_page(run, page):
    row = {"rank": 1, "device": 1, "host": "a", "attempt": 0, "kind": "before", "factor": 2.0, "steps": 40}
    text, _ = page(run(outcome={**END, "stragglers": [{**row, "time_ms": 40.0, "median_ms": 20.0}, {"rank": "<b>"}]}))
    assert "slow: rank 1 (device 1 of a) took 2.0 times as long as the median rank for 40 steps" in text


@pytest.mark.slow
def test_secrets_are_masked_and_only_differences_are_shown(tmp_path, page):
    folder = example_run.make(str(tmp_path))
    with open(f"{folder}/restart_1/rank_5.log", "a", encoding="utf-8") as file:
        file.write("key is 0123456789abcdef\nRuntimeError: x\n")
    text, _ = page(folder)
    assert "0123456789abcdef" not in text and "key is &lt;masked&gt;" in text
    assert "HCCL_IF_IP" in text and "8.0.RC2" in text
    assert "OMP_NUM_THREADS" not in text and "RANK_ID" in text
    assert "bash scripts/run_cluster.sh --hostfile hosts" in text
    assert '<svg role="img" aria-label="10.0.0.' in text  # the rank table


def test_chinese(run, page, monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    language._catalogue.cache_clear()
    try:
        text, data = page(run())
    finally:
        language._catalogue.cache_clear()
    assert '<html lang="zh">' in text and "曲线" in text
    assert "损失" in charts(data)


def test_several_runs_are_compared(run, page):
    first = run(name="a")
    second = run(name="b", logs=(LOG.replace("step: 8", "step: 9"),) * 2, device_target="Ascend")
    text, data = page(first, second)
    assert (first / "compared.html").exists()
    loss = charts(data)["Loss"]
    assert [line["label"] for line in loss["lines"]] == ["A: CPU", "B: Ascend"]
    assert loss["x"] == [*range(1, 10)] and loss["lines"][0]["y"][-1] is None
    rows = re.findall(r'<tr><td data-label="name"><code>(\w+)</code></td>', text)
    assert rows == ["device_target"]


def test_configs_are_compared_without_their_secrets(run, page, tmp_path):
    folders = []
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(f"train:\n  batch: {len(folders)}\n  api_key: mine-{name}\n")
        trainer = ["python", "-u", "tools/train.py", "--config", f"{name}.yaml"]
        folders.append(run(name=name, folder=str(tmp_path), trainer=trainer))
    text, _ = page(*folders)
    row = [("name", "train.batch"), ("A", "0"), ("B", "1")]
    assert "".join(f'<td data-label="{head}"><code>{cell}</code></td>' for head, cell in row) in text
    assert "mine-a" not in text and "mine-b" not in text
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(set(names)) == len(names)


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_a_run_that_is_not_there(said, tmp_path):
    status, out, err = said("logs/nothing")
    assert (status, out) == (2, "")
    assert "logs/nothing: no such folder; name the folder of a run, such as logs/latest" in err
    (tmp_path / "empty").mkdir()
    status, _, err = said("empty")
    assert status == 2 and "empty: has no launch.json; name the folder of a run" in err


@pytest.mark.parametrize(
    "content", ['{"script": "ascend2p.sh", "ra', "[]", "[" * 100_000, '{"ranks": 7, "outcome": {"members": []}}']
)
def test_a_launch_json_that_is_half_written_or_wrong(run, page, content):
    folder = run()
    (folder / "launch.json").write_text(content)
    text, data = page(folder)
    assert "Loss" in charts(data)
    assert "The plan of the run is not known" in text or "7" in content


def test_a_run_that_goes_on(run, page):
    text, data = page(run(outcome=None))
    assert "The run still goes on." in text and charts(data)


def test_logs_of_ten_gigabytes(run, page):
    folder = run()
    with open(folder / "rank_0.log", "ab") as file:
        file.truncate(10 << 30)
    text, data = page(folder)
    assert "Too large to read completely: " in text and "Of 10.7 GB" in text
    assert charts(data)["Loss"]["x"][-1] == 8


def test_a_rank_without_numbers_and_a_log_that_is_elsewhere(run, page):
    text, data = page(run((LOG, "hello\n"), ranks=[*PLAN["ranks"], {"rank": 2, "device": 2, "log": "rank_2.log"}]))
    assert "No line with a known number: rank 1." in text
    assert "No log here: rank 2" in text
    assert [line["label"] for line in charts(data)["Loss"]["lines"]] == ["rank 0"]


def test_no_log_at_all(run, page):
    text, data = page(run((None, None)))
    assert data is None and "No log here: ranks 0,1" in text


def test_nan_and_inf(run, page):
    text, data = page(run((LOG.replace("is 1.5\n", "is nan\n").replace("is 1.0\n", "is -inf\n"), LOG)))
    assert charts(data)["Loss"]["lines"][0]["y"][1:3] == [None, None]
    assert "rank 0: Loss is not a number (nan or inf) 2 times, first at step 2" in text


def test_colours_and_binary(run, page):
    failed = {**END, "exit": 1, "first_failure": "1"}
    log = b"\x1b[31m" + LOG.encode() + b"\x00\xff\xfe\x1b]0;title\x07 the \x1b[1mend\n"
    text, data = page(run((log, log), failed))
    assert len(charts(data)["Loss"]["x"]) == 8
    assert "\x1b" not in text and "\x00" not in text and " the end" in text


def test_clocks_that_differ_are_said(run, page):
    ranks = [{**rank, "host": f"n{rank['rank']}"} for rank in PLAN["ranks"]]
    logs = [f"2026-01-31 {hour}:00:00 begins\n{LOG}" for hour in (12, 13)]
    text, _ = page(run(logs, ranks=ranks))
    assert "The first lines of n1 and of n0 are 3600 s apart: the clocks differ" in text
    assert " s apart" not in page(run(logs[:1] * 2, ranks=ranks, name="b"))[0]


def test_a_folder_that_cannot_be_written(run, said):
    folder = run()
    (folder / "report.html").mkdir()
    status, _, err = said(folder)
    assert status == 2 and "report.html: cannot be written: " in err
    (folder / "report.html").rmdir()
    (folder / "report.html").write_text("mine")
    status, _, err = said(folder)
    assert status == 2 and "there is another file of that name; name a new one with --output FILE" in err
    assert (folder / "report.html").read_text() == "mine"
    assert said(folder, "--output", "page.html")[:2] == (0, "page.html\n")


@needs_root
def test_a_read_only_folder_names_output(run, said):
    folder = run()
    if os.system(f"mount --bind {folder} {folder} 2>/dev/null && mount -o remount,ro,bind {folder} 2>/dev/null"):
        os.system(f"umount {folder} 2>/dev/null")
        pytest.skip("needs mount: a folder that root cannot write")
    try:
        status, _, err = said(folder)
    finally:
        os.system(f"umount {folder}")
    assert status == 2 and "Read-only file system; name another place with --output FILE" in err


# ---- many ranks and steps --------------------------------------------------------------------------------------------


def test_of_many_steps_peaks_stay_and_the_page_says_so(run, page):
    log = "".join(f"epoch: 1 step: {step}, loss is {9 if step == 7777 else 1}.5\n" for step in range(1, 10_001))
    text, data = page(run((log,)))
    loss = charts(data)["Loss"]
    assert len(loss["x"]) <= curves.MOST_POINTS
    assert max(loss["lines"][0]["y"]) == 9.5
    assert "Sampled: 10 logged steps share two points." in text


def test_of_many_ranks_the_middle_and_those_that_differ():
    ranks = {rank: Curve(steps=[1, 2, 3], values=[1.0, 2.0 + rank / 1000, 3.0]) for rank in range(101)}
    drawn = curves.draw(ranks, [7])
    assert list(drawn.ranks) == [7]
    assert (drawn.low[1], drawn.middle[1], drawn.high[1]) == (2.005, 2.05, 2.095)


@pytest.mark.slow
def test_of_very_many_ranks_some_logs_are_read():
    ranks = [reading.Rank(rank=rank, device=0, host=None, log="x") for rank in range(65_536)]
    failed = reading.Attempt(
        **{"logs": ".", "ended": None, "exit": 1, "first_failure": "4097", "also_failed": ("5001", "0")},
        **{"stopped_by": None, "lost_host": None, "members": {}},
    )
    chosen = [rank.rank for rank in reading.chosen_of(ranks, [failed], told=[6001, 70_000])]
    assert reading.MOST_LOGS - 2 <= len(chosen) <= reading.MOST_LOGS
    assert {0, 4097, 5001, 6001, 65_535} < set(chosen) and chosen == sorted(chosen)


# ---- at a job's end --------------------------------------------------------------------------------------------------


def test_a_large_run_gets_no_page_by_itself(run):
    folder = run()
    assert at_end.is_small(str(folder))
    with open(folder / "rank_1.log", "ab") as file:
        file.truncate(100 << 20)
    assert not at_end.is_small(str(folder))


# ---- launch.json may be anybody's ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("odd", [None, -1, 10**30, [None], {}, "\ud800", "a\x00b", "</script>"], ids=ascii)
def test_any_value_in_launch_json(tmp_path, odd):
    folder = example_run.make(str(tmp_path))
    for log in Path(folder).rglob("rank_*.log"):
        log.write_text(LOG)  # a page for each place: short logs
    with open(f"{folder}/launch.json", encoding="utf-8") as file:
        plan = json.load(file)
    outcome, first = plan["outcome"], plan["outcome"]["attempts"][0]
    for holder, name in (
        *((plan["ranks"][0], name) for name in ("rank", "device", "log", "host")),
        *((outcome["members"], name) for name in ("0", "5")),
        *((first, name) for name in ("ended", "exit", "logs", "first_failure", "members")),
        *((outcome["diagnosis"]["exception"], name) for name in ("type", "message", "line")),
        *((outcome["diagnosis"]["matches"][0], name) for name in ("code", "cause", "line")),
        *((plan, name) for name in ("started", "folder", "typed", "exports", "trainer", "host", "script")),
    ):
        before = holder[name]
        holder[name] = odd
        with open(f"{folder}/launch.json", "w", encoding="utf-8") as file:
            json.dump(plan, file)
        text = document.of_runs([reading.read(folder, [])])
        assert text.count("</script>") <= 3 and "\x00" not in text, name
        holder[name] = before
