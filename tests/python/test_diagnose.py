import json
import os
import random
import re
import subprocess
import sys

import documents
import pytest

from hccl_tools.check import schema_check
from tools.diagnosis import find as diagnose
from tools.diagnosis import known_failures, log_tail
from tools.pages import known_failures_page

ENTRIES, COMPLAINTS = known_failures.load({})
CODES = [entry.code for entry in ENTRIES]
SAMPLES = [(entry.code, sample) for entry in ENTRIES for sample in entry.samples]


@pytest.fixture(autouse=True)
def english(monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", known_failures.VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def launched(tmp_path):
    """launched({"0": (status, log)}, first="0"): the folder of a run that has ended so; a log of None is missing."""

    def make(members, first="0", logs=None):
        folder = tmp_path / "run"
        (folder / (logs or ".")).mkdir(parents=True)
        for name, (_, log) in members.items():
            file = folder / (logs or ".") / (f"rank_{name}.log" if name.isdecimal() else f"{name}.log")
            if log is not None:
                file.write_bytes(log if isinstance(log, bytes) else log.encode())
        outcome = {
            "ended": "2026-01-31T12:00:00Z",
            "exit": 1,
            "first_failure": first,
            "stopped_by": None,
            "members": {name: {"status": status, "seconds": 1.5} for name, (status, _) in members.items()},
        }
        plan = {
            "script": "ascend4p.sh",
            "started": "2026-01-31T12:00:00Z",
            "host": "here",
            "folder": "/home/user/job",
            "device_target": "CPU",
            "run_dir": str(folder),
            "exports": {"名": "值"},
            "trainer": ["python"],
            "scheduler": [],
            "ranks": [{"rank": 0, "device": 0, "log": "rank_0.log"}],
            "outcome": {**outcome, **({"logs": logs} if logs else {})},
        }
        (folder / "launch.json").write_text(json.dumps(plan, ensure_ascii=False, indent=2))
        return folder

    return make


@pytest.fixture
def explained(launched, capsys):
    """explained({"0": (status, log)}, ...): (what is said on stdout, outcome.diagnosis of launch.json)."""

    def run(members, *options, **arguments):
        folder = launched(members, **arguments)
        assert diagnose.main([str(folder), *options]) == 0
        outcome = json.loads((folder / "launch.json").read_text())["outcome"]
        return capsys.readouterr().out, outcome.get("diagnosis")

    return run


def codes(diagnosis):
    return [match["code"] for match in diagnosis["matches"]]


def log_of(root, name):
    return (root / "tests" / "fixtures" / "rank_logs" / f"{name}.log").read_text()


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_table_has_no_mistake():
    assert COMPLAINTS == []
    assert len(CODES) == len(set(CODES)) > 70


def test_the_catalogue_of_hccl_is_complete():
    wanted = [f"EI00{number:02}" for number in range(1, 21)] + [f"EJ000{number}" for number in range(1, 5)]
    assert set(wanted) <= set(CODES)


@pytest.mark.parametrize(("code", "sample"), SAMPLES, ids=[f"{code}-{n}" for n, (code, _) in enumerate(SAMPLES)])
def test_a_sample_is_taken_by_its_own_entry(code, sample):
    assert [entry.code for entry, _ in known_failures.by_lines(ENTRIES, ["before", sample, "after"])] == [code]


@pytest.mark.parametrize("entry", ENTRIES, ids=CODES)
def test_every_pattern_has_a_sample(entry):
    assert [p.pattern for p in entry.patterns if not any(map(p.search, entry.samples))] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=CODES)
def test_every_entry_is_told_in_both_languages(entry):
    assert all(re.search("[\u4e00-\u9fff]", text) and not text.endswith("。") for text in entry.zh)
    assert all(text.isascii() and not text.endswith(".") for text in (entry.cause, entry.remedy))


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.status], ids=lambda entry: entry.code)
def test_a_status_is_taken_by_its_own_entry(entry):
    for status in entry.status:
        assert known_failures.by_status(ENTRIES, status, oom_kills=entry.oom_kill) is entry


def test_a_good_log_has_no_known_failure():
    log = ["epoch: 1 step: 8, loss is 2.3026", "accuracy on held-out data: 97.1%", "loss is infinitely better than nan"]
    assert known_failures.by_lines(ENTRIES, log) == []


