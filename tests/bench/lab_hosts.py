#!/usr/bin/env python3
"""What mpirun costs over real ssh with 2 to 64 hosts, and what our script adds; the hosts are tests/lab/lab.sh's.

Each host runs one rank, whose first instruction writes the time.  Measured are the time until the last rank runs,
and, while all ranks wait, mpirun's descriptors, its ssh processes and the memory of both.  `direct` connects mpirun
to every host (routed_radix), as our script does; `tree` is what mpirun does by itself: 64 hosts are direct, the
others are behind them.

Needs what the lab needs: root, or user namespaces, and sshd.  Not part of `make bench`, because it takes minutes:

  make bench ONLY=lab_hosts
  OPEN_MPI=4 python tests/bench/lab_hosts.py 2 64 128    other numbers of hosts, another mpirun
"""

import contextlib
import importlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import figures

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "tests" / "lab" / "lab.sh"
HOSTS = (2, 4, 8, 16, 32, 64)
RUNS = 3
SECONDS = 180  # limit of a launch
RANK = """#!/bin/sh
date +%s.%N >"$STAMPS/rank_$OMPI_COMM_WORLD_RANK.part"
mv "$STAMPS/rank_$OMPI_COMM_WORLD_RANK.part" "$STAMPS/rank_$OMPI_COMM_WORLD_RANK"
[ -z "$RANKS_WAIT" ] || exec sleep 600
"""


def tables(hosts=HOSTS):
    """Measures; yields figures.Tables."""
    sys.path.insert(0, str(ROOT / "tests" / "suite"))
    said = importlib.import_module("open_mpi").use()
    probe = subprocess.run([LAB, "probe"], capture_output=True, text=True, check=False)
    if probe.returncode or not shutil.which("mpirun"):
        sys.exit(f"lab_hosts.py: {probe.stderr.strip() or 'no mpirun is on PATH'}; it needs root, sshd, ip and mpirun")
    version = said.partition(",")[0]
    times, costs = [], []
    for number in hosts:
        with tempfile.TemporaryDirectory() as name, lab(number):
            world = World(Path(name), number)
            times.append([number, *world.times()])
            costs += world.costs()
    note = (
        f"Test hosts on one machine of {os.cpu_count()} cores, one rank each; medians of {RUNS} runs. All hosts share "
        "these cores: real hosts start their daemons at the same time. Ours checks every host first, over ssh."
    )
    columns = ["hosts", "mpirun, tree", "mpirun, direct", "run_mpirun_1.sh"]
    yield figures.Table(f"{version}: until the last rank runs", columns, times, note)
    note = "While all ranks wait. Memory is each process's own share (PSS); a daemon is that of the first other host."
    columns = ["hosts", "", "mpirun's descriptors", "ssh processes", "memory of mpirun", "of all ssh", "of a daemon"]
    yield figures.Table(f"{version}: what mpirun holds", columns, costs, note)


@contextlib.contextmanager
def lab(hosts):
    up = subprocess.run([LAB, "up", str(hosts), str(os.getpid())], stdout=subprocess.PIPE, text=True, check=True)
    os.environ["LAB"] = up.stdout.strip()
    try:
        yield
    finally:
        subprocess.run([LAB, "down"], check=True)


