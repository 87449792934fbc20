"""Fixtures that the tests share: a valid rank table to edit, simulated cards, and an isolated environment."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import good_tables
import pytest
from supervise.small_launcher import launcher  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.supervise.world import HANDLED  # noqa: E402 - the path is set now

_OURS = ("ASCEND", "CUDA_VISIBLE", "DEVICE", "HCC", "MINDSPORE", "MS_", "NPU", "PYTHON", "RANK")


@pytest.fixture(autouse=True)
def the_same_interrupt():
    """Checks that a test restores the handler of SIGINT: otherwise Ctrl-C no longer ends later tests."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before)
        pytest.fail("the test has left a handler of SIGINT; the fixture `signals` puts the handlers back")


@pytest.fixture
def signals():
    """Restores the handlers of signals that the launcher takes, and the pipe that they write to."""
    before = {number: signal.getsignal(number) for number in (*HANDLED, signal.SIGCHLD)}
    wakes = signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(wakes)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def root():
    """The project's folder."""
    return ROOT


@pytest.fixture
def table():
    """table(2, 4, edits={...}): a good 1.0 table, 2 devices on the first server and 4 on the second, then edited."""
    return lambda *sizes, edits=None: good_tables.edited(good_tables.servers(*sizes), edits or {})


@pytest.fixture
def world(tmp_path, monkeypatch):
    """An isolated world: an own current folder, a PATH with only bash and sleep, none of our variables.

    The host's name resolves to 10.1.2.3.  Returns the current folder.
    """
    programs, here = tmp_path / "programs", tmp_path / "here"
    programs.mkdir()
    here.mkdir()
    for name in ("bash", "sleep"):
        (programs / name).symlink_to(shutil.which(name))
    for name in list(os.environ):
        if name.startswith(_OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(socket, "gethostbyname", lambda name: "10.1.2.3")
    monkeypatch.chdir(here)
    return here


class Cards:
    """The cards of the simulated host; tests/fixtures/bin/hccn_tool answers for them."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "calls"

    def set(self, addresses):
        """Card N has address addresses[N]; a key such as "IPv6address_0" sets that field instead."""
        names = {f"address_{key}" if isinstance(key, int) else key: value for key, value in addresses.items()}
        (self.folder / "hccn.conf").write_text("".join(f"{name}={value}\n" for name, value in names.items()))

    def fault(self, device, word):
        """Card `device` has the named fault."""
        (self.folder / f"fault_{device}").write_text(word + "\n")

    def calls(self):
        """(ASCEND_RT_VISIBLE_DEVICES or "unset", arguments) of every call so far."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [tuple(line.split(" ", 1)) for line in lines]


@pytest.fixture
def cards(world, tmp_path, monkeypatch):
    """Sixteen healthy cards, 192.168.100.1 to .16, and a simulated hccn_tool on PATH."""
    folder = tmp_path / "cards"
    folder.mkdir()
    (tmp_path / "programs" / "hccn_tool").symlink_to(ROOT / "tests" / "fixtures" / "bin" / "hccn_tool")
    monkeypatch.setenv("HCCN_SIM", str(folder))
    monkeypatch.setenv("HCCN_SIM_LOG", str(folder / "calls"))
    found = Cards(folder)
    found.set({device: f"192.168.100.{device + 1}" for device in range(16)})
    return found


@pytest.fixture
def chip(tmp_path, monkeypatch):
    """chip("0xd801"): gives this host a card of Huawei with that PCI device id; before that it has none."""
    from hccl_tools.machine import host

    folder = tmp_path / "pci"
    monkeypatch.setattr(host, "_PCI", str(folder))

    def plug(device):
        card = folder / "0000:c1:00.0"
        card.mkdir(parents=True)
        (card / "vendor").write_text("0x19e5\n")
        (card / "device").write_text(device + "\n")

    return plug


@pytest.fixture
def programs_run(monkeypatch):
    """The starts and ends of programs, in order: ["_start", "_start", "_finish", "_finish"]."""
    from hccl_tools.machine import programs

    events = []
    for name in ("_start", "_finish"):
        real = getattr(programs, name)
        monkeypatch.setattr(programs, name, lambda *args, name=name, real=real: (events.append(name), real(*args))[1])
    return events


@pytest.fixture
def in_process(capfd):
    """in_process(main, "--output", "x"): runs a command in this process; (exit code, stdout, stderr)."""

    def start(main, *arguments):
        try:
            status = main(list(arguments))
        except SystemExit as leaving:  # argparse
            status = leaving.code
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return start


@pytest.fixture
def stdin(monkeypatch):
    """stdin(PATH): this file is standard input from now on."""
    opened = []

    def put(path):
        opened.append(open(path, encoding="utf-8"))  # noqa: SIM115 - it is closed below
        monkeypatch.setattr("sys.stdin", opened[-1])

    yield put
    for file in opened:
        file.close()


@pytest.fixture
def run(world):
    """run("hccl_tools/validate_hccl.py", "x.json"): a command of the project as a process of its own."""

    def start(program, *arguments, env=None, **options):
        command = [sys.executable, str(ROOT / program), *map(str, arguments)]
        options = {"capture_output": True, "stdin": subprocess.DEVNULL, **options}
        return subprocess.run(
            command, text=True, timeout=300, check=False, env={**os.environ, **(env or {})}, **options
        )

    return start
