"""MindSpore's scheduler, with a stand-in for MindSpore: when it ends, and with which status."""

import contextlib
import glob
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from tools.launch.engines import joining, mindspore_scheduler

pytestmark = pytest.mark.thorough


@pytest.fixture
def listening():
    """A server's socket with room for connections; its port is the scheduler's.

    Its address is its own: processes of other tests may still look for one at this port of 127.0.0.1.
    """
    with socket.create_server((f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}", 0), backlog=8) as server:
        yield server


def connect(server):
    """Both ends of a connection."""
    return socket.create_connection(server.getsockname()), server.accept()[0]


@pytest.fixture
def started(root, tmp_path, listening):
    """started(WORD..., NAME=VALUE...): mindspore_scheduler.py, or another command, for two ranks; killed if left."""
    processes = []

    def start(*words, **variables):
        stub = {"PYTHONPATH": str(root / "tests/fixtures/stub_mindspore"), "STUB_OUT": str(tmp_path)}
        cluster = {"MS_WORKER_NUM": "2", "MS_SCHED_PORT": str(listening.getsockname()[1])}
        environment = {**os.environ, **stub, **cluster, **variables}
        command = [sys.executable, *(words or [str(root / "tools/launch/engines/mindspore_scheduler.py")])]
        processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_connections_of_one_port_are_counted_once(listening, tmp_path, monkeypatch):
    port = listening.getsockname()[1]
    assert joining.connections(port).all == 0
    ends = [end for _ in range(3) for end in connect(listening)]
    found = joining.connections(port)
    assert (found.all, len(found.here), found.elsewhere) == (3, 3, 0)
    monkeypatch.setattr(joining.sockets, "TABLES", ("/proc/net/tcp", str(tmp_path / "tcp6")))  # no IPv6
    assert joining.connections(port).all == 3
    for end in ends:
        end.close()
    assert joining.connections(port).all == 0


def test_a_descriptor_that_closes_meanwhile_hides_no_connection(listening, monkeypatch):
    def readlink(path, link=os.readlink):
        if path.endswith("/fd/0"):
            raise FileNotFoundError
        return link(path)

    inode = str(os.fstat(listening.fileno()).st_ino)
    monkeypatch.setattr(os, "readlink", readlink)
    assert joining._of_process("self", {inode, "another"}) == {inode}


RANK = """
import mmap, socket, sys
library = open(sys.argv[1], "r+b")
mapped = mmap.mmap(library.fileno(), 0)
links = [socket.create_connection((sys.argv[2], int(sys.argv[3]))) for _ in sys.argv[4:]]
sys.stdin.read()
"""


def test_its_log_names_the_ranks_that_use_mindspore_and_those_that_have_joined(started, listening, tmp_path):
    process = started(LAUNCH_JOB="this one")
    place, log, ranks = listening.getsockname(), [], []

    def rank(number, library, links, job="this one"):
        (tmp_path / library).write_bytes(b"x")
        words = [str(tmp_path / library), place[0], str(place[1]), *["link"] * links]
        environment = {**os.environ, "LAUNCH_JOB": job, "RANK_ID": str(number)}
        command = [sys.executable, "-c", RANK, *words]
        ranks.append(subprocess.Popen(command, env=environment, stdin=subprocess.PIPE))

    def says(*lines):
        found = [process.stdout.readline() for _ in lines]
        assert found == [f"mindspore_scheduler.py: {line}\n" for line in lines]
        log.extend(found)

    rank(5, "libmindspore_core.so", 0, job="another")
    rank(0, "libmindspore_core.so", 2)  # MindSpore has two connections of each rank: these are not those of two ranks
    says("rank 0 has loaded MindSpore", "rank 0 is connected")
    rank(1, "another.so", 2)
    says("rank 1 is connected", "all 2 ranks are connected")
    for one in ranks:
        one.communicate()
    (tmp_path / "scheduler.log").write_text("a line of MindSpore\n" + "".join(log))
    seen = joining.read(str(tmp_path / "scheduler.log"))
    assert (seen.loaded, seen.connected, seen.others) == ({0}, {0, 1}, False)


def test_a_connection_of_nobody_who_is_seen_may_be_a_rank(started, listening, tmp_path):
    process = started(LAUNCH_JOB="this one")
    ends = connect(listening)
    line = process.stdout.readline()
    assert line == "mindspore_scheduler.py: another process is connected\n"
    (tmp_path / "scheduler.log").write_text(line)
    assert joining.read(str(tmp_path / "scheduler.log")).others
    for end in ends:
        end.close()


def test_it_ends_with_0_when_all_ranks_have_left_without_a_word(started, listening):
    ends = [end for _ in range(2) for end in connect(listening)]
    process = started()
    assert process.stdout.readline() == "mindspore_scheduler.py: all 2 ranks are connected\n"
    for end in ends[2:]:
        end.close()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(mindspore_scheduler.SECONDS + 1)  # one rank is there
    for end in ends[:2]:
        end.close()
    assert process.communicate(timeout=300)[0] == "mindspore_scheduler.py: all ranks have left\n"
    assert process.returncode == 0


def test_the_trainer_is_it_where_msrun_starts_the_trainer_as_its_scheduler(started, listening, root, tmp_path):
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, 99, 28, 28) + bytes(99 * 784))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 99) + bytes(99))
    words = [str(root / "tools/train.py"), "-c", str(root / "configs/mnist/lenet5_digits.yaml")]
    words += ["-o", "system.device_target=CPU", "train.loader.batch_size=9", "eval.loader.batch_size=9"]
    process = started(*words, MS_ROLE="MS_SCHED", RANK_SIZE="2", DATA_PATH=str(tmp_path))
    ends = [end for _ in range(2) for end in connect(listening)]
    assert process.stdout.readline() == "mindspore_scheduler.py: all 2 ranks are connected\n"
    for end in ends:
        end.close()
    assert process.communicate(timeout=300)[0] == "mindspore_scheduler.py: all ranks have left\n"
    assert process.returncode == 0