class World:
    """A folder with the rank's program, and the commands that start it on all hosts of the lab."""

    def __init__(self, folder, hosts):
        self.folder, self.hosts = folder, hosts
        (folder / "rank").write_text(RANK)
        (folder / "rank").chmod(0o755)
        names = ",".join(f"node{number}:1" for number in range(hosts))
        bare = ["mpirun", "-H", names, "-n", str(hosts), "--bind-to", "none", "-x", "STAMPS", "-x", "RANKS_WAIT"]
        old = " 4." in subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
        bare += ["--prefix", prefix] if (prefix := self.prefix()) else []
        direct = ["--mca" if old else "--prtemca", "routed_radix", str(hosts)]
        script = ["bash", str(ROOT / "scripts" / "run_mpirun_1.sh"), "--device_target", "CPU", "--quiet", "-H", names]
        self.commands = {
            "tree": [*bare, str(folder / "rank")],
            "direct": [*bare, *direct, str(folder / "rank")],
            "ours": [*script, str(folder / "rank")],
        }

    @staticmethod
    def prefix():
        """The folder of a wheel's Open MPI, which is on no PATH of ssh's shell."""
        folder = Path(os.path.realpath(shutil.which("mpirun") or "")).parent
        return str(folder.parent) if list(folder.glob("*_wrapper")) else None

    @contextlib.contextmanager
    def started(self, name, waits):
        """(process, seconds until the last rank ran) of one launch."""
        stamps = Path(tempfile.mkdtemp(dir=self.folder))
        env = {
            **os.environ,
            **{"STAMPS": str(stamps), "RANKS_WAIT": "1" if waits else "", "PYTHON": sys.executable},
            **{"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
            # MindSpore's scheduler takes seconds to import: here it is a stand-in.
            **{"PYTHONPATH": str(ROOT / "tests" / "fixtures" / "stub_mindspore"), "STUB_OUT": str(self.folder)},
        }
        began = time.time()
        with open(self.folder / "log", "wb") as log:
            process = subprocess.Popen(
                [LAB, "run", "0", *self.commands[name]],
                **{"cwd": self.folder, "env": env, "stdin": subprocess.DEVNULL, "stdout": log, "stderr": log},
                start_new_session=True,
            )
        try:
            while len(list(stamps.glob("rank_*[0-9]"))) < self.hosts:
                if process.poll() not in (None, 0) or time.time() > began + SECONDS:
                    said = (self.folder / "log").read_text()[-800:]
                    sys.exit(
                        f"lab_hosts.py: {self.hosts} hosts, {name}: only {len(list(stamps.iterdir()))} ran:\n{said}"
                    )
                time.sleep(0.05)
            last = max(float(path.read_text()) for path in stamps.glob("rank_*"))
            yield process, last - began
        finally:
            end(process, waits)

    def times(self):
        """The medians, as text: tree, direct, ours; taken in turns."""
        found = {name: [] for name in self.commands}
        for _ in range(RUNS):
            for name, seconds in found.items():
                with self.started(name, waits=False) as (_, last):
                    seconds.append(last)
        return [f"{statistics.median(seconds):.1f} s" for seconds in found.values()]

    def costs(self):
        """A row for tree and direct: what mpirun holds while the ranks wait."""
        for name in ("tree", "direct"):
            with self.started(name, waits=True) as (process, _):
                family = descendants(process.pid)
                mpirun = next(pid for pid in family if comm(pid) in ("mpirun", "prterun"))
                ssh = [pid for pid in descendants(mpirun) if comm(pid) == "ssh"]
                daemons = [pid for pid in family_of_lab() if comm(pid) in ("orted", "prted")]
                files = len(os.listdir(f"/proc/{mpirun}/fd"))
                memory = [mebibytes([mpirun]), mebibytes(ssh), mebibytes(daemons[:1])]
            yield [self.hosts, name, files, len(ssh), *memory]


def end(process, waits):
    """Ends a launch; mpirun ends what it has started."""
    if waits:
        for pid in descendants(process.pid):
            if comm(pid) in ("mpirun", "prterun"):
                os.kill(pid, signal.SIGTERM)
    try:
        process.wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def parents():
    """{process id: that of its parent} of all processes."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return found


def descendants(pid):
    """The processes that `pid` has started, and those that they have, in the order of their ids."""
    known, found = parents(), {pid}
    for child in sorted(known):
        chain = child
        while chain in known and chain not in found:
            chain = known[chain]
        if chain in found:
            found.add(child)
    return sorted(found - {pid})


def family_of_lab():
    return descendants(int((Path(os.environ["LAB"]) / "inside").read_text()))


def comm(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def mebibytes(pids):
    """The memory of the processes, each page shared among those that have it."""
    kilobytes = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return f"{kilobytes / 1024:.1f} MiB"


if __name__ == "__main__":
    sys.exit(figures.show(tables([int(word) for word in sys.argv[1:]] or HOSTS)))
