"""Where a rank starts: its cores, its folder for plogs, the file with its environment; what an agent leaves."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from tools.rank import beginning, environment, places, plog_errors

NO_SUCH_CORE = 1 << 14


@pytest.fixture
def log(tmp_path):
    """A descriptor of the rank's log, and what is in it."""
    path = tmp_path / "rank_0.log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    yield SimpleNamespace(descriptor=descriptor, text=path.read_text)
    os.close(descriptor)


# ---- cores ---------------------------------------------------------------------------------------------------------


def test_a_rank_is_bound_while_it_starts(log):
    before = os.sched_getaffinity(0)
    core = min(before)
    with places.Bound({0: [core]}, 0, log.descriptor) as own:
        assert os.sched_getaffinity(0) == {core}
        assert own == {b"MSRUN_CPU_LIST": f"[{core}]".encode()}
    assert os.sched_getaffinity(0) == before
    assert log.text() == f"note: this rank is bound to cores {core}\n"


def test_a_rank_that_cannot_be_bound_says_so_and_runs(log):
    before = os.sched_getaffinity(0)
    with places.Bound({0: [NO_SUCH_CORE]}, 0, log.descriptor) as own:
        assert (own, os.sched_getaffinity(0)) == ({}, before)
    assert log.text() == "note: this rank is not bound to cores: Invalid argument\n"


def test_a_rank_without_cores_says_so(log):
    with places.Bound({1: [0]}, 0, log.descriptor) as own:
        assert own == {}
    assert log.text() == "note: this rank is not bound to cores: none are found for it on this host\n"


# ---- the file with the environment ---------------------------------------------------------------------------------


def test_the_kept_environment_is_what_a_shell_reads_back(log, tmp_path):
    base = {b"PLAIN": b"1", b"ODD": b"a 'b' \"c\" $d `e` \\f\ng\t\x1b\xff", b"1BAD": b"no\nname", b"RANK": b"old"}
    places.Kept(base, str(tmp_path)).write("3", {b"RANK": b"7"}, log.descriptor)
    path = tmp_path / "rank_3.env"
    assert path.stat().st_mode & 0o777 == 0o600
    words = ["env", "-i", "bash", "-c", 'source "$0" && env -0', str(path)]
    told = subprocess.run(words, capture_output=True, check=True).stdout.split(b"\0")
    found = dict(pair.split(b"=", 1) for pair in told if pair)
    assert (found[b"PLAIN"], found[b"ODD"], found[b"RANK"]) == (b"1", base[b"ODD"], b"7")
    assert "# 1BAD=no\n# name\n" in path.read_text(errors="replace")


def test_a_file_that_cannot_be_written_is_a_note(log, tmp_path):
    places.keep(str(tmp_path / "none" / "rank_0.env"), b"", log.descriptor)
    assert "rank_0.env cannot be written; this process starts all the same" in log.text()


def test_what_is_no_name_of_a_shell():
    assert not any(map(environment.is_name, (b"", b"1A", b"A-B", b"BASH_FUNC_f%%", "é".encode())))
    assert all(map(environment.is_name, (b"_", b"A1", b"a_b")))


@pytest.mark.parametrize(
    ("rank", "sizes", "found"),
    [(0, "8x1", (0, 8)), (7, "8x2", (0, 8)), (8, "8x2", (1, 8)), (16, "8x2 4x1", (2, 4)), (19, "8x2 4x1", (2, 4))],
)
def test_the_host_of_a_rank(rank, sizes, found):
    assert environment.host_of(rank, sizes) == found


# ---- plogs -----------------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_leaves_the_users_variable(log, tmp_path):
    (tmp_path / "file").write_text("")
    assert places.Plogs(f"failed {tmp_path}/file", str(tmp_path)).open("0", log.descriptor) == {}
    assert log.text().startswith(f"note: CANN's logs of this rank are not in {tmp_path}/file/rank_0: ")
    own = places.Plogs("failed", str(tmp_path)).open("1", log.descriptor)
    assert own == {b"ASCEND_PROCESS_LOG_PATH": os.fsencode(tmp_path / "plog" / "rank_1")}
    assert places.Plogs("", str(tmp_path)).open("2", log.descriptor) == {}