def test_it_ends_as_mindspores_part_does(started):
    assert started(STUB_SCHEDULER_EXIT="3").wait(60) == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_it_ends_by_the_signal_that_ended_mindspores_part(started, tmp_path, number):
    process = started()
    wait_until_it_serves(process, tmp_path)
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        os.kill(int(file.read()), number)
    assert process.wait(60) == -number


CORE = """
class MSContext:
    get_instance = classmethod(lambda cls: cls())

    def set_device_target_inner(self, target):
        print(target)


class DeviceManagerConf(MSContext):
    def set_device(self, *words):
        print(*words)


def init_cluster():
    print("init_cluster")


def finalize_hccl():
    print("finalize_hccl")
"""


@pytest.mark.parametrize(
    ("left_out", "said"), [("", "CPU|CPU 0 True|init_cluster|finalize_hccl"), ("set_device(", "CPU|all")]
)
def test_only_the_extension_module_of_mindspore_is_imported_if_it_has_all_that_is_needed(
    started, tmp_path, left_out, said
):
    package = tmp_path / "mindspore"
    (package / "communication").mkdir(parents=True)
    (package / "_c_expression.py").write_text(CORE.replace(f"def {left_out}", "def other(") if left_out else CORE)
    (package / "__init__.py").write_text("print('all')\ndef set_device(target): pass\n")
    (package / "communication" / "__init__.py").write_text("def init(): pass\nrelease = init\n")
    process = started(PYTHONPATH=str(tmp_path), PYTHONUNBUFFERED="1")
    assert process.communicate(timeout=300)[0].split("\n") == [*said.split("|"), ""]
    assert process.returncode == 0


def wait_until_it_serves(process, folder):
    """Waits until MindSpore's part has started."""
    record = folder / "scheduler.json"
    while not (record.exists() and record.stat().st_size):
        assert process.poll() is None


def test_mindspores_part_ends_with_it(started, tmp_path):
    process = started()
    wait_until_it_serves(process, tmp_path)
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    deadline = time.monotonic() + 300
    while running_with(f"STUB_OUT={tmp_path}"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def running_with(assignment):
    """The processes that have `assignment` in their environment."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            found += [path] * (assignment.encode() in file.read().split(b"\0"))
    return found
