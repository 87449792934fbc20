"""What is printed: the answer first, at most 12 lines of 200 characters, nothing twice, none harms a terminal."""

import gzip
import io
import json
import os
import random
import re
import shlex
import tarfile
from pathlib import Path

import plogs
import pytest
from logs.known import ENTRIES

from hccl_tools.check import schema_check
from hccl_tools.common import language, project, typed
from tools.diagnosis import answer, job_logs, main, words
from tools.logs import loud

SCHEMA = schema_check.load_schema("diagnosis")
FIELD = os.environ.get("FIELD_FAULTS")
CASES = (
    sorted(
        path
        for path in [*Path(FIELD).iterdir(), *Path(FIELD, "kinds").iterdir()]
        if path.is_dir() and path.name != "kinds"
    )
    if FIELD
    else []
)
RAISED = 'Traceback (most recent call last):\n  File "train.py", line 11, in step\n    1 / 0\n'


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    language._catalogue.cache_clear()


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """logs({"rank_0.log": text}): the lines about these logs."""
    monkeypatch.chdir(tmp_path)

    def make(texts):
        for name, text in texts.items():
            path = tmp_path / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return said("logs")

    return make


def said(path):
    """The lines; they keep the rules of all answers."""
    lines = words.lines_of(answer.of_logs(job_logs.of_paths([str(path)], ENTRIES)))
    kept(lines)
    return lines


def kept(lines):
    assert 1 <= len(lines) <= words.MOST_LINES, lines
    assert all(len(line) <= words.COLUMNS and line.isprintable() for line in lines), lines
    assert not lines[0].startswith(" ") and all(line.startswith("    ") for line in lines[1:]), lines
    assert len(set(lines)) == len(lines), lines
    told = re.split(r"\n    (?:also|另外)", "\n".join(lines))[0]
    paths = re.findall(r"[\w./-]+\.log\b", told)
    assert len(set(paths)) == len(paths), lines


# --- the answer first, and nothing twice ------------------------------------------------------------------------------


def test_the_first_line_is_the_answer_and_those_that_are_alike_come_once(logs):
    texts = {f"rank_{rank}.log": RAISED + "OddError: no nail\n" for rank in range(5)}
    first, sure, *lines = logs({**texts, "rank_5.log": RAISED + "OtherError: 5\n"})
    assert sure.startswith("    how sure: ") and [first, *lines] == [
        "rank 5 failed first: OtherError: 5, raised at train.py:11 in step",
        "    ranks 0-4: OddError: no nail",
        "    next: the log of rank 5: logs/rank_5.log:4",
    ]


def test_a_cause_without_a_rank(logs):
    line = "cp: error writing 'a': No space left on device"
    assert logs({"copy.log": f"{line}\n"})[:2] == [
        "a disk is full, or its inodes are used up (no-space-left, logs/copy.log:1)",
        f"    seen: {line}",
    ]


@pytest.mark.slow
def test_a_job_of_many_ranks(tmp_path):
    for seed in range(6):
        chance = random.Random(seed)
        job = plogs.Job(tmp_path / str(seed), ranks=64, silent=(5,) if seed % 2 else ())
        for rank in range(64):
            chance.choice([job.link, job.notify])(rank, chance.choice([3, 5, (rank + 1) % 64]), seconds=150 + rank / 9)
            for entry in chance.sample([one for one in ENTRIES if "plog" in one.logs and one.samples], 3):
                job.write(rank, 200 + rank, entry.samples[0].partition("\n")[0])
        said(tmp_path / str(seed))


def test_every_known_failure_alone(logs, tmp_path):
    for number, entry in enumerate(ENTRIES):
        if entry.samples and "train" in entry.logs and number % 7 == 0:
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "rank_3.log").write_text("\n".join(entry.samples) + "\n")
            said(folder)


