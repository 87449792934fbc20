"""tools/diagnose.py --bundle: one new file, cut to size, there whole or not at all."""

import errno
import gzip
import os
import re
import signal
import subprocess
import sys
import time

import documents
import pytest
from bundles import MIB, PLOG, SECRET, of_job

from tools.diagnosis import main
from tools.diagnosis.bundle import archive, cut, make, pages

# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_long_log_is_cut_at_ends_of_lines(bundled, failed_run):
    lines = b"".join(b"line %09d\n" % number for number in range(700_000))  # 10.5 MB
    (failed_run / "rank_0.log").write_bytes(lines)
    found = bundled(failed_run)["rank_0.log"]
    head, _, rest = found.partition(b"--- ")
    said, _, tail = rest.partition(b" bytes are left out here ---\n")
    assert lines.startswith(head) and lines.endswith(tail) and head.endswith(b"\n") and tail.startswith(b"line ")
    assert MIB - 20 < len(head) <= MIB and 4 * MIB - 20 < len(tail) <= 4 * MIB
    assert int(said) == len(lines) - len(head) - len(tail)


@pytest.mark.thorough
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shift", [3, 14])
def test_a_secret_across_a_cut(bundled, folder, packed, shift, monkeypatch):
    """No part of it stays, although the log has no end of a line there."""
    monkeypatch.setenv("MY_TOKEN", SECRET)
    data = bytearray(b"." * (10 * MIB))
    for cut_at in (cut.HEAD, len(data) - cut.TAIL):
        data[cut_at - 100 : cut_at + 100] = b"x" * 200  # no word ends near the secret
        data[cut_at - shift : cut_at - shift + len(SECRET)] = SECRET.encode()
    (folder / ("a.log.gz" if packed else "a.log")).write_bytes(gzip.compress(data) if packed else data)
    found = bundled(folder)["a.log"]
    assert re.fullmatch(rb"\.+x+\n--- \d+ bytes are left out here ---\nx+\.+", found)
    assert SECRET[:3].encode() not in found and SECRET[-3:].encode() not in found


def test_the_limit_leaves_the_least_important_out(bundled, failed_run):
    plogs = failed_run / "plog/rank_1/debug/plog"
    text = "x" * 99 + "\n"
    for number in range(4):
        (plogs / f"plog-{number}_0.log").write_text(text * 3000 + ("" if number % 2 else PLOG))
        os.utime(plogs / f"plog-{number}_0.log", (time.time() + number, time.time() + number))
    found = bundled(failed_run, "--bundle_limit", "1")
    there = [number for number in range(4) if f"plog/rank_1/debug/plog/plog-{number}_0.log" in found]
    assert there == [0, 2, 3]
    assert sum(map(len, found.values())) <= MIB
    assert b"plog-1_0.log: it does not fit within --bundle_limit" in found["contents.txt"]
    assert "rank_1.log" in found


@pytest.mark.thorough
def test_logs_that_are_small_only_while_packed_have_no_room(bundled, folder):
    for number in range(4):
        (folder / f"{number}.log.gz").write_bytes(gzip.compress(b"x\n" * 200_000))
    found = bundled(folder, "--bundle_limit=1")
    assert sum(map(len, found.values())) <= MIB and len(of_job(found)) == 3


# --- the file itself --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "x", "x.tar", "x.zip", ".tar.gz", "a/.tgz"])
def test_the_name_of_a_bundle(refused, failed_run, name):
    assert "name a file that ends in .tar.gz or .tgz" in refused(failed_run, target=name)


def test_nothing_is_overwritten(refused, failed_run, tmp_path, monkeypatch):
    """That is found out before anything is read."""
    monkeypatch.setattr(make, "_make", None)
    (tmp_path / "old.tgz").write_text("mine")
    assert "old.tgz: the file exists" in refused(failed_run, target=tmp_path / "old.tgz")
    (tmp_path / "link.tgz").symlink_to("nowhere")
    assert "link.tgz: the file exists" in refused(failed_run, target=tmp_path / "link.tgz")
    assert (tmp_path / "old.tgz").read_text() == "mine" and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_stays(failed_run, tmp_path, monkeypatch, capsys, links):
    def link(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    def appears(*_):
        (draft,) = tmp_path.glob("*.part")
        assert draft.stat().st_mode & 0o7777 == 0o600  # from its first byte on
        (tmp_path / "out.tgz").write_text("mine")
        return ""

    monkeypatch.setattr(pages, "versions", appears)
    umask = os.umask(0)
    if not links:
        monkeypatch.setattr(os, "link", link)
    assert main.main([str(failed_run), "--bundle", str(tmp_path / "out.tgz")]) == 2
    os.umask(umask)
    assert "the file exists" in capsys.readouterr().err
    assert (tmp_path / "out.tgz").read_text() == "mine" and not list(tmp_path.glob("*.part"))


def test_a_file_system_without_links(bundled, failed_run, monkeypatch):
    def link(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    assert "rank_1.log" in bundled(failed_run)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["no_such"], "no_such: no such file"), (["--bundle_limit", "0"], "give a number of MiB")],
)
def test_usage(refused, failed_run, arguments, says):
    assert says in refused(*arguments, *([failed_run] if arguments[0].startswith("-") else []))


def test_a_folder_that_is_not_there(refused, failed_run, tmp_path):
    assert "there is no such folder" in refused(failed_run, target=tmp_path / "none/x.tgz")


@pytest.mark.thorough
def test_a_full_disk(failed_run, tmp_path):
    (failed_run / "rank_0.log").write_bytes(os.urandom(300_000))
    (tmp_path / "doctor.sh").unlink()
    command = f"ulimit -f 100; exec {sys.executable} tools/diagnose.py {failed_run} --bundle {tmp_path}/a.tgz"
    ended = subprocess.run(["bash", "-c", command], cwd=documents.ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2 and ended.stdout == ""
    assert (
        ended.stderr == f"diagnose.py: --bundle {tmp_path}/a.tgz: cannot be written: File too large; no file is made\n"
    )
    assert sorted(os.listdir(tmp_path)) == ["run", "table.json"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_nothing(failed_run, tmp_path, doctor, number):
    """While the doctor works, whose process ends, too."""
    doctor(f"echo $$ >{tmp_path}/pid; exec sleep 1000")
    program = "import signal, sys; from tools.diagnosis import main; from tools.diagnosis.bundle import pages\n"
    program += "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored\n"
    program += "pages._DOCTOR = sys.argv.pop(1)\ntry: sys.exit(main.main())\nexcept KeyboardInterrupt: sys.exit(130)"
    words = [str(tmp_path / "doctor.sh"), str(failed_run), "--bundle", str(tmp_path / "a.tgz")]
    process = subprocess.Popen([sys.executable, "-c", program, *words], cwd=documents.ROOT)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert not [name for name in os.listdir(tmp_path) if name.startswith("a.tgz")]
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")


def test_the_archive_takes_no_name_for_another_place():
    assert archive.harmless("/../../etc/./passwd") == "etc/passwd" and archive.harmless("../..") == "unnamed"
    assert make._top("a/b-c d.tar.gz") == "debug_b_c_d"
