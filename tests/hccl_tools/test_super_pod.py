import functools
import json
import os
import subprocess

import pytest

from hccl_tools.build import this_host
from hccl_tools.check import verdict
from hccl_tools.commands import build as hccl_tools

# What a manual's example says: server 40 of its super pod, devices 0 and 1.
SDID = {0: "167772160", 1: "167837697"}


class Host:
    """The simulated A3 host; tests/fixtures/bin/npu-smi is what answers for it."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "calls"

    def set(self, name, value):
        (self.folder / name).write_text(f"{value}\n")

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def a3(world, tmp_path, monkeypatch, root):
    """A host of 16 devices in super pod 0, and a simulated npu-smi on PATH."""
    folder = tmp_path / "a3"
    folder.mkdir()
    (tmp_path / "programs" / "npu-smi").symlink_to(root / "tests" / "fixtures" / "bin" / "npu-smi")
    monkeypatch.setenv("NPU_SIM", str(folder))
    monkeypatch.setenv("NPU_SIM_LOG", str(folder / "calls"))
    return Host(folder)


@pytest.fixture
def build(world, in_process, monkeypatch):
    """build("--device_num", "0"): the command for A3.

    Version 1.2 counts as good here: the check has its own tests.
    """
    real = verdict.check
    monkeypatch.setattr(verdict, "check", lambda t, g=None: [] if t["version"] == "1.2" else real(t, g))
    return functools.partial(in_process, hccl_tools.main, "--generation", "A3", "--hccn_conf", str(world / "no.conf"))


def refusal(*devices):
    with pytest.raises(this_host.SuperPodError) as error:
        this_host.super_pod_of(devices)
    text = str(error.value)
    assert len(text.splitlines()) == 1
    return text


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        ("info -l", "\tTotal Count                    : 8\n"),
        ("info -t spod-info -i 0 -c 0", "\tSDID                           : 167772160\n"),
        ("info -t spod-info -i 0 -c 1", "\tSDID                           : 167837697\n"),
    ],
)
def test_the_simulation_answers_as_documented(a3, arguments, first):
    ended = subprocess.run(["npu-smi", *arguments.split()], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout.splitlines(True)[0]) == (0, first)


def test_every_device_has_the_sdid_that_npu_smi_tells_for_its_npu_and_chip(a3):
    assert this_host.super_pod_of([0, 1]) == (this_host.SuperPod(super_pod_id="0", super_device_ids=SDID), None)
    a3.log.unlink()
    this_host.super_pod_of([5])
    assert a3.calls() == ["unset info -m", "unset info -t spod-info -i 2 -c 1"]


def test_a_list_that_renumbers_devices_is_not_seen_by_npu_smi(a3, monkeypatch):
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "5")
    this_host.super_pod_of([5])
    assert [call.split(" ")[0] for call in a3.calls()] == ["unset", "unset"]


def test_all_devices_are_asked_at_the_same_time(a3, programs_run):
    this_host.super_pod_of([0, 1, 2])
    assert programs_run == ["_start", "_finish", *["_start"] * 3, *["_finish"] * 3]


def test_a_host_in_no_super_pod_is_no_failure_and_told_apart_from_one_without_npu_smi(a3, tmp_path):
    a3.set("pod", "none")
    assert this_host.super_pod_of([0, 1]) == (None, "npu-smi reports that this host is not in a super pod")
    (tmp_path / "programs" / "npu-smi").unlink()
    pod, why = this_host.super_pod_of([0])
    assert pod is None and why.startswith("npu-smi is not on PATH")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("garbage", "device 1 has no SDID: `npu-smi info -t spod-info -i 0 -c 1` printed: SDID "),
        ("silent", "printed: nothing (exit 0)"),
        ("fail", "printed: dcmi module initialize failed. ret is -8005 (exit 255)"),
        ("none", "device 1 is not in a super pod, but other devices of this host are"),
        ("other_pod", "the devices of this host are in several super pods: 0, 1"),
    ],
)
def test_an_answer_that_cannot_be_used_is_named(a3, fault, words):
    a3.set("fault_1", fault)
    assert words in refusal(0, 1)


def test_a_npu_smi_that_hangs_is_ended(a3, monkeypatch):
    a3.set("fault_map", "hang")
    monkeypatch.setattr(this_host, "_SECONDS", 0.2)
    assert "no answer within 0.2 s (exit 124)" in refusal(1)


@pytest.mark.parametrize(("fault", "words"), [("fail", "dcmi module initialize failed"), ("empty", "nothing")])
def test_a_map_that_names_no_device_is_said(a3, fault, words):
    a3.set("fault_map", fault)
    text = refusal(0)
    assert text.startswith("`npu-smi info -m` names no device: ") and words in text


def test_a_device_that_the_map_lacks_is_named(a3):
    a3.set("devices", 4)
    assert refusal(0, 9).startswith("device 9 is not there: `npu-smi info -m` has 0,1,2,3")


# ---- the table, against HCCL's manual ------------------------------------------------------------


def table_of(answer):
    status, out, err = answer
    assert status == 0, err
    with open(out.rstrip("\n"), encoding="utf-8") as file:
        return json.load(file)


def test_a_host_of_a_super_pod_has_a_version_1_2_table_of_sixteen_devices(build, cards, a3):
    table = table_of(build("--server_ip", "10.0.0.1"))
    (server,) = table["server_list"]
    assert (table["version"], table["status"], table["server_count"]) == ("1.2", "completed", "1")
    assert table["super_pod_list"] == [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}]}]
    assert [device["device_id"] for device in server["device"]] == [str(number) for number in range(16)]
    assert [device["rank_id"] for device in server["device"]] == [str(number) for number in range(16)]
    assert len({device["super_device_id"] for device in server["device"]}) == 16
    second = {"device_id": "1", "super_device_id": SDID[1], "device_ip": "192.168.100.2", "rank_id": "1"}
    assert server["device"][1] == second


def test_the_super_pod_is_said(build, cards, a3):
    a3.set("pod", 7)
    assert build("--device_num", "0")[2].endswith("hccl_tools.py: version 1.2: super pod 7\n")


def test_in_a_container_the_super_device_ids_are_those_of_the_visible_devices(build, cards, a3):
    table = table_of(build("--visible_devices", "4,5,6,7", "--device_num", "[1,3)"))
    devices = table["server_list"][0]["device"]
    assert [device["device_id"] for device in devices] == ["5", "6"]
    assert [int(device["super_device_id"]) & 0xFFFF for device in devices] == [5, 6]
    assert [device["rank_id"] for device in devices] == ["0", "1"]


def test_a_card_without_address_is_a_device_of_the_super_pod_all_the_same(build, cards, a3):
    cards.set({})
    (device,) = table_of(build("--device_num", "0"))["server_list"][0]["device"]
    assert device == {"device_id": "0", "super_device_id": SDID[0], "rank_id": "0"}


def test_a_host_in_no_super_pod_has_a_version_1_0_table_and_that_is_said(build, cards, a3):
    a3.set("pod", "none")
    answer = build("--server_ip", "10.0.0.1")
    table = table_of(answer)
    assert (table["version"], "super_pod_list" in table) == ("1.0", False)
    assert len(table["server_list"][0]["device"]) == 16
    assert (
        "version 1.0, which HCCL accepts outside super pods only: npu-smi reports that this host is not in" in answer[2]
    )


def test_a_npu_smi_that_fails_makes_no_table(build, cards, a3, world):
    a3.set("fault_3", "fail")
    status, out, err = build()
    assert (status, out) == (1, "")
    assert err.startswith("hccl_tools.py: device 3 has no SDID: ") and err.count("\n") == 1
    assert os.listdir(world) == []


def test_other_generations_do_not_ask_npu_smi(cards, a3, world, capsys):
    assert hccl_tools.main(["--device_num", "0", "--generation", "A2"]) == 0
    assert a3.calls() == []
