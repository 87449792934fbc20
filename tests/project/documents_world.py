"""A throw-away copy of the project, in which the blocks of one document are run in order."""

import atexit
import contextlib
import functools
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import documents_laptop
import documents_output
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # pytest has these; documents.py can be typed, too

from suite.needs import need  # noqa: E402

ENVIRONMENT = Path(sys.prefix)  # becomes the copy's .venv
WORLDS = ("here", "npu", "stub", "lab", "laptop")
_LIMIT = 300  # seconds for one block
_SLOW_LIMIT = 570
_FILE = re.compile(r"[\w./-]+\.(?:ckpt|conf|env|html|json|log|svg|txt|ya?ml)\b")
_KEPT = ("PATH", "LANG", "LC_ALL", "TERM", "USER", "LOGNAME", "SHELL", "TZ")  # of whoever runs the tests


def _kept():
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


def _temporary(prefix):
    """A folder that goes when this process ends."""
    base = tempfile.mkdtemp(prefix=prefix, dir="/tmp")
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    return Path(base)


@functools.cache
def _project():
    """The project as a user has it: its files, committed, its data, and an environment.  Made once, for all pages."""
    folder = _temporary("docs.project.") / "project"
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in names:
        source, target = ROOT / name, folder / name
        link = source.is_symlink() and not os.path.isabs(os.readlink(source))
        if name and (link or source.is_file()):  # not .venv, where that is a link to elsewhere
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=not link)  # with its time: make must not begin to install
    me = "-c user.name=me -c user.email=me@example.org"
    git = f"git init -q && git add -A && git {me} commit -qm copy && git repack -adq"
    subprocess.run(["bash", "-c", git], cwd=folder, env={**_kept(), "HOME": str(folder.parent)}, check=True)
    _add_data(folder / "data")
    venv = folder / ".venv"
    venv.mkdir()
    for name in ("bin", "lib", "lib64", "include", "pyvenv.cfg"):
        if (ENVIRONMENT / name).exists():
            (venv / name).symlink_to((ENVIRONMENT / name).resolve())
    for stamp in ENVIRONMENT.glob("has-*"):
        (venv / stamp.name).touch()
    return folder


def _add_data(folder):
    """The data sets; one of thousands of files, or of large ones, is a link to a copy that all pages share."""
    folder.mkdir()
    for data in (ROOT / "data").glob("*/"):
        files = list(data.rglob("*"))
        shared = len(files) >= 100 or sum(path.stat().st_size for path in files) >= 10 << 20
        copy = _temporary("docs.data.") / data.name if shared else folder / data.name
        shutil.copytree(data, copy, copy_function=shutil.copyfile)
        if shared:
            (folder / data.name).symlink_to(copy)


_FREE = []  # copies that are as they were made


def _copy():
    """A folder with a copy of the project in home/me: one that an earlier page has left, or a new one."""
    if _FREE:
        return _FREE.pop()
    base = _temporary("docs.")
    home = base / "home" / "me"
    home.mkdir(parents=True)
    subprocess.run(["cp", "-a", str(_project()), str(home)], check=True)
    return base


def _restore(base):
    """Takes away all that a page did.  That is quicker than another copy: a file system needs half a second for one."""
    keep = base / "home" / "me" / "project"
    for folder in (base, base / "home", base / "home" / "me"):
        for path in folder.iterdir():
            if path != keep and path not in keep.parents:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=_project(), capture_output=True, text=True, check=True
    ).stdout.strip()
    # Compiled files of the project stay; those of a page's own package would keep its folder.
    compiled = [f"--exclude=/{name}/**/__pycache__" for name in ("hccl_tools", "mindspore_launch", "tests", "tools")]
    for words in (["reset", "-q", "--hard", commit], ["clean", "-ffdxq", *compiled]):
        subprocess.run(["git", *words], cwd=keep, env=_kept(), check=True)
    subprocess.run(["cp", "-a", str(_project() / "data"), str(_project() / ".venv"), str(keep)], check=True)


