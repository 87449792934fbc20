"""Limits, network and programs on the doctor's page."""

import socket
from types import SimpleNamespace

import pytest

from hccl_tools.machine.programs import Ended
from tools.doctor import installed, limits, network, system
from tools.launch.engines import ports

GIB, MIB = 1 << 30, 1 << 20


@pytest.mark.parametrize(
    ("git", "is_checkout", "found"),
    [
        (Ended(0, "v1-3-gabc\n", ""), True, ("ok", "1.0.0 (v1-3-gabc)")),
        (Ended(128, "", "fatal: no"), False, ("ok", "1.0.0")),
        (Ended(128, "", "fatal: no"), True, ("unknown", "1.0.0; git does not name its commit: fatal: no (exit 128)")),
    ],
)
def test_the_launcher_has_a_version_with_git_and_without(monkeypatch, tmp_path, git, is_checkout, found):
    monkeypatch.setattr(system, "ROOT", str(tmp_path))
    monkeypatch.setattr(system.version, "number", lambda: "1.0.0")
    if is_checkout:
        (tmp_path / ".git").mkdir()
    facts = SimpleNamespace(answers={"git": git}, options=SimpleNamespace(shell="5.2"))
    line = system.lines(facts)[0]
    assert (line.status, line.text) == found


# ---- limits ----------------------------------------------------------------------------------------


@pytest.fixture
def limited(monkeypatch):
    """limited("RLIMIT_NOFILE", soft, hard): what the kernel says about that limit."""
    real = limits.resource.getrlimit

    def set_limit(name, soft, hard):
        number = getattr(limits.resource, name)
        monkeypatch.setattr(limits.resource, "getrlimit", lambda what: (soft, hard) if what == number else real(what))

    return set_limit


@pytest.mark.slow
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
def test_open_files(machine, limited, soft, hard, status, remedy):
    limited("RLIMIT_NOFILE", soft, hard)
    line = machine.line("open files", status)
    assert line.remedy.startswith(remedy)
    assert bool(line.remedy) == bool(remedy)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uid", "soft", "allowed", "status"),
    [(1000, 100, None, "problem"), (1000, 3000, None, "warning"), (1000, 9999, None, "ok"), (0, 100, None, "ok"),
     (0, 100, "600", "problem"), (0, 9999, "max", "ok"), (1000, 9999, "2000", "warning")],
)  # fmt: skip
def test_processes(machine, monkeypatch, limited, uid, soft, allowed, status):
    limited("RLIMIT_NPROC", soft, soft)
    monkeypatch.setattr(limits.os, "geteuid", lambda: uid)
    if allowed:
        machine.file("/sys/fs/cgroup/pids.max", allowed + "\n")
        machine.file("/sys/fs/cgroup/pids.current", "100\n")
    machine.line("processes", status)


@pytest.mark.slow
def test_memory_also_where_the_control_group_keeps_it(machine):
    machine.line("memory", "ok")
    for available, status in ((2000000, "warning"), (200000, "problem")):
        machine.file("/proc/meminfo", f"MemTotal: 8000000 kB\nMemAvailable: {available} kB\n")
        machine.line("memory", status)
    machine.file("/proc/meminfo", "")
    machine.line("memory", "unknown")
    machine.file("/proc/meminfo", "MemTotal: 98765432 kB\nMemAvailable: 87654321 kB\n")
    machine.file("/sys/fs/cgroup/memory.max", f"{4 * GIB}\n")
    machine.file("/sys/fs/cgroup/memory.current", f"{4 * GIB - 100 * MIB}\n")
    machine.line("memory", "problem")


def measured(total, free, inodes=9, writable=1, folder="/x"):
    return Ended(status=0, stdout=f"{total} {free} {inodes} {writable} {folder}\n", stderr="")


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (measured(50 * GIB, 20 * GIB), "ok"),
        (measured(50 * GIB, 20 * GIB, inodes=-1), "ok"),
        (measured(50 * GIB, 500 * MIB), "warning"),
        (measured(50 * GIB, 5 * MIB), "problem"),
        (measured(50 * GIB, 20 * GIB, inodes=0), "problem"),
        (measured(50 * GIB, 20 * GIB, writable=0), "problem"),
        (Ended(status=124, stdout="", stderr="no answer within 30 s"), "unknown"),
        (Ended(status=1, stdout="", stderr="the current folder: No such file or directory"), "problem"),
    ],
)
def test_the_disk_of_the_logs(ended, status):
    assert limits._disk("log folder", ended, "logs").status == status


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (measured(8 * GIB, 8 * GIB, folder="/dev/shm"), "ok"),
        (measured(64 * MIB, 64 * MIB, folder="/dev/shm"), "warning"),
        (measured(8 * GIB, MIB, folder="/dev/shm"), "problem"),
        (measured(8 * GIB, 8 * GIB, folder="/dev"), "warning"),
    ],
)
def test_shared_memory(ended, status):
    assert limits._shared_memory(ended).status == status


