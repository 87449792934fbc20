"""run_pod.sh: what a pod finds in its environment, in an operator's rank table and in its container."""

import json
import os
import random
import socket
from types import SimpleNamespace

import good_tables
import pytest
from launching import request

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import host
from tools.launch.pods import pod_job, pod_scheduler, pod_table, pod_watch
from tools.launch.pods.pod_job import Fact, PodJob
from tools.launch.pods.pod_table import Initializing, NotReady, Patience

NAMES = (*pod_job.ADDRESSES, "MS_ROLE", "MS_WORKER_NUM", "MS_LOCAL_WORKER", "MS_NODE_RANK", "MS_SCHED_HOST", "NPU_POD")


@pytest.fixture(autouse=True)
def no_pod(monkeypatch):
    """The environment of a machine outside Kubernetes."""
    for name in (
        *NAMES,
        "JOB_COMPLETION_INDEX",
        "VK_TASK_INDEX",
        "VC_TASK_INDEX",
        "ASCEND_VISIBLE_DEVICES",
        "MA_NUM_GPUS",
    ):
        monkeypatch.delenv(name, raising=False)


def pod_request(**given):
    return request(script="run_pod.sh", placement="pod", script_devices="", **{"device_target": "CPU", **given})


def job(addresses=None, devices=None, world=None, local=None):
    """What a pod knows; the numbers are those of MS_WORKER_NUM and MS_LOCAL_WORKER."""
    fact = [Fact(source=name, value=value) if value else None for name, value in (("all", world), ("here", local))]
    return PodJob(
        world=fact[0],
        local=fact[1],
        pods=None,
        node=None,
        role="",
        has_ranks=True,
        scheduler=None,
        devices=devices,
        addresses=addresses or {},
        names=[],
    )


def table(*servers, **more):
    """A table; each server is {address key: value}, "devices": [device, ...]."""
    rank, listed = 0, []
    for number, server in enumerate(servers):
        devices = server.pop("devices", [0, 1])
        entries = [
            {"device_id": str(device), "device_ip": f"10.{number}.0.{device + 1}", "rank_id": str(rank + index)}
            for index, device in enumerate(devices)
        ]
        rank += len(devices)
        listed.append({"server_id": f"192.168.0.{number + 1}", **server, "device": entries})
    head = {"version": "1.0", "server_count": str(len(listed)), "server_list": listed, "status": "completed"}
    return {**head, **more}


def own(content, known):
    return pod_table.own_server(pod_table.servers_of(content), known, "hccl.json")


def test_a_pod_finds_itself_by_its_own_address():
    content = table({"container_ip": "10.9.0.1"}, {"container_ip": "10.9.0.2"})
    assert own(content, job({"POD_IP": "10.9.0.2"})) == 1
    assert own(content, job({"XDL_IP": "10.9.0.1"})) == 0


def test_a_pod_finds_itself_by_its_nodes_address_where_the_table_has_no_other():
    content = table({"host_ip": "10.8.0.1"}, {"host_ip": "10.8.0.2"})
    assert own(content, job({"POD_IP": "10.9.0.2", "HOST_IP": "10.8.0.2"})) == 1
    assert own(table({}, {}), job({"XDL_IP": "192.168.0.1"})) == 0


def test_without_variables_a_pod_finds_itself_by_the_addresses_that_it_has():
    content = table({"container_ip": "192.0.2.1"}, {"container_ip": "127.0.0.1"})
    assert own(content, job()) == 1


def test_another_pod_on_the_same_node_is_not_this_one():
    content = table(
        {"container_ip": "10.9.0.7", "host_ip": "10.8.0.2"}, {"container_ip": "10.9.0.8", "host_ip": "10.8.0.3"}
    )
    with pytest.raises(NotReady, match=r"none of which is this pod \(POD_IP=10.9.0.2, HOST_IP=10.8.0.2\)"):
        own(content, job({"POD_IP": "10.9.0.2", "HOST_IP": "10.8.0.2"}))


