"""The check of pods: where they meet, as their environment and a rank table say, and what the command refuses."""

import json
import socket

import pytest

from hccl_tools.common.refusal import Refusal
from tools.launch.engines.facts import Cluster
from tools.preflight import check, main
from tools.preflight.pods import place
from tools.preflight.words import Found

_VARIABLES = (
    *("MS_ROLE", "MS_WORKER_NUM", "MS_LOCAL_WORKER", "MS_NODE_RANK", "MS_SCHED_HOST", "MS_SCHED_PORT", "NPU_POD"),
    *("JOB_COMPLETION_INDEX", "VK_TASK_INDEX", "VC_TASK_INDEX", "VC_WORKER_HOSTS", "MA_NUM_HOSTS", "MA_NUM_GPUS"),
    *("RANK_TABLE_FILE", "RANK_TABLE_FILE_V_1_0", "ASCEND_VISIBLE_DEVICES", "POD_IP", "XDL_IP", "HOST_IP"),
    *("MS_TOPO_TIMEOUT", "MINDX_TASK_ID", "JOB_UID", "SLURM_JOB_ID", "MA_CURRENT_IP", "KUBERNETES_SERVICE_HOST"),
)


@pytest.fixture
def pod(world, monkeypatch):
    """pod(NAME=VALUE...): this process is in a pod with these variables and no others."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def make(**variables):
        for name, value in {"KUBERNETES_SERVICE_HOST": "10.0.0.1", **variables}.items():
            monkeypatch.setenv(name, value)

    return make


def here(table=None, wait=None):
    return place.of_environment(table, wait, lambda _: None)


INDEXED = {"MS_WORKER_NUM": "6", "MS_LOCAL_WORKER": "2", "MS_SCHED_HOST": "job-0.job", "POD_IP": "127.0.0.1"}


# ---- where they meet -------------------------------------------------------------------------------------------------


def test_an_indexed_job_meets_at_pod_0_beside_the_schedulers_port(pod):
    pod(**INDEXED, JOB_COMPLETION_INDEX="1", MS_SCHED_PORT="9000")
    found = here()
    assert (found.pods, found.number, found.is_hub, found.host, found.port) == (3, 1, False, "job-0.job", 9001)
    assert (found.scheduler, found.slots, found.address, found.wait) == (9000, 2, "127.0.0.1", place.WAIT)
    pod(JOB_COMPLETION_INDEX="0", MS_TOPO_TIMEOUT="77")
    assert (here().is_hub, here().wait, here(wait=5).wait, here().job) == (True, 77, 5, found.job)
    pod(JOB_UID="other")
    assert here().job != found.job


def test_volcano_names_the_pods(pod):
    pod(VC_WORKER_HOSTS="j-worker-0.j,j-worker-1.j", VC_TASK_INDEX="1", MS_LOCAL_WORKER="1")
    assert (here().pods, here().host, list(here().names)) == (2, "j-worker-0.j", ["j-worker-0.j", "j-worker-1.j"])


def test_an_operators_scheduler_listens_at_its_own_port_and_has_no_ranks(pod):
    pod(MS_ROLE="MS_SCHED", MS_SCHED_HOST="127.0.0.1", MS_WORKER_NUM="4")
    found = here()
    assert (found.is_hub, found.number, found.pods, found.port, found.scheduler) == (True, None, None, 8118, None)
    pod(MS_ROLE="MS_WORKER", MS_LOCAL_WORKER="2", MS_NODE_RANK="1")
    assert (here().is_hub, here().number, here().pods, here().job) == (False, 1, 2, found.job)
    pod(MS_ROLE="MS_SCHED", NPU_POD="true", MS_NODE_RANK="0")
    assert (here().is_hub, here().number, here().slots) == (True, 0, 2)


def test_a_rank_table_says_who_the_pods_are_and_one_that_does_not_come_is_refused(pod, table, world):
    path = world / "hccl.json"
    content = table(2, 2)
    for number, server in enumerate(content["server_list"], 1):
        server["container_ip"] = f"127.0.0.{number}"
    path.write_text(json.dumps({**content, "status": "completed"}))
    pod(RANK_TABLE_FILE=str(path), POD_IP="127.0.0.2")
    found = here()
    assert (found.pods, found.number, found.host, found.is_hub) == (2, 1, "127.0.0.1", False)
    assert found.table[0] == str(path) and list(found.server.devices) == ["0", "1"]
    with pytest.raises(Refusal) as refused:
        here(table=str(world / "none.json"), wait=0)
    assert refused.value.status == 78 and "there is no rank table" in refused.value.lines[0]


def test_a_pod_that_cannot_know_its_job_says_what_is_missing(pod, in_process):
    pod(VC_TASK_INDEX="1")
    status, out, error = in_process(main.main)
    assert (status, out) == (2, "") and "set MS_LOCAL_WORKER" in error
    assert "to look at this pod alone: " in error and f"preflight.sh -H {socket.gethostname()}\n" in error
    pod(MS_LOCAL_WORKER="1", MS_WORKER_NUM="2")
    assert "set MS_SCHED_HOST" in in_process(main.main)[2]


def test_a_trial_and_a_wait_that_is_none_are_refused_in_pods(pod, in_process):
    pod(**INDEXED, JOB_COMPLETION_INDEX="1")
    assert in_process(main.main, "--trial")[0] == 2
    status, _, error = in_process(main.main, "--pod_wait", "1s")
    assert status == 2 and "--pod_wait 1s is not a number" in error


def test_a_pod_alone_is_looked_at_as_a_host(pod, in_process, monkeypatch):
    monkeypatch.setattr(check, "run", lambda way, job: Found(hosts=way.hosts, differences=[]))
    pod(MS_WORKER_NUM="2", MS_LOCAL_WORKER="2", JOB_COMPLETION_INDEX="0")
    assert in_process(main.main) == (0, f"{socket.gethostname()}: nothing blocks\n", "")


def test_a_launch_without_a_meeting_is_not_checked():
    plan = type("Plan", (), {"agreement": None, "cluster": Cluster()})()
    assert place.of_plan(plan) is None
