"""What the plogs of a job that hangs say, as far as they are read in time; launches are in plog_watch.bats."""

import json
import os
import time

import pytest
from plogs import Job

from hccl_tools.common import project
from tools.diagnosis import plogs_now


@pytest.fixture
def hangs(tmp_path, capsys, monkeypatch):
    """hangs(): the lines about a job of four ranks, of which three wait for the third; hangs.job writes more."""
    monkeypatch.chdir(tmp_path)
    rows = [{"rank": rank, "device": rank, "log": f"rank_{rank}.log"} for rank in range(4)]
    launch = {"started": "2020-01-01T00:00:00Z", "host": "here", "plogs": {"folder": "plog"}, "ranks": rows}
    (tmp_path / "launch.json").write_text(json.dumps(launch))

    def lines(seconds=600):
        plogs_now.main([str(tmp_path), str(tmp_path), str(seconds)])
        return capsys.readouterr().out.splitlines()

    lines.job = Job(tmp_path, ranks=4)
    (tmp_path / "node0").rename(tmp_path / "plog")
    (tmp_path / "node0").symlink_to("plog")
    return lines


def wait_for_3(job):
    for rank in range(3):
        job.link(rank, 3)


def test_the_root_then_the_last_event_of_each_rank_that_wrote_lately(hangs):
    wait_for_3(hangs.job)
    hangs.job.write(3, 200, "a plain line", level="INFO")
    root, sure, *_, last = hangs()
    assert root.startswith("root: rank 3 (host here, device 3) never opened its socket; 3 ranks waited ")
    assert sure.startswith("    how sure: ")
    assert last == "ranks 0-2, last in the plog: 11:02:30 [ERROR] HCCL [AllReduce]call trace: hcclRet -> 9"
    assert len(hangs()) == 5
    for folder, _, names in os.walk("plog"):
        for name in names:
            os.utime(os.path.join(folder, name), (time.time() - 9000,) * 2)
    assert len(hangs()) == 4
    assert hangs(10000)[4:] == [last]


def test_at_most_six_lines_of_events():
    events = [plogs_now.Event(1.0, rank, "EVENT", f"text {rank}") for rank in range(9)]
    lines = plogs_now.event_lines(events)
    assert lines[0] == "rank 0, last in the plog: 00:00:01 [EVENT] text 0"
    assert lines[5:] == ["and 4 more ranks"]
    assert len(plogs_now.event_lines(events[:6])) == 6


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", None),
        (b"[ERROR] no time\n[INFO] HCCL(7,p):2025-06-19-11:24:07.212.164 [a.cc:1] [7]x\n", None),
        (b"[EVENT] HCCL(7,p):2025-06-19-11:24:07.212.164 [a.cc:1] [7]half", "HCCL half"),
        (b"[ERROR] HCCL(7,p):2025-06-19-11:24:07.212.164 [a.cc:1] [7]quotes [ERROR] y\n", "HCCL quotes [ERROR] y"),
        (b"[WARNING] RT(7,p):2025-06-19-11:24:07 [a.cc:1] [7]\x1b[31m\xff red\n", "RT \ufffd red"),
    ],
)
def test_the_last_event(data, text):
    event = plogs_now.last_event(data, 0)
    assert (event and event.text) == text


def test_of_a_long_plog_the_beginning_and_the_end_are_read(tmp_path):
    path = tmp_path / "plog"
    path.write_bytes(b"".join(b"line %05d\n" % number for number in range(10000)))
    lines = plogs_now.ends(path, 1000).split(b"\n")
    assert (lines[0], lines[-2]) == (b"line 00000", b"line 09999")
    assert 80 < len(lines) < 95
    assert {len(line) for line in lines} == {10, 0}
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="link"):
        plogs_now.ends(tmp_path / "link", 10)


def test_what_cannot_be_read_in_time_gets_no_verdict(hangs, tmp_path, monkeypatch):
    wait_for_3(hangs.job)
    monkeypatch.setattr(plogs_now, "MOST", 1000)
    first, *events = hangs()
    assert (
        first
        == "there is no time now to read all plogs; this command does: "
        + f"python {project.ROOT}/tools/diagnose.py {tmp_path}"
    )
    assert not any("root" in line for line in events)


def test_links_and_plogs_of_earlier_jobs_are_not_read(hangs, tmp_path):
    wait_for_3(hangs.job)
    (tmp_path / "plog").rename(tmp_path / "outside")
    (tmp_path / "plog").mkdir()
    for rank in range(4):
        (tmp_path / "plog" / f"rank_{rank}").symlink_to(tmp_path / "outside" / f"rank_{rank}")
    assert hangs() == []
    (tmp_path / "plog" / "rank_0").unlink()
    (tmp_path / "outside" / "rank_0").rename(tmp_path / "plog" / "rank_0")
    for folder, _, names in os.walk("plog"):
        for name in names:
            os.utime(os.path.join(folder, name), (1000, 1000))
    assert hangs() == []