def test_two_pods_on_one_node_differ_by_their_devices():
    content = table({"host_ip": "10.8.0.2", "devices": [0, 1]}, {"host_ip": "10.8.0.2", "devices": [4, 5]})
    assert own(content, job({"HOST_IP": "10.8.0.2"}, devices=(4, 5))) == 1
    with pytest.raises(NotReady, match="2 servers of hccl.json have an address of this pod"):
        own(content, job({"HOST_IP": "10.8.0.2"}))


@pytest.mark.slow
def test_a_table_of_many_servers_is_searched_once():
    servers = [{"container_ip": f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "devices": [0]} for n in range(1, 8193)]
    asked = []
    known = job({"POD_IP": "10.0.31.255"})
    content = pod_table.servers_of(table(*servers))
    pod_table_packed, pod_table.packed = pod_table.packed, lambda text: asked.append(text) or text.encode()
    try:
        assert pod_table.own_server(content, known, "hccl.json") == 8190
    finally:
        pod_table.packed = pod_table_packed
    assert len(asked) <= 8192 + 1


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        ("", NotReady, "is empty"),
        (' {"status": "comp', NotReady, "is incomplete"),
        ({"status": "initializing"}, Initializing, 'is "initializing", not "completed"'),
        ({}, Initializing, "is null"),
        ({"status": "completed", "version": "1.0"}, Refusal, "server_list"),
        ([], Refusal, "hccl.json"),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path, content, error, text):
    path = write(tmp_path / "hccl.json", content)
    with pytest.raises(error, match=text):
        pod_table.take(path, job(), False, None)


def test_a_table_that_is_no_file(tmp_path):
    with pytest.raises(NotReady, match="there is no rank table"):
        pod_table.read(str(tmp_path / "hccl.json"))
    with pytest.raises(Refusal, match="not a regular file"):
        pod_table.read(str(tmp_path))
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(Refusal, match="not a regular file"):
        pod_table.read(str(tmp_path / "pipe.json"))


@pytest.mark.parametrize(
    ("known", "on_npus", "text"),
    [
        (job({"POD_IP": "10.9.0.1"}, world=8), False, "has 4 ranks, all says 8; it is the table of another job"),
        (job({"POD_IP": "10.9.0.1"}, local=4), False, "gives this pod 2 ranks, here says 4"),
        (
            job({"POD_IP": "10.9.0.1"}, devices=(0, 1, 2)),
            True,
            "gives this pod devices 0,1, the environment devices 0-2",
        ),
    ],
)
def test_a_table_that_contradicts_the_environment(tmp_path, known, on_npus, text):
    path = write(tmp_path / "hccl.json", table({"container_ip": "10.9.0.1"}, {"container_ip": "10.9.0.2"}))
    with pytest.raises(NotReady, match=text):
        pod_table.take(path, known, on_npus, None)


def test_what_can_command_a_terminal_is_escaped(tmp_path):
    path = write(tmp_path / "hccl.json", {"status": "\x1b[2J"})
    with pytest.raises(Initializing) as error:
        pod_table.read(path)
    assert str(error.value).isprintable()


def test_the_digest_is_that_of_what_ranks_read(tmp_path):
    content = table({"container_ip": "10.9.0.1"})
    again = json.loads(json.dumps(dict(reversed(list(content.items()))), indent=4))
    assert pod_table.digest(content) == pod_table.digest(again)
    assert pod_table.digest(content) != pod_table.digest(table({"container_ip": "10.9.0.2"}))


def test_the_watcher_tells_a_new_table_from_one_that_is_being_written(tmp_path):
    content = table({"container_ip": "10.9.0.1"}, {"container_ip": "10.9.0.2"})
    digest, path = pod_table.digest(content), tmp_path / "hccl.json"
    whole = json.dumps(content)
    for part, expected in (
        (whole, ("", False)),
        (whole + "\n\n", ("", False)),
        ("", (f"{path} is empty", True)),
        ('{"status": "initializing"}', (f'the status of {path} is "initializing", not "completed"', False)),
        (
            json.dumps(table({"container_ip": "10.9.0.1"})),
            (f"{path} has been rewritten, with other servers or devices", False),
        ),
    ):
        path.write_text(part)
        assert pod_watch.change(str(path), digest) == expected
    for length in random.Random(24).sample(range(1, len(whole)), 50):
        path.write_text(whole[:length])
        assert pod_watch.change(str(path), digest)[1]
    path.unlink()
    assert pod_watch.change(str(path), digest)[1]


