"""Reading logs of any kind and size: what is found, and what hostile or damaged files do to it."""

import gzip
import io
import os
import random
import re
import tarfile

import plogs
import pytest
from logs.known import ENTRIES
from suite.cases import for_each

from tools.diagnosis import main
from tools.logs import events, known_failures, matcher, owners, plog, scan, sources

NAMES = {"plog": "plog-1_2.log", "device": "device-1_2.log", "host": "messages", "train": "a.log"}
LOST = "[ERROR] HCCL(7,python3):2025-01-24-11:31:40.000.000 [a.cc:1]ra hdc message process failed ret(-67)\n"
WHOLE = [
    pytest.param(False, id="slow"),
    pytest.param(True, id="fast", marks=pytest.mark.skipif(not matcher.installed(), reason="needs hyperscan")),
]


def codes_of(reading):
    return sorted({ENTRIES[hit.entry].code for one in reading.findings for hit in one.hits})


def read(*paths):
    return sources.read([str(path) for path in paths], ENTRIES)


# --- one line ---------------------------------------------------------------------------------------------------------


def test_a_plog_line():
    line = "[ERROR] HCCL(114650,python3):2025-06-19-09:28:35.212.164 [p2p_mgmt.cc:305] [115859]text"
    time = plog.seconds("2025-06-19-09:28:35.212.164")
    assert plog.parse(line) == plog.PlogLine("ERROR", "HCCL", 114650, time, "python3")
    of_mindspore = "[CRITICAL] DEVICE(162844,fffd6cff91e0,python):2022-12-01-00:26:58.399.787 [mindspore/x.cc:240] Run"
    assert plog.parse(of_mindspore)[:3] == ("CRITICAL", "DEVICE", 162844)
    assert plog.parse("epoch: 1 step: 2") is None


@pytest.mark.parametrize(
    "text", ["2025-13-01-00:00:00", "2025-01-32-00:00:00", "9999-01-01-00:00:00", "2025-01-01-25:00:00", ""]
)
def test_what_is_no_time(text):
    assert plog.seconds(text) is None


@pytest.mark.parametrize(
    ("path", "kind", "host", "rank", "pid"),
    [
        ("worker-0/process_log/debug/plog/plog-59420_20250124110314898.log", "plog", "worker-0", None, 59420),
        ("plog/rank_3/run/plog/plog-12_20250124110314898.log.gz", "plog", None, 3, 12),
        ("node1/debug/device-3/device-1365_20250806230906733.log", "device", "node1", None, 1365),
        ("rank_12.log", "train", None, 12, None),
        ("alllogs/node7/rank-2.txt", "train", "node7", 2, None),
        ("node1/messages-20250101", "host", "node1", None, None),
        ("node1/dmesg.txt", "host", "node1", None, None),
        ("rank_0.env", "other", None, 0, None),
        ("a/config.json", "other", "a", None, None),
    ],
)
def test_whose_log_it_is(path, kind, host, rank, pid):
    assert owners.kind_of(path, b"text") == kind
    assert owners.of_name(path)[1:4] == (host, rank, pid)


# --- the two matchers -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not matcher.installed(), reason="needs hyperscan")
def test_both_ways_find_the_same_in_the_samples_of_all_entries():
    for kind in owners.KINDS:
        lines = [sample for entry in ENTRIES if kind in entry.logs for sample in entry.samples]
        random.Random(7).shuffle(lines)
        text = "\n".join(lines).encode()
        scan.use(ENTRIES)
        fast, slow = (scan.read(io.BytesIO(text), NAMES[kind], way) for way in (True, False))
        assert fast.kind == slow.kind == kind
        assert fast.hits == slow.hits and len(fast.hits) > 5
        assert fast.errors == slow.errors


