"""The page about this machine, on simulated machines: files below a folder, tools on a PATH of their own."""

import fcntl
import json
import os
import re
import socket
import sys
import types

import pytest

from hccl_tools.machine import host, programs
from tools.doctor import files, installed, limits, network, npus, page, system, versions
from tools.doctor import main as doctor
from tools.launch import device_locks, ports

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


class Machine:
    """A simulated machine: its files, its tools, and the page that the doctor makes of it."""

    def __init__(self, root, tools, monkeypatch, capsys):
        self.root, self.tools, self.monkeypatch, self.capsys = root, tools, monkeypatch, capsys

    def file(self, path, text):
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def tool(self, name, *script):
        program = self.tools / name
        program.write_text("\n".join(["#!/usr/bin/env bash", *script]) + "\n")
        program.chmod(0o755)

    def mindspore(self, *source):
        folder = self.root / "modules"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mindspore.py").write_text("\n".join(source) + "\n")
        self.monkeypatch.setenv("PYTHONPATH", str(folder))

    def cann(self, version, folder="/usr/local/Ascend/cann"):
        text = f"package_name=Ascend-cann-toolkit\nversion={version}\narch=aarch64\n"
        self.file(f"{folder}/aarch64-linux/ascend_toolkit_install.info", text)

    def driver(self, version, firmware="7.8.0.5.216"):
        self.file("/usr/local/Ascend/driver/version.info", f"Version={version}\nascendhal_version=7.35.23\n")
        self.file("/usr/local/Ascend/firmware/version.info", f"Version={firmware}\n")

    def page(self, *arguments):
        """(exit status, stdout)."""
        status = doctor.main(["--hccn_conf", str(self.root / "etc/hccn.conf"), *arguments])
        captured = self.capsys.readouterr()
        assert captured.err == ""
        return status, captured.out

    def lines(self, *arguments):
        """{name: page.Line} of the page, and its exit status."""
        status, text = self.page("--format", "json", *arguments)
        lines = json.loads(text)["lines"]
        return {line.pop("name"): types.SimpleNamespace(**line) for line in lines}, status

    def line(self, name, *arguments):
        return self.lines(*arguments)[0][name]


@pytest.fixture
def machine(world, tmp_path, monkeypatch, capsys, chip):
    """A good machine without NPUs: MindSpore 2.9.0, plenty of everything, no tools on PATH but bash."""
    root = tmp_path / "root"
    monkeypatch.setattr(files, "ROOT", str(root))
    monkeypatch.setattr(host, "devices", lambda: sorted(host._devices_of_npu_smi()))
    monkeypatch.setattr(doctor, "SECONDS", 60)  # for slow machines; those that hang set it
    for name in ("HCCL_IF_BASE_PORT", "SLURM_JOB_ID", "container"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAUNCH_LOCKS", str(tmp_path / "no locks"))
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "alice"))
    found = Machine(root, tmp_path / "programs", monkeypatch, capsys)
    found.mindspore("__version__ = '2.9.0'")
    found.file("/etc/os-release", 'NAME="Kylin"\nPRETTY_NAME="Kylin Linux Advanced Server V10"\n')
    found.file("/proc/meminfo", "MemTotal:       98765432 kB\nMemAvailable:   87654321 kB\n")
    found.file("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n")
    found.file("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n")
    (root / "dev/shm").mkdir(parents=True)
    return found


@pytest.fixture
def a3(machine, cards, tmp_path, root):
    """The same with 16 NPUs of an A3, all well, CANN and driver that go together, simulated npu-smi and hccn_tool."""
    folder = tmp_path / "a3"
    folder.mkdir()
    (machine.tools / "npu-smi").symlink_to(root / "tests" / "fixtures" / "bin" / "npu-smi")
    machine.monkeypatch.setenv("NPU_SIM", str(folder))
    machine.monkeypatch.setattr(host, "generation", lambda: "A3")
    machine.cann("9.0.0")
    machine.monkeypatch.setenv("ASCEND_HOME_PATH", "/usr/local/Ascend/cann")
    machine.driver("26.0.rc1")
    machine.set = lambda name, value: (folder / name).write_text(f"{value}\n")
    return machine