def test_the_watcher_sees_a_link_that_is_swapped(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hccl.json").write_text("{}")
    (tmp_path / "data").symlink_to("old")
    before = pod_watch.stamp(str(tmp_path / "data" / "hccl.json"))
    (tmp_path / "data_tmp").symlink_to("new")
    os.replace(tmp_path / "data_tmp", tmp_path / "data")
    assert pod_watch.stamp(str(tmp_path / "data" / "hccl.json")) != before
    assert pod_watch.stamp(str(tmp_path / "none")) == ()


def container(root, devices, pids=None, managers=pod_scheduler.MANAGERS):
    """A folder like a container's: /dev with these NPUs, and the control group's limit of processes."""
    (root / "dev" / "shm").mkdir(parents=True)
    for name in (*(f"davinci{device}" for device in devices), *managers):
        (root / "dev" / name).touch()
    if pids:
        (root / "sys" / "fs" / "cgroup").mkdir(parents=True)
        (root / "sys" / "fs" / "cgroup" / "pids.max").write_text(f"{pids}\n")
        (root / "sys" / "fs" / "cgroup" / "pids.current").write_text("7\n")
    return str(root)


def test_a_device_that_the_plugin_gave_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "devices", lambda: [0, 1, 3])
    root = container(tmp_path, [0, 1, 3])
    with pytest.raises(
        Refusal, match=r"gives this pod devices 0-3, but the container lacks device 2: there is no /dev/davinci2;"
    ):
        pod_scheduler.check_pod(pod_request(device_target="Ascend"), job(devices=(0, 1, 2, 3)), root)
    assert (
        pod_scheduler.check_pod(pod_request(device_target="Ascend", no_check="1"), job(devices=(0, 1, 2, 3)), root)
        == []
    )


def test_a_node_that_every_npu_needs_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "devices", lambda: [0])
    root = container(tmp_path, [0], managers=["davinci_manager", "devmm_svm"])
    with pytest.raises(Refusal, match="has NPUs, but not /dev/hisi_hdc, which they need"):
        pod_scheduler.check_pod(pod_request(device_target="Ascend"), job(devices=(0,)), root)


class Disk:
    """What statvfs says of a disk of so many bytes."""

    f_frsize = 4096

    def __init__(self, size):
        self.f_blocks = size // self.f_frsize


@pytest.mark.parametrize(("mebibytes", "notes"), [(64, 1), (1023, 1), (1024, 0)])
def test_little_shared_memory_is_a_note(monkeypatch, tmp_path, mebibytes, notes):
    root = container(tmp_path, [])
    monkeypatch.setattr(os, "statvfs", lambda path: Disk(mebibytes << 20) if path == f"{root}/dev/shm" else None)
    found = pod_scheduler.check_pod(pod_request(), job(), root)
    assert len(found) == notes
    assert all(f"/dev/shm has {mebibytes} MiB" in line and "emptyDir with medium Memory" in line for line in found)


def test_few_processes_are_a_note(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "statvfs", lambda _: Disk(1 << 40))
    root = container(tmp_path, [], pids=1024)
    assert pod_scheduler.check_pod(pod_request(), job(local=2), root) == []
    (line,) = pod_scheduler.check_pod(pod_request(), job(local=8), root)
    assert "may have 1024 processes and threads, too few for 8 ranks; raise the kubelet's podPidsLimit" in line


def test_a_variable_leaves_some_of_the_devices_that_the_pod_got(monkeypatch):
    npus = pod_request(device_target="Ascend")
    monkeypatch.setattr(host, "devices", lambda: [4, 5, 6, 7])
    monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "0,1")
    found = pod_job.read(npus)
    assert found.devices == (4, 5) and found.local == Fact(source="ASCEND_RT_VISIBLE_DEVICES", value=2)
    monkeypatch.setenv("MS_LOCAL_WORKER", "4")
    with pytest.raises(Refusal, match="MS_LOCAL_WORKER is 4, but ASCEND_RT_VISIBLE_DEVICES is 2"):
        pod_job.read(npus)
    assert pod_job.read(pod_request(device_target="CPU")).devices == (4, 5, 6, 7)


