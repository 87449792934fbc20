"""The GPUs in the check of all hosts.  What nvidia-smi prints here is what driver 580.159.04 prints with an H200."""

import pytest

from hccl_tools.machine import host
from tools.preflight.facts import npus
from tools.preflight.question import Question

SMI = """#!/bin/bash
case "$*" in
  *--query-compute-apps*) cat "$GPU_SIM/holders" ;;
  *clocks_event_reasons*) cat "$GPU_SIM/slowed"; [[ -s $GPU_SIM/slowed ]] ;;
  *clocks_throttle_reasons*) cat "$GPU_SIM/slowed_of_old"; [[ -s $GPU_SIM/slowed_of_old ]] ;;
  *) cat "$GPU_SIM/gpus"; [[ ! -e $GPU_SIM/broken ]] ;;
esac
"""


def asked(**more):
    return Question(**{"host": "a", "hosts": 2, "first": "a", "folder": ".", "log_dir": "logs", **more})


@pytest.fixture
def smi(world, tmp_path, monkeypatch):
    """set(name, *lines): what a simulated nvidia-smi says of two GPUs, which are well at first."""
    folder = tmp_path / "smi"
    folder.mkdir()
    (tmp_path / "programs" / "nvidia-smi").write_text(SMI)
    (tmp_path / "programs" / "nvidia-smi").chmod(0o755)
    (tmp_path / "programs" / "cat").symlink_to("/bin/cat")
    monkeypatch.setenv("GPU_SIM", str(folder))
    monkeypatch.setattr(host, "gpu_nodes", lambda: [0, 1])
    monkeypatch.setattr(host, "nodes", list)

    def change(name, *lines):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))

    for name, lines in {
        "gpus": ["0, GPU-a, NVIDIA H200, 580.159.04, 0", "1, GPU-b, NVIDIA H200, 580.159.04, 0"],
        "holders": [],
        "slowed": ["0, Not Active, Not Active", "1, Not Active, Not Active"],
        "slowed_of_old": [],
    }.items():
        change(name, *lines)
    return change


def test_gpus_that_are_well(smi):
    found = npus.collect_gpus(asked())
    assert (found.pop("gpus"), found.pop("gpu_driver")) == ("2 x NVIDIA H200", "580.159.04")
    assert not any(found.values()), found


def test_each_fault_of_a_gpu_is_said(smi):
    smi("gpus", "0, GPU-a, NVIDIA H200, 580.1, 0", "1, GPU-b, NVIDIA H200, 580.1, 3")
    smi("holders", "GPU-b, 1003, 536")
    smi("slowed", "0, Not Active, Not Active", "1, Not Active, Active")
    found = npus.collect_gpus(asked())
    assert found["gpus_held"] == ["1: pid 1003, 536 MiB"]
    assert (found["gpu_memory_errors"], found["gpus_hot"]) == (["1: 3"], ["1"])
    of_first = npus.collect_gpus(asked(devices=[0]))
    assert not any(of_first[key] for key in ("gpus_held", "gpu_memory_errors", "gpus_hot"))


def test_a_driver_that_knows_only_the_old_name_of_slowing(smi):
    smi("slowed")
    smi("slowed_of_old", "0, Active, Not Active", "1, Not Active, Not Active")
    assert npus.collect_gpus(asked())["gpus_hot"] == ["0"]
    smi("slowed_of_old")
    assert npus.collect_gpus(asked())["gpus_hot"] == []


def test_the_processes_of_a_gpu_are_named_up_to_four(smi):
    smi("holders", *(f"GPU-a, {4000 + i}, 8" for i in range(7)))
    assert npus.collect_gpus(asked())["gpus_held"][0].endswith("pid 4003, 8 MiB; +3")


def test_gpus_that_the_ranks_need_and_are_not_there(smi):
    assert npus.collect_gpus(asked(quick=True)) == {"short_of_gpus": []}
    assert npus.collect_gpus(asked(quick=True, devices=[1, 2]))["short_of_gpus"] == ["2"]
    assert npus.collect_gpus(asked(quick=True, slots=8))["short_of_gpus"] == ["2 < 8"]
    assert npus.collect_gpus(asked(slots=2))["short_of_gpus"] == []


def test_an_nvidia_smi_that_fails_is_said_and_the_rest_is_not_made_up(smi, tmp_path):
    smi("broken")
    smi("gpus", "Failed to initialize NVML: Driver/library version mismatch")
    found = npus.collect_gpus(asked())
    assert "version mismatch" in found["nvidia_smi"]
    assert set(found) == {"nvidia_smi", "short_of_gpus"}


def test_hosts_with_npus_and_hosts_without_gpus_say_nothing(smi, monkeypatch):
    monkeypatch.setattr(host, "nodes", lambda: [0])
    assert npus.collect_gpus(asked(slots=8)) == {"gpus": None, "short_of_gpus": []}
    monkeypatch.setattr(host, "nodes", list)
    monkeypatch.setattr(host, "gpu_nodes", list)
    assert npus.collect_gpus(asked(slots=8)) == {"gpus": None, "short_of_gpus": []}


def test_only_devices_of_nvidia_with_a_number_are_gpus(monkeypatch):
    names = ["nvidia0", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia-caps", "nvidia-modeset", "null"]
    monkeypatch.setattr("os.listdir", lambda _: names)
    assert host.gpu_nodes() == [0, 10]
