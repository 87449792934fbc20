"""Who a rank waited for, whatever its line calls the peer: a card's address, one within the host, a host's, or none."""

import plogs
import pytest
from logs.known import ENTRIES

from tools.diagnosis import processes, root
from tools.logs import sources


@pytest.fixture
def job(tmp_path):
    return plogs.Job(tmp_path / "logs", ranks=4, each=2)


def told(job):
    reading = sources.read([str(job.folder)], ENTRIES)
    verdict = root.verdict_of(processes.job_of(reading.findings, reading.papers))
    return verdict.kind, [one.rank for one in verdict.roots], verdict.certainty


def row(job, rank, peer, ip, own_ip):
    text = f"   |  {ip}({peer})   |  16666  |  {own_ip}({rank})   |  32344  |  client  | time out |"
    job.write(rank, 150, text)


def test_an_address_within_the_host(job):
    for rank in range(4):
        text = f"[Start][Vnic]Listen on ip[192.168.2.{199 - rank % 2}], port[16666] sucess, devPhyId[{rank % 2}], x"
        job.write(rank, 15, text, level="INFO", kind="run")
    row(job, 3, 2, "192.168.2.199", "192.168.2.198")
    assert told(job) == ("chain", [2], "likely")


def test_an_address_within_the_host_that_no_line_explains(job):
    row(job, 3, 2, "192.168.2.199", "192.168.2.198")
    assert told(job) == ("chain", [2], "likely")


def test_an_address_of_the_host_or_of_a_container(job):
    row(job, 3, 0, "172.17.0.2", "172.17.0.3")
    assert told(job) == ("chain", [0], "likely")


def test_an_address_that_no_card_has_is_not_taken_for_one_of_the_job(job):
    row(job, 3, 0, "3.0.0.0", job.ip(3))
    assert told(job) == ("chain", [0], "guess")


@pytest.mark.parametrize("own", ["10.0.0.1/1", ""])
def test_an_empty_address_of_its_own(job, own):
    text = "[TransportP2p][Init] failed to recv exchangeData exchangeDataTotalSize[2239]"
    job.write(3, 149, text)
    text = (
        f"localUserrank[3]-localIpAddr[{own}], dst_rank[0]-remoteUserrank[0]-remoteIpAddr[10.0.0.0/0], machineType[1]"
    )
    job.write(3, 150, f"Transport init error! createLink para:rank[3]-{text}")
    assert told(job) == ("chain", [0], "likely")


def test_a_lost_device_of_a_host_that_no_log_names(tmp_path):
    text = (
        "RuntimeError: x\nEI0002: The wait execution of the Notify register times out. base information: "
        "[taskType[Notify Wait], tag[HcomAllReduce_6_0.] task information: [stage:[ffffffff], remote rank:[{0}].\n"
        "        serverId[10.0.0.5], deviceId[{1}], Heartbeat Lost Occurred, Possible Reason: 1. Process has exited\n"
    )
    for peer, device, ranks in ((8, 0, [8]), (8, 3, [None])):
        (tmp_path / "rank_1.log").write_text(text.format(peer, device))
        reading = sources.read([str(tmp_path)], ENTRIES)
        verdict = root.verdict_of(processes.job_of(reading.findings, reading.papers))
        assert (verdict.kind, [one.rank for one in verdict.roots], verdict.certainty) == ("lost", ranks, "likely")