@pytest.mark.parametrize(
    ("text", "devices"),
    [("0,1,2,3", (0, 1, 2, 3)), ("3,1", (1, 3)), ("0-3", (0, 1, 2, 3)), ("0-1,6-7", (0, 1, 6, 7)), (" ", None)]
    + [("Ascend910-4,Ascend910-5", (4, 5)), ("Ascend910B-0", (0,))],
)
def test_devices_in_the_forms_of_plugins(monkeypatch, text, devices):
    monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", text)
    assert pod_job.read(pod_request()).devices == devices


@pytest.mark.parametrize("text", ["0,0", "0-99999999", "-1", "all", "0;reboot", "0,"])
def test_devices_that_are_none(monkeypatch, text):
    monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", text)
    with pytest.raises(Refusal, match="ASCEND_VISIBLE_DEVICES: "):
        pod_job.read(pod_request())


def test_of_several_tasks_of_volcano_the_one_counts_that_has_this_pod(monkeypatch):
    name = socket.gethostname().partition(".")[0]
    monkeypatch.setenv("VC_PS_HOSTS", "job-ps-0.job")
    monkeypatch.setenv("VC_WORKER_HOSTS", f"job-worker-0.job,{name}.job")
    found = pod_job.read(pod_request())
    assert found.names == ["job-worker-0.job", f"{name}.job"]
    assert (found.pods.source, found.pods.value) == ("VC_WORKER_HOSTS", 2)


def test_an_option_counts_more_than_the_environment(monkeypatch):
    monkeypatch.setenv("MS_WORKER_NUM", "8")
    monkeypatch.setenv("MS_LOCAL_WORKER", "4")
    monkeypatch.setenv("MS_NODE_RANK", "1")
    found = pod_job.read(pod_request(worker_num="16", node_rank="3"))
    assert [(fact.source, fact.value) for fact in (found.world, found.local, found.node)] == [
        ("--worker_num", 16),
        ("MS_LOCAL_WORKER", 4),
        ("--node_rank", 3),
    ]
    assert found.pods.value == 4


def test_waiting_is_said_at_once_then_every_half_minute_and_when_the_reason_changes(monkeypatch):
    said = []
    patience = Patience(pod_request(pod_wait="100"), said.append)
    for second, reason in ((0, "a"), (1, "a"), (2, "b"), (20, "b"), (33, "b"), (40, "b")):
        patience.tell(reason, second, 1000.0 + second)
    assert [line.partition(" (")[0] for line in said] == ["waiting: a", "waiting: b", "waiting: b"]
    assert said[2] == "waiting: b (33 s of at most 100 s)"


def test_a_plan_that_is_only_printed_does_not_wait():
    patience = Patience(pod_request(dry_run="1"), print)
    looks = []

    def look():
        looks.append(1)
        raise NotReady("there is none")

    with pytest.raises(Refusal, match="there is none; make it") as refusal:
        patience.until_ready(look, "make it")
    assert refusal.value.status == 124 and looks == [1]


# ---- version 2.0, which lists ranks and no servers -------------------------------------------------


def rank_list(*devices):
    """A table of version 2.0 with these devices, in the order of their ranks."""
    ranks = [{"rank_id": rank, "local_id": device, "device_id": device} for rank, device in enumerate(devices)]
    return {"version": "2.0", "status": "completed", "rank_count": len(ranks), "rank_list": ranks}


def test_a_device_that_comes_again_is_that_of_the_next_pod():
    servers = pod_table.servers_of(rank_list(0, 1, 0, 1))
    assert [server.ranks for server in servers] == [[(0, 0), (1, 1)], [(2, 0), (3, 1)]]
    assert [server.ranks for server in pod_table.servers_of(rank_list(0, 1, 2, 3), 2)] == [
        [(0, 0), (1, 1)],
        [(2, 2), (3, 3)],
    ]


