"""Which plogs are of one process, and which processes are of one job: by folder, PID, start and rank, by no gap."""

import pytest
from logs.known import ENTRIES

from tools.diagnosis import processes, root
from tools.logs import sources

FAILED = "Memory async copy failed"


class Logs:
    """Writes plogs; times are minutes after 10 o'clock of a day."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, kind, pid, minutes, text, where="", level="ERROR", day=24):
        at = f"2025-01-{day}-{10 + int(minutes) // 60}:{int(minutes) % 60:02}:{int(minutes * 60) % 60:02}"
        path = self.folder / where / kind / "plog"
        path.mkdir(parents=True, exist_ok=True)
        named = sorted(path.glob(f"plog-{pid}_*.log"))
        file = named[-1] if named else path / f"plog-{pid}_{at.replace('-', '').replace(':', '')}000.log"
        with open(file, "a", encoding="utf-8") as log:
            log.write(f"[{level}] HCCL({pid},python3):{at}.000.000 [f.cc:1] [7]{text}\n")

    def start(self, pid, rank, minutes, ranks=2, where="", host=0, day=24):
        group = f"10.0.0.1%eth0_60000_0_{day}{int(minutes):04}"
        text = f"SetupAgent rankNum[{ranks}], rank[{rank}], rootInfo identifier[{group}], server[10.0.0.{host}%eth0], "
        text += f"phydevId[{rank}], deviceIp[192.168.{host}.{rank}]"
        self.write("run", pid, minutes, text, where, "INFO", day)

    def waits(self, pid, peer, minutes, where="", day=24):
        base = "[TaskExceptionHandler]base information is taskType[Notify Wait], tag[AllReduce_1], index[7]."
        self.write("debug", pid, minutes, base, where, day=day)
        self.write("debug", pid, minutes, f"task information is stage:[0], remote rank:[{peer}].", where, day=day)


@pytest.fixture
def logs(tmp_path):
    return Logs(tmp_path / "logs")


def job_of(logs):
    reading = sources.read([str(logs.folder)], ENTRIES)
    return processes.job_of(reading.findings, reading.papers)


def told(logs):
    job = job_of(logs)
    verdict = root.verdict_of(job)
    return verdict and (verdict.kind, [one.rank for one in verdict.roots], verdict.certainty), job.others


@pytest.mark.parametrize("minutes", [2, 33, 600])
def test_a_process_is_one_however_long_it_says_nothing(logs, minutes):
    for rank, pid in ((0, 4000), (1, 5000)):
        logs.start(pid, rank, 0)
    logs.waits(4000, 1, minutes)
    assert told(logs) == (("chain", [1], "likely"), 0)


@pytest.mark.parametrize("minutes", [2, 33, 600])
def test_a_rank_that_failed_at_its_start_is_of_the_job(logs, minutes):
    for rank, pid in ((0, 4000), (1, 5000)):
        logs.start(pid, rank, 0)
    logs.write("debug", 5000, 1, FAILED)
    logs.waits(4000, 1, minutes)
    assert told(logs) == (("error", [1], "sure"), 0)


@pytest.mark.parametrize("pids", [(4000, 6000), (4000, 4000)], ids=["other PIDs", "the same PIDs"])
@pytest.mark.parametrize("minutes", [15, 180])
def test_two_jobs_in_one_folder_are_told_apart(logs, pids, minutes):
    logs.start(pids[0], 0, 0)
    logs.start(pids[0] + 1, 1, 0)
    logs.write("debug", pids[0] + 1, 1, FAILED)
    logs.waits(pids[0], 1, 3)
    if pids[0] == pids[1]:  # CANN begins new files
        for path in logs.folder.rglob("*.log"):
            path.rename(path.with_name(path.name.replace("plog-", "old-plog-")))
    logs.start(pids[1], 0, minutes)
    logs.start(pids[1] + 1, 1, minutes)
    logs.write("debug", pids[1], minutes + 1, FAILED)
    logs.waits(pids[1] + 1, 0, minutes + 3)
    for path in logs.folder.rglob("old-*.log"):
        path.rename(path.with_name(path.name.replace("old-", "")))
    assert told(logs) == (("error", [0], "sure"), 4)


def test_two_attempts_in_the_folder_of_each_rank(logs):
    for attempt, failed in ((0, 1), (30, 0)):
        for rank in (0, 1):
            logs.start(4000 + attempt + rank, rank, attempt, where=f"rank_{rank}")
        logs.write("debug", 4000 + attempt + failed, attempt + 1, FAILED, where=f"rank_{failed}")
        logs.waits(4001 + attempt - failed, failed, attempt + 3, where=f"rank_{1 - failed}")
    assert told(logs) == (("error", [0], "sure"), 4)


def test_the_plogs_of_a_ranks_children_are_its_own(logs):
    logs.start(4000, 0, 0, where="rank_0")
    logs.start(5000, 1, 0, where="rank_1")
    logs.write("run", 5003, 1, "goes on", where="rank_1", level="EVENT")
    logs.write("debug", 5003, 40, FAILED, where="rank_1")
    logs.waits(4000, 1, 80, where="rank_0")
    assert told(logs) == (("error", [1], "sure"), 0)


def test_without_the_plogs_of_the_start_a_ranks_number_tells(logs):
    logs.write("debug", 5000, 1, FAILED, where="rank_1")
    logs.waits(4000, 1, 33, where="rank_0")
    assert told(logs) == (("error", [1], "likely"), 0)


def test_without_numbers_one_that_spoke_early_is_of_the_job_of_many(logs):
    logs.write("debug", 5000, 1, FAILED)
    for pid in range(4000, 4007):
        logs.waits(pid, 1, 32)
    verdict, others = told(logs)
    assert verdict[0] == "error" and others == 0


def test_without_numbers_as_many_early_as_late_are_two_jobs(logs):
    for pid in range(4000, 4004):
        logs.write("debug", pid, 1, FAILED)
    for pid in range(6000, 6004):
        logs.waits(pid, 1, 32)
    assert job_of(logs).others == 4


def test_hosts_in_other_time_zones_are_of_one_job(logs):
    logs.start(4000, 0, 0, host=1)
    logs.start(5000, 1, 240, host=2)
    logs.write("debug", 5000, 241, FAILED)
    logs.waits(4000, 1, 3)
    assert told(logs) == (("error", [1], "sure"), 0)


def test_what_a_rank_of_last_year_says_is_left_out(logs):
    logs.start(4000, 0, 0, day=25, ranks=3)
    logs.write("debug", 7000, 0, FAILED, where="rank_2", day=11)
    logs.waits(4000, 1, 3, day=25)
    assert told(logs) == (("chain", [1], "guess"), 1)
