"""What an attempt that has ended still holds: processes, devices and ports, looked for before the next one."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import documents
import pytest
from suite.cases import eventually

from hccl_tools.machine import npu_use
from tools.launch.engines import hccl_ports
from tools.rank import free
from tools.supervise import held, proc
from tools.supervise.held import Wanted, Watch

MARK = f"test-{os.getpid()}@here"
NAP = [sys.executable, "-S", "-c", "import signal; print(flush=True); signal.pause()"]


@pytest.fixture
def nap():
    """nap(environment): a process that does nothing, with this environment."""
    started = []

    def start(**environment):
        started.append(subprocess.Popen(NAP, env=environment, stdout=subprocess.PIPE))
        started[-1].stdout.readline()
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()
        one.stdout.close()


@pytest.fixture
def npus(tmp_path, monkeypatch):
    """npus(NAME, TEXT): this host has simulated NPUs, see tests/fixtures/bin/npu-smi."""
    monkeypatch.setenv("PATH", f"{documents.ROOT / 'tests' / 'fixtures' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("NPU_SIM", str(tmp_path))

    def say(name, text=None):
        path = tmp_path / name
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        if text is not None:
            path.write_text(text + "\n")

    return say


def ended(process):
    """It has, whoever waits for it."""
    until = time.monotonic() + 60
    while process.poll() is None:
        assert time.monotonic() < until, "it still runs"
        time.sleep(0.01)


# ---- processes -------------------------------------------------------------------------------------------------------


def test_a_process_of_the_job_is_named_with_its_command_and_ended(nap):
    watch = Watch(Wanted(mark=MARK))
    left = nap(LAUNCH_JOB=MARK)
    (found,) = watch.look()
    assert found.what.startswith(f"process {left.pid} of the last attempt runs ({sys.executable} -S -c")
    assert held.remedy([found]) == f"kill -9 {left.pid}"
    ended(left)
    assert watch.look() == []


def test_a_process_that_is_in_d_only_while_it_ends_is_not_stuck(nap, monkeypatch):
    """The kernel takes its memory apart, which lasts a moment on a busy machine."""
    watch, sent = Watch(Wanted(mark=MARK)), []
    left = nap(LAUNCH_JOB=MARK)
    monkeypatch.setattr(proc, "send", lambda *_: sent.append(True))
    monkeypatch.setattr(proc, "state", lambda _: "D" if sent else "S")
    assert held.remedy(watch.look()) == f"kill -9 {left.pid}"


def test_one_that_survives_stays_until_it_is_gone(nap, monkeypatch):
    watch = Watch(Wanted(mark=MARK))
    left = nap(LAUNCH_JOB=MARK)
    monkeypatch.setattr(proc, "send", lambda *_: False)
    assert [one.pids for one in watch.look()] == [one.pids for one in watch.look()] == [(left.pid,)]
    left.kill()
    left.wait()
    assert watch.look() == []


def test_a_descendant_without_the_mark_is_one_but_not_what_ran_before_or_is_the_launchers_own(nap, monkeypatch):
    monkeypatch.setattr(held, "OURS", b"nothing has this name")
    before = nap(LAUNCH_JOB="another")
    watch = Watch(Wanted(mark=MARK, launcher=os.getpid()))
    left, own = nap(), nap()
    assert [one.pids for one in watch.look([own.pid])] == [(left.pid,)]
    ended(left)
    assert before.poll() is own.poll() is None


def test_in_a_container_process_1_has_children_that_are_not_of_the_job(monkeypatch):
    monkeypatch.setattr(held, "descendants", lambda *_: {4711})
    assert Watch(Wanted(mark=MARK, launcher=1)).look() == []


def test_processes_of_another_job_are_left_alone(nap):
    watch = Watch(Wanted(mark=MARK))
    other = nap(LAUNCH_JOB="another@here")
    assert watch.look() == []
    assert other.poll() is None


def test_an_agent_looks_for_what_began_before_its_engine(nap, monkeypatch):
    left, engine, later = nap(LAUNCH_JOB=MARK), nap(LAUNCH_JOB=MARK), nap(LAUNCH_JOB=MARK)
    begun = {left.pid: b"5", engine.pid: b"7", later.pid: b"7"}
    monkeypatch.setattr(proc, "stat", lambda pid: [b"S", *[b"0"] * 18, begun.get(pid, b"0")])
    assert held.earlier(MARK.encode(), engine.pid) == [left.pid]


# ---- ports -----------------------------------------------------------------------------------------------------------


def listening(port=0):
    plug = socket.create_server(("127.0.0.1", port))
    return plug, plug.getsockname()[1]


def test_the_schedulers_port_is_named_with_who_listens_there():
    plug, port = listening()
    watch = Watch(Wanted(mark=MARK, scheduler=["127.0.0.1", port]))
    with plug:
        (found,) = watch.look()
        assert found.what.startswith(f"port {port} of MindSpore's scheduler is in use (process {os.getpid()} listens")
        assert held.remedy([found]) == f"ss -ltnp 'sport = :{port}'"
    eventually(lambda: watch.look() == [])  # a busy kernel was seen to list a closed socket for a moment


def test_hccls_ports_are_waited_for_unless_they_were_in_use_before_the_job():
    first, port = listening()
    with first:
        watch = Watch(Wanted(mark=MARK, hccl=port))
        assert watch.look() == []
        for other in range(port + 1, port + hccl_ports.LAST_DEVICE + 1):
            with contextlib.suppress(OSError):
                second, other = listening(other)
                break
        else:
            pytest.skip("none of the ports is free")
        with second:
            (found,) = watch.look()
            assert found.what.startswith(f"port {other} of HCCL is in use (process {os.getpid()} listens")


# ---- devices ---------------------------------------------------------------------------------------------------------


def test_a_process_that_holds_a_device_of_the_job_is_named_by_npu_smi(npus):
    npus("held_3", "999 500 python")
    watch = Watch(Wanted(mark=MARK, devices=[2, 3]))
    assert watch.look() == []  # that was there before
    npus("held_2", "4711 30000 python")
    npus("held_5", "4712 30000 python")
    (found,) = watch.look()
    assert found.what == "process 4711 holds device 2 (python, 30000 MB)"
    assert held.remedy([found]) == "kill -9 4711"
    npus("held_2")
    assert watch.look() == []


def test_memory_that_no_process_has_is_waited_for(npus):
    watch = Watch(Wanted(mark=MARK, devices=[2, 3]))
    npus("hbm_3", "4000")
    assert watch.look() == []  # about as before
    npus("hbm_3", "30000")
    (found,) = watch.look()
    assert found.what == "device 3 has 30000 MB in use, 3416 MB before the first attempt"
    assert held.remedy([found]) == "npu-smi info"


def test_a_process_that_serves_hccl_is_left_only_where_no_process_has_a_device(npus, monkeypatch):
    monkeypatch.setattr(held, "_hccp", lambda: iter([]))
    watch = Watch(Wanted(mark=MARK, devices=[0]))
    monkeypatch.setattr(held, "_hccp", lambda: iter([os.getpid()]))
    (found,) = watch.look()
    assert found.what.startswith(f"process {os.getpid()} still serves HCCL (")
    npus("held_7", "4711 30000 python")  # of another job, whose it may be
    assert watch.look() == []


def test_an_npu_smi_that_fails_from_the_beginning_is_noted_and_one_that_fails_later_is_waited_for(npus):
    watch = Watch(Wanted(mark=MARK, devices=[0]))
    assert watch.note == ""
    npus("fault_info", "fail")
    assert watch.look()[0].what.startswith("the devices cannot be checked (npu-smi info: dcmi module initialize")
    blind = Watch(Wanted(mark=MARK, devices=[0]))
    assert blind.note.startswith("note: restarts do not wait until the devices are free: npu-smi info: dcmi")
    assert blind.look() == []


def test_without_devices_nobody_asks_npu_smi(monkeypatch):
    monkeypatch.setattr(npu_use, "look", lambda: pytest.fail("it was asked"))
    assert Watch(Wanted(mark=MARK)).look() == []


@pytest.mark.parametrize(
    "text", ["", "| 0 | OK |", "| 0 910 | OK | x |\n| 0 | y |", "\x00|\n||||\n| 9 9 | 9 | 9 | 9 |"]
)
def test_other_text_of_npu_smi_says_nothing(text):
    assert npu_use.parse(text, {}).holders == []


# ---- agents ----------------------------------------------------------------------------------------------------------


class Told(dict):
    """What an agent of another host is told, with the device 2."""

    away_host, is_scheduler, local_rank, job = True, False, 0, MARK.encode()

    def number(self, name):
        return int(self[name])


@pytest.fixture
def agent(monkeypatch):
    """agent(SECONDS): (whether the rank may start, what the agent tells); it waits for no time."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(free.time, "monotonic", lambda: clock.now)

    def start(seconds, pause=lambda: True):
        told = []

        def wait(period):
            clock.now += period
            return pause()

        words = Told(RESTART=str(seconds), TARGET="Ascend named", DEVICES="2", SIZES="1x1")
        return free.wait(words, os.getpid(), wait, lambda *said: told.append(said)), told

    return start


