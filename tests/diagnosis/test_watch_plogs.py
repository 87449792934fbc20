"""Reads plogs that grow, and prints a line for a fault in them; launches are in plog_watch.bats."""

import os
import subprocess
import sys

import pytest

from tools.diagnosis import watch_plogs
from tools.launch import plogs
from tools.logs import follow, known_failures

HEAD = "[ERROR] HCCL(7,python3):2025-06-19-11:24:07.212.164 [a.cc:1] [7]"
CQE = HEAD + "[Heartbeat]cqe err status[12]\n"
LOST = HEAD + "Device lost heartbeat\n"
NAME = "plog-7_20250619112407212.log"


@pytest.fixture
def job(tmp_path):
    """A job of two ranks with a follower: `job.log(rank)` is the path of a plog, `job.look()` what came since."""
    return Job(tmp_path)


class Job:
    def __init__(self, above, since=0.0):
        self.above = above
        launch = {"plogs": {"folder": "plog"}, "ranks": [{"rank": 0, "device": 4}, {"rank": 1, "device": 5}]}
        self.places = watch_plogs.Places(launch)
        self.follower = follow.Follower(plogs.of_ranks(launch, str(above)), str(above), since)

    def log(self, rank=0, name=NAME, kind="debug"):
        folder = self.above / "plog" / f"rank_{rank}" / kind / "plog"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def look(self):
        return [(rank, lines.decode()) for rank, lines in self.follower.look()]


