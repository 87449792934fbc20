"""Which rank is named as the root of a failure, from the plogs of all ranks; and how sure that is."""

import json
import os
import random
from pathlib import Path

import plogs
import pytest
from logs.known import ENTRIES
from suite.cases import for_each

from tools.diagnosis import processes, root, words
from tools.logs import sources

FAULTS = os.environ.get("FAULT_LOGS")


def verdict_of(*paths):
    reading = sources.read([str(path) for path in paths], ENTRIES)
    return root.verdict_of(processes.job_of(reading.findings, reading.papers))


@pytest.fixture
def job(tmp_path):
    def make(**arguments):
        return plogs.Job(tmp_path / "logs", **arguments)

    return make


def told(job):
    verdict = verdict_of(job.folder)
    return verdict.kind, [one.rank for one in verdict.roots], verdict.certainty


# --- time-outs only ---------------------------------------------------------------------------------------------------


def test_a_rank_that_never_opened_its_socket(job):
    it = job(ranks=64)
    for rank in range(64):
        if rank != 9:
            it.link(rank, 9, seconds=150 + (rank != 2))
    verdict = verdict_of(it.folder)
    assert (verdict.kind, [one.rank for one in verdict.roots], verdict.certainty) == ("chain", [9], "likely")
    assert verdict.sentence.startswith(
        "rank 9 (host node1, device 1) never opened its socket; 63 ranks waited 120 s for it"
    )
    assert "rank 2 (host node0, device 2) first" in verdict.sentence
    assert any("on host node1: hccn_tool -i 1 -link -g" in line for line in verdict.next)


def test_a_chain_is_followed_to_its_end(job):
    it = job(ranks=8)
    for rank in (0, 1, 2, 3):
        it.link(rank, rank + 1, seconds=150 + rank)
    assert told(it) == ("chain", [4], "likely")


def test_a_rank_without_a_log_is_named_all_the_same(job):
    it = job(ranks=4, silent=(3,))
    for rank in range(3):
        it.link(rank, 3)
    kind, ranks, certainty = told(it)
    assert (kind, ranks, certainty) == ("chain", [3], "guess")


def test_an_address_that_is_not_in_the_job(job):
    it = job(ranks=3)
    it.link(0, 3, ip="3.0.0.0")
    verdict = verdict_of(it.folder)
    assert "rank 3 (address 3.0.0.0) is not one of the job's 3 ranks" in verdict.sentence


def test_two_that_waited_for_each_other(job):
    it = job(ranks=4, each=2)
    it.link(1, 2)
    it.link(2, 1)
    it.link(0, 1, seconds=151)
    assert told(it) == ("circle", [1, 2], "likely")


def test_one_that_came_after_the_other_had_given_up(job):
    it = job(ranks=4)
    it.link(1, 2, seconds=150)
    it.link(2, 1, seconds=500)
    verdict = verdict_of(it.folder)
    assert (verdict.kind, verdict.roots[0].rank) == ("late", 2)
    assert "230 s too late" in verdict.sentence


@pytest.mark.parametrize("index", [3, None])
def test_one_that_came_to_a_collective_after_the_other_had_given_up(job, index):
    it = job(ranks=4)
    it.exec_stage(1, index=index)
    it.exec_stage(2, seconds=2244, index=index)
    verdict = verdict_of(it.folder)
    assert (verdict.kind, [one.rank for one in verdict.roots]) == ("late", [2])
    number = "" if index is None else " number 3"
    one, other = (f"rank {rank} (host node0, device {rank})" for rank in (1, 2))
    assert verdict.sentence == f"{other} came 344 s later than {one} to AllReduce{number}; {one} had given up"


def test_two_that_gave_up_at_the_same_time_name_nobody(job):
    it = job(ranks=4)
    it.exec_stage(1)
    it.exec_stage(2, seconds=1920)
    assert told(it)[:2] == ("unknown", [])


def test_two_that_gave_up_in_two_communicators_name_nobody(job):
    it = job(ranks=4)
    it.exec_stage(1)
    it.exec_stage(2, seconds=2244, port=60001)
    assert told(it)[:2] == ("unknown", [])


def test_two_in_different_collectives_of_two_communicators_name_nobody(job):
    it = job(ranks=2)
    it.exec_stage(0)
    it.exec_stage(1, tag="AllGather", port=60001)
    assert told(it)[:2] == ("unknown", [])