class World:
    """A throw-away copy of the project in which one page's blocks are run, in order.

    For what is run there the home folder is /home/me and the project /home/me/project: what a user sees.
    """

    def __init__(self):
        self.base = str(_copy())
        self.home = Path(self.base, "home", "me")
        self.folder = self.home / "project"
        self.lab = None
        self.output = None  # of the run block before, if it was run
        self.unmade = {}  # a file that skipped blocks name: why they were skipped
        self.excuse = ""  # why the run block before was skipped, or may go wrong
        self.train = (self.folder / "tools" / "train.py").read_bytes()

    def _environment(self, world, do):
        env = _kept()
        programs = [str(self.folder / ".venv" / "bin")]
        env.update(HOME=str(self.home), LAUNCH_LOCKS=str(self.home / "locks"))
        env["DOCUMENTS_WORLD"] = self.base  # a mark by which its processes are found
        if world == "laptop":
            path = documents_laptop.path_without(ENVIRONMENT / "bin", env["PATH"])
            programs = documents_laptop.environment(self.home / "venv", self.folder)
            return {**env, "PATH": os.pathsep.join([programs, path])}
        documents_laptop.install(self.home / ".local" / "bin", self.folder / ".venv" / "bin" / "python", self.folder)
        programs.insert(0, str(self.home / ".local" / "bin"))
        if world != "here":
            out = self.home / "out"
            out.mkdir(exist_ok=True)
            stub = str(self.folder / "tests" / "fixtures" / "stub_mindspore")
            env.update(STUB_OUT=str(out), PYTHONPATH=stub, STUB_DO=do, STUB_SCHEDULER_EXIT="0")
            self._add_mnist()
        if world == "npu":
            programs.insert(0, str(self.folder / "tests" / "fixtures" / "bin"))
            env.update(HCCN_SIM=str(self._cards()), NPU_SIM=str(self._cards()))
        env["PATH"] = os.pathsep.join([*programs, env["PATH"]])
        return env

    def _add_mnist(self):
        """Who has NPUs has MNIST.  Every image is black: the launch reads the headers, and the stub trainer nothing."""
        for part, samples in (("train/train", 60_000), ("test/t10k", 10_000)):
            for kind, header in (
                ("images-idx3", struct.pack(">4I", 0x803, samples, 28, 28)),
                ("labels-idx1", struct.pack(">2I", 0x801, samples)),
            ):
                path = self.folder / "data" / "mnist" / f"{part}-{kind}-ubyte"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(header)
                os.truncate(path, len(header) + samples * (28 * 28 if kind == "images-idx3" else 1))

    def _cards(self):
        """The folder that describes the simulated NPUs: eight, with the demo's addresses."""
        cards = self.home / "cards"
        if not cards.exists():
            cards.mkdir()
            shutil.copyfile(self.folder / "configs" / "demo_hccn.conf", cards / "hccn.conf")
            (cards / "devices").write_text("8\n")
            (cards / "pod").write_text("none\n")
        return cards

    def write(self, block):
        """Writes the file of <!-- file NAME -->."""
        path = self.folder / block.word
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        if block.text.startswith("#!"):
            path.chmod(0o755)

    def play(self, block):
        """Does what the block's mark says; returns what is wrong, or None.  Skips the test as `run` does.

        A skipped block has not made its files.  Later blocks may go wrong without them.  So one that goes wrong is
        skipped, too, if it names a file that is not there and that a skipped block names, or shows as printed.
        """
        paths = (self.folder / name.removeprefix("/home/me/project/") for name in _FILE.findall(block.text))
        names = {os.path.normpath(path) for path in paths}
        if block.verb == "run":
            missing = [name for name in sorted(names) if name in self.unmade and not os.path.exists(name)]
            self.output, self.excuse = None, self.unmade[missing[0]] if missing else ""
        try:
            problem = self._do(block)
            if problem and self.excuse:
                pytest.skip(self.excuse)
            return problem
        except pytest.skip.Exception as skipped:
            self.output, self.excuse = (
                None,
                self.excuse or f"{skipped}: the block at {block.place} makes what this one reads",
            )
            raise
        finally:
            if self.output is None and block.verb.startswith(("run", "prints")):
                self.unmade.update(dict.fromkeys(names, self.excuse))

    def _do(self, block):
        if block.verb == "file":
            self.write(block)
        elif block.verb == "run":
            code, output = self.run(block)
            wanted = block.options["exit"]
            if code != wanted:
                return f"{block.place}: exit {code}, not {wanted}\n{block.text}---\n{output}"
            self.output = output  # of a command that failed it is not what the page should show
        elif block.verb.startswith("prints") and self.output is not None:
            return documents_output.difference(block, self.output)
        return None

    def run(self, block):
        """The exit code and all the output of a run block; skips the test where its world cannot be."""
        options = block.options
        if options["slow"] and os.environ.get("SLOW_TESTS") != "1":
            pytest.skip("takes long; SLOW_TESTS=1 runs it")
        need(*filter(None, options["need"].split(",")))
        env = self._environment(options["on"], options["do"])
        command = ["bash", "-e", "-c", block.text]
        if options["on"] == "lab":
            env["LAB"] = self._lab(env)
            command = ["bash", str(self.folder / "tests/lab/lab.sh"), "run", str(options["host"]), *command]
        with self._trainer(options["on"]):
            code, output = _run(command, self.folder, env, _SLOW_LIMIT if options["slow"] else _LIMIT)
        output = output.replace(self.base, "")
        return code, re.sub(rf"\b{re.escape(socket.gethostname())}\b", "myhost", output)

    @contextlib.contextmanager
    def _trainer(self, world):
        """In all worlds but `here` and `laptop` the stub is in the trainer's place."""
        if world in ("here", "laptop"):
            yield
            return
        trainer = self.folder / "tools" / "train.py"
        shutil.copyfile(self.folder / "tests" / "fixtures" / "stub_trainer.py", trainer)
        try:
            yield
        finally:
            trainer.write_bytes(self.train)

    def _lab(self, env):
        """The folder of a lab of two hosts, made when it is first needed."""
        if self.lab is None:
            up = [str(self.folder / "tests/lab/lab.sh"), "up", "2", str(os.getpid())]
            done = subprocess.run(["bash", *up], env=env, cwd=self.folder, capture_output=True, text=True, timeout=300)
            if done.returncode and not os.environ.get("LAB_REQUIRED"):
                pytest.skip(done.stderr.strip().removeprefix("lab.sh: "))
            assert done.returncode == 0, done.stderr
            self.lab = done.stdout.strip()
        return self.lab

    def close(self):
        """Ends what still runs; the next page may have the copy."""
        if self.lab:
            down = ["bash", str(self.folder / "tests/lab/lab.sh"), "down"]
            subprocess.run(down, env={**os.environ, "LAB": self.lab}, timeout=300, capture_output=True)
        mark = f"DOCUMENTS_WORLD={self.base}".encode()
        for process in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mark in Path("/proc", process, "environ").read_bytes().split(b"\0"):
                    os.kill(int(process), signal.SIGKILL)
        _restore(Path(self.base))
        _FREE.append(Path(self.base))


def _run(command, folder, env, limit):
    """Exit code and output of a command that is ended, with its group, after `limit` seconds."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=folder, env=env, start_new_session=True, **streams) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\n(ended after {limit} s)\n".encode()
    return process.returncode, output.decode(errors="replace")
