"""tools/diagnose.py --bundle: what goes into the file, whatever others have put into the folders."""

import contextlib
import errno
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile

import documents
import pytest
from bundles import MIB, PLOG, SECRET, change, of_job
from suite import needs

from tools.diagnosis import main
from tools.diagnosis.bundle import cut, files, pages

# --- what is in it ----------------------------------------------------------------------------------------------------


def test_a_run(bundled, failed_run):
    found = bundled(failed_run)
    assert of_job(found) == [
        *("doctor.txt", "hccl_rank_table.json", "launch.json", "mpirun.log"),
        *("plog/rank_1/debug/plog/plog-7_20250619.log", "rank_0.log", "rank_1.env", "rank_1.log", "rank_1.stack"),
    ]
    assert b"rank 1 failed first: two devices did not connect " in found["explanation.txt"]
    assert b"(EI0006)" in found["explanation.txt"]
    assert b"a healthy machine" in found["doctor.txt"]
    assert b"Python 3." in found["versions.txt"]
    assert found["rank_1.log"] == b"login with <masked>\nEI0006\n"
    assert found["plog/rank_1/debug/plog/plog-7_20250619.log"] == PLOG.encode() + b"<masked>\n"
    assert json.loads(found["launch.json"])["outcome"]["diagnosis"]["matches"]
    assert not any(SECRET.encode() in data or b"key-of-launch" in data for data in found.values())


def test_what_is_masked_is_listed_by_name(bundled, failed_run):
    found = bundled(failed_run)
    assert b"\nrank_1.env: HF_TOKEN 1\n" in found["masked.txt"]
    assert b"\nlaunch.json: API_KEY 1\n" in found["masked.txt"]
    assert "diagnose.py: masked: 1 value in rank_1.env (HF_TOKEN)\n" in found.err
    assert found.err.endswith("diagnose.py: " + pages.LOOK + "\n")
    assert SECRET not in found.err


def test_the_bundle_is_for_its_owner_only(bundled, failed_run, tmp_path):
    bundled(failed_run)
    assert (tmp_path / "out.tgz").stat().st_mode & 0o7777 == 0o600


def test_a_run_is_explained_alike_by_its_bundle(launched, bundled, failed_run, tmp_path, capsys):
    bundled(failed_run)
    assert main.main([str(tmp_path / "out.tgz")]) == 0
    out, err = capsys.readouterr()
    assert "cause: two devices did not connect within " in out and "EI0006" in out and "/rank_1.log:2" in out
    assert "in 4 logs" in err  # not the pages of the bundle
    assert "explanation.txt" not in out


def test_the_plogs_in_the_folder_of_the_user(bundled, failed_run, tmp_path):
    theirs = tmp_path / "theirs/rank_0/debug/plog"
    theirs.mkdir(parents=True)
    (theirs / "plog-8_1.log").write_text("new\n")
    (theirs / "plog-1_0.log").write_text("old\n")
    os.utime(theirs / "plog-1_0.log", (0, 0))
    change(failed_run, plogs={"folder": str(tmp_path / "theirs"), "keep": "failed"})
    found = bundled(failed_run)
    assert found["plog/rank_0/debug/plog/plog-8_1.log"] == b"new\n"
    assert b"plog-1_0.log: it is older than the run" in found["contents.txt"]