def test_two_in_different_collectives_of_the_same_number(job):
    it = job(ranks=2)
    it.exec_stage(0)
    it.exec_stage(1, tag="AllGather")
    verdict = verdict_of(it.folder)
    assert (verdict.kind, sorted(one.rank for one in verdict.roots)) == ("conflict", [0, 1])
    one, other = (f"rank {rank} (host node0, device {rank})" for rank in (0, 1))
    assert verdict.sentence == f"{one} waited in AllReduce number 3, and {other} in AllGather number 3"


@pytest.mark.parametrize(("tag", "index"), [("AllGather", 4), ("AllGather", None), ("AllReduce", 4)])
def test_two_in_collectives_that_need_not_be_the_same(job, tag, index):
    it = job(ranks=2)
    it.exec_stage(0, index=None if index is None else 3)
    it.exec_stage(1, tag=tag, index=index)
    assert told(it)[:2] == ("unknown", [])


def test_a_collective_that_waits_for_its_own_device(job):
    it = job(ranks=3)
    it.notify(0, 1)
    it.notify(1, 2)
    it.notify(2, "local")
    assert told(it)[:2] == ("self", [2])


@pytest.mark.parametrize(("tag", "index"), [("AllReduce", 2), ("AllGather", 3)])
def test_a_rank_in_another_step(job, tag, index):
    it = job(ranks=4)
    for rank, peer in ((0, 3), (2, 3), (3, 1)):
        it.notify(rank, peer)
    it.notify(1, 2, tag=tag, index=index)
    assert told(it)[:2] == ("conflict", [1])


# --- more than time-outs ----------------------------------------------------------------------------------------------


def test_the_earliest_error_that_is_no_time_out(job):
    it = job(ranks=8)
    it.write(5, 140, "Aicore kernel execute failed, fault kernel_name=x", module="RUNTIME")
    for rank in (0, 1, 2):
        it.link(rank, 3, seconds=150)
    it.write(3, 260, "Memory async copy failed", module="RUNTIME")
    assert told(it) == ("error", [5], "likely")  # two ranks have one: only the order in time tells


def test_the_only_error_that_is_no_time_out_is_sure(job):
    it = job(ranks=8)
    it.write(5, 140, "Aicore kernel execute failed, fault kernel_name=x", module="RUNTIME")
    for rank in (0, 1, 2):
        it.link(rank, 3, seconds=150)
    assert told(it) == ("error", [5], "sure")


def test_it_is_not_sure_without_the_log_of_each_rank(job):
    it = job(ranks=8, silent=[7])
    it.write(5, 140, "Aicore kernel execute failed, fault kernel_name=x", module="RUNTIME")
    it.link(0, 3, seconds=150)
    assert told(it) == ("error", [5], "likely")


def test_an_error_after_a_wait_follows_from_it(job):
    it = job(ranks=4)
    it.link(0, 3, seconds=150)
    it.write(0, 151, "model execute failed", module="GE")
    assert told(it)[:2] == ("chain", [3])


def test_clocks_that_differ_are_set_by_the_common_start(job):
    it = job(ranks=4, each=2, skew={1: 300})
    it.write(1, 200, "Memory async copy failed", module="RUNTIME")
    it.write(2, 150, "Aicore kernel execute failed", module="RUNTIME")  # its host writes 450
    assert told(it) == ("error", [2], "likely")


def test_clocks_that_nothing_compares_are_not_trusted(job, tmp_path):
    it = job(ranks=4, each=2)
    it.write(1, 203, "Memory async copy failed", module="RUNTIME")
    it.write(2, 200, "Aicore kernel execute failed", module="RUNTIME")
    for path in it.folder.rglob("run/plog/*.log"):
        path.write_text(path.read_text().replace("HcclCommInitRootInfo success", "nothing"))
    verdict = verdict_of(it.folder)
    assert (verdict.kind, verdict.roots[0].rank, verdict.certainty) == ("error", 2, "likely")
    assert "clocks" in verdict.why and "rank 1" in verdict.why


def test_the_cards_network(job):
    it = job(ranks=16)
    for rank, second in ((12, 59), (13, 58)):
        when = f"2025-01-24 11:01:{second}.099518"
        it.write(rank, 70, f"[Heartbeat]cqe err status[12], time:[{when}], ip:[{it.ip(3)}]")
    it.link(0, 12, seconds=200)
    verdict = verdict_of(it.folder)
    assert (verdict.kind, [one.rank for one in verdict.roots]) == ("network", [13, 12])
    assert "from rank 3 (host node0, device 3)" in verdict.sentence