@pytest.mark.parametrize("fast", WHOLE)
def test_a_line_at_the_border_of_two_blocks_is_found(fast, monkeypatch):
    monkeypatch.setattr(scan, "BLOCK", 1000)
    scan.use(ENTRIES)
    for before in (900, 960, 998, 999, 1000, 1001, 1999, 2500):
        filler = (b"x" * 49 + b"\n") * (before // 50) + b"y" * (before % 50) + b"\n"
        found = scan.read(io.BytesIO(filler + LOST.encode()), "plog-7_1.log", fast)
        assert [hit.seen[0].row for hit in found.hits] == [filler.count(b"\n") + 1]


@pytest.mark.parametrize("fast", WHOLE)
def test_what_comes_a_million_times_is_kept_a_few_times(fast):
    scan.use(ENTRIES)
    found = scan.read(io.BytesIO(LOST.encode() * 20_000), "plog-7_1.log", fast)
    assert found.errors == 20_000
    (hit,) = found.hits
    assert len(hit.seen) == 3 and hit.times <= matcher.MOST
    assert found.error.row == 1


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("fast", WHOLE)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        "中文".encode()[:-1],
        LOST.encode()[: len(LOST) // 2],
        b"\xff\xfe" * 5000,
        b"[ERROR] HCCL(99999999999999,python3):2025-99-99-99:99:99.999.999 [a.cc:1]x\n",
        b"[ERROR] HCCL(" + b"9" * 100_000,
        b"|  1.2.3.4(99999999999999999999)  |  5.6.7.8(1)  |  client  | time out |\n",
        b"x" * 3_000_000,
        b"a\x00b\x1b[2J\x1b]0;title\x07\n" + LOST.encode(),
    ],
    ids=[
        "empty",
        "blank",
        "half a character",
        "half a line",
        "no UTF-8",
        "no time",
        "no end",
        "large rank",
        "one line of 3 MB",
        "escapes",
    ],
)
def test_damaged_logs_are_read(content, fast):
    scan.use(ENTRIES)
    found = scan.read(io.BytesIO(content), "plog-7_1.log", fast)
    assert found.size == len(content) and not found.trouble
    assert all(seen.text.isprintable() for hit in found.hits for seen in hit.seen)


@for_each("number", range(60))
def test_random_bytes_in_all_forms_of_lines_harm_nothing(number):
    """Each form of HCCL's lines with a few bytes changed: nothing raises, and no event has half its values."""
    chance = random.Random(number)
    lines = [sample.encode() for entry in ENTRIES for sample in entry.samples]
    lines += [
        text.encode() + b"[1], rank[2], 3.3.3.3(4) | 5.5.5.5(6) | server | no connect |"
        for form in events.FORMS
        for text in form.texts
    ]
    text = bytearray(b"\n".join(chance.sample(lines, 40)))
    for _ in range(30):
        text[chance.randrange(len(text))] = chance.randrange(256)
    scan.use(ENTRIES)
    assert scan.read(io.BytesIO(bytes(text)), "plog-7_1.log", False) is not None


def test_archives_are_read_as_they_are(tmp_path):
    with gzip.open(tmp_path / "plog-7_20250124110314898.log.gz", "wt") as file:
        file.write(LOST)
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("../../etc/node1/plog-8_20250124110314898.log")
        member.size = len(LOST)
        archive.addfile(member, io.BytesIO(LOST.encode()))
    reading = read(tmp_path)
    assert codes_of(reading) == ["AISW_CANN_ERRMSG_Custom_06"]
    assert [one.path for one in reading.findings] == [
        f"{tmp_path}/logs.tar.gz:etc/node1/plog-8_20250124110314898.log",
        f"{tmp_path}/plog-7_20250124110314898.log.gz",
    ]


@pytest.mark.parametrize("name", ["a.tar.gz", "plog-7_20250124110314898.log.gz"])
def test_damaged_archives_are_told(tmp_path, capsys, name):
    packed = gzip.compress(os.urandom(200_000))
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    (tmp_path / "rank_0.log").write_text("step 1\n")
    assert main.main([str(tmp_path)]) == 1
    assert name in capsys.readouterr().err


def test_links_pipes_and_foreign_files_are_left_alone(tmp_path, capsys):
    folder = tmp_path / "logs"
    folder.mkdir()
    (tmp_path / "secret.log").write_text(LOST)
    (folder / "plog-1_2.log").symlink_to(tmp_path / "secret.log")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "rank_1.log")
    (folder / "model.ckpt").write_bytes(b"\x00\x01" * 1000)
    (folder / "rank_0.log").write_text("step 1\n")
    assert main.main([str(folder)]) == 1
    out, err = capsys.readouterr()
    assert "2 links not followed" in err and "ret(-67)" not in out