def test_a_pod_of_a_table_without_addresses_is_found_by_its_number():
    content = rank_list(0, 1, 0, 1)
    assert own(content, job().replace(node=Fact(source="MS_NODE_RANK", value=1))) == 1
    assert own(rank_list(0, 1), job()) == 0
    with pytest.raises(Refusal, match="no variable or option gives this pod's number; set MS_NODE_RANK"):
        own(content, job())
    with pytest.raises(NotReady, match="has the ranks of 2 pods, and MS_NODE_RANK is 2"):
        own(content, job().replace(node=Fact(source="MS_NODE_RANK", value=2)))
    with pytest.raises(NotReady, match="has the ranks of 1 pod, and MS_NODE_RANK is 1"):
        own(rank_list(0, 1, 2, 3), job().replace(node=Fact(source="MS_NODE_RANK", value=1)))


def test_pods_that_share_a_node_are_told_by_how_many_there_are():
    content = rank_list(0, 1, 2, 3)
    two = job().replace(pods=Fact(source="VC_WORKER_HOSTS", value=2))
    assert pod_table.ranks_of_each(content, two) == 2
    assert pod_table.ranks_of_each(content, two.replace(pods=Fact(source="VC_WORKER_HOSTS", value=3))) is None
    assert pod_table.ranks_of_each(content, job(local=4)) == 4
    assert pod_table.ranks_of_each(content, job()) is None


def test_the_ranks_of_a_table_are_those_of_the_job(world):
    (world / "hccl.json").write_text(json.dumps(good_tables.host_of_950(0, 4)))
    with pytest.raises(NotReady, match="hccl.json has 4 ranks, all says 8; it is the table of another job"):
        pod_table.take("hccl.json", job(world=8, local=4), False, "950")
    found = pod_table.take("hccl.json", job(world=4, local=4), False, "950")
    assert (found.own, found.servers[0].ranks) == (0, [(0, 0), (1, 1), (2, 2), (3, 3)])
    with pytest.raises(NotReady, match="hccl.json gives this pod devices 0-3, the environment devices 4-7"):
        pod_table.take("hccl.json", job(world=4, local=4, devices=(4, 5, 6, 7)), True, "950")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x1f\x8b\x08\x00", "a file compressed by gzip"),
        (b"10.0.0.1 slots=8\n", "a hostfile"),
        (b'{"apiVersion": "v1", "kind": "ConfigMap", "data": {}}', "an object of Kubernetes"),
        (b'{"version": "2.0", "topo_file_path": "/x", "rank_list": [{"device_id": 0}]}', "hccl_rootinfo.json"),
    ],
)
def test_nobody_waits_for_what_will_not_become_a_rank_table(world, data, said):
    (world / "hccl.json").write_bytes(data)
    with pytest.raises(Refusal, match=said):
        pod_table.read("hccl.json")


@pytest.mark.parametrize("data", [b'{"version": "1.0", "server_li', b"{}", b'{"status": "initializing"}', b"{"])
def test_a_table_that_is_half_there_is_waited_for(world, data):
    (world / "hccl.json").write_bytes(data)
    with pytest.raises(NotReady):
        pod_table.read("hccl.json")


def test_the_scheduler_of_pods_may_have_an_address_of_ipv6(monkeypatch):
    for text in ("fd00::7", "[fd00::7]"):
        monkeypatch.setenv("MS_SCHED_HOST", text)
        found = pod_job.read(pod_request(worker_num="16", local_worker_num="8", node_rank="1"))
        patience = SimpleNamespace(until_ready=lambda look, _: look())
        assert pod_scheduler.resolved(found, patience) == "fd00::7"
    monkeypatch.setenv("MS_SCHED_HOST", "fd00::7:8118:1::2")
    with pytest.raises(Refusal, match="is neither the name nor the address of a host"):
        pod_job.read(pod_request(worker_num="16", local_worker_num="8", node_rank="1"))


def test_a_pod_listens_at_its_own_address_of_ipv4_before_that_of_ipv6():
    own = {"POD_IP": "::1", "XDL_IP": "127.0.0.1", "HOST_IP": "2001:db8::9"}
    assert pod_scheduler.own_address(job(own)) == "127.0.0.1"
    assert pod_scheduler.own_address(job({"POD_IP": "::1", "HOST_IP": "2001:db8::9"})) == "::1"
    assert pod_scheduler.own_address(job({"HOST_IP": "2001:db8::9"})) is None