@pytest.mark.parametrize("hostile", ["$(touch here)", "1.2.3.4; rm -r x", "`id`"])
def test_a_command_has_no_text_of_a_log_that_is_not_an_address(job, hostile):
    it = job(ranks=4, each=2)
    it.write(0, 70, f"[Heartbeat]cqe err status[12], time:[2025-01-24 11:01:10.1], ip:[{hostile}]")
    assert not any(hostile in line for line in verdict_of(it.folder).next)
    (it.folder / "node0" / "rank_0" / "debug" / "plog" / "plog-1000_20250124110000000.log").unlink()
    for path in it.folder.rglob("run/plog/*.log"):
        path.write_text(path.read_text().replace(it.ip(1), hostile))
    it.link(0, 1)
    it.link(1, 0)
    (it.folder / "node0").rename(it.folder / hostile)
    assert not any(hostile in line for line in verdict_of(it.folder).next if "hccn_tool" in line)


def test_what_hccl_itself_says_of_a_lost_device(job):
    it = job(ranks=16)
    for rank in (0, 1, 9):
        it.write(
            rank,
            1900,
            "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[10.0.0.1/4], Arrival Time:[Thu Oct "
            "23 17:25:58 2025], Discoverer:[10.0.0.1/1], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. x",
        )
        it.notify(rank, 3)
    verdict = verdict_of(it.folder)
    assert (verdict.kind, verdict.roots[0].rank, verdict.certainty) == ("lost", 12, "sure")


def test_ranks_that_never_came_to_the_communicator(job):
    it = job(ranks=8, silent=(1, 3, 5, 7))
    it.write(0, 130, "[InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[120 s]")
    it.write(0, 130, "[InitGroupStage][DisplayConnectionedRank]need connect rankNum is [8]")
    came = ",".join(f"[{rank:016}]" for rank in (0, 2, 4, 6))
    it.write(0, 130, f"[InitGroupStage][DisplayConnectionedRank]connected rankinfo[LINE 0]: {came};")
    verdict = verdict_of(it.folder)
    assert (verdict.kind, [one.rank for one in verdict.roots], verdict.certainty) == ("missing", [1, 3, 5, 7], "sure")
    assert "waited 120 s for 8 ranks, and 4 joined" in verdict.sentence


def test_ranks_that_others_say_are_missing(job):
    it = job(ranks=8)
    it.write(2, 130, 'TopoDetect ERROR occur !!! fault_type[1], fault_info["Failed to connect agent[5,7,]"]')
    assert told(it)[:2] == ("missing", [5, 7])


def test_other_arguments_of_a_collective(job):
    it = job(ranks=4)
    it.write(
        2,
        130,
        "[InitChannelStage][Timeout]Transport init error! createLink para:rank[2]-localUserrank[2]-"
        "localIpAddr[10.0.0.0/2], remoteRank[1]-remoteUserrank[1]-remoteIpAddr[10.0.0.0/1], tag[AllGather_x]",
    )
    it.write(2, 131, "CMD information count check fail. local[16512], remote[8320]")
    verdict = verdict_of(it.folder)
    assert (verdict.kind, [one.rank for one in verdict.roots]) == ("conflict", [2, 1])
    assert "count is 16512 here and 8320 there" in verdict.sentence


def test_other_arguments_of_a_collective_in_the_only_log(tmp_path):
    lines = (
        "EI0005: The arguments for collective communication are inconsistent between ranks:tag[HcomAllReduce_6], "
        "parameter[count], local[16512], remote [8320]\n"
        "Transport init error. Reason: Create Dest error! createLink para:rank[5]-localUserrank[4]-"
        "localIpAddr[127.10.0.1], dst_rank[6]-remoteUserrank[7]-remote_ip_addr[127.10.0.1]\n"
    )
    (tmp_path / "rank_5.log").write_text(lines)
    verdict = verdict_of(tmp_path)
    assert (verdict.kind, verdict.certainty) == ("conflict", "likely"), "it did not wait for the rank without a log"
    assert "count is 16512 here and 8320 there" in verdict.sentence


def test_tls_switches_that_differ(job):
    it = job(ranks=4)
    for rank in range(4):
        it.link(rank, (rank + 1) % 4, tls="ENABLE" if rank == 2 else "DISABLE")
    verdict = verdict_of(it.folder)
    assert (verdict.kind, [one.rank for one in verdict.roots]) == ("tls", [2])
    assert verdict.sentence == "TLS is on for rank 2 (host node0, device 2) and not for the others"


def test_tls_switches_that_only_hccl_calls_different(job):
    it = job(ranks=4)
    it.write(1, 130, "Some ranks tlsStatus are inconsistent")
    assert told(it)[:2] == ("tls", [])