# ---- the page --------------------------------------------------------------------------------------


def test_a_good_machine_without_npus_has_no_problem(machine):
    lines, status = machine.lines()
    assert status == 0
    assert {name for name, line in lines.items() if line.status == "problem"} == set()
    assert lines["devices"].status == "absent"
    assert "--device_target CPU" in lines["devices"].remedy
    assert "npu-smi" not in lines
    assert lines["OS"].text == "Kylin Linux Advanced Server V10"


def test_a_good_machine_with_npus_is_ok_in_every_line_about_them(a3):
    lines, status = a3.lines()
    assert status == 0
    wanted = [
        "MindSpore",
        "CANN",
        "driver",
        "firmware",
        "MindSpore with CANN",
        "CANN with driver",
        "driver with firmware",
    ]
    wanted += ["devices", *(f"device {number}" for number in range(16))]
    assert {name: lines[name].status for name in wanted} == dict.fromkeys(wanted, "ok")
    assert lines["device 3"].text == "Ascend910, health OK; address 192.168.100.4 (hccn_tool); free"


def test_the_text_has_every_line_of_the_json_and_its_remedy(machine):
    _, text = machine.page()
    lines, _ = machine.lines()
    for name, line in lines.items():
        assert re.search(rf"^  {line.status} +{re.escape(name)} +", text, re.MULTILINE), name
        assert line.remedy in text
    assert text.splitlines()[-1].endswith("nothing here keeps a launch from working.")


def test_a_problem_is_exit_1_and_said_at_the_end(machine):
    machine.mindspore("raise ImportError('libgomp.so.1: cannot open shared object file')")
    status, text = machine.page()
    assert status == 1
    assert "libgomp.so.1: cannot open shared object file" in text
    assert text.splitlines()[-1].startswith("1 problem, ")


def test_counts_and_status_of_the_json_are_those_of_its_lines(machine):
    found = json.loads(machine.page("--format", "json")[1])
    assert sum(found["counts"].values()) == len(found["lines"])
    assert found["status"] == "warning"
    assert {line["section"] for line in found["lines"]} == {
        module.TITLE for module in (system, versions, npus, limits, network, installed)
    }


