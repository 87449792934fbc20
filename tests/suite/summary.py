"""Prints the end of a test run: what was tested and with what, what was skipped and what it needs, and the totals."""

import importlib.metadata
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress

# {what a skipped test needs: its packages in Debian and Ubuntu, and in openEuler}
PACKAGES = {
    "cc": ("gcc", "gcc"),
    "chromedriver": ("chromium-driver", "chromedriver"),
    "chromium": ("chromium", "chromium"),
    "chrt": ("util-linux", "util-linux"),
    "ip": ("iproute2", "iproute"),
    "kubectl": ("kubernetes-client", "kubernetes-client"),
    "localedef": ("libc-bin", "glibc-common"),
    "mpirun": ("openmpi-bin", "openmpi"),
    "nsenter": ("util-linux", "util-linux"),
    "script": ("bsdutils", "util-linux"),
    "setpriv": ("util-linux", "util-linux"),
    "setsid": ("util-linux", "util-linux"),
    "slurmctld": ("slurm-wlm", "slurm-slurmctld"),
    "slurmd": ("slurm-wlm", "slurm-slurmd"),
    "srun": ("slurm-wlm", "slurm"),
    "ssh": ("openssh-client", "openssh-clients"),
    "sshd": ("openssh-server", "openssh-server"),
    "taskset": ("util-linux", "util-linux"),
    "tc": ("iproute2", "iproute-tc"),
    "unshare": ("util-linux", "util-linux"),
}
# What an extra of pyproject.toml installs.
EXTRAS = {
    "MindSpore": "train",
    "NumPy": "train",
    "Pillow": "train",
    "axe-core-python": "browser",
    "check-jsonschema": "lint",
    "hadolint": "lint",
    "kubernetes-validate": "lint",
    "matplotlib": "train",
    "mkdocs-material": "docs",
    "jieba": "docs",
    "hyperscan": "test",
    "hypothesis": "test",
    "lmdb": "lmdb",
    "mpirun": "mpi",
    "rich": "test",
    "scikit-learn": "train",
    "selenium": "browser",
}
_ROOM = re.compile(r"tests/(\w+)/")
_NEEDS = re.compile(r"needs ([\w.-]+)(?:$|: )")


def reasons(reports):
    """How often each reason was given, the most frequent first; "needs NAME: text" counts as "needs NAME"."""
    said = (re.sub(r"^Skipped: ", "", report.longrepr[2]) for report in reports)
    return Counter(found[0].rstrip(": ") if (found := _NEEDS.match(reason)) else reason for reason in said)


def commands(names):
    """The lines with the commands that install what is missing; names without a package have none."""
    lines = []
    packed = sorted(set(names) & set(PACKAGES))
    if packed:
        debian, openeuler = (" ".join(sorted({PACKAGES[name][system] for name in packed})) for system in (0, 1))
        lines += [f"Debian, Ubuntu:  sudo apt-get install {debian}", f"openEuler:       sudo dnf install {openeuler}"]
    extras = ",".join(sorted({EXTRAS[name] for name in names if name in EXTRAS}))
    if extras:
        lines.append(f"without root:    {_python()} -m pip install '.[{extras}]'")
    others = ", ".join(name for name in packed if name not in EXTRAS)
    if others:
        lines.append(f"without root:    {others}: run the tests in a container in which you are root")
    return lines


def _python():
    """The Python with lasting packages: this one, unless tests/bare.sh or tests/versions.sh made it for one run."""
    return ".venv/bin/python" if sys.prefix.startswith(tempfile.gettempdir()) else sys.executable


def of_kind(reporter, kind):
    """The reports with this outcome; a block of a page is a subtest, which pytest itself does not count."""
    if kind == "skipped":
        return [*reporter.stats.get("skipped", []), *(one for one in reporter.stats.get("", []) if one.skipped)]
    return reporter.stats.get(kind, [])


def skipped(reporter):
    """Prints what was skipped, and the commands that install what is missing."""
    found = reasons(of_kind(reporter, "skipped"))
    if not found:
        return
    reporter.section("what was skipped")
    for reason, number in found.most_common():
        reporter.write_line(f"{number:4}  {reason}")
    for line in commands({match[1] for reason in found if (match := _NEEDS.match(reason))}):
        reporter.write_line(line)


def asked(reporter, mpirun):
    """Prints how many tests of each room have passed, and which real programs were there for them.

    mpirun: a sentence about the mpirun of the tests.
    """
    passed = of_kind(reporter, "passed")
    if not passed:
        return
    reporter.section("what was asked")
    rooms = Counter(found[1] if (found := _ROOM.match(report.nodeid)) else "the whole" for report in passed)
    reporter.write_line("tests passed: " + ", ".join(f"{number:,} of {room}" for room, number in rooms.most_common()))
    reporter.write_line("with: " + ", ".join([*_programs(), mpirun]))
    reporter.write_line("other versions, and a machine without engines, are jobs of .github/workflows/tests.yml")


def _programs():
    """The names and versions of the real programs that tests use."""
    yield f"Python {platform.python_version()}"
    with suppress(importlib.metadata.PackageNotFoundError):
        yield f"MindSpore {importlib.metadata.version('mindspore')}"
    if path := shutil.which("slurmd"):
        said = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=60, check=False).stdout.split()
        yield " ".join(["Slurm", *said[1:2]])
    yield from (name for name in ("sshd", "ip", "chromium", "busybox", "zsh") if shutil.which(name))


def last_line(reporter):
    """Prints the totals of all tests; a file that cannot be read counts as a failure."""
    kinds = ("passed", "failed", "error", "skipped")
    passed, failed, errors, left_out = (len(of_kind(reporter, kind)) for kind in kinds)
    if passed + failed + errors + left_out:
        reporter.write_line(f"{passed} passed, {failed + errors} failed, {left_out} skipped")