def test_real_folders_are_measured_and_one_that_is_not_there_yet_where_it_would_be(machine, world):
    lines, _ = machine.lines("--log_dir", "my logs/deep")
    assert lines["log folder"].text.endswith(f"in {world}")
    assert "free" in lines["/dev/shm"].text


# ---- network ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reserved", "status"),
    [
        *((ports, "warning") for ports in ("", "60000-60015", "60000")),
        *((ports, "ok") for ports in ("60000-60031", "8080,60000-60015,60016-60031")),
    ],
)
def test_hccls_ports_against_those_of_outgoing_connections(a3, reserved, status):
    a3.file("/proc/sys/net/ipv4/ip_local_reserved_ports", reserved + "\n")
    line = a3.line("HCCL's ports", status)
    if status == "warning":  # what is reserved already must stay so
        wanted = f"{reserved},60000-60031".lstrip(",")
        assert line.remedy == f"sysctl -w net.ipv4.ip_local_reserved_ports={wanted}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "status"), [("50000", "warning"), ("20000", "ok"), ("80", "problem"), ("x", "problem")]
)
def test_hccls_ports_start_where_the_user_says(a3, monkeypatch, base, status):
    monkeypatch.setenv("HCCL_IF_BASE_PORT", base)
    a3.line("HCCL's ports", status, base)


@pytest.mark.slow
def test_a_port_of_hccl_that_is_in_use(a3):
    row = "   0: 0100007F:{:04X} 00000000:0000 {} 00000000:00000000 00:00000000 00000000  0 0 1\n"
    rows = row.format(60007, "0A") + row.format(60008, "01")
    a3.file("/proc/net/tcp", "  sl  local_address rem_address   st\n" + rows)
    assert a3.line("HCCL's ports", "warning").text == "60000-60031, in use: 60007"


@pytest.mark.slow
def test_the_ports_of_a_machine_without_npus(machine):
    machine.line("HCCL's ports", "ok", "without NPUs it does not matter")
    machine.line("scheduler's ports", "ok")
    machine.file("/proc/sys/net/ipv4/ip_local_port_range", "1024\t65000\n")
    machine.line("scheduler's ports", "warning")
    (machine.root / "proc/sys/net/ipv4/ip_local_port_range").unlink()
    machine.line("scheduler's ports", "unknown")


def test_the_schedulers_ports_are_those_of_the_planner():
    assert {ports.derived(seed) for seed in range(0, 20000, 7)} <= set(network.SCHEDULER)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "status", "part"),
    [
        ("echo '127.0.1.1       STREAM box'", "ok", "enough for one host"),
        ("echo '203.0.113.9     STREAM box'", "warning", "not an address of this machine"),
        ("exit 2", "warning", "resolves to no address"),
        (None, "unknown", "getent"),
    ],
)
def test_what_the_hosts_name_stands_for(machine, answer, status, part):
    if answer:
        machine.tool("getent", answer)
    assert socket.gethostname() in machine.line("host name", status, part).text


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "script", "name", "part"),
    [
        ("mpirun", "echo 'HYDRA build details:'", "Open MPI", "another MPI: HYDRA"),
        ("chrt", "echo 'chrt: Operation not permitted' >&2; exit 1", "chrt", "Operation not permitted (exit 1)"),
        ("py-spy", "echo 'py-spy 0.4.0'", "py-spy", "py-spy 0.4.0, without permission"),
    ],
)
def test_a_program_that_is_not_as_it_should_be(machine, monkeypatch, tool, script, name, part):
    monkeypatch.setattr(installed.os, "geteuid", lambda: 1000)
    machine.file("/proc/sys/kernel/yama/ptrace_scope", "1\n")
    machine.tool(tool, script)
    machine.line(name, "warning", part)