def test_an_exception_is_an_error_of_its_own(job):
    it = job(ranks=4)
    it.link(0, 1)
    log = it.folder / "node0" / "rank_1" / "rank_1.log"
    log.write_text("Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'label'\n")
    verdict = verdict_of(it.folder)
    assert (verdict.kind, verdict.roots[0].rank) == ("error", 1) and "KeyError: 'label'" in verdict.sentence


def test_good_logs_have_no_root(job):
    assert verdict_of(job(ranks=4).folder) is None


# --- whose logs -------------------------------------------------------------------------------------------------------


def test_the_logs_of_an_earlier_job_are_left_out(job, tmp_path):
    it = job(ranks=2)
    it.link(0, 1)
    folder = it.folder / "node0" / "rank_1" / "debug" / "plog"
    folder.mkdir(parents=True)
    old = "[ERROR] RUNTIME(9,python3):2019-05-01-10:00:00.000.000 [a.cc:1]Memory async copy failed\n"
    (folder / "plog-1001_20190501095900000.log").write_text(old)
    reading = sources.read([str(it.folder)], ENTRIES)
    found = processes.job_of(reading.findings, reading.papers)
    assert found.others == 1
    assert root.verdict_of(found).roots[0].rank == 1


@pytest.mark.thorough
def test_sixty_thousand_waits_are_followed_in_linear_time():
    """A chain and a circle of 60,000: a walk from each rank to the end would take minutes."""
    from tools.diagnosis import waits

    ranks = [processes.Process("", None) for _ in range(60_000)]
    for number, process in enumerate(ranks):
        process.rank, process.place = number, number
    found = [
        waits.Wait(
            source=one, target=waits.Target(ranks[(number + 1) % len(ranks)], None, None, None), kind="link", time=0.0
        )
        for number, one in enumerate(ranks)
    ]
    assert [len(end.members) for end in waits.ends(found)] == [60_000]
    assert [end.members for end in waits.ends(found[:-1])] == [[ranks[-1]]]


def test_of_two_jobs_in_one_folder_the_last_to_end_counts(tmp_path):
    first, second = plogs.Job(tmp_path / "logs" / "a", ranks=4), plogs.Job(tmp_path / "logs" / "b", ranks=4)
    first.link(0, 1, seconds=150)
    for rank in range(4):
        second.write(rank, 200, "goes on", level="EVENT")
    second.link(2, 3, seconds=250)
    reading = sources.read([str(tmp_path / "logs")], ENTRIES)
    job = processes.job_of(reading.findings, reading.papers)
    assert (len(job.processes), job.others) == (4, 5)
    assert root.verdict_of(job).roots[0].rank == 3


def test_a_pid_that_is_used_again(job):
    it = job(ranks=2)
    it.link(0, 1)
    old = it.folder / "node0" / "rank_0" / "debug" / "plog" / "plog-1000_20240124110000000.log"
    old.write_text("[ERROR] RUNTIME(1000,python3):2024-01-24-11:00:01.000.000 [a.cc:1]Memory async copy failed\n")
    assert told(it)[:2] == ("chain", [1])


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_rank_tables_of_any_version_translate(job, version):
    it = job(ranks=2, silent=(1,))
    it.link(0, 1)
    servers = {"server_list": [{"server_id": "10.9.9.9", "device": DEVICES}]}
    if version == "1.1":
        ranks = [
            {"rank_id": row["rank_id"], "device_id": row["device_id"], "rank_ip": row["device_ip"]} for row in DEVICES
        ]
        servers = {"node_list": [{"node_addr": "10.9.9.9", "ranks": ranks}]}
    table = {"version": version, "status": "completed", "server_count": "1", **servers}
    (it.folder / "ranktable.json").write_text(json.dumps(table))
    assert "rank 1 (host 10.9.9.9, device 5)" in verdict_of(it.folder).sentence


DEVICES = [
    {"device_id": "0", "device_ip": "192.168.0.1", "rank_id": "0"},
    {"device_id": "5", "device_ip": "192.168.0.2", "rank_id": "1"},
]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"server_list": 3}', '{"version": "1.0", "server_list": [{"device": [1]}]}']
)
def test_a_rank_table_that_is_none_harms_nothing(job, content):
    it = job(ranks=2, silent=(1,))
    it.link(0, 1)
    (it.folder / "hccl_2p.json").write_text(content)
    assert told(it)[1] == [1]


# --- anything ---------------------------------------------------------------------------------------------------------

