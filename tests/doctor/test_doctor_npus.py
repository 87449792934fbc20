"""The NPUs on the doctor's page: their health, holders, locks and addresses."""

import os

import pytest
from launch.locking import Job, base

from hccl_tools.machine import host, npu_use
from tools.doctor import main as doctor
from tools.doctor import npu_smi, npus

pytestmark = pytest.mark.thorough

__all__ = ["base"]

# `npu-smi info`, by generation, as seen in public bug reports; ids changed.
INFO_A2 = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc1.b030            Version: 24.1.rc1.b030                                        |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 4     910B3               | OK            | 101.8       43                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3318 / 65536         |
+===========================+===============+====================================================+
| 5     910B3               | Alarm         | 92.0        39                0    / 0             |
| 0                         | NA            | 0           0    / 0          3314 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 4       0                 | 277624        |                          | 51270                   |
| 4       0                 | 33776         | python                   | 31747                   |
+===========================+===============+====================================================+
| No running processes found in NPU 5                                                            |
+===========================+===============+====================================================+
"""
INFO_A3 = """\
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 1     Ascend910           | OK            | 178.5       36                0    / 0             |
| 0     2                   | 0000:9D:00.0  | 0           0    / 0          3416 / 65536         |
+------------------------------------------------------------------------------------------------+
| 1     Ascend910           | Warning       | -           36                0    / 0             |
| 1     3                   | 0000:9F:00.0  | 0           0    / 0          3195 / 65536         |
+===========================+===============+====================================================+
| NPU     Chip              | Process id    | Process name       | Process memory(MB)    | Process id in container |
+===========================+===============+======================================================================+
| 1       1                 | 1712733       | trainer            | 48954                 | NA                      |
"""


def test_the_tables_of_npu_smi_on_a2_and_on_a3_which_has_physical_ids():
    use = npu_use.parse(INFO_A2, {(4, 0): 4, (5, 0): 5})
    assert use.cards == {4: ("910B3", "OK"), 5: ("910B3", "Alarm")}
    assert npu_smi.holders(use) == {4: ["a process (pid 277624, 51270 MB)", "python (pid 33776, 31747 MB)"]}
    use = npu_use.parse(INFO_A3, {(1, 0): 2, (1, 1): 3})
    assert use.cards == {2: ("Ascend910", "OK"), 3: ("Ascend910", "Warning")}
    assert npu_smi.holders(use) == {3: ["trainer (pid 1712733, 48954 MB)"]}
    assert npu_use.parse(INFO_A3, {}).cards.keys() == {2, 3}


def test_other_answers_of_npu_smi_name_no_holder():
    for text in ("", "\n", "dcmi module initialize failed. ret is -8005\n", "| | | |\n", "| 0 | | |\n"):
        assert npu_use.parse(text, {}).holders == []


@pytest.mark.parametrize(
    ("health", "status"),
    [("Warning", "warning"), ("Alarm", "problem"), ("Critical", "problem"), ("UNKNOWN", "unknown")],
)
def test_a_device_that_is_not_well(a3, health, status):
    a3.set("health_5", health)
    lines, code = a3.lines()
    bad = lines["device 5"]
    assert (bad.status, lines["device 4"].status, code) == (status, "ok", status == "problem")
    assert f"health {health}" in bad.text
    assert "npu-smi info -t health -i 2 -c 1 shows more" in bad.remedy  # two chips an NPU


def test_a_device_that_is_held_names_the_process(a3):
    a3.set("held_3", "4711 49853 python")
    a3.line("device 3", "warning", "held by python (pid 4711, 49853 MB)")
    a3.line("device 2", "ok", "free")


def test_npu_smi_that_fails_or_is_not_there_leaves_the_devices_of_dev(a3, monkeypatch):
    monkeypatch.setattr(host, "devices", lambda: [0, 1])
    a3.set("fault_info", "fail")
    lines, _ = a3.lines()
    assert lines["npu-smi"].text == "npu-smi info: dcmi module initialize failed. ret is -8005 (exit 255)"
    assert lines["device 1"].status == "unknown"
    (a3.tools / "npu-smi").unlink()
    assert a3.line("npu-smi", "warning").text.startswith("npu-smi is not on PATH")


def test_which_devices_the_ranks_see(a3, monkeypatch):
    monkeypatch.setattr(host, "nodes", list)
    assert "visible devices" not in a3.lines()[0]
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,5")
    a3.line("visible devices", "ok", "ASCEND_RT_VISIBLE_DEVICES=4,5: DEVICE_ID 0,1 for devices 4,5")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,99")
    a3.line("visible devices", "problem", "99 is too large")
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES")
    monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", "4,5")
    a3.line("visible devices", "warning", "ASCEND_VISIBLE_DEVICES=4,5 does not limit the ranks")


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("echo 'ret is -8020'; exit 255", "another container"),
        ("echo 'Permission denied' >&2; exit 1", "run it as root"),
    ],
)
def test_the_remedy_of_npu_smi_fits_the_cause(a3, word, remedy):
    (a3.tools / "npu-smi").unlink()
    a3.tool("npu-smi", word)
    assert remedy in a3.line("npu-smi", "warning").remedy


def test_npu_smi_that_fails_is_said_where_there_are_no_devices(machine):
    machine.tool("npu-smi", "echo 'dcmi module initialize failed. ret is -8005'; exit 255")
    machine.line("devices", "absent")
    machine.line("npu-smi", "warning")


def test_one_device_without_an_address_leaves_the_others(a3, cards, monkeypatch):
    monkeypatch.setattr(host, "generation", lambda: "910A")
    cards.fault(2, "absent")
    lines, code = a3.lines()
    assert (lines["device 2"].status, code) == ("problem", 1)
    assert "no address" in lines["device 2"].text
    assert lines["device 3"].status == "ok"


def test_a_container_that_got_no_device_of_those_on_the_bus(machine, monkeypatch):
    machine.file("/dev/davinci_manager", "")
    machine.line("devices", "problem", "/dev/davinci_manager is there")
    monkeypatch.setattr(host, "generation", lambda: "A2")
    machine.line("devices", "problem", "the bus has chips of A2")


def test_hccn_conf_that_the_cards_do_not_use_or_that_is_none(a3):
    conf = a3.root / "etc/hccn.conf"
    a3.file("/etc/hccn.conf", "address_0=192.168.100.1\naddress_1=192.168.100.77\n")
    assert a3.line("hccn.conf", "warning").remedy == "hccn_tool -i 1 -cfg recovery applies the file"
    conf.write_text("address_0=192.168.100.1\n")
    a3.line("hccn.conf", "ok", "has addresses of 1 device")
    conf.write_text("address_0=here\n")
    a3.line("hccn.conf", "problem")
    conf.write_bytes(b"\xff\xfe\x00")
    a3.line("hccn.conf", "warning")
    conf.unlink()
    a3.line("hccn.conf", "absent")
    (a3.tools / "hccn_tool").unlink()
    a3.line("hccn.conf", "problem")


# ---- locks -----------------------------------------------------------------------------------------


def test_the_locks_of_the_launcher(machine, base):
    machine.line("launcher's locks", "ok")
    jobs = [Job(base), Job(base), Job(base)]
    jobs[0].take(4, 5, name="/home/bob/logs/ascend4p-1", cores=[8, 9])
    jobs[2].take(name="/home/bob/logs/ascend1p-3", cores=range(4))
    jobs[1].take(0, name="/home/bob/logs/ascend1p-2\x1b[2J")
    line = machine.line("launcher's locks", "warning")
    pid = os.getpid()
    texts = [f"devices 4,5 and cores 8,9 by ascend4p-1 (pid {pid})", f"cores 0-3 by ascend1p-3 (pid {pid})"]
    texts += [rf"device 0 by ascend1p-2\x1b[2J (pid {pid})"]
    assert sorted(line.text.split("; ")) == sorted(texts)
    assert "--wait_for_devices" in line.remedy


def test_locks_that_cannot_be_looked_at(machine, tmp_path, monkeypatch):
    monkeypatch.setenv("LAUNCH_LOCKS", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    line = machine.line("launcher's locks", "unknown", f"{tmp_path}/file: Not a directory")
    assert "LAUNCH_LOCKS" in line.remedy


def test_locks_on_a_file_system_that_hangs(machine, monkeypatch):
    monkeypatch.setattr(doctor, "SECONDS", 3)
    monkeypatch.setattr(npus, "questions", lambda _: {"locks": ["sleep", "600"]})
    assert machine.line("launcher's locks", "unknown").text == "no answer within 3 s"