def test_attempts(bundled, launched):
    folder = launched({"0": (1, "second\n")}, logs="attempt_2")
    (folder / "attempt_1/plog/rank_0").mkdir(parents=True)
    (folder / "attempt_1/rank_0.log").write_text("first\n")
    (folder / "attempt_1/plog/rank_0/plog-1_0.log").write_text("x\n")
    assert of_job(bundled(folder))[:3] == [
        "attempt_1/plog/rank_0/plog-1_0.log",
        "attempt_1/rank_0.log",
        "attempt_2/rank_0.log",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"outcome": []}',
        '{"outcome": {"logs": "../.."}, "plogs": 1}',
        '{"outcome": {"logs": "\\u0000"}}',
    ],
)
def test_a_run_without_a_proper_record(bundled, failed_run, text):
    (failed_run / "launch.json").write_text(text)
    found = bundled(failed_run)
    assert "rank_1.log" in found and SECRET.encode() not in found["rank_1.log"]
    assert found["explanation.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["root:x:0:0\n", "{}", '{"password": "x"}'])
def test_what_is_no_rank_table_is_left_out(bundled, failed_run, tmp_path, text):
    (tmp_path / "table.json").write_text(text)
    found = bundled(failed_run)
    assert "hccl_rank_table.json" not in found
    assert b"hccl_rank_table.json: it is not a rank table" in found["contents.txt"]


@pytest.mark.parametrize(
    ("does", "page"),
    [("exit 78", b"It failed: exit code 78"), ("echo begun; sleep 100", b"begun\nIt did not end within 0.2 s")],
)
def test_a_doctor_that_fails_or_hangs(bundled, failed_run, doctor, monkeypatch, does, page):
    doctor(does)
    monkeypatch.setattr(pages, "SECONDS", 0.2)
    assert page in bundled(failed_run)["doctor.txt"]


def test_a_diagnosis_that_breaks_does_not_keep_the_logs(bundled, failed_run, monkeypatch):
    def breaks(*_, **__):
        raise KeyError("x")

    monkeypatch.setattr(main, "explain_run", breaks)
    found = bundled(failed_run)
    assert b"no explanation: KeyError" in found["explanation.txt"] and "rank_1.log" in found


@pytest.mark.thorough
@pytest.mark.thorough
def test_the_doctor_himself(failed_run, tmp_path):
    command = [sys.executable, "tools/diagnose.py", str(failed_run), "--bundle", str(tmp_path / "a.tar.gz")]
    ended = subprocess.run(command, cwd=documents.ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and ended.stdout == f"{tmp_path}/a.tar.gz\n"
    with tarfile.open(tmp_path / "a.tar.gz") as opened:
        assert b"Python" in opened.extractfile("debug_a/doctor.txt").read()


# --- other folders and files ------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_run(bundled, folder):
    (folder / "net.ckpt").write_bytes(b"\0" * 100)
    (folder / "numbers").write_bytes(b"\0" * 100)
    (folder / "rank_0.env").write_text('export MY_KEY="hunter2"\n')
    found = bundled(folder)
    assert of_job(found) == ["rank_0.env", "worker-0/plog-1_1.log"]
    assert b"hunter2" not in found["rank_0.env"]
    assert (
        b"net.ckpt: it is not a log" in found["contents.txt"] and b"numbers: it is not a log" in found["contents.txt"]
    )


def test_files_and_archives(bundled, folder, tmp_path):
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"password=hunter2\n"))
    with tarfile.open(tmp_path / "b.tar", "w") as packed:
        for name, data in {
            "../../x.log": b"up\n",
            "/y.log": b"token=abcdefgh\n",
            "z.bin": b"z",
            "r_0.env": b"A=1",
        }.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    found = bundled(folder, tmp_path / "a.log.gz", tmp_path / "b.tar")
    inside = f"{str(tmp_path)[1:]}/"
    assert found[f"{inside}a.log"] == b"password=<masked>\n"
    assert found[f"{inside}b.tar/y.log"] == b"token=<masked>\n" and found[f"{inside}b.tar/x.log"] == b"up\n"
    assert "logs/worker-0/plog-1_1.log" in found
    assert b"link.log: a link; links are not followed" in found["contents.txt"]


@pytest.mark.parametrize("data", [b"\x1f\x8b broken", gzip.compress(b"x" * 10_000, mtime=0)[:-9], b""], ids=range(3))
def test_a_damaged_archive(bundled, folder, data):
    for name in ("a.log.gz", "b.tar.gz"):
        (folder / name).write_bytes(data)
    assert "worker-0/plog-1_1.log" in bundled(folder)


@pytest.mark.thorough
def test_an_archive_that_unpacks_to_too_much(bundled, folder, monkeypatch):
    monkeypatch.setattr(cut, "MOST_UNPACKED", 8 * MIB)
    (folder / "a.log.gz").write_bytes(gzip.compress(b"x\n" * 8 * MIB))
    found = bundled(folder)
    assert "a.log" not in found and b"a.log.gz: it has too many bytes" in found["contents.txt"]


def test_a_folder_without_logs(refused, tmp_path):
    (tmp_path / "none").mkdir()
    assert "none: has no log that can be read; no file is made" in refused(tmp_path / "none")