def test_no_colour_where_it_is_not_wanted(monkeypatch):
    terminal, pipe = types.SimpleNamespace(isatty=lambda: True), types.SimpleNamespace(isatty=lambda: False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert page.wants_colour(terminal)
    assert not page.wants_colour(pipe)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not page.wants_colour(terminal)
    sections = {"One": [page.Line("name", page.PROBLEM, "text", "remedy")]}
    assert "\x1b[" in page.as_text(sections, "now", colour=True)
    assert "\x1b[" not in page.as_text(sections, "now", colour=False)


def test_a_mistake_in_one_section_leaves_the_others(machine, monkeypatch):
    monkeypatch.setattr(network, "_hccl_ports", lambda has_npus: 1 // 0)
    lines, status = machine.lines()
    assert (lines["network"].status, status) == ("unknown", 0)
    assert "ZeroDivisionError" in lines["network"].text
    assert "OS" in lines
    assert "chrt" in lines


def test_a_mistake_when_npus_are_asked_leaves_the_rest(machine, monkeypatch):
    monkeypatch.setattr(npus, "look", lambda conf: 1 // 0)
    assert "ZeroDivisionError" in machine.line("npu-smi").text


def test_a_closed_stdout_is_said(machine, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert doctor.main([]) == 2
    assert capsys.readouterr().err == "doctor.sh: stdout is closed, and the page goes there\n"


def test_the_documents_name_every_line(a3, root):
    with_npus, _ = a3.lines()
    a3.set("fault_info", "fail")
    for name in {*with_npus, *a3.lines()[0]}:
        for document in ("docs/doctor.md", "docs/zh/doctor.md"):
            text = (root / document).read_text()
            assert f"`{re.sub('[0-9]+', 'N', name)}`" in text, (document, name)


# ---- what the page may not say ---------------------------------------------------------------------


def test_the_environment_and_the_home_folder_are_not_in_the_page(a3, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    a3.mindspore(f"raise ImportError('{os.path.expanduser('~')}/lib/x.so: no such file')")
    _, text = a3.page("--log_dir", os.path.expanduser("~/logs"))
    assert "hunter2" not in text
    assert "alice" not in text
    assert "~/lib/x.so: no such file" in text
    _, text = a3.page("--format", "json")
    assert "alice" not in text
    assert "~/lib/x.so: no such file" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("address 192.168.1.2 (hccn_tool)", "address 192.168.1.2 (hccn_tool)"),
        ("10.0.0.1, 172.16.3.4 and 127.0.1.1", "10.0.0.1, 172.16.3.4 and 127.0.1.1"),
        ("a has 29.1.137.205; b", "a has 29.1.*.*; b"),
        ("2409:8c00:1::5 here", "2409:8c00:* here"),
        ("fd00::1 here", "fd00::1 here"),
        ("0000:9D:00.0 and 12 and 8.5.0", "0000:9D:00.0 and 12 and 8.5.0"),
    ],
)
def test_addresses_of_the_public_internet_are_hidden(text, shown):
    assert page.masked(text) == shown


def test_a_public_address_of_a_card_is_hidden(a3, cards):
    cards.set({device: f"29.1.137.{device + 1}" for device in range(16)})
    _, text = a3.page()
    assert "29.1.137" not in text
    assert "address 29.1.*.* (hccn_tool)" in text


# ---- nothing hangs ---------------------------------------------------------------------------------


def test_tools_that_hang_cost_one_limit_and_say_so(a3, monkeypatch):
    monkeypatch.setattr(doctor, "SECONDS", 1)
    monkeypatch.setattr(npus, "SECONDS", 1)
    a3.set("fault_info", "hang")
    for name in ("mpirun", "srun", "ssh", "getent", "chrt", "py-spy", "git"):
        a3.tool(name, "exec sleep 30")
    lines, _ = a3.lines()
    assert lines["npu-smi"].text == "npu-smi info: no answer within 1 s"
    for name in ("Open MPI", "Slurm", "ssh", "chrt", "py-spy", "host name", "launcher"):
        assert "no answer within 1 s" in lines[name].text, name
    assert lines["device 0"].text.startswith("health unknown; address 192.168.100.1")


def test_all_programs_are_asked_at_the_same_time(machine, monkeypatch):
    calls = []
    monkeypatch.setattr(programs, "ask_all", lambda commands, seconds, real=programs.ask_all: (
        calls.append(sorted(commands)), real(commands, seconds))[1])  # fmt: skip
    machine.lines()
    assert len(calls) == 1
    assert {"mindspore", "mpirun", "srun", "ssh", "chrt", "py-spy", "name", "git", "logs"} <= set(calls[0])


# ---- versions --------------------------------------------------------------------------------------


def test_every_row_of_the_table_has_a_source_and_versions_that_can_be_compared():
    for row in versions.rows():
        assert row["source"].startswith(("https://", "mindspore/")), row
        assert row["cann"]
        for version in (row["mindspore"], *row["cann"], row["driver"] or "1.0"):
            assert re.fullmatch(r"\d+\.\d+(\.\d+)?(\.?rc\d+)?", versions.canonical(version)), version


@pytest.mark.parametrize(
    ("mindspore", "cann", "status", "part"),
    [
        ("2.9.0", "9.0.0", "ok", "go together (https://"),
        ("2.3.0", "8.0.RC2.beta1", "ok", "go together"),
        ("2.3.0", "8.0.RC1", "ok", "go together"),
        ("2.6.0-rc1", "8.1.RC1", "ok", "go together"),
        ("2.10.0", "8.5.1", "ok", "go together"),
        ("2.10.0", "8.1.RC1", "warning", "accepts CANN 8.2 or 8.3 or 8.5 or 9.0 or 9.1, not 8.1.RC1"),
        ("2.7.1", "8.5.0", "unknown", "was released with CANN 8.3.RC1; nothing is known of 8.5.0"),
        ("2.7.1", "8.3.RC1.alpha003", "unknown", "nothing is known of 8.3.RC1.alpha003"),
        ("1.8.1", "8.5.0", "unknown", "no table here names MindSpore 1.8.1"),
        ("2.9.0", "", "absent", "cannot be compared without a version of CANN"),
    ],
)
def test_mindspore_with_cann(machine, mindspore, cann, status, part):
    machine.mindspore(f"__version__ = '{mindspore}'")
    if cann:
        machine.cann(cann)
    line = machine.line("MindSpore with CANN")
    assert (line.status, part in line.text) == (status, True), line


@pytest.mark.parametrize(
    ("cann", "driver", "status", "part"),
    [
        ("9.0.0", "26.0.rc1", "ok", "go together"),
        ("8.1.RC1", "25.0.rc1.1", "ok", "go together"),
        ("8.0.RC2", "24.1.rc2.b030", "ok", "go together"),
        ("8.5.0", "24.1.rc2", "unknown", "released with driver 25.5.0; nothing is known of 24.1.rc2"),
        ("8.1.RC1", "25.0.rc10", "unknown", "nothing is known of 25.0.rc10"),
        ("9.9.9", "26.0.rc1", "unknown", "no table here names a driver for CANN 9.9.9"),
        ("6.3.RC2", "23.0.rc2", "unknown", "no table here names a driver"),
        ("9.0.0", "", "unknown", "cannot be compared without a version of driver"),
    ],
)
def test_cann_with_driver(machine, cann, driver, status, part):
    machine.cann(cann)
    if driver:
        machine.driver(driver)
    line = machine.line("CANN with driver")
    assert (line.status, part in line.text) == (status, True), line


@pytest.mark.parametrize(
    ("word", "status"), [("OK", "ok"), ("NOK", "problem"), ("UNKNOWN", "unknown"), ("NOT SUPPORT", "unknown")]
)
def test_driver_with_firmware_is_what_npu_smi_says(a3, word, status):
    a3.set("compatibility", word)
    lines, code = a3.lines()
    assert lines["driver with firmware"].status == status
    assert code == (status == "problem")


def test_driver_and_firmware_are_npu_smis_where_there_is_no_version_info(a3):
    for name in ("driver", "firmware"):
        (a3.root / f"usr/local/Ascend/{name}/version.info").unlink()
    lines, _ = a3.lines()
    assert (lines["driver"].text, lines["firmware"].text) == ("25.5.0", "7.8.0.5.216")


def test_the_driver_is_where_ascend_install_info_says(machine):
    machine.file("/etc/ascend_install.info", "Driver_Install_Type=full\nDriver_Install_Path_Param=/opt/Ascend\n")
    machine.file("/opt/Ascend/driver/version.info", "Version=24.1.0\n")
    assert machine.line("driver").text == "24.1.0"


def test_cann_that_is_not_active_is_a_problem_where_there_are_npus(a3, monkeypatch):
    monkeypatch.delenv("ASCEND_HOME_PATH")
    line = a3.line("CANN")
    assert (line.status, line.remedy) == ("problem", "source /usr/local/Ascend/cann/set_env.sh")


def test_the_older_place_of_cann(machine):
    machine.cann("8.0.0", "/usr/local/Ascend/ascend-toolkit/latest")
    line = machine.line("CANN")
    assert (line.status, line.remedy) == ("ok", "source /usr/local/Ascend/ascend-toolkit/set_env.sh")


def test_a_machine_with_npus_and_without_cann(a3, monkeypatch):
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
    assert a3.line("CANN").status == "problem"
    monkeypatch.delenv("ASCEND_HOME_PATH")
    (a3.root / "usr/local/Ascend/cann/aarch64-linux/ascend_toolkit_install.info").unlink()
    assert a3.line("CANN").status == "problem"


def test_no_mindspore(machine):
    machine.mindspore("raise ModuleNotFoundError(\"No module named 'mindspore'\")")
    line = machine.line("MindSpore")
    assert (line.status, "has none" in line.text) == ("problem", True)


def test_what_mindspore_says_of_cann_is_passed_on(machine):
    machine.mindspore(
        "import sys", "__version__ = '2.9.0'", "sys.stderr.write('[WARNING] version 7.0 does not match\\n')"
    )
    line = machine.line("MindSpore")
    assert (line.status, line.text) == ("warning", "2.9.0, which says: [WARNING] version 7.0 does not match")


# ---- NPUs ------------------------------------------------------------------------------------------


def test_the_tables_of_npu_smi_on_a2():
    cards, holders = npus.parse_info(INFO_A2, {(4, 0): 4, (5, 0): 5})
    assert cards == {4: ("910B3", "OK"), 5: ("910B3", "Alarm")}
    assert holders == {4: ["a process (pid 277624, 51270 MB)", "python (pid 33776, 31747 MB)"]}


def test_the_tables_of_npu_smi_on_a3_have_physical_ids():
    cards, holders = npus.parse_info(INFO_A3, {(1, 0): 2, (1, 1): 3})
    assert cards == {2: ("Ascend910", "OK"), 3: ("Ascend910", "Warning")}
    assert holders == {3: ["trainer (pid 1712733, 48954 MB)"]}
    assert npus.parse_info(INFO_A3, {})[0].keys() == {2, 3}


@pytest.mark.parametrize(
    "text", ["", "\n", "dcmi module initialize failed. ret is -8005\n", "| | | |\n", "| 0 | | |\n"]
)
def test_other_answers_of_npu_smi_name_no_holder(text):
    assert npus.parse_info(text, {})[1] == {}


@pytest.mark.parametrize(
    ("health", "status"),
    [("Warning", "warning"), ("Alarm", "problem"), ("Critical", "problem"), ("UNKNOWN", "unknown")],
)
def test_a_device_that_is_not_well(a3, health, status):
    a3.set("health_5", health)
    lines, code = a3.lines()
    assert lines["device 5"].status == status
    assert "npu-smi info -t health -i 2 -c 1 says more" in lines["device 5"].remedy  # two chips an NPU
    assert f"health {health}" in lines["device 5"].text
    assert lines["device 4"].status == "ok"
    assert code == (status == "problem")


def test_a_device_that_is_held_names_the_process(a3):
    a3.set("held_3", "4711 49853 python")
    line = a3.line("device 3")
    assert (line.status, "held by python (pid 4711, 49853 MB)" in line.text) == ("warning", True)
    assert "free" in a3.line("device 2").text


def test_npu_smi_that_fails_leaves_the_devices_of_dev(a3, monkeypatch):
    monkeypatch.setattr(host, "devices", lambda: [0, 1])
    a3.set("fault_info", "fail")
    lines, _ = a3.lines()
    assert lines["npu-smi"].text == "npu-smi info: dcmi module initialize failed. ret is -8005 (exit 255)"
    assert lines["device 1"].status == "unknown"


def test_no_npu_smi(a3, monkeypatch):
    monkeypatch.setattr(host, "devices", lambda: [0])
    (a3.tools / "npu-smi").unlink()
    lines, _ = a3.lines()
    assert lines["npu-smi"].text.startswith("npu-smi is not on PATH")


def test_npu_smi_that_fails_is_said_where_there_are_no_devices(machine):
    machine.tool("npu-smi", "echo 'dcmi module initialize failed. ret is -8005'; exit 255")
    lines, _ = machine.lines()
    assert (lines["devices"].status, lines["npu-smi"].status) == ("absent", "warning")


def test_one_device_without_an_address_leaves_the_others(a3, cards, monkeypatch):
    monkeypatch.setattr(host, "generation", lambda: "910A")
    cards.fault(2, "absent")
    lines, code = a3.lines()
    assert (lines["device 2"].status, code) == ("problem", 1)
    assert "no address" in lines["device 2"].text
    assert lines["device 3"].status == "ok"


def test_chips_on_the_bus_without_devices_are_a_problem(machine, monkeypatch):
    monkeypatch.setattr(host, "generation", lambda: "A2")
    lines, code = machine.lines()
    assert (lines["devices"].status, code) == ("problem", 1)


def test_a_container_that_got_the_manager_and_no_device(machine):
    machine.file("/dev/davinci_manager", "")
    assert machine.line("devices").status == "problem"


def test_hccn_conf_that_the_cards_do_not_use(a3):
    a3.file("/etc/hccn.conf", "address_0=192.168.100.1\naddress_1=192.168.100.77\n")
    line = a3.line("hccn.conf")
    assert (line.status, line.remedy) == ("warning", "hccn_tool -i 1 -cfg recovery applies the file")
    a3.file("/etc/hccn.conf", "address_0=192.168.100.1\n")
    assert a3.line("hccn.conf").status == "ok"


def test_hccn_conf_that_is_no_such_file(a3):
    a3.file("/etc/hccn.conf", "address_0=here\n")
    assert a3.line("hccn.conf").status == "problem"
    (a3.root / "etc/hccn.conf").write_bytes(b"\xff\xfe\x00")
    assert a3.line("hccn.conf").status == "warning"
    (a3.root / "etc/hccn.conf").unlink()
    assert a3.line("hccn.conf").status == "absent"
    (a3.tools / "hccn_tool").unlink()
    assert a3.line("hccn.conf").status == "problem"


@pytest.fixture
def locks(machine, tmp_path, monkeypatch):
    """The folder of the locks, and take("job", [4, 5]): a job that holds devices until the test ends."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setenv("LAUNCH_LOCKS", str(folder))
    descriptors = []

    def take(job, devices):
        descriptors.append(os.open(folder / job.replace("/", "_"), os.O_RDWR | os.O_CREAT))
        assert device_locks.take(descriptors[-1], job, 4711, devices) == []

    yield types.SimpleNamespace(folder=folder, take=take)
    for descriptor in descriptors:
        os.close(descriptor)


def test_the_locks_of_the_launcher(machine, locks):
    assert machine.line("launcher's locks").status == "ok"
    locks.take("/home/bob/logs/ascend4p-1", [4, 5])
    locks.take("/home/bob/logs/ascend1p-2", [0])
    line = machine.line("launcher's locks")
    wanted = "device 4,5 by ascend4p-1 (pid 4711); device 0 by ascend1p-2 (pid 4711)"
    assert (line.status, line.text) == ("warning", wanted)
    assert "--wait_for_devices" in line.remedy


def test_locks_that_cannot_be_looked_at(machine, locks, monkeypatch):
    monkeypatch.setenv("LAUNCH_LOCKS", str(locks.folder / "file"))
    (locks.folder / "file").write_text("")
    line = machine.line("launcher's locks")
    assert (line.status, "Not a directory" in line.text) == ("unknown", True)


def test_locks_that_somebody_looks_at_for_ever(machine, locks, monkeypatch):
    monkeypatch.setattr(doctor, "SECONDS", 3)
    folder = os.open(locks.folder, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        line = machine.line("launcher's locks")
    finally:
        os.close(folder)
    assert (line.status, line.text) == ("unknown", "no answer within 3 s")


# ---- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("soft", "hard", "status", "remedy"),
    [
        (65536, 65536, "ok", ""),
        (1023, 4096, "warning", "ulimit -n 4096"),
        (200, 1 << 20, "problem", "ulimit -n 65536"),
        (200, 1000, "problem", "raise nofile"),
        (limits.resource.RLIM_INFINITY, limits.resource.RLIM_INFINITY, "ok", ""),
    ],
)
def test_open_files(machine, monkeypatch, soft, hard, status, remedy):
    real = limits.resource.getrlimit
    nofile = limits.resource.RLIMIT_NOFILE
    monkeypatch.setattr(limits.resource, "getrlimit", lambda what: (soft, hard) if what == nofile else real(what))
    line = machine.line("open files")
    assert line.status == status
    assert line.remedy.startswith(remedy)
    assert bool(line.remedy) == bool(remedy)


@pytest.mark.parametrize(
    ("uid", "soft", "allowed", "status"),
    [(1000, 100, None, "problem"), (1000, 3000, None, "warning"), (1000, 9999, None, "ok"), (0, 100, None, "ok"),
     (0, 100, "600", "problem"), (0, 9999, "max", "ok"), (1000, 9999, "2000", "warning")],
)  # fmt: skip
def test_processes(machine, monkeypatch, uid, soft, allowed, status):
    real = limits.resource.getrlimit
    nproc = limits.resource.RLIMIT_NPROC
    monkeypatch.setattr(limits.resource, "getrlimit", lambda what: (soft, soft) if what == nproc else real(what))
    monkeypatch.setattr(limits.os, "geteuid", lambda: uid)
    if allowed:
        machine.file("/sys/fs/cgroup/pids.max", allowed + "\n")
        machine.file("/sys/fs/cgroup/pids.current", "100\n")
    assert machine.line("processes").status == status


def test_memory(machine):
    assert machine.line("memory").status == "ok"
    machine.file("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 2000000 kB\n")
    assert machine.line("memory").status == "warning"
    machine.file("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 200000 kB\n")
    assert machine.line("memory").status == "problem"
    machine.file("/proc/meminfo", "")
    assert machine.line("memory").status == "unknown"


def test_memory_that_the_control_group_keeps(machine):
    machine.file("/sys/fs/cgroup/memory.max", f"{4 << 30}\n")
    machine.file("/sys/fs/cgroup/memory.current", f"{(4 << 30) - (100 << 20)}\n")
    assert machine.line("memory").status == "problem"


def measured(total, free, inodes=9, writable=1, folder="/x"):
    return programs.Ended(0, f"{total} {free} {inodes} {writable} {folder}\n", "")


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (measured(50 << 30, 20 << 30), "ok"),
        (measured(50 << 30, 20 << 30, inodes=-1), "ok"),
        (measured(50 << 30, 500 << 20), "warning"),
        (measured(50 << 30, 5 << 20), "problem"),
        (measured(50 << 30, 20 << 30, inodes=0), "problem"),
        (measured(50 << 30, 20 << 30, writable=0), "problem"),
        (programs.Ended(124, "", "no answer within 30 s"), "unknown"),
        (programs.Ended(1, "", "the current folder: No such file or directory"), "problem"),
    ],
)
def test_the_disk_of_the_logs(ended, status):
    assert limits._disk("log folder", ended, "logs").status == status


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (measured(8 << 30, 8 << 30, folder="/dev/shm"), "ok"),
        (measured(64 << 20, 64 << 20, folder="/dev/shm"), "warning"),
        (measured(8 << 30, 1 << 20, folder="/dev/shm"), "problem"),
        (measured(8 << 30, 8 << 30, folder="/dev"), "warning"),
    ],
)
def test_shared_memory(ended, status):
    assert limits._shared_memory(ended).status == status


def test_a_log_folder_that_is_not_there_yet_is_measured_where_it_would_be(machine, world):
    assert machine.line("log folder", "--log_dir", "my logs/deep").text.endswith(f"in {world}")


def test_the_real_shared_memory_is_measured(machine):
    assert "free" in machine.line("/dev/shm").text


# ---- network ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reserved", "status"),
    [
        ("", "warning"),
        ("60000-60031", "ok"),
        ("8080,60000-60015,60016-60031", "ok"),
        ("60000-60015", "warning"),
        ("60000", "warning"),
    ],
)
def test_hccls_ports_against_those_of_outgoing_connections(a3, reserved, status):
    a3.file("/proc/sys/net/ipv4/ip_local_reserved_ports", reserved + "\n")
    line = a3.line("HCCL's ports")
    assert line.status == status
    if status == "warning":  # what is reserved already must stay so
        wanted = f"{reserved},60000-60031".lstrip(",")
        assert line.remedy == f"sysctl -w net.ipv4.ip_local_reserved_ports={wanted}"


def test_hccls_ports_do_not_matter_without_npus(machine):
    assert machine.line("HCCL's ports").status == "ok"


@pytest.mark.parametrize(
    ("base", "status"), [("50000", "warning"), ("20000", "ok"), ("80", "problem"), ("x", "problem")]
)
def test_hccls_ports_start_where_the_user_says(a3, monkeypatch, base, status):
    monkeypatch.setenv("HCCL_IF_BASE_PORT", base)
    line = a3.line("HCCL's ports")
    assert line.status == status
    assert base in line.text


def test_a_port_of_hccl_that_is_in_use(a3):
    row = "   0: 0100007F:{:04X} 00000000:0000 {} 00000000:00000000 00:00000000 00000000  0 0 1\n"
    a3.file(
        "/proc/net/tcp", "  sl  local_address rem_address   st\n" + row.format(60007, "0A") + row.format(60008, "01")
    )
    line = a3.line("HCCL's ports")
    assert (line.status, "of which 60007 is in use" in line.text) == ("warning", True)


def test_the_schedulers_ports(machine):
    assert machine.line("scheduler's ports").status == "ok"
    machine.file("/proc/sys/net/ipv4/ip_local_port_range", "1024\t65000\n")
    assert machine.line("scheduler's ports").status == "warning"
    (machine.root / "proc/sys/net/ipv4/ip_local_port_range").unlink()
    assert machine.line("scheduler's ports").status == "unknown"


def test_the_schedulers_ports_are_those_of_the_planner():
    assert {ports.derived(seed) for seed in range(0, 20000, 7)} <= set(network.SCHEDULER)


@pytest.mark.parametrize(
    ("answer", "status", "part"),
    [
        (["echo '127.0.1.1       STREAM box'"], "ok", "enough for one host"),
        (["echo '203.0.113.9     STREAM box'"], "warning", "no address of this machine"),
        (["exit 2"], "warning", "stands for no address"),
    ],
)
def test_what_the_hosts_name_stands_for(machine, answer, status, part):
    machine.tool("getent", *answer)
    line = machine.line("host name")
    assert (line.status, part in line.text) == (status, True), line
    assert socket.gethostname() in line.text


def test_no_getent(machine):
    assert machine.line("host name").status == "unknown"


# ---- programs --------------------------------------------------------------------------------------


def test_programs_that_are_there(machine):
    machine.tool("mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
    machine.tool("srun", "echo 'slurm-wlm 22.05.8'")
    machine.tool("ssh", "echo 'OpenSSH_9.2p1' >&2")
    machine.tool("chrt", "exit 0")
    machine.tool("py-spy", "echo 'py-spy 0.4.0'")
    lines, _ = machine.lines()
    assert lines["Open MPI"].text == "mpirun (Open MPI) 4.1.4"
    assert lines["Slurm"].text == "slurm-wlm 22.05.8"
    assert lines["ssh"].text == "OpenSSH_9.2p1"
    assert {lines[name].status for name in ("Open MPI", "Slurm", "ssh", "chrt", "py-spy")} == {"ok"}


def test_programs_that_are_not_there(machine):
    lines, _ = machine.lines()
    assert [lines[name].status for name in ("Open MPI", "Slurm", "ssh", "py-spy")] == ["absent"] * 4
    assert lines["chrt"].status == "warning"


def test_another_mpi(machine):
    machine.tool("mpirun", "echo 'HYDRA build details:'")
    assert machine.line("Open MPI").status == "warning"


def test_a_policy_that_may_not_be_set(machine):
    machine.tool("chrt", "echo 'chrt: failed to set pid 0s policy: Operation not permitted' >&2; exit 1")
    line = machine.line("chrt")
    assert (line.status, "Operation not permitted (exit 1)" in line.text) == ("warning", True)


def test_py_spy_that_may_not_look_into_ranks(machine, monkeypatch):
    machine.tool("py-spy", "echo 'py-spy 0.4.0'")
    machine.file("/proc/sys/kernel/yama/ptrace_scope", "1\n")
    monkeypatch.setattr(installed.os, "geteuid", lambda: 1000)
    assert machine.line("py-spy").status == "warning"