def test_an_agent_starts_its_rank_at_once_where_nothing_is_left(agent, npus):
    npus("held_3", "4711 30000 python")
    assert agent(5) == (True, [])


def test_an_agent_waits_until_its_device_is_free(agent, npus):
    npus("held_2", "4711 30000 python")
    looks = iter(range(4))

    def frees_later():
        if next(looks) == 3:
            npus("held_2")
        return True

    said = ("waits", "process 4711 holds device 2 (python, 30000 MB)")
    assert agent(60, frees_later) == (True, [said, ("free", "4")])


def test_an_agent_gives_up_after_the_time_with_what_to_do(agent, npus):
    npus("held_2", "4711 30000 python")
    may_start, told = agent(3)
    assert not may_start
    assert told[-1] == ("held", "process 4711 holds device 2 (python, 30000 MB); kill -9 4711")


def test_an_agent_that_is_to_stop_waits_no_longer(agent, npus):
    npus("held_2", "4711 30000 python")
    assert agent(60, lambda: False) == (False, [])


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def test_gpus_are_free_when_no_other_process_and_no_more_memory_is_on_them(tmp_path, monkeypatch, nap):
    folder = tmp_path / "bin"
    folder.mkdir()
    smi = folder / "nvidia-smi"
    smi.write_text('#!/bin/sh\ncase "$*" in *compute-apps*) cat "$GPU_SIM/holders" ;; *) cat "$GPU_SIM/gpus" ;; esac\n')
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("GPU_SIM", str(tmp_path))
    (tmp_path / "gpus").write_text("0, GPU-a, 0, 143771\n1, GPU-b, 0, 143771\n")
    (tmp_path / "holders").write_text("")
    watch = Watch(Wanted(mark=MARK, devices=[1], gpus=True))
    assert watch.note == "" and watch.look() == []
    other = nap()
    (tmp_path / "holders").write_text(f"GPU-a, 4711, 8\nGPU-b, {other.pid}, 864\n")
    (found,) = watch.look()
    assert found.what.startswith(f"process {other.pid} holds device 1 ({sys.executable} ") and "864 MB" in found.what
    (tmp_path / "holders").write_text("")
    (tmp_path / "gpus").write_text("0, GPU-a, 9000, 143771\n1, GPU-b, 2000, 143771\n")
    (found,) = watch.look()
    assert found == held.Held("device 1 has 2000 MB in use, 0 MB before the first attempt", (), "nvidia-smi")
    smi.write_text("#!/bin/sh\nexit 9\n")
    (found,) = watch.look()
    assert "cannot be checked" in found.what and found.remedy == "nvidia-smi"


# ---- who began when --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [True, False])
def test_what_began_with_the_job_is_of_the_job_even_if_the_first_look_comes_late(nap, late):
    """On a busy machine a rank can leave a process before anybody has looked for the first time."""
    before = held.now()
    left = nap()
    until = time.monotonic() + 60
    while held.now() <= before + 1:
        assert time.monotonic() < until
    watch = Watch(Wanted(mark=MARK, launcher=os.getpid(), since=before if late else held.now()))
    found = [each for each in watch.look() if left.pid in each.pids]
    assert bool(found) is late
