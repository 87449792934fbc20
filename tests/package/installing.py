"""The package, built and installed as a user gets it: for the tests of tests/package and for `make release`."""

import fcntl
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_USUAL, _ALL = ("3.9", "3.13"), ("3.9", "3.10", "3.11", "3.12", "3.13")
_VERSION = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
_NOBODY = 65534
# Prints the path of the wheel of pip that ensurepip has; Debian's Pythons have it elsewhere.
_BUNDLED = """
import ensurepip, glob, os
folders = os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"), "/usr/share/python-wheels"
print(next(path for folder in folders for path in glob.glob(f"{folder}/pip-*.whl")))
"""
# Reads what root can read, such as a Python below /root, and writes nothing.
_READS_ALL = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")


def run(*words, **options):
    """A program that ends by itself; nothing is typed into it."""
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 300, **options}
    return subprocess.run([*map(str, words)], check=False, **options)


def checked(*words, **options):
    """The same where another status than 0 fails the test."""
    ended = run(*words, **options)
    assert ended.returncode == 0, f"{words}: exit {ended.returncode}\n{ended.stdout[-2000:]}\n{ended.stderr[-4000:]}"
    return ended.stdout


def pip(*words):
    """This environment's pip, with its own settings of this machine."""
    return (sys.executable, "-m", "pip", "--disable-pip-version-check", *words)


def _has_index():
    """Whether pip can get what builds the package."""
    with tempfile.TemporaryDirectory() as folder:
        return run(*pip("download", "-q", "--no-deps", "--dest", folder, "hatchling")).returncode == 0


def build_wheel(tmp_path_factory):
    """The wheel of this checkout, built once for all workers of a session; skips the test where pip has no index.

    A build that fails where pip has an index is a failure.
    """
    ours = tmp_path_factory.getbasetemp()
    folder = (ours.parent if "PYTEST_XDIST_WORKER" in os.environ else ours) / "wheel_of_the_package"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (found := [*folder.glob("*.whl")]):
            ended = run(*pip("wheel", "-q", "--no-deps", "--wheel-dir", folder, ROOT), cwd=folder)
            if ended.returncode and not _has_index():
                pytest.skip("pip reaches no package index, for hatchling")
            assert ended.returncode == 0, ended.stderr[-4000:]
            found = [*folder.glob("*.whl")]
    (wheel,) = found
    return wheel


def versions():
    """The Pythons to test: those that PACKAGE_PYTHONS names, with SLOW_TESTS=1 all, else the oldest and the newest."""
    return tuple(os.environ.get("PACKAGE_PYTHONS", "").split()) or (_ALL if os.environ.get("SLOW_TESTS") else _USUAL)


@functools.cache
def python(version):
    """The path of the Python of this version, such as 3.9; empty where there is none with venv and ensurepip."""
    below = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    candidates = [f"python{version}", *sorted(glob.glob(f"{below}/versions/{version}.*/bin/python"))]
    for candidate in candidates:
        path = shutil.which(candidate)
        ended = run(path, "-c", _VERSION) if path else None
        if ended and ended.returncode == 0 and ended.stdout.strip() == version:
            return path
    return ""


class Installed:
    """A virtual environment with the wheel, which nobody may write to, and the folders of the one who uses it."""

    def __init__(self, folder, version):
        self.folder = Path(folder)
        self.bin = self.folder / "venv" / "bin"
        checked(python(version), "-m", "venv", "--without-pip", self.folder / "venv")

    def install(self, wheel):
        """Installs the wheel with what it needs, by the pip of its own Python: an older one may not run there."""
        bundled = checked(self.bin / "python", "-c", _BUNDLED).strip()
        checked(self.bin / "python", f"{bundled}/pip", "--disable-pip-version-check", "install", "-q", wheel)

    def close(self):
        """Takes every permission to write away."""
        checked("chmod", "-R", "a-w", self.folder / "venv")

    def files(self):
        """{path: (when it was written, its size)} of all files of the environment."""
        found = {}
        for folder, _, names in os.walk(self.folder / "venv"):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                facts = os.lstat(path)
                found[path] = (facts.st_mtime_ns, facts.st_size)
        return found

    def changed(self):
        """The paths of files that came, went, or are not as they were `before`."""
        files = self.files()
        return {path for path in {*files, *self.before} if files.get(path) != self.before.get(path)}

    def as_another(self):
        """The words that make a command one of another user; skips the test where nothing can."""
        if os.geteuid() != 0:
            pytest.skip("needs root: to become another user")
        if not shutil.which("setpriv"):
            pytest.skip("needs setpriv")
        words = ["setpriv", "--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups"]
        for more in ((), _READS_ALL):
            # setpriv starts a program with the rights of root; what a shell starts has those of the user.
            command = [*words, *more, "sh", "-c", 'exec "$0" -c "import mindspore_launch"', self.bin / "python"]
            if run(*command, cwd="/").returncode == 0:
                return [*words, *more]
        pytest.skip(f"another user cannot reach {self.bin / 'python'}, and this one may not pass its rights on")

    def job_folder(self, name):
        """An empty folder that the other user owns, whose path is open to all."""
        folder = self.folder / name
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
        return folder


def environment(home, *path, **variables):
    """A closed environment: its own home, and only these programs and the system's."""
    folders = os.pathsep.join([*map(str, path), "/usr/local/bin", "/usr/bin", "/bin"])
    return {"HOME": str(home), "PATH": folders, "LANG": "C.UTF-8", "LAUNCH_LOCKS": f"{home}/locks", **variables}


def open_folder():
    """A new folder that every user can reach: pytest's own are for one user."""
    folder = tempfile.mkdtemp(prefix="mindspore-launch-test-")
    os.chmod(folder, 0o755)
    return Path(folder)


def remove(folder):
    """Removes the folder, though nobody may write to what is in it."""
    checked("chmod", "-R", "u+w", folder)
    shutil.rmtree(folder)


def remedies(text):
    """The commands of mslaunch that messages tell to type, without the names before them."""
    lines = [re.sub(r"^mslaunch[\w ]*: ", "", line) for line in text.splitlines()]
    return [command for line in lines for command in re.findall(r"[:;,] (mslaunch [^;]*)", line)]