@pytest.mark.skipif(not FIELD, reason="FIELD_FAULTS does not name a folder of real failures")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("tongue", ["en", "zh"])
def test_real_failures(case, tongue, monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", tongue)
    language._catalogue.cache_clear()
    said(case / "input" if (case / "input").is_dir() else case)


# --- lines that are too long ------------------------------------------------------------------------------------------


def test_a_remedy_is_cut_between_clauses_and_never_within_a_command(monkeypatch):
    for entry in ENTRIES:
        for text in (*(entry.zh or ()), entry.cause, entry.remedy):
            lines = words.folded(f"    {text}", 170)
            assert len(lines) <= 2 and max(map(len, lines)) <= 170
            assert all(line.count('"') % 2 == 0 for line in lines) or text.count('"') % 2, lines
            whole = words.folded(f"    {text}", 170, 4)
            assert " ".join(map(str.strip, whole)).replace(" ", "") == text.replace(" ", "")


def test_of_the_longest_remedy_each_step_is_shown(logs):
    entry = max((one for one in ENTRIES if "train" in one.logs and not one.vague), key=lambda one: len(one.remedy))
    lines = logs({"rank_0.log": entry.samples[0]})
    assert any(line.strip().endswith(entry.remedy[-20:]) for line in lines), lines


def test_of_a_long_line_the_part_that_shows_it_is_told(logs):
    lines = logs({"rank_0.log": "x" * 900 + " No space left on device " + "y" * 900 + "\n"})
    assert any("No space left on device" in line for line in lines[1:]), lines


def test_a_long_exception_keeps_its_place(logs):
    lines = logs({"rank_0.log": RAISED + "ValueError: " + "long " * 300 + "\n"})
    assert "... , raised" not in lines[0] and lines[0].endswith("..., raised at train.py:11 in step")


# --- when nothing is known --------------------------------------------------------------------------------------------


def test_what_only_one_rank_printed_comes_first(logs):
    texts = {f"rank_{rank}.log": f"step {rank}\n[ERROR] 2026-01-01 00:00:0{rank} odd 0x{rank}f\n" for rank in range(4)}
    texts["rank_2.log"] += "mystery: cannot grumble\n"
    assert logs(texts) == [
        "not a known failure; look first at rank 2, logs/rank_2.log:3: mystery: cannot grumble",
        "    ranks 0-3, logs/rank_0.log:2: [ERROR] 2026-01-01 00:00:00 odd 0x0f",
        "    next: pack the logs for someone who can help: "
        f"python {project.ROOT}/tools/diagnose.py --bundle bundle.tar.gz logs",
    ]


@pytest.mark.parametrize(
    "empty",
    [
        "ERROR WorkerProc hit an exception.",
        "An unexpected error occurred!",
        "ERROR: Engine process failed to start. See stack trace for the root cause.",
    ],
)
def test_a_line_that_only_tells_that_something_failed_comes_later(logs, empty):
    lines = logs({"rank_0.log": f"{empty}\nERROR the gadget cannot grumble\n"})
    assert lines[:2] == [
        "not a known failure; look first at rank 0, logs/rank_0.log:2: ERROR the gadget cannot grumble",
        f"    line 1: {empty}",
    ]
    more = f"{empty.rstrip('.!')} at seventeen gadgets of the third row next to the window"
    lines = logs({"rank_0.log": f"{more}\nERROR the gadget cannot grumble\n"})
    assert f"logs/rank_0.log:1: {more}" in lines[0]


def test_lines_that_look_like_errors_and_do_not_mean_it(logs):
    healthy = "[WARNING] failed once\nINFO error handler ready\nerrors: 0, failed: 0\nno errors\n- Error Message:\n"
    line, last = logs({"rank_0.log": "epoch 1\n" + healthy + "the gadget has left\n\n"})
    assert line.startswith("nothing is found: ")
    assert last == "    logs/rank_0.log ends with: the gadget has left"


def test_how_logs_end_is_shown_of_a_few_that_say_anything(logs):
    lines = logs({"rank_0.log": "\n\n", **{f"rank_{rank}.log": f"step {rank}\n" for rank in range(1, 9)}})
    assert lines[1:] == [f"    logs/rank_{rank}.log ends with: step {rank}" for rank in (1, 2)]


@pytest.mark.parametrize("name", ["rank_0.log.gz", "logs.tar.gz"])
def test_how_a_packed_log_ends_is_shown_as_text(tmp_path, name):
    text, path = b"starting\nthe gadget is gone\n", tmp_path / name
    if name.startswith("rank"):
        path.write_bytes(gzip.compress(text))
    else:
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo("rank_0.log")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    found = answer.of_logs(job_logs.of_paths([str(path)], ENTRIES))
    assert len(found.details) == 1 and found.details[0].endswith(" ends with: the gadget is gone")


def test_what_is_not_permitted_looks_like_an_error(logs):
    lines = logs({"sshd.log": "chroot: Operation not permitted [preauth]\nstep 3\n"})
    assert "look first at " in lines[0] and "Operation not permitted" in lines[0]


def test_the_head_of_a_traceback_alone_says_nothing():
    cut = b"step 3\nTraceback (most recent call last):\n  File"
    assert loud.of_log(cut, cut, 2, whole=True) == []
    whole = cut + b' "t.py", line 3\nValueError: odd\n'
    assert loud.of_log(whole, whole, 4, whole=True) == [(4, b"ValueError: odd")]


@pytest.mark.parametrize("before", [b"", b"[rank0]:", b"(EngineCore pid=7)", b"2026-01-02 03:04:05,678 worker-1:"])
def test_a_source_line_says_nothing(before):
    log = before + b"    raise RuntimeError(error_message)\n" + before + b" RuntimeError: odd\n"
    assert loud.of_log(log, log, 2, whole=True) == [(2, before + b" RuntimeError: odd")]


@pytest.mark.parametrize(
    ("line", "sounds"),
    [
        ("megatron.core.CheckpointingException:", True),
        ("Exception: data did not match any variant", True),
        ("dist_train.sh: 8: Bad substitution", True),
        ("During handling of the above exception, another one", False),
        ("the option ExceptionLimit: 3", False),
    ],
)
def test_which_lines_sound_like_an_error(line, sounds):
    data = f"step 1\n{line}\n".encode()
    assert [row for row, _ in loud.of_log(data, data, 2, whole=True)] == [2] * sounds


def test_only_a_few_lines_of_a_large_log_are_kept():
    head = b"".join(b"step %d failed\n" % row for row in range(1, 100_001))
    found = loud.of_log(head[: loud.MOST_BYTES], head[-300_000:], head.count(b"\n"), whole=False)
    assert [row for row, _ in found] == [*range(1, 7), *range(99_995, 100_001)]
    assert all(line == b"step %d failed" % row for row, line in found)


def test_a_run_of_ours_shows_what_only_its_failed_rank_printed(explained):
    members = {str(rank): (143, "fan failed\n") for rank in range(3)} | {"1": (3, "fan failed\nodd: no such nail\n")}
    out, _, codes = explained(members, first="1")
    lines = out.splitlines()
    assert codes == [] and lines[0].startswith("rank 1 failed first: exit status 3; its log ")
    assert lines[1].startswith("    rank 1, ") and lines[1].endswith("rank_1.log:2: odd: no such nail")
    assert lines[2].startswith("    ranks 0-2, ") and lines[2].endswith(": fan failed")


@pytest.mark.parametrize(
    ("text", "code"),
    [("step 1\n", 1), ("odd: no such nail\n", 1), ("No space left on device\n", 0), (RAISED + "X: y\n", 0)],
)
def test_the_exit_code_says_whether_anything_is_found(tmp_path, capsys, text, code):
    (tmp_path / "rank_0.log").write_text(text)
    assert main.main([str(tmp_path)]) == code


# --- Chinese, and hostile logs ----------------------------------------------------------------------------------------


def test_chinese_output_has_no_sentence_of_ours_in_english(chinese, logs):
    texts = {f"rank_{rank}.log": RAISED + "OddError: x\n" for rank in range(3)}
    texts["rank_3.log"] = "OSError: No space left on device\n"
    for lines in (logs(texts), logs({"rank_0.log": "odd\n"}), logs({"rank_0.log": "it failed\n"})):
        own = "\n".join(lines).replace("OddError: x", "").replace("No space left on device", "")
        assert not re.search(r"[a-z]+ [a-z]+ [a-z]+", re.sub(r"(?:python|npu-smi|dmesg|df|du) [^，；]*", "", own)), own


HOSTILE = [
    b"\x1b]0;title\x07\x1b[2J\x9b31m" + RAISED.encode() + b"ValueError: \x1b[31m\xe4\xb8\n",
    RAISED.encode() + b"ValueError: " + b"A" * 3_000_000 + b"\n",
    b"ERROR " + b"\xe4\xb8" * 9000 + b"\n" + b"x" * 300_000 + b"\x1b[1;1H failed",
    b"error: {} {who} %s \\ \xe2\x80\xae rtl\n" * 40,
    b"[ERROR] HCCL(7,python3):2025-01-24-11:31:40.000.000 [a.cc:1]\x1b[2J{}\n",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_hostile_log_prints_harmlessly(tmp_path, capsys, text, form):
    (tmp_path / "rank_0.log").write_bytes(text)
    assert main.main([str(tmp_path), "--format", form]) in (0, 1)
    out, err = capsys.readouterr()
    assert all(line.isprintable() for line in (out + err).splitlines())
    if form == "json":
        assert schema_check.problems(json.loads(out), SCHEMA) == []
    else:
        kept(out.splitlines())


def test_a_folder_with_an_odd_name_comes_quoted_in_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "a b;$(id)"
    folder.mkdir()
    (folder / "rank_0.log").write_text("it failed\n")
    last = words.lines_of(answer.of_logs(job_logs.of_paths([str(folder)], ENTRIES)))[-1]
    assert shlex.split(last)[-2:] == ["bundle.tar.gz", folder.name]


# --- JSON -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def document(capsys):
    def run(path, code=0):
        assert main.main([str(path), "--format", "json"]) == code
        found = json.loads(capsys.readouterr().out)
        assert schema_check.problems(found, SCHEMA) == []
        assert found["found"] == (code == 0)
        return found

    return run


def test_the_answer_as_json_is_that_of_the_text(tmp_path, document, monkeypatch, chinese):
    for rank in range(3):
        (tmp_path / f"rank_{rank}.log").write_text(RAISED + f"OSError: [Errno 28] No space left on device: {rank}\n")
    found = document(tmp_path)
    assert found["answer"].isascii() and found["cause"]["code"] == "no-space-left"
    assert found["cause"]["cause"].startswith("a disk is full") and found["exception"]["line"] == 11
    assert found["evidence"]["row"] == 4 and found["evidence"]["file"].endswith("rank_0.log")
    assert [row["rank"] for row in found["ranks"]] == [0, 1, 2] and found["read"]["logs"] == 3


def test_the_json_of_a_job_of_npus(tmp_path, document):
    job = plogs.Job(tmp_path / "job", ranks=4)
    for rank in range(3):
        job.link(rank, 3)
    found = document(job.folder)
    assert found["root"]["ranks"] == [3] and found["root"]["places"][0]["device"] == 3
    assert found["kind"] == "root" and found["next"] and found["root"]["certainty"] == "likely"


def test_the_json_of_runs_of_ours(launched, document, tmp_path):
    folder = launched({"0": (1, RAISED + "KeyError: 1\n"), "1": (143, "")})
    found = document(folder)
    assert found["root"]["ranks"] == [0] and found["ranks"][0]["status"] == 1 and found["read"] is None
    assert "diagnosis" in json.loads((folder / "launch.json").read_text())["outcome"]


def test_the_json_where_nothing_is_found(launched, document, tmp_path):
    found = document(launched({"0": (0, "")}, first=None), code=1)
    assert found["kind"] == "nothing" and found["root"] is None
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/rank_0.log").write_text("odd: cannot do\n")
    assert document(tmp_path / "logs", code=1)["errors"][0]["line"] == "odd: cannot do"


@pytest.mark.parametrize("options", [["--events", "-"], ["--bundle", "a.tgz"]])
def test_one_document_goes_with_nothing_else_on_stdout(tmp_path, capsys, options):
    with pytest.raises(SystemExit) as ended:
        main.main([str(tmp_path), "--format", "json", *options])
    assert ended.value.code == 2 and "prints one document" in capsys.readouterr().err


@pytest.mark.parametrize("speech", ["en", "zh"])
def test_a_remedy_names_our_commands_as_the_user_types_them(speech, monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", speech)
    language._catalogue.cache_clear()
    entry = next(entry for entry in ENTRIES if entry.code == "ranktable-device-twice")
    assert "python hccl_tools/validate_hccl.py" in answer.texts(entry)[1]
    monkeypatch.setattr(typed, "is_front", lambda: True)
    monkeypatch.setattr(typed, "front", lambda: ("mslaunch",))
    assert "mslaunch table check" in answer.texts(entry)[1]