def add(path, text):
    with open(path, "ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_only_what_was_appended_is_read_and_only_whole_lines(job):
    assert job.look() == []  # there is no folder yet
    add(job.log(), "one\ntw")
    add(job.log(1, kind="run"), "of rank 1\n")
    assert job.look() == [(0, "one\n"), (1, "of rank 1\n")]
    assert job.look() == []
    add(job.log(), "o\nthree\n")
    assert job.look() == [(0, "two\nthree\n")]


def test_a_half_line_is_not_read_again_until_the_file_grows(job, monkeypatch):
    add(job.log(), "one\nhalf")
    assert job.look() == [(0, "one\n")]
    monkeypatch.setattr(follow.os, "pread", lambda *_: pytest.fail("read again"))
    assert job.look() == []


def test_a_new_file_is_read_from_its_beginning_whenever_it_comes(job):
    add(job.log(), "one\n")
    assert job.look() == [(0, "one\n")]
    add(job.log(name="plog-7_20250619120000000.log"), "two\n")
    assert job.look() == [(0, "two\n")]
    job.log().unlink()
    add(job.log(name="plog-7_20250619130000000.log"), "three\n")
    assert job.look() == [(0, "three\n")]


def test_a_file_that_comes_in_the_same_tick_of_the_clock_as_another_is_found(job):
    folder = job.log().parent
    add(job.log(), "one\n")
    tick = os.stat(folder).st_mtime_ns
    job.look()
    add(job.log(name="plog-8_1.log"), "two\n")
    os.utime(folder, ns=(tick, tick))
    assert job.look() == [(0, "two\n")]


def test_a_file_that_was_cut_or_replaced_is_read_from_its_beginning(job):
    add(job.log(), "one\ntwo\n")
    job.look()
    os.truncate(job.log(), 0)
    add(job.log(), "new\n")
    assert job.look() == [(0, "new\n")]
    add(job.log(name="plog-7_other.log"), "another one, longer than before\n")
    os.replace(job.log(name="plog-7_other.log"), job.log())
    assert job.look() == [(0, "another one, longer than before\n")]


def test_a_folder_that_vanishes_and_comes_back(job):
    add(job.log(), "one\n")
    job.look()
    folder = job.log().parent
    moved = folder.rename(job.above / "moved")
    assert job.look() == []
    folder.mkdir()
    add(folder / NAME, "again\n")
    assert job.look() == [(0, "again\n")]
    assert (moved / NAME).read_text() == "one\n"


@pytest.mark.parametrize("depth", range(5))
def test_links_are_not_followed_wherever_they_are(job, tmp_path, depth):
    other = Job(tmp_path / "other")
    add(other.log(), "outside\n")
    path = job.log()
    parts = [path.parent, *list(path.parent.parents)[:3]]
    there = (path, *parts)[depth]
    outside = tmp_path / "other" / there.relative_to(tmp_path)
    if depth:
        subprocess.run(["rm", "-r", str(there)], check=True)
    there.symlink_to(outside)
    assert path.read_text() == "outside\n"
    assert job.look() == []


def test_a_folder_that_becomes_a_link_is_left(job, tmp_path):
    add(job.log(), "mine\n")
    other = Job(tmp_path / "other")
    add(other.log(), "outside\n")
    job.look()
    debug = job.log().parent.parent
    debug.rename(tmp_path / "gone")
    debug.symlink_to(tmp_path / "other" / "plog" / "rank_0" / "debug")
    assert job.look() == job.look() == []


def test_hostile_names_and_what_is_no_file(job):
    folder = job.log().parent
    for name in (
        "plog-1_\x1b[31m.log",
        "plog-1_\n.log",
        "plog-1.log",
        "x plog-1_1.log",
        "plog-1_1.log.gz",
        "-rf",
        "\udcff",
    ):
        add(folder / name, "hostile\n")
    os.mkfifo(folder / "plog-2_1.log")
    (folder / "plog-3_1.log").mkdir()
    add(job.log(), "good\n")
    assert job.look() == [(0, "good\n")]


def test_files_of_earlier_jobs_are_read_from_their_end(tmp_path):
    job = Job(tmp_path, since=1000.0)
    add(job.log(), "old\n")
    os.utime(job.log(), (900, 900))
    add(job.log(1), "new\n")
    assert job.look() == [(1, "new\n")]
    add(job.log(), "more\n")
    assert job.look() == [(0, "more\n")]


def test_a_line_without_end_is_left_out_and_the_next_one_is_read(job, monkeypatch):
    monkeypatch.setattr(follow, "PIECE", 10)
    add(job.log(), "short\n" + "x" * 35 + "\nafter\n")
    assert "".join(lines for _, lines in job.look()) == "short\nafter\n"


def test_a_look_has_bounds_and_the_next_one_goes_on(job, monkeypatch):
    monkeypatch.setattr(follow, "PIECE", 8)
    monkeypatch.setattr(follow, "MOST", 16)
    add(job.log(), "1 line\n" * 6)
    add(job.log(1), "other\n")
    looks = [job.look() for _ in range(8)]
    assert sum(len(look) for look in looks) == 7
    assert max(sum(len(lines) for _, lines in look) for look in looks) <= 16 + 8
    assert looks[-1] == []


def test_a_flood_takes_a_bounded_time_of_each_look_and_no_line_is_lost(job, faults, monkeypatch):
    monkeypatch.setattr(follow, "PIECE", len(CQE))
    monkeypatch.setattr(watch_plogs, "BUSY", 0.0)
    add(job.log(), CQE * 9)
    watch_plogs.watch(job.follower, faults.faults, faults.said, iter([True] * 9))
    assert len(faults.lines) == 1
    add(job.log(), CQE)
    watch_plogs.watch(job.follower, faults.faults, faults.said, iter([False]))
    assert faults.lines[1].endswith("; 10 times so far")


def test_what_is_too_far_behind_is_left_out(job, monkeypatch):
    monkeypatch.setattr(follow, "PIECE", 16)
    monkeypatch.setattr(follow, "BEHIND", 64)
    add(job.log(), "1 line\n" * 20 + "last\n")
    assert job.look() == [(0, "1 line\nlast\n")]


# ---- the lines --------------------------------------------------------------------------------------------------


@pytest.fixture
def faults(job):
    """faults(rank, text): the lines said so far; faults.said, faults.now: the clock."""

    class Told:
        def __init__(self):
            self.lines, self.now = [], 0.0
            self.said = watch_plogs.Said(self.lines.append, lambda: self.now)
            self.faults = watch_plogs.Faults(known_failures.load({})[0], job.places, self.said)

        def __call__(self, rank, text):
            self.faults.take(rank, text if isinstance(text, bytes) else text.encode())
            return self.lines

    return Told()


def test_once_for_a_code_and_rank_and_then_when_there_are_ten_times_as_many(faults):
    line = "rank {} (device {}): 11:24:07 AISW_CANN_HCCL_029: an RDMA packet got no answer after all retries, "
    line += "so the link or the peer failed"
    assert faults(0, CQE * 9) == [line.format(0, 4)]
    assert faults(1, CQE) == [line.format(0, 4), line.format(1, 5)]
    faults(0, CQE * 991)
    ends = [text.rpartition("; ")[2] for text in faults.lines[2:]]
    assert ends == ["10 times so far", "100 times so far", "1000 times so far"]


def test_other_lines_and_levels_say_nothing(faults):
    assert faults(0, LOST.replace("ERROR", "INFO") + HEAD + "a plain line\n\n" + "\xff\0\n") == []
    assert faults(0, b"\xff\0\x1b[31m" + LOST.encode() + b"[ERROR] \xe9\x94\n")[0].startswith(
        "rank 0 (device 4): 11:24:07 "
    )
    assert len(faults(0, "Device lost heartbeat, a line without a time\n")) == 1  # counted, as the second
    assert all(text.isprintable() for text in faults.lines)


def test_a_minute_has_twenty_lines_and_the_rest_is_counted(job, faults):
    for rank in range(50):
        faults(rank, LOST)
    assert len(faults.lines) == 19
    faults.said.left_out()
    assert len(faults.lines) == 19
    faults.now = 61.0
    faults.said.left_out()
    assert faults.lines[19:] == ["31 more lines about faults in plogs are left out: 20 a minute are shown"]
    for rank in range(50):
        faults(rank, CQE)
    assert len(faults.lines) == 20 + 18
    faults.said.left_out(at_end=True)
    assert faults.lines[-1].startswith("32 more lines")


def test_the_host_of_a_rank_is_named_where_there_are_several():
    rows = [{"rank": 3, "device": 7, "host": "node1"}]
    assert watch_plogs.Places({"ranks": rows}).who(3) == "rank 3 (device 7 of node1)"
    assert watch_plogs.Places({"ranks": None}).who(3) == "rank 3 (device None)"


def test_hyperscan_is_never_imported():
    program = "import sys; from tools.diagnosis import watch_plogs; from tools.logs import known_failures as k;"
    program += "watch_plogs.Faults(k.load()[0], None, None); sys.exit('hyperscan' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
