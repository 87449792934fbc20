"""train.log when a run has ended: a copy that a later launch knows, and that nobody can write through into the run."""

import os
import subprocess

import pytest

from tools.launch import log_links, run_folder, train_log

RUN = "launch-20261121T170610Z-4711"


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """A run that has ended, with the log that the test writes: ended(bytes) is its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs" / RUN).mkdir(parents=True)
    log = tmp_path / "logs" / RUN / "rank_0.log"

    def end(text):
        log.write_bytes(text)
        assert run_folder.move_link("train.log", f"logs/{RUN}/rank_0.log") == []
        train_log.settle(".", str(log))
        return log

    return end


@pytest.mark.parametrize("text", [b"", b"one\n", b"one\ntwo", b"\x1b[0m\xff\n--- 5 bytes of x\n", b"\r" * 9000])
def test_the_copy_has_the_log_and_a_line_that_says_so(ended, tmp_path, text):
    ended(text)
    copy = tmp_path / "train.log"
    assert copy.is_file() and not copy.is_symlink()
    whole = text if not text or text.endswith(b"\n") else text + b"\n"
    assert copy.read_bytes() == whole + b"--- %d bytes of logs/%s/rank_0.log\n" % (len(whole), RUN.encode())
    assert train_log.is_copy("train.log")
    assert run_folder.move_link("train.log", f"logs/{RUN}/rank_0.log") == []
    assert copy.is_symlink()


def test_of_a_long_log_the_end_is_copied(ended, tmp_path, monkeypatch):
    monkeypatch.setattr(train_log, "MOST", 1000)
    ended(b"".join(b"line %d\n" % number for number in range(1000)))
    lines = (tmp_path / "train.log").read_bytes().splitlines()
    assert lines[0] == b"... the beginning is left out here"
    assert lines[-2] == b"line 999" and lines[1].startswith(b"line 8")
    assert train_log.is_copy("train.log")


# The ways in which the tutorials' own scripts write there.
@pytest.mark.parametrize(
    "command", ["echo mine &> ./train.log", "echo mine >> train.log", "echo mine > train.log 2>&1 &"]
)
def test_what_is_typed_later_is_the_users_file_and_the_run_keeps_its_log(ended, tmp_path, command):
    log = ended(b"44 steps\n")
    subprocess.run(["bash", "-c", f"{command}\nwait"], check=True)
    assert log.read_bytes() == b"44 steps\n"
    assert not train_log.is_copy("train.log")
    assert run_folder.move_link("train.log", f"logs/{RUN}/rank_0.log") == [
        "train.log does not belong to a run; it is not changed"
    ]
    assert b"mine\n" in (tmp_path / "train.log").read_bytes()


def test_a_redirection_to_logs_latest_fails(ended, tmp_path):
    log = ended(b"x\n")
    os.symlink(RUN, tmp_path / "logs" / "latest")
    assert subprocess.run(["bash", "-c", "echo mine &> logs/latest"], stderr=subprocess.DEVNULL).returncode == 1
    assert log.read_bytes() == b"x\n"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"--- ",
        b"--- 1 bytes of x",
        b"--- 1 bytes of x\n",
        b"x\n--- 2 bytes of\n",
        b"a\n--- 99 bytes of b\n",
        b"--- %s bytes of x\n" % (b"1" * 4500),
    ],
)
def test_what_is_no_copy(tmp_path, text):
    path = tmp_path / "train.log"
    path.write_bytes(text)
    assert not train_log.is_copy(str(path))
    assert not train_log.is_copy(str(tmp_path)) and not train_log.is_copy(str(tmp_path / "none"))


def test_another_jobs_link_and_a_folder_that_cannot_be_written_stay(ended, tmp_path):
    log = ended(b"x\n")
    (tmp_path / "train.log").unlink()
    other = tmp_path / "logs" / "rank_other.log"
    other.write_text("other\n")
    os.symlink(other, tmp_path / "train.log")
    train_log.settle(".", str(log))
    assert (tmp_path / "train.log").is_symlink()
    train_log.settle(str(tmp_path / "none"), str(log))
    assert [path.name for path in tmp_path.glob("*.part")] == []


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        (RUN, True),
        (RUN + "-2", True),
        ("ascend8p-20261121T170610Z-1", True),
        ("results", False),
        ("launch-20261121T170610Z", False),
        ("20261121T170610Z-4711", False),
        ("launch-2026-11-21", False),
        ("launch-20261121T170610Z-mine", False),
    ],
)
def test_a_link_is_moved_if_it_leads_to_a_run_and_to_nothing_else(tmp_path, name, is_ours):
    for link, target in (("latest", name), ("train.log", f"logs/{name}/rank_0.log")):
        path = str(tmp_path / link)
        os.symlink(target, path)
        assert (run_folder.move_link(path, "launch-20261122T000000Z-1") == []) == is_ours
        assert (os.readlink(path) == target) != is_ours


def test_links_in_open_mpis_layout_are_replaced_and_all_else_stays(tmp_path):
    first = tmp_path / "1"
    ours = {0: f"/gone/{RUN}/rank_0.log", 1: f"/logs/{RUN}/restart_1/rank_1.log", 7: f"/logs/{RUN}/rank_7.log"}
    for number, log in ours.items():
        log_links.make(log_links.place(str(tmp_path), number, 8), log)
    (first / "rank.1" / "stderr").write_text("of mpirun\n")
    (first / "rank.2").mkdir()
    (first / "rank.2" / "stdout").write_text("of mpirun\n")
    (first / "rank.3").mkdir()
    os.symlink("/data/rank_3.log", first / "rank.3" / "stdout")
    assert [os.path.basename(os.path.dirname(path)) for path in log_links.foreign(str(tmp_path), range(8), 8)] == [
        "rank.2",
        "rank.3",
    ]
    log_links.clear(str(tmp_path))
    assert sorted(str(path.relative_to(first)) for path in first.rglob("*")) == [
        "rank.1",
        "rank.1/stderr",
        "rank.2",
        "rank.2/stdout",
        "rank.3",
        "rank.3/stdout",
    ]
    assert log_links.place("d", 3, 16) == "d/1/rank.03/stdout"
