"""Simulated machines for the doctor: files below a folder, tools on a PATH of their own."""

import json
import types

import pytest

from hccl_tools.machine import driver, host
from tools.doctor import files
from tools.doctor import main as doctor


class Machine:
    """A simulated machine: its files, its tools, and the page that the doctor makes of it."""

    shell = "5.2.15(1)-release"

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
        self.file("modules/mindspore.py", "\n".join(source) + "\n")
        self.monkeypatch.setenv("PYTHONPATH", str(self.root / "modules"))

    def cann(self, version, folder="/usr/local/Ascend/cann"):
        text = f"package_name=Ascend-cann-toolkit\nversion={version}\narch=aarch64\n"
        self.file(f"{folder}/aarch64-linux/ascend_toolkit_install.info", text)

    def driver(self, version, firmware="7.8.0.5.216"):
        self.file("/usr/local/Ascend/driver/version.info", f"Version={version}\nascendhal_version=7.35.23\n")
        self.file("/usr/local/Ascend/firmware/version.info", f"Version={firmware}\n")

    def page(self, *arguments):
        """(exit status, stdout)."""
        conf = ["--hccn_conf", str(self.root / "etc/hccn.conf")]
        status = doctor.main(["script=doctor.sh", f"shell={self.shell}", "--", *conf, *arguments])
        captured = self.capsys.readouterr()
        assert captured.err == ""
        return status, captured.out

    def lines(self, *arguments):
        """{name: page.Line} of the page, and its exit status."""
        status, text = self.page("--format", "json", *arguments)
        lines = json.loads(text)["lines"]
        return {line.pop("name"): types.SimpleNamespace(**line) for line in lines}, status

    def line(self, name, status, part="", *arguments):
        """The line of that name, which has that status and `part` in its text."""
        line = self.lines(*arguments)[0][name]
        assert line.status == status and part in line.text, line
        return line


@pytest.fixture
def machine(world, tmp_path, monkeypatch, capsys, chip):
    """A good machine without NPUs: MindSpore 2.9.0, plenty of everything, no tools on PATH but bash."""
    root = tmp_path / "root"
    monkeypatch.setattr(files, "ROOT", str(root))
    monkeypatch.setattr(driver, "INSTALL_INFO", f"{root}/etc/ascend_install.info")
    monkeypatch.setattr(host, "devices", lambda: sorted(host._devices_of_npu_smi()))
    monkeypatch.setattr(doctor, "SECONDS", 60)  # for slow machines; those that hang set it
    for name in ("HCCL_IF_BASE_PORT", "SLURM_JOB_ID", "container"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAUNCH_LANG", "en")
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
    """The same with 16 healthy NPUs of an A3, CANN and driver that fit each other, simulated npu-smi and hccn_tool."""
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