@pytest.mark.parametrize(("language", "page"), [("en", "docs/when_it_fails.md"), ("zh", "docs/zh/when_it_fails.md")])
def test_the_pages_are_what_the_table_says(root, language, page):
    told = "" if language == "en" else " zh"
    assert (root / page).read_text(encoding="utf-8") == known_failures_page.page(language), (
        f"run: python -m tools.pages.known_failures_page{told} > {page}"
    )


def test_the_example_of_the_page_is_a_good_file(tmp_path):
    page = "docs/when_it_fails.md"
    (example,) = (block for block in documents.blocks(page, documents.read(page)) if block.verb == "file")
    path = tmp_path / "mine.yaml"
    path.write_text(example.text, encoding="utf-8")
    entries, complaints = known_failures.load_file(str(path))
    assert ([entry.code for entry in entries], complaints) == (["license-server"], [])


# --- the user's own file ----------------------------------------------------------------------------------------------

MINE = """\
diagnoses:
  - code: mine
    patterns: ['disk .* is full', 'No space left']
    cause: our disk
    remedy: ask Li
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """own(text): the file that LAUNCH_DIAGNOSES names."""

    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        monkeypatch.setenv(known_failures.VARIABLE, str(path))

    return write


def test_entries_of_the_user_come_first(own, explained):
    own(MINE)
    said, diagnosis = explained({"0": (1, "OSError: [Errno 28] No space left on device\n")})
    assert codes(diagnosis) == ["mine"]
    assert "ask Li" in said


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("'disk .* is full'", "'disk (.* is full'", 3, "is no regular expression"),
        ("cause: our disk", "course: our disk", 2, '"cause" is missing'),
        ("code: mine", "code: my own", 2, "does not fit"),
        ("patterns: ['disk .* is full', 'No space left']", "vague: yes", 2, "neither patterns nor status"),
        ("patterns:", "status: [300]\n    patterns:", 3, "too large"),
        ("    cause: our disk\n", "   cause: our disk\n", 4, "not YAML"),
    ],
)
def test_a_mistake_of_the_user_is_told_with_its_line(own, launched, capsys, old, new, line, told):
    own(MINE.replace(old, new, 1) + "  - {code: also-mine, status: [1], cause: c, remedy: r}\n")
    folder = launched({"0": (1, "OSError: [Errno 28] No space left on device\n")})
    assert diagnose.main([str(folder)]) == 0
    out, err = capsys.readouterr()
    assert f"mine.yaml:{line}: " in err and told in err, err
    assert "no-space-left" in out
    assert ("also-mine" in out) == (told != "not YAML")


def test_a_file_of_the_user_that_is_missing_is_told(monkeypatch, launched, capsys):
    monkeypatch.setenv(known_failures.VARIABLE, "/no/such.yaml")
    assert diagnose.main([str(launched({"0": (137, "")}))]) == 0
    out, err = capsys.readouterr()
    assert "/no/such.yaml: no such file" in err
    assert out.startswith("killed (rank 0, exit status 137)")


# --- real failures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raised", "line", "known"),
    [
        ("invalid-backend", "RuntimeError: Invalid communication backend: CPU", 14, ["invalid-backend"]),
        ("dataset-missing", "ValueError: The folder /nonexistent/digits does not exist", 5, ["dataset-missing"]),
        ("operator-shapes", "RuntimeError: For 'MatMulExt' op, shape1[-1] must be", 12, []),
        ("no-ascend-software", "RuntimeError: Unsupported device target Ascend", 14, ["no-ascend-software"]),
        (
            "no-gpu-software",
            "RuntimeError: Unsupported device target GPU",
            3,
            ["no-gpu-software", "no-ascend-software"],
        ),
        ("data-function", "KeyError: 'label missing'", 21, ["data-function-failed"]),
        ("scheduler-timeout", "RuntimeError: Failed to initialize distributed job", 8, ["scheduler-timeout"]),
        ("port-in-use", "RuntimeError: Failed to initialize", 8, ["port-in-use", "scheduler-timeout"]),
        ("no-cluster-environment", "RuntimeError: Maybe you are trying to call", 8, ["no-cluster-environment"]),
        ("checkpoint-mismatch", "RuntimeError: For 'load_param_into_net'", 8, ["checkpoint-mismatch"]),
        ("checkpoint-torn", "ValueError: Failed to read the checkpoint file", 10, ["checkpoint-torn"]),
        ("old-mindspore-api", "ModuleNotFoundError: No module named 'mindspore.d", 12, ["old-mindspore-api"]),
        ("out-of-host-memory", "RuntimeError: Allocate memory failed", 22, ["out-of-host-memory"]),
    ],
)
def test_a_real_failure_of_mindspore(root, explained, name, raised, line, known):
    said, diagnosis = explained({"0": (1, log_of(root, name))})
    assert said.startswith(f"rank 0: {raised}")
    assert f"    raised at /home/user/job/train.py:{line} in " in said
    assert codes(diagnosis) == known
    assert "C++ Call Stack" not in said and "C++ Call Stack" not in diagnosis["exception"]["message"]


def failing(tmp_path, source):
    """The log of a process that runs `source`."""
    path = tmp_path / "trainer.py"
    path.write_text(source)
    ended = subprocess.run([sys.executable, str(path)], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, timeout=60)
    return ended.stdout


@pytest.mark.parametrize(
    ("source", "kind", "message", "line"),
    [
        ("1 / 0\n", "ZeroDivisionError", "division by zero", 1),
        ("def f():\n    raise KeyError\nf()\n", "KeyError", "", 2),
        ("import json\n\njson.loads('{')\n", "json.decoder.JSONDecodeError", "Expecting property name", 3),
        ("import importlib\nimportlib.import_module('no_such_thing')\n", "ModuleNotFoundError", "No module", 2),
        (
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('later') from e\n",
            "ValueError",
            "later",
            4,
        ),
        ("raise RuntimeError('first\\nsecond')\n", "RuntimeError", "first\nsecond", 1),
        ("def f():\n    f()\nf()\n", "RecursionError", "maximum recursion depth", 2),
        ("x = = 1\n", "SyntaxError", "invalid syntax", 1),
        (
            "import logging\ntry:\n    1 / 0\nexcept Exception:\n    logging.exception('it failed')\n",
            "ZeroDivisionError",
            "",
            3,
        ),
        (
            "class A:\n    def __del__(self):\n        raise OSError\na = A()\nraise ValueError('the reason')\n",
            "ValueError",
            "the reason",
            5,
        ),
    ],
)
def test_the_exception_that_python_prints(tmp_path, source, kind, message, line):
    (tmp_path / "log").write_bytes(failing(tmp_path, source))
    found = log_tail.last_exception(log_tail.read(str(tmp_path / "log")).lines)
    assert (found.type, found.line) == (kind, line)
    assert found.message.startswith(message)
    assert found.file.endswith("trainer.py")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_an_exception_group_is_its_last_exception(tmp_path):
    source = "def f():\n    raise KeyError('k')\n"
    source += "try:\n    f()\nexcept KeyError as e:\n    raise ExceptionGroup('one', [e])\n"
    (tmp_path / "log").write_bytes(failing(tmp_path, source))
    found = log_tail.last_exception(log_tail.read(str(tmp_path / "log")).lines)
    assert (found.type, found.message, found.line) == ("KeyError", "'k'", 2)


def test_a_traceback_behind_another_programs_prefix():
    lines = ["[rank1]: Traceback (most recent call last):", '[rank1]:   File "a.py", line 3, in f', "[rank1]:     x"]
    lines += ["epoch 1", "[rank1]: ValueError: no", "[rank1]: more", "step 2"]
    found = log_tail.last_exception(lines)
    assert (found.type, found.message, found.file, found.line) == ("ValueError", "no\nmore", "a.py", 3)


def test_a_message_ends_where_other_lines_begin():
    lines = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "ValueError: no", "more"]
    for other in ("[ERROR] DISTRIBUTED(1): x", "-" * 40, "", "Traceback (most recent call last):"):
        assert log_tail.last_exception([*lines, other, "y"]).message == "no\nmore"


def test_thousands_of_tracebacks_that_break_off_are_not_read_again_and_again(monkeypatch):
    lines = [" " * (number % 50) + "Traceback (most recent call last):" for number in range(5000)]
    tried = []
    frame = log_tail._FRAME
    monkeypatch.setattr(
        log_tail, "_FRAME", type("Counted", (), {"match": lambda _, line: tried.append(frame.match(line))})()
    )
    assert log_tail.last_exception(lines) is None
    assert len(tried) < 2 * len(lines)


def test_an_exception_within_libraries_is_placed_in_them():
    library = "/opt/lib/python3.11/site-packages/x"
    lines = ["Traceback (most recent call last):", f'  File "{library}/a.py", line 1, in f']
    lines += [f'  File "{library}/b.py", line 2, in g', '  File "<frozen importlib>", line 3, in h', "KeyError: 1"]
    assert log_tail.last_exception(lines).line == 3


def test_the_code_of_a_traceback_is_no_event(explained):
    log = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    raise X("No space left on device")\n'
    assert codes(explained({"0": (1, log + "    ^^^^^^^^\nX: y\n")})[1]) == []


# --- which log, which entry -------------------------------------------------------------------------------------------

TERMINATED = 143


def test_the_log_of_the_rank_that_failed_first_counts_most(explained):
    members = {"0": (1, "EI0006: timeout\n"), "1": (1, "MemoryError\n"), "2": (TERMINATED, "Too many open files\n")}
    said, diagnosis = explained(members, first="1")
    assert codes(diagnosis) == ["out-of-host-memory", "EI0006"]
    assert [match["rank"] for match in diagnosis["matches"]] == [1, 0]
    assert said.index("out-of-host-memory (rank 1, ") < said.index("EI0006 (rank 0, ")


def test_a_cause_in_another_rank_comes_before_what_is_vague(explained):
    members = {
        "scheduler": (1, "bind: Address already in use\n"),
        "0": (1, "Failed to initialize distributed job cluster\n"),
    }
    said, diagnosis = explained(members)
    assert codes(diagnosis) == ["port-in-use", "scheduler-timeout"]
    assert diagnosis["matches"][0]["rank"] == "scheduler"
    assert said.startswith("port-in-use (MindSpore's scheduler, ")
    assert "also seen: scheduler-timeout (rank 0, " in said


def test_the_exception_counts_more_than_what_was_logged_before(explained):
    raised = 'Traceback (most recent call last):\n  File "a.py", line 3\nConnectionRefusedError: no\n'
    said, diagnosis = explained({"0": (1, "Cannot allocate memory\n" * 3 + raised)})
    assert codes(diagnosis) == ["connection-refused", "out-of-host-memory"]
    assert "out-of-host-memory (rank 0, " in said and ":3, earlier than the exception)" in said


def test_a_code_that_many_ranks_have_is_told_once(explained):
    _, diagnosis = explained({str(rank): (1, "x\nEI0002: waited\n") for rank in range(12)}, first="5")
    assert [(match["code"], match["rank"], match["row"]) for match in diagnosis["matches"]] == [("EI0002", 5, 2)]


def test_the_scheduler_may_fail_first_and_logs_may_lie_in_a_folder(explained):
    said, diagnosis = explained(
        {"scheduler": (1, "Address already in use\n"), "0": (TERMINATED, "")}, first="scheduler", logs="attempt_2"
    )
    assert codes(diagnosis) == ["port-in-use"]
    assert "attempt_2/scheduler.log:1" in said


def test_an_engine_is_no_rank_and_has_a_log_of_its_own(explained):
    lost = "ORTE has lost communication with a remote daemon.\n\n  Remote daemon: [[1,0],1] on node node1\n"
    said, diagnosis = explained({"mpirun": (205, lost), "0": (TERMINATED, "")}, first="mpirun")
    assert codes(diagnosis) == ["host-lost"]
    assert said.startswith("host-lost (mpirun, ") and "mpirun.log:3)" in said


@pytest.mark.parametrize(
    ("options", "known"), [([], "killed"), (["--oom_kills", "0"], "killed"), (["--oom-kills", "2"], "killed-by-kernel")]
)
def test_who_killed_the_rank(explained, options, known):
    said, diagnosis = explained({"0": (137, "step 3\n")}, *options)
    assert codes(diagnosis) == [known]
    assert diagnosis["matches"][0]["line"] is None
    assert f"{known} (rank 0, exit status 137)" in said


def test_a_kill_by_the_kernel_does_not_explain_another_status(explained):
    said, diagnosis = explained({"0": (3, "step 3\n")}, "--oom_kills", "2")
    assert codes(diagnosis) == []
    assert "rank 0 ended with status 3" in said and "no Python exception" in said and "it ends: step 3" in said


# --- Chinese ----------------------------------------------------------------------------------------------------------


def test_a_chinese_message_is_answered_in_chinese_too(explained):
    said, _ = explained({"0": (1, "cp: 写入 a 时出错: 设备上没有空间\n")})
    assert "no-space-left" in said and "原因：磁盘已满" in said and "cause: a disk is full" in said


@pytest.mark.parametrize(
    ("variables", "chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "C"}, True),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "zh_CN"}, True),
        ({}, False),
    ],
)
def test_the_locale_chooses_the_language(explained, monkeypatch, variables, chinese):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    said, _ = explained({"0": (1, "No space left on device\n")})
    assert ("处理：" in said) == chinese


def test_a_terminal_without_chinese_is_no_failure(launched, run):
    folder = launched({"0": (1, "设备上没有空间\n")})
    ended = run("tools/diagnose.py", folder, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "no-space-left" in ended.stdout and "\\u539f\\u56e0" in ended.stdout


# --- odd logs, odd runs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty: it ended before it wrote anything"),
        (b"\n\n", "is empty"),
        (random.Random(7).randbytes(70000), "no Python exception"),
        (b"\x00" * 1000, "is empty"),
        (b"Traceback (most recent call last):\n", "no Python exception"),
        (b'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    half a li', "no Python exception"),
    ],
    ids=["missing", "empty", "blank", "junk", "zeros", "broken-off", "broken-off-later"],
)
def test_a_log_that_says_nothing(explained, log, told):
    said, diagnosis = explained({"0": (5, log)})
    assert said.startswith("rank 0 ended with status 5; its log ") and told in said
    assert diagnosis == {"exception": None, "matches": []}


@pytest.mark.parametrize(
    "log",
    [
        b"\x1b[31mOSError: No space \x1b[1mleft on device\x1b[0m\n",
        b"  1%|#\r 50%|##\rOSError: No space left on device\r\n",
        b"\xff\xfe\x00 No space left on device \x80\n",
        b"No space left on device",
        b"x\n" * 200000 + b"No space left on device\n",
        b"x" * 300000 + b"\nNo space left on device\n" + b"y" * 100000,
        "\ud800No space left on device\n".encode("utf-8", "surrogatepass"),
    ],
    ids=["colours", "bars", "junk", "no-newline", "long", "long-line", "surrogate"],
)
def test_a_log_with_colours_bars_junk_or_very_much(explained, log):
    assert codes(explained({"0": (1, log)})[1]) == ["no-space-left"]


def test_a_progress_bar_is_what_a_terminal_shows(tmp_path):
    (tmp_path / "log").write_bytes(b"  1%|#\r 50%|##\r100%|###\r\nnext\r\n")
    assert log_tail.read(str(tmp_path / "log")).lines == ["100%|###", "next"]


def test_lines_are_numbered_where_the_whole_log_was_read(explained):
    said, diagnosis = explained({"0": (1, "a\nb\nNo space left on device\n")})
    assert diagnosis["matches"][0]["row"] == 3 and "rank_0.log:3)" in said


def test_lines_are_not_numbered_in_the_end_of_a_long_log(explained):
    said, diagnosis = explained({"0": (1, "a\n" * 200000 + "No space left on device\n")})
    assert diagnosis["matches"][0]["row"] is None and "rank_0.log)" in said


def test_nothing_of_a_log_reaches_the_terminal_as_a_command(explained):
    said, _ = explained({"0": (1, b"\x1b]0;title\x07\x1b[2J\x9b No space left on device\x08\n")})
    assert all(character.isprintable() or character == "\n" for character in said)


def test_a_pipe_in_the_place_of_a_log_does_not_hold_us_up(launched, capsys):
    folder = launched({"0": (1, None)})
    os.mkfifo(folder / "rank_0.log")
    assert diagnose.main([str(folder)]) == 0
    assert "no regular file" in capsys.readouterr().out


def test_a_run_without_failure_has_nothing_to_explain(launched, capsys):
    folder = launched({"0": (0, "EI0006\n")}, first=None)
    before = (folder / "launch.json").read_bytes()
    assert diagnose.main([str(folder)]) == 0
    assert capsys.readouterr().out == "no rank failed: nothing to explain\n"
    assert (folder / "launch.json").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "no such file; name the folder of a run"),
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100000, "is not JSON"),
        ("[]", "has no outcome"),
        ('{"outcome": null}', "has no outcome"),
        ('{"script": "x"}', "has no outcome"),
    ],
)
def test_a_folder_that_holds_no_run(tmp_path, run, text, told):
    if text is not None:
        (tmp_path / "launch.json").write_text(text)
    ended = run("tools/diagnose.py", tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1 and told in ended.stderr


@pytest.mark.parametrize(
    "outcome",
    [
        {"first_failure": "0"},
        {"first_failure": "0", "members": []},
        {"first_failure": 0, "members": {"0": 3, "1": {"status": "x"}, "2": {"status": [1]}, "3": {}}},
        {"first_failure": "0\0", "members": {}, "logs": 7},
    ],
)
def test_an_outcome_of_odd_shape(tmp_path, run, outcome):
    (tmp_path / "launch.json").write_text(json.dumps({"outcome": outcome}))
    ended = run("tools/diagnose.py", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "cannot be read" in ended.stdout


# --- launch.json ------------------------------------------------------------------------------------------------------


def test_launch_json_keeps_what_it_had_and_satisfies_its_schema(root, launched):
    folder = launched({"0": (1, log_of(root, "port-in-use")), "1": (137, "")})
    path = folder / "launch.json"
    path.chmod(0o640)
    before = json.loads(path.read_text())
    assert diagnose.main([str(folder)]) == 0
    after = json.loads(path.read_text())
    assert schema_check.problems(after, schema_check.load_schema("launch")) == []
    assert after["outcome"].pop("diagnosis")["exception"]["type"] == "RuntimeError"
    assert after == before and "名" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(file.name for file in folder.iterdir()) == ["launch.json", "rank_0.log", "rank_1.log"]


def test_explaining_twice_is_explaining_once(launched):
    folder = launched({"0": (1, "\udcff EI0006\n".encode("utf-8", "surrogateescape"))})
    diagnose.main([str(folder)])
    once = (folder / "launch.json").read_bytes()
    diagnose.main([str(folder)])
    assert (folder / "launch.json").read_bytes() == once


def test_a_name_that_is_not_utf8_stays_what_it_is(launched):
    folder = launched({"0": (1, "EI0006\n")})
    path = folder / "launch.json"
    path.write_text(path.read_text().replace("/home/user/job", "/home/\\udcff"))
    assert diagnose.main([str(folder)]) == 0
    assert json.loads(path.read_text())["folder"] == "/home/\udcff"


def test_a_launch_json_that_cannot_be_written_is_told(launched, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    folder = launched({"0": (1, "EI0006\n")})
    before = (folder / "launch.json").read_bytes()
    monkeypatch.setattr(diagnose.os, "replace", full)
    assert diagnose.main([str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "EI0006" in out and "the diagnosis is not in it: No space left on device" in err
    assert (folder / "launch.json").read_bytes() == before


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_reader_who_left_is_no_failure(launched, root):
    folder = launched({"0": (1, "EI0006\n")})
    command = f'"{sys.executable}" "{root}/tools/diagnose.py" "{folder}" | true; echo ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert (ended.stdout, ended.stderr) == ("0\n", "")
    assert "diagnosis" in json.loads((folder / "launch.json").read_text())["outcome"]


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--oom_kills", "many", "a"], ["--oom", "1", "a"]])
def test_wrong_arguments(run, arguments):
    ended = run("tools/diagnose.py", *arguments)
    assert ended.returncode == 2 and ended.stderr.startswith("usage: ")


def test_nothing_slow_is_imported(launched, root):
    folder = launched({"0": (1, "EI0006\n")})
    program = "import sys; from tools.diagnosis import find; find.main(sys.argv[1:]); print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", program, str(folder)], cwd=root, capture_output=True, text=True, timeout=60, check=True
    )
    assert not {"jsonschema", "numpy", "mindspore", "rich"} & set(ended.stdout.split())
