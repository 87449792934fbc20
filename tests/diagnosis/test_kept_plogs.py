"""What stays of CANN's own logs after a run: whose are removed, and what is cut."""

import os
import stat

import pytest

from tools.diagnosis import kept_plogs

MIB = 1 << 20
LINE = b"[INFO] HCCL(7,python3):2026-01-31-12:00:00.000.000 [a.cc:1] [7]a line of a usual length\n"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def plog(run, rank, name, data, age=0, attempt="."):
    """A plog of the rank that was written so many seconds ago."""
    path = run / attempt / "plog" / f"rank_{rank}" / "debug" / "plog" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


def attempt(status, logs=".", first=None):
    return {"exit": status, "logs": logs, "first_failure": first}


FAILED = [attempt(3, first="0")]


def settled(run, attempts=FAILED, keep="failed"):
    return kept_plogs.settle(str(run), attempts, keep)


def lines(data):
    """The data as whole lines: (those of the beginning, what was left out, those of the end)."""
    before, _, rest = data.partition(b"--- ")
    said, _, after = rest.partition(b" ---\n")
    return before, said, after


# ---- which folders ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "status", "stays"),
    [("failed", 0, False), ("failed", 3, True), ("all", 0, True), ("all", 3, True), ("none", 0, False)]
    + [("none", 3, False)],
)
def test_which_plogs_stay(run, keep, status, stays):
    path = plog(run, 0, "plog-7_1.log", LINE)
    assert settled(run, [attempt(status)], keep) == []
    assert path.exists() == stays and (run / "plog").exists() == stays


def test_with_keep_going_a_failure_counts_although_the_code_is_0(run):
    path = plog(run, 0, "plog-7_1.log", LINE)
    assert settled(run, [attempt(0, first="1")]) == [] and path.exists()


def test_each_attempt_counts_by_itself(run):
    paths = [plog(run, 0, "plog-7_1.log", LINE, attempt=name) for name in (".", "restart_1", "restart_2")]
    assert settled(run, [attempt(3), attempt(4, "./restart_1"), attempt(0, "./restart_2")]) == []
    assert [path.exists() for path in paths] == [True, True, False]


def test_empty_folders_go_with_whatever_stays(run):
    path = plog(run, 1, "plog-7_1.log", LINE)
    for name in ("plog/rank_0/debug/plog", "plog/rank_1/run/plog", "plog/rank_2"):
        (run / name).mkdir(parents=True)
    for keep in ("failed", "all"):
        assert settled(run, keep=keep) == []
        assert path.exists() and os.listdir(run / "plog") == ["rank_1"] and os.listdir(run / "plog/rank_1") == ["debug"]


def test_what_is_not_a_rank_s_folder_stays(run):
    plog(run, 0, "plog-7_1.log", LINE)
    (run / "plog" / "note.txt").write_text("mine")
    (run / "plog" / "rank_x").mkdir()
    (run / "plog" / "rank_9").write_text("a file")
    assert settled(run, [attempt(0)]) == []
    assert sorted(os.listdir(run / "plog")) == ["note.txt", "rank_9", "rank_x"]


@pytest.mark.parametrize("logs", ["..", "../other", "/tmp", "none", "rank_0.log"])
def test_a_folder_that_is_not_one_of_this_run(run, logs):
    (run / "rank_0.log").write_text("")
    other = plog(run.parent, 0, "plog-7_1.log", LINE)
    assert settled(run, [attempt(0, logs)]) == []
    assert other.exists()


# ---- links ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["plog", "plog/rank_0", "plog/rank_0/debug", "plog/rank_0/debug/plog"])
@pytest.mark.parametrize("status", [0, 3])
def test_links_to_folders_are_not_followed(run, place, status):
    big = plog(run, 0, "plog-7_1.log", LINE * 200000)
    outside = run.parent / "outside"
    (run / place).rename(outside)
    (run / place).symlink_to(outside)
    size = (outside / big.relative_to(run / place)).stat().st_size
    settled(run, [attempt(status)])
    assert (outside / big.relative_to(run / place)).stat().st_size == size


@pytest.mark.parametrize("how", ["symlink_to", "hardlink_to"])
def test_links_to_files_are_neither_cut_nor_removed_behind(run, how):
    if how == "hardlink_to" and not hasattr(run, how):
        how = "link"
    outside = run.parent / "outside.log"
    outside.write_bytes(LINE * 200000)
    path = plog(run, 0, "plog-7_1.log", LINE)
    path.unlink()
    if how == "symlink_to":
        path.symlink_to(outside)
    else:
        os.link(outside, path)
    assert settled(run) == [] and outside.stat().st_size == len(LINE) * 200000 and path.exists()
    settled(run, [attempt(0)])
    assert outside.stat().st_size == len(LINE) * 200000 and not path.exists()


