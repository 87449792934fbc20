"""train.log when a run has ended: a copy that a later launch knows, and that nobody can write through into the run."""

import os
import subprocess

import pytest

from tools.launch import run_folder, train_log


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """A run that has ended, with the log that the test writes: ended(bytes) is its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs" / "run").mkdir(parents=True)
    log = tmp_path / "logs" / "run" / "rank_0.log"

    def end(text):
        log.write_bytes(text)
        assert run_folder.move_link("train.log", "logs/run/rank_0.log") == []
        train_log.settle(".", str(log))
        return log

    return end


@pytest.mark.parametrize("text", [b"", b"one\n", b"one\ntwo", b"\x1b[0m\xff\n--- 5 bytes of x\n", b"\r" * 9000])
def test_the_copy_has_the_log_and_a_line_that_says_so(ended, tmp_path, text):
    ended(text)
    copy = tmp_path / "train.log"
    assert copy.is_file() and not copy.is_symlink()
    whole = text if not text or text.endswith(b"\n") else text + b"\n"
    assert copy.read_bytes() == whole + b"--- %d bytes of logs/run/rank_0.log\n" % len(whole)
    assert train_log.is_copy("train.log")
    assert run_folder.move_link("train.log", "logs/run/rank_0.log") == []
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
    assert run_folder.move_link("train.log", "logs/run/rank_0.log") == [
        "train.log is not of a run; it is left as it is"
    ]
    assert b"mine\n" in (tmp_path / "train.log").read_bytes()


def test_a_redirection_to_logs_latest_fails(ended, tmp_path):
    log = ended(b"x\n")
    os.symlink("run", tmp_path / "logs" / "latest")
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