# --- what others may have put there -----------------------------------------------------------------------------------


def test_links_pipes_and_sockets_are_left_out(bundled, failed_run):
    (failed_run / "rank_2.log").symlink_to("/etc/passwd")
    (failed_run / "plog/rank_1/away").symlink_to("/etc")
    os.mkfifo(failed_run / "rank_3.log")
    found = bundled(failed_run)
    assert not any(b"root:" in data for data in found.values())
    for line in (b"rank_2.log: a link", b"plog/rank_1/away: a link", b"rank_3.log: it is not a regular file"):
        assert line in found["contents.txt"]
    assert "left out: rank_2.log: a link; links are not followed" in found.err


def test_a_file_that_becomes_a_link_or_a_pipe_while_it_is_packed(bundled, failed_run, monkeypatch, tmp_path):
    sort = files.Collection.sort

    def swap(collection, room):
        sort(collection, room)
        os.replace(failed_run / "rank_0.log", tmp_path / "away")
        (failed_run / "rank_0.log").symlink_to("/etc/passwd")
        os.replace(failed_run / "mpirun.log", tmp_path / "away2")
        (failed_run / "mpirun.log").write_text("root:\n")
        os.replace(failed_run / "rank_1.stack", tmp_path / "away3")
        os.mkfifo(failed_run / "rank_1.stack")

    monkeypatch.setattr(files.Collection, "sort", swap)
    found = bundled(failed_run)
    assert "rank_0.log" not in found and "mpirun.log" not in found
    assert b"mpirun.log: another file is there now" in found["contents.txt"]
    assert b"rank_1.stack: it is not a regular file" in found["contents.txt"]


def test_a_file_that_cannot_be_read(bundled, failed_run, monkeypatch):
    opened = os.open

    def refuse(path, *arguments, **options):
        if str(path).endswith("rank_0.log"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    found = bundled(failed_run)
    assert "rank_0.log" not in found and b"rank_0.log: Permission denied" in found["contents.txt"]


@needs.needs_root
def test_a_folder_that_cannot_be_read(failed_run, tmp_path, monkeypatch):
    """Asked by another user, who may not read the folders above either."""
    (failed_run / "plog/rank_1").chmod(0)
    (failed_run / "rank_0.log").chmod(0)
    tmp_path.chmod(0o777)
    monkeypatch.chdir(tmp_path)
    child = os.fork()
    if not child:
        os.setuid(65534)
        with open("said", "w") as said, contextlib.redirect_stderr(said):
            code = main.main(["run", "--bundle", "a.tgz"])
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    said = (tmp_path / "said").read_text()
    assert "left out: rank_0.log: Permission denied" in said and "left out: rank_1: Permission denied" in said


def test_names_are_harmless(bundled, folder):
    for name in (b"a\nb.log", b"\x1b[31mred.log", b"\xff.log", b"token=abcdefghij.log", b"x" * 251 + b".log"):
        with open(os.path.join(os.fsencode(folder), name), "w") as file:
            file.write("x\n")
    found = bundled(folder)
    assert len(of_job(found)) == 6
    assert all(name.isprintable() and len(name.encode()) < 255 for name in found)
    assert not any("abcdefghij" in name for name in found)


def test_names_that_become_alike_are_both_there(bundled, folder):
    (folder / "a.log").write_text("1\n")
    (folder / "a.log.gz").write_bytes(gzip.compress(b"2\n"))
    found = bundled(folder)
    assert {found["a.log"], found["a.1.log"]} == {b"1\n", b"2\n"}


def test_a_log_full_of_controls(bundled, failed_run):
    (failed_run / "rank_0.log").write_bytes(
        b"\0\0\0" + SECRET[:5].encode() + b"\x1b[0m\n" + SECRET[5:].encode() + b"\r\n\xff\xfe\n"
    )
    assert bundled(failed_run)["rank_0.log"] == b"\0\0\0<masked>\r\n\xff\xfe\n"


@pytest.mark.thorough
def test_two_thousand_small_files(bundled, folder):
    for number in range(2000):
        (folder / f"plog-{number}_0.log").write_text(PLOG)
    assert len(bundled(folder)) == 2000 + 1 + 4
