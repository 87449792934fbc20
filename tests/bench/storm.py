#!/usr/bin/env python3
"""How often the start of a job opens files on the one file system that all hosts share: own imports, or import once.

The hosts are tests/lab/lab.sh's.  Each has the same folder mounted, read-only.  It is an environment of Python with a
package of as many modules as `import mindspore` loads: MindSpore itself does not fit into the memory of one machine so
many times.  strace counts on every host.  The times say nothing: all hosts share the cores of one machine.

Needs what the lab needs: root, or user namespaces, and sshd; and strace.  Not part of `make bench`: it takes minutes.

  make bench ONLY=storm
  python tests/bench/storm.py 2 64    other numbers of hosts
"""

import compileall
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

import figures
import lab_hosts
import opened

HOSTS = (64,)
RANKS = (2,)  # of a host
MODULES, FOLDERS = 1204, 150  # those of `import mindspore` of MindSpore 2.10
AT_ONCE = 8  # hosts; more do not fit into the memory of a small machine
SECONDS = 600  # of one host
OF_PAPER = 1000  # hosts
COLUMNS = ["hosts x ranks", "opened", "each rank", "looked up", "read", f"opened by {OF_PAPER:,} hosts"]
WAYS = {  # {name: (whether the folder has .pyc, words of the launch)}
    "own imports": (True, []),
    "own imports, without .pyc": (False, []),
    "import once": (True, ["--import_once=storm"]),
}


def tables(hosts=HOSTS):
    """Measures; yields a figures.Table."""
    probe = subprocess.run([lab_hosts.LAB, "probe"], capture_output=True, text=True, check=False)
    why = probe.stderr.strip() if probe.returncode else opened.why_not()
    if why:
        sys.exit(f"storm.py: {why}")
    rows = []
    for number in hosts:
        with tempfile.TemporaryDirectory() as name, lab_hosts.lab(number):
            world = World(Path(name), number)
            rows += [row for ranks in RANKS for row in world.rows(ranks)]
    note = (
        f"Test hosts on one machine, which share a read-only environment of Python with {MODULES:,} modules to import."
        " Counted are the system calls that name a file of that environment, of all processes of all hosts; one run of"
        " each. Looked up: stat(2) and its like."
    )
    yield figures.Table("Files of a shared file system at the start", COLUMNS, rows, note)


class World:
    """The shared folders, and the hosts that have them mounted."""

    def __init__(self, folder, hosts):
        self.folder, self.hosts = folder, hosts
        (folder / "program.py").write_text("import storm\n")
        for is_compiled in (True, False):
            tree = folder / f"compiled_{is_compiled}"
            venv.create(tree, symlinks=True)
            package(Path(sysconfig.get_path("purelib", vars={"base": str(tree)}), "storm"))
            if is_compiled:
                compileall.compile_dir(tree, quiet=2)
            for host in range(hosts):
                command = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
                subprocess.run([lab_hosts.LAB, "root", str(host), "sh", "-c", command, "sh", tree], check=True)

    def rows(self, ranks):
        """The rows of so many ranks on each host."""
        for name in WAYS:
            found = self.counted(name, ranks)
            row = [found.opened, found.opened / (self.hosts * ranks), found.looked, found.read]
            row.append(found.opened / self.hosts * OF_PAPER)
            yield [f"{self.hosts} x {ranks}: {name}", *(f"{number:,.0f}" for number in row)]

    def counted(self, name, ranks):
        """The opened.Calls of all hosts."""
        left = [str(host) for host in range(self.hosts)]
        total = opened.Calls(0, 0, 0, 0, 0)
        while left:
            wave, left = left[:AT_ONCE], left[AT_ONCE:]
            for host, process in [(host, self.started(name, ranks, host)) for host in wave]:
                said = process.communicate(timeout=SECONDS)[0]
                calls = opened.read(self.folder / f"calls_{host}")
                if process.returncode or calls is None:
                    sys.exit(f"storm.py: {name} on host {host}: exit {process.returncode}: {said[-2000:]}")
                total += calls
        return total

    def started(self, name, ranks, host):
        """The launch on a host."""
        is_compiled, words = WAYS[name]
        tree = str(self.folder / f"compiled_{is_compiled}")
        out = self.folder / f"out_{host}"
        out.mkdir(exist_ok=True)
        stub = lab_hosts.ROOT / "tests" / "fixtures" / "stub_mindspore"  # of MindSpore's scheduler, too
        own = {"PYTHON": f"{tree}/bin/python", "PYTHONPATH": str(stub), "STUB_OUT": str(out)}
        script = ["bash", str(lab_hosts.ROOT / "scripts" / "launch.sh"), "--device_target", "CPU", "-n", str(ranks)]
        options = ["--console", "none", "--no_watch", "--log_dir", str(self.folder / f"logs_{host}"), *words]
        counting = opened.before(str(self.folder / f"calls_{host}"), tree)
        return subprocess.Popen(
            [lab_hosts.LAB, "run", host, *counting, *script, *options, "program.py"],
            **{"cwd": self.folder, "env": {**os.environ, **own}, "text": True, "stdin": subprocess.DEVNULL},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT},
        )


def package(folder):
    """Writes the package; its import loads all modules."""
    names = [f"storm.part_{number % FOLDERS}.module_{number}" for number in range(MODULES - FOLDERS - 1)]
    for number in range(FOLDERS):
        (folder / f"part_{number}").mkdir(parents=True)
        (folder / f"part_{number}" / "__init__.py").write_text("")
    for name in names:
        path = folder.parent / (name.replace(".", "/") + ".py")
        path.write_text("".join(f"def function_{number}():\n    return {number}\n" for number in range(20)))
    (folder / "__init__.py").write_text("".join(f"import {name}\n" for name in names))


if __name__ == "__main__":
    sys.exit(figures.show(tables([int(word) for word in sys.argv[1:]] or HOSTS)))
