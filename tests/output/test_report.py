"""What the launcher says of a job: at its start, at failures, and at its end."""

import os

import pytest

from hccl_tools.common.grouping import grouped
from tools.output import alike, report
from tools.supervise.members import Member


@pytest.fixture(autouse=True)
def english(monkeypatch, tmp_path):
    from hccl_tools.common import language

    monkeypatch.setattr(language, "_catalogue", lambda: None)
    monkeypatch.chdir(tmp_path)


def member(number, status=0, *, device=None, host="", began=0.0, ended=1.25, **facts):
    """A rank that has ended so; with a text in place of the number, another member than a rank."""
    rank = number if isinstance(number, int) else None
    log = os.path.join(os.getcwd(), "run", f"{'' if rank is None else 'rank_'}{number}.log")
    found = Member(str(number), log, rank, device if device is not None else rank, host)
    found.began, found.ended, found.status = began, ended, status
    for name, value in facts.items():
        setattr(found, name, value)
    return found


# ---- ranks that are alike --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "name"),
    [
        ([7], "rank 7"),
        ([0, 1], "ranks 0,1"),
        ([0, 1, 2, 5, 7, 8], "ranks 0-2,5,7,8"),
        (range(0, 40, 2), "ranks 0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38"),
        ([*range(0, 42, 2), 50, 51, *range(60, 100)], "ranks " + ",".join(map(str, range(0, 40, 2))) + " and 43 more"),
    ],
)
def test_ranks_are_named_as_ranges_at_most_twenty_and_nothing_is_lost_without_a_word(ranks, name):
    assert alike.named(ranks) == name


def test_ranks_that_are_alike_are_in_the_order_in_which_they_came():
    found = grouped(("odd" if rank % 2 else "even", rank) for rank in range(1, 6))
    assert list(found.items()) == [("odd", [1, 3, 5]), ("even", [2, 4])]


# ---- start and end ---------------------------------------------------------------------------------------------------


def test_the_start_names_ranks_devices_hosts_and_folder():
    assert report.started([4, 5, 6, 7], 0, "logs/run") == "4 ranks on devices 4-7, logs in logs/run"
    assert report.started([4], 1, "run") == "1 rank on device 4, logs in run"
    assert report.started([0, 1, 0, 1], 2, "run") == "4 ranks on devices 0,1 of 2 hosts, logs in run"
    assert report.started([], 0, "run") == "this pod runs no ranks, only MindSpore's scheduler, logs in run"


def test_paths_are_named_from_the_current_folder(tmp_path):
    assert report.path(str(tmp_path / "logs" / "run")) == "logs/run"
    assert report.path("/elsewhere") == "/elsewhere"


def test_what_is_left_of_a_run(tmp_path):
    run = tmp_path / "run"
    assert report.where(str(run)) == ""
    run.mkdir()
    assert report.where(str(run)) == "; logs are in run"
    (run / "launch.json").write_text("{}")
    assert report.where(str(run)) == "; logs and launch.json are in run"
    (run / "report.html").write_text("")
    assert report.where(str(run)) == "; logs and launch.json are in run; page: run/report.html"


def test_the_last_lines_of_a_log_are_harmless(tmp_path):
    log = tmp_path / "rank_0.log"
    assert report.tail(str(log)) == []
    log.write_bytes(b"\x1b[31mred\x1b[0m\x1b]0;evil\x07\x1b[2J\n\0\xfe\x9b\x7f\n\xe4\xb8\x96")
    assert report.tail(str(log)) == [
        "the last lines of rank_0.log:",
        "    red\\x1b]0;evil\\x07\\x1b[2J",
        "    \\xfe\\x9b\\x7f",
        "    世",
    ]


# ---- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed", "text"),
    [
        (member(3, 1), "rank 3 (device 3) exited with code 1 after 1.2 s"),
        (member(3, 137, host="me@node1", device=7), "rank 3 (device 7 of me@node1) was ended by SIGKILL after 1.2 s"),
        (member("scheduler", 134), "MindSpore's scheduler was ended by SIGABRT after 1.2 s"),
        (member("mpirun", 128), "mpirun exited with code 128 after 1.2 s"),
        (member(0, 143), "rank 0 (device 0) was ended by SIGTERM after 1.2 s"),
        (member(0, 144), "rank 0 (device 0) exited with code 144 after 1.2 s"),
        (member(0, 152), "rank 0 (device 0) was ended by SIGXCPU after 1.2 s"),
        (member(0, 159), "rank 0 (device 0) was ended by SIGSYS after 1.2 s"),
        (member(0, 160), "rank 0 (device 0) exited with code 160 after 1.2 s"),
        (
            member(0, 255, began=None),
            "rank 0 (device 0) could not be started: there are too many processes (see ulimit -u, and the container's "
            "limit of pids)",
        ),
    ],
)
def test_a_failure_says_who_and_how(failed, text):
    assert report.what(failed) == text


@pytest.mark.parametrize(
    ("left", "goes_on", "others"),
    [
        (0, False, ""),
        (0, True, ""),
        (1, False, "; stopping the other rank"),
        (7, False, "; stopping the other 7 ranks"),
        (1, True, "; the other rank goes on"),
        (7, True, "; the other 7 ranks go on"),
    ],
)
def test_a_failure_says_what_becomes_of_the_others(left, goes_on, others):
    assert report.failure(member(1, 3), left, goes_on, 1) == "rank 1 (device 1) exited with code 3 after 1.2 s" + others