def test_a_file_that_the_user_names_is_read_whatever_its_name_ends_with(tmp_path, capsys):
    log = tmp_path / "pod_status.yaml"
    log.write_text("status:\n  message: 'The node was low on resource: ephemeral-storage.'\n")
    assert main.main([str(log)]) == main.FOUND
    assert "k8s-evicted-disk" in capsys.readouterr().out
    assert main.main([str(tmp_path)]) == main.USAGE, "in a folder it may be a config"


def test_logs_of_no_rank_are_not_told_as_those_of_0_processes(tmp_path, capsys):
    (tmp_path / "mpirun.log").write_text("Your job has requested more processes than the ppr for\n")
    main.main([str(tmp_path)])
    assert capsys.readouterr().err.strip().endswith(" in 1 log")


def test_a_folder_that_cannot_be_read_is_told(tmp_path, capsys, monkeypatch):
    (tmp_path / "rank_0.log").write_text("step 1\n")
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert main.main([str(tmp_path)]) == 1
    assert re.search(r"closed: Permission denied", capsys.readouterr().err)


def test_escapes_of_a_log_do_not_reach_the_terminal(tmp_path, capsys):
    (tmp_path / "plog-7_20250124110314898.log").write_text(LOST.replace("ret(", "\x1b]0;pwned\x07\x1b[31m\u202eret("))
    (tmp_path / "plog-8_20250124110314898.log").write_text(LOST.replace("ERROR", "INFO").replace("(7", "(8"))
    assert main.main([str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "ret(-67)" in out
    assert all(line.isprintable() for line in (out + err).splitlines())


def test_a_site_may_name_words_and_logs(tmp_path, monkeypatch, capsys):
    mine = tmp_path / "mine.yaml"
    mine.write_text("diagnoses:\n- {code: our-switch, logs: [host], words: [[port, is down]], cause: c, remedy: r}\n")
    monkeypatch.setenv(known_failures.VARIABLE, str(mine))
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "messages").write_text("Jan 1 node1 switchd: port 7 is down\n")
    (folder / "rank_0.log").write_text("port 7 is down\n")
    assert main.main([str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("c (our-switch, ") and "messages:1)" in out and "rank_0" not in out


def test_a_missing_path_is_refused(tmp_path, capsys):
    assert main.main([str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "a: No such file or directory" in capsys.readouterr().err


KERNEL = "kernel: Out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB"


@pytest.mark.parametrize(
    ("name", "line", "kind"),
    [
        ("dmesg.txt", "[184081.319496] {}", owners.HOST),
        ("journal.txt", "Jun 11 11:04:35 node7 {}", owners.HOST),
        ("journalctl-k.log", "{}", owners.HOST),
        ("kern.txt", "{}", owners.HOST),
        ("node7.log", "Jun 11 11:04:35 node7 {}", owners.HOST),
        ("node7.log", "2025-06-11T11:04:35+0800 node7 {}", owners.HOST),
        ("node7.log", "-- Logs begin at Wed 2025-06-11. --\nJun 11 11:04:35 node7 {}", owners.HOST),
        ("node7.log", "[ 4081.319496] {}", owners.HOST),
        ("rank_3.log", "[    3.319496] {}", owners.TRAIN),  # a trainer may print such times, too
        ("scheduler.log", "[    3.319496] {}", owners.TRAIN),
        ("node7.log", "step 1\nJun 11 11:04:35 node7 {}", owners.TRAIN),
        ("node7.log", "Jun 11 11:04:35 node7 sshd[47]: {}", owners.TRAIN),
    ],
)
def test_what_the_kernel_wrote_is_of_a_host_and_of_no_rank(tmp_path, name, line, kind):
    (tmp_path / name).write_text(line.format(KERNEL) + "\n")
    (found,) = read(tmp_path).findings
    assert (found.kind, found.owner.role == owners.SYSTEM) == (kind, kind == owners.HOST)


@pytest.mark.slow
def test_many_processes_read_what_one_reads(tmp_path, monkeypatch):
    job = plogs.Job(tmp_path / "logs", ranks=32)
    for rank in range(31):
        job.link(rank, 31)
    alone = read(job.folder)
    monkeypatch.setattr(sources, "SMALL", 0)
    together = read(job.folder)
    assert together.findings == alone.findings
    assert not together.fast  # so few bytes are read before hyperscan's automata are made
    monkeypatch.setattr(sources, "MUCH", 0)
    fast = read(job.folder)
    assert fast.findings == alone.findings
    assert fast.fast == matcher.installed()