def write_plog(folder, name, *lines, end="\n"):
    path = folder / "debug" / "plog" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + end)
    return path


def test_the_errors_that_come_home_are_short_and_of_this_job(tmp_path, monkeypatch):
    mine, since = tmp_path / "mine" / "rank_1", tmp_path / "rank_1.env"
    assert plog_errors.of_rank(str(mine), 7, str(since)) == []
    old = write_plog(mine, "plog-5_1.log", "[ERROR] of an earlier job")
    since.write_text("")
    os.utime(old, (1, 1))
    os.utime(since, (1000, 1000))
    write_plog(mine, "plog-7_1.log", "[INFO] begins", "[ERROR] first", "[ERROR] " + "错" * 2000, "text: [ERROR] quoted")
    write_plog(mine, "plog-7_2.log", "[ERROR] last\0", end="")
    outside = write_plog(tmp_path / "outside", "plog-7_3.log", "[ERROR] outside")
    (mine / "debug" / "plog" / "plog-7_3.log").symlink_to(outside)
    first, long, last = plog_errors.of_rank(str(mine), 7, str(since))
    assert (first, last) == (b"[ERROR] first", b"[ERROR] last")
    assert 990 < len(long) <= 1000 and long.decode().startswith("[ERROR] 错")
    write_plog(tmp_path / "home" / "ascend" / "log", "plog-7_9.log", "[ERROR] at home")
    write_plog(tmp_path / "home" / "ascend" / "log", "plog-77_9.log", "[ERROR] of another process")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ASCEND_PROCESS_LOG_PATH", raising=False)
    assert plog_errors.of_rank(str(tmp_path / "none"), 7, str(since)) == [b"[ERROR] at home"]


def test_of_many_errors_the_first_and_the_last_come(tmp_path):
    since = tmp_path / "rank_0.env"
    since.write_text("")
    os.utime(since, (1000, 1000))
    write_plog(tmp_path / "p", "plog-1_1.log", *(f"[ERROR] {number}" for number in range(100)))
    found = plog_errors.of_rank(str(tmp_path / "p"), 1, str(since))
    assert found == [b"[ERROR] %d" % number for number in (*range(20), *range(80, 100))]


def told(tmp_path, keep):
    """What an agent knows of rank 1."""
    words = {"PLOGS": keep, "LOGS": str(tmp_path / "logs")}

    class Told(SimpleNamespace):
        def __getitem__(self, name):
            return words[name]

    return Told(name="1")


@pytest.mark.parametrize(
    ("keep", "status", "stays"),
    [("failed", 3, True), ("failed", 0, False), ("all", 0, True), ("none", 3, False), ("none", 0, False)],
)
def test_what_an_agent_leaves_of_a_ranks_plogs(tmp_path, keep, status, stays):
    plog = write_plog(tmp_path / "logs" / "plog" / "rank_1", "plog-7_1.log", "[ERROR] x")
    beginning.leave_plogs(told(tmp_path, keep), status)
    assert (plog.exists(), (tmp_path / "logs" / "plog").exists()) == (stays, stays)


def test_an_agent_leaves_a_folder_of_the_user_and_what_is_behind_a_link(tmp_path):
    plog = write_plog(tmp_path / "outside" / "rank_1", "plog-7_1.log", "[ERROR] x")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "plog").symlink_to(tmp_path / "outside")
    for keep in ("none", f"none {tmp_path}/outside", ""):
        beginning.leave_plogs(told(tmp_path, keep), 0)
        assert plog.exists()


def test_an_agent_removes_an_empty_folder(tmp_path):
    (tmp_path / "logs" / "plog" / "rank_1").mkdir(parents=True)
    beginning.leave_plogs(told(tmp_path, "all"), 0)
    assert not (tmp_path / "logs" / "plog").exists()