def test_a_pipe_in_the_folder_keeps_nobody_waiting(run):
    path = plog(run, 0, "plog-7_1.log", LINE)
    path.unlink()
    os.mkfifo(path)
    assert settled(run) == [] and stat.S_ISFIFO(path.stat().st_mode)


# ---- sizes ------------------------------------------------------------------------------------------


def test_a_file_of_exactly_8_mib_stays_as_it_is(run):
    path = plog(run, 0, "plog-7_1.log", b"x" * (8 * MIB))
    assert settled(run) == [] and path.stat().st_size == 8 * MIB


def test_a_longer_file_becomes_its_beginning_and_its_end_in_whole_lines(run):
    data = b"".join(b"%07d %s" % (number, LINE) for number in range(150000))
    path = plog(run, 0, "plog-7_1.log", data, age=100)
    (said,) = settled(run)
    before, left_out, after = lines(path.read_bytes())
    assert data.startswith(before) and data.endswith(after) and before.endswith(b"\n") and after.endswith(b"\n")
    assert after.startswith(b"0") and len(after) > 4 * MIB - 200 and 4 * MIB - 400 < len(before) <= 4 * MIB
    assert left_out.split()[0] == b"%d" % (len(data) - len(before) - len(after))
    assert path.stat().st_size <= 8 * MIB and path.stat().st_mtime == 1e9 - 100
    assert said.startswith("the kept plogs are cut: ") and " from 1 rank are left out" in said
    assert settled(run) == []  # nothing more to cut


def test_a_file_of_one_line_and_of_bytes_that_are_no_text(run):
    path = plog(run, 0, "plog-7_1.log", b"\xff\0" * (5 * MIB))
    assert len(settled(run)) == 1
    before, left_out, after = lines(path.read_bytes())
    assert path.stat().st_size <= 8 * MIB and before.endswith(b"\n") and after.startswith((b"\xff", b"\0"))


def test_a_rank_keeps_its_newest_files(run):
    paths = [plog(run, 0, f"plog-7_{age}.log", b"x" * (7 * MIB), age) for age in range(12)]
    other = plog(run, 1, "plog-8_1.log", b"x" * (7 * MIB), age=1000)
    (said,) = settled(run)
    assert [path.exists() for path in paths] == [True] * 9 + [False] * 3 and other.exists()
    assert "21.0 MiB from 1 rank are left out" in said


def test_no_file_stays_that_is_older_than_one_that_goes(run):
    paths = [plog(run, 0, f"plog-7_{age}.log", b"x" * (7 * MIB), age) for age in range(10)]
    small = plog(run, 0, "plog-7_10.log", LINE, age=10)
    settled(run)
    assert [path.exists() for path in [*paths, small]] == [True] * 9 + [False] * 2


@pytest.mark.slow
def test_files_are_cut_before_any_goes(run):
    paths = [plog(run, 0, f"plog-7_{age}.log", LINE * (20 * MIB // len(LINE)), age) for age in range(9)]
    (said,) = settled(run)
    assert [path.exists() for path in paths] == [True] * 8 + [False]
    assert sum(path.stat().st_size for path in paths[:8]) <= 64 * MIB


def test_all_keeps_all(run):
    paths = [plog(run, 0, f"plog-7_{age}.log", b"x" * (9 * MIB), age) for age in range(8)]
    assert settled(run, keep="all") == []
    assert {path.stat().st_size for path in paths} == {9 * MIB}


def test_what_cannot_be_removed_is_named_once(run, monkeypatch):
    plog(run, 0, "plog-7_1.log", LINE)
    plog(run, 1, "plog-8_1.log", LINE)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)
    (said,) = settled(run, [attempt(0)])
    assert said.startswith(f"{run}/plog/rank_") and said.endswith(": Permission denied")


def test_a_thousand_ranks_cost_what_a_thousand_ranks_have(run, monkeypatch):
    for rank in range(300):
        plog(run, rank, "plog-7_1.log", LINE)
    calls = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda *words: calls.append(words) or scan(*words))
    settled(run)
    assert len(calls) <= 300 * 10