def test_thousands_of_failures_are_not_told_one_by_one():
    told = [report.failure(member(1, 3), 0, True, number) for number in range(19, 25)]
    assert [text and text[:10] for text in told] == ["rank 1 (de", "rank 1 (de", "more ranks", None, None, None]
    assert report.failure(member(1, 3), 0, False, 99).startswith("rank 1 ")  # it ends the job


def test_a_lost_host_is_known_by_its_names():
    ranks = [member(rank, host=f"me@node{rank // 2}", told_host=f"n{rank // 2}.example") for rank in range(6)]
    for name in ("node1", "n1.example", "n1"):
        assert [rank.rank for rank in report.ranks_of_lost(name, ranks)] == [2, 3]
    assert report.ranks_of_lost("n", ranks) == report.ranks_of_lost("example", ranks) == []
    sentence = report.lost(member("mpirun", 255), "n1", ranks[2:4])
    assert sentence == (
        "the host node1 (ranks 2,3) is lost after 1.2 s: mpirun can no longer reach it; check that it is up, and "
        "its network"
    )
    assert report.lost(member("srun", 255), "other", []).startswith("the host other is lost after 1.2 s: srun can")
    assert report.failure(member("mpirun", 255), 4, False, 1, sentence) == sentence + "; stopping the other 4 ranks"


# ---- the table -------------------------------------------------------------------------------------------------------


def test_the_table_of_few_ranks():
    first = member(1, 137, failed=True)
    ranks = [member(0, 143), first, member(2, None, ended=None), member(3, 1, failed=True), member(4, 255, lost=True)]
    ranks += [member(5, 255, lost=True), member(6, 255, began=None), member(7, 143, failed=True)]
    assert report.table(ranks, first, {5}, True) == [
        "rank  device  exit                         time      log",
        "0     0       143 SIGTERM, stopped by us   1.2 s     run/rank_0.log",
        "1     1       137 SIGKILL, failed first    1.2 s     run/rank_1.log",
        "2     2       not started                  -         run/rank_2.log",
        "3     3       1, failed                    1.2 s     run/rank_3.log",
        "4     4       end not reported             1.2 s     run/rank_4.log",
        "5     5       lost with its host           1.2 s     run/rank_5.log",
        "6     6       not started                  -         run/rank_6.log",
        "7     7       143 SIGTERM, failed          1.2 s     run/rank_7.log",
    ]
    assert report.table(ranks[:1], None, (), False)[1] == (
        "0     0       143 SIGTERM                  1.2 s     run/rank_0.log"
    )


def test_the_table_names_hosts():
    ranks = [member(0, host="node0"), member(1, host="a-very-long-name-of-a-host"), member(2, host="\x1b[2J")]
    assert report.table(ranks, None, (), False) == [
        "rank  device  host            exit                         time      log",
        "0     0       node0           0                            1.2 s     run/rank_0.log",
        "1     1       a-very-long-name-of-a-host 0                            1.2 s     run/rank_1.log",
        "2     2       \\x1b[2J         0                            1.2 s     run/rank_2.log",
    ]


def test_many_ranks_share_rows():
    ranks = [member(rank, 143 if rank % 2 else 0) for rank in range(17)]
    ranks[5].status, ranks[5].failed = 3, True
    assert report.table(ranks, ranks[5], (), True)[1:] == [
        "5     5       3, failed first              1.2 s     run/rank_5.log",
        "0: ranks 0,2,4,6,8,10,12,14,16",
        "143 SIGTERM, stopped by us: ranks 1,3,7,9,11,13,15",
    ]
    assert report.table(ranks, member("mpirun", 1), (), True)[1:] == [
        "0: ranks 0,2,4,6,8,10,12,14,16",
        "143 SIGTERM, stopped by us: ranks 1,3,7,9,11,13,15",
        "3, failed: rank 5",
    ]


def test_a_chinese_character_is_two_columns_wide(monkeypatch):
    monkeypatch.setattr(report, "tr", lambda text, **_: {"exit": "结束", "not started": "未启动"}.get(text, text))
    ranks = [member(0, None, ended=None), member(1)]
    head, first, second = report.table(ranks, None, (), False)
    places = [line.index("log" if line is head else "run/") for line in (head, first, second)]
    assert places == [53 - 2, 53 - 3, 53]


def test_which_ranks_failed_where_the_others_went_on():
    ranks = [member(rank, rank % 3, failed=rank % 3 > 0) for rank in range(6)]
    assert report.failed_ranks(ranks) == "4 of 6 ranks failed: ranks 1,2,4,5 (--keep_going)"
    assert (
        report.failed_ranks(ranks[:1])
        is report.failed_ranks([ranks[0], ranks[3]])
        is report.failed_ranks(ranks[1:2])
        is None
    )


@pytest.mark.slow
def test_a_table_of_65536_ranks_puts_each_way_into_words_once(monkeypatch):
    said = []
    monkeypatch.setattr(report, "tr", lambda text, **_: said.append(text) or text)
    ranks = [member(rank, 143 if rank % 3 else 0) for rank in range(65536)]
    rows = report.table(ranks, None, (), True)
    assert len(rows) == 3 and rows[1].endswith(" and 21826 more") and len(said) < 20