LINES = (
    "|  {ip}({rank})   |  16666  |  {own_ip}({own})   |  32344  |  client  | time out |  {tls}  |",
    "|  {ip}({rank})   |  {own_ip}({own})   |  server  | no connect |",
    "connected p2p timeout, timeout:130 s. local logicDevid:{own}, remote physic id:{rank}.",
    "createLink para:rank[1]-localUserrank[{own}]-localIpAddr[{ip}/1], remoteRank[0]-remoteUserrank[{rank}]-"
    "remoteIpAddr[{own_ip}/{own}], Transport init error",
    "Task run failed, base information is taskType[Notify Wait], tag[{tls}_1], index[{rank}], AlgType",
    "Task run failed, para information is notify id:[0x50], stage:[ffffffff], remote rank:[{rank}].",
    "groupRank information is group:[hccl_world_group], rankSize[4], rankId[{own}].",
    "type:NOTIFY WAIT, localRank:{own}, remoteRank:{rank}, taskId:26064",
    "need connect rankNum is [{rank}]",
    "connected rankinfo[LINE 0]: [000{own}],[000{rank}];",
    'fault_info["Failed to connect agent[{own},{rank},]"]',
    "TopoExchangeAgent: connect server[{ip} : 60000] failed",
    "receive msg length from fdhandle failed, ret[9]",
    "Cluster Exception Location[IP/ID]:[{ip}/{rank}], Discoverer:[{own_ip}/{own}], ExceptionType:[Stuck Occurred]",
    "serverId[{ip}], deviceId[{rank}], Heartbeat Lost Occurred",
    "srcRank (server {own_ip}, device ID {own}) fails to connect to dstRank (server {ip}, device ID {rank})",
    "cqe err status[12], time:[2025-01-24 11:00:{rank}], ip:[{ip}]",
    "CMD information {tls} check fail. local[{own}], remote[{rank}]",
    "Some ranks tlsStatus are inconsistent",
    "TLS SWITCH ({rank})",
    "SetupAgent rankNum[{rank}], rank[{own}], server[{ip}], phydevId[{own}], deviceIp[{own_ip}]",
    "HCCL_CONNECT_TIMEOUT set by env [{rank}]s",
    "Memory async copy failed",
)


@pytest.mark.slow
@for_each("seed", range(150))
def test_any_lines_of_hccl_have_a_verdict_or_none(tmp_path, seed):
    """Lines of all forms with any numbers, of any rank at any time: nothing raises, and words name each root."""
    chance = random.Random(seed)
    ranks = chance.choice((1, 2, 4, 9))
    on_host, silent = chance.choice((1, 2, 8)), [n for n in range(ranks) if chance.random() < 0.2]
    it = plogs.Job(tmp_path / "logs", ranks=ranks, each=on_host, silent=silent)
    for _ in range(chance.choice((1, 3, 10, 40))):
        number = chance.choice((0, 1, 2, 3, 7, 8, 99, 4294967295, 99999999999999999999))
        values = {
            "ip": chance.choice((it.ip(0), it.ip(1), "10.0.0.1", "3.0.0.0", "::1", "local")),
            "own_ip": chance.choice((it.ip(0), it.ip(2), "10.0.0.0")),
            "rank": chance.choice((number, "local", "unknown")) if chance.random() < 0.2 else number,
            "own": chance.randrange(9),
            "tls": chance.choice(("ENABLE", "DISABLE", "count")),
        }
        text = chance.choice(LINES).format(**values)
        level = chance.choice(("ERROR", "ERROR", "INFO", "EVENT"))
        it.write(chance.randrange(ranks), chance.random() * 3000, text, level=level)
    verdict = verdict_of(it.folder)
    if verdict:
        assert verdict.sentence and verdict.why and words.root_lines(verdict)
        assert all(line.isprintable() for line in words.root_lines(verdict))


# --- real logs --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not FAULTS, reason="FAULT_LOGS does not name a folder of known faults and real logs")
@pytest.mark.parametrize(
    ("folder", "kind", "ranks", "parts"),
    [
        ("st_event_timeout_testcase", "circle", [0, 1], ["host worker-0, device 0", "host worker-1, device 0"]),
        ("st_event_timeout_testcase/worker-1", "chain", [0], ["address 124.0.0.21", "no log here"]),
        ("st_cqe_testcase", "network", [77, 76], ["host worker-9, device 5", "192.2.108.0"]),
        ("single", "error", [0], ["Memory async copy failed"]),
    ],
)
def test_real_logs(folder, kind, ranks, parts):
    verdict = verdict_of(Path(FAULTS, "logs", folder))
    assert (verdict.kind, [one.rank for one in verdict.roots]) == (kind, ranks)
    assert all(part in verdict.sentence for part in parts)
