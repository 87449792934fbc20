"""The folder of a round, its streams, and how one launch is started in it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.chaos import processes, settings
from tests.chaos.launches import Launch
from tests.chaos.settings import Setting

ROOT = Path(__file__).resolve().parents[2]
OURS = ("RANK_", "DEVICE_", "MS_", "LAUNCH_", "STUB_", "CHAOS_", "PYTHON", "BASH", "GREP_", "OMPI_", "SLURM")


@dataclass
class World:
    """A folder with what launches need, and no variable that the person who runs this may have set."""

    folder: Path
    bash: str
    project: Path = ROOT

    def make(self) -> None:
        """Makes the files."""
        self.folder.mkdir(parents=True)
        (self.folder / "config.yaml").write_text("system:\n  distribute: True\n")
        addresses = "".join(f"address_{number}=10.1.1.1{number}\n" for number in range(8))
        (self.folder / "hccn.conf").write_text(addresses)
        for name in ("data", "locks", "tables"):
            (self.folder / name).mkdir()
        for count in (2, 3):
            (self.folder / "tables" / f"{count}.json").write_text(json.dumps(_table(count)))
        settings.prepare(self.folder)

    def open_to_all(self) -> None:
        """Another user may write everywhere."""
        subprocess.run(["chmod", "-R", "a+rwX", str(self.folder)], check=True)

    def environment(self, launch: Launch, out: Path, mark: str) -> dict[str, str]:
        """The environment of a launch, before the setting's odd variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        # Python before 3.14 leaves half a file in __pycache__ at a limit of files' sizes, and so spoils the project
        python = {
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT / "tests/fixtures/stub_mindspore"),
        }
        bash = {"PATH": f"{Path(self.bash).parent}:{os.environ['PATH']}"} if "/" in self.bash else {}
        locks = {"LAUNCH_LOCKS": str(self.folder / "locks")}
        ranks = {"CHAOS_DO": launch.do(), "CHAOS_OUT": str(out), "STUB_OUT": str(out), processes.MARK: mark}
        cluster = {"STUB_SCHEDULER_EXIT": "0"} if launch.script == "run_cluster.sh" else {}
        imports = {"CHAOS_IMPORT": launch.imports} if launch.imports else {}
        return {**kept, **python, **bash, **locks, **ranks, **cluster, **imports}

    def resolved(self, setting: Setting, environment: dict[str, str]) -> Setting:
        """The setting with the paths of this folder."""
        variables = dict(setting.variables)
        if "PATH" in variables:
            variables["PATH"] = f"{self.folder / variables['PATH']}:{environment['PATH']}"
        for name in ("BASH_ENV", "ENV"):
            if name in variables:
                variables[name] = str(self.folder / variables[name])
        if "PYTHONPATH" in variables:
            variables["PYTHONPATH"] += ":" + environment["PYTHONPATH"]
        return replace(setting, variables=variables)

    def held_locks(self) -> list[str]:
        """The files in the folder of the locks that somebody holds."""
        held = []
        for path in (self.folder / "locks").rglob("*"):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(str(path))
            finally:
                os.close(descriptor)
        return held


def _table(count: int) -> dict[str, object]:
    devices = [{"device_id": str(n), "device_ip": f"10.78.1.{n + 1}", "rank_id": str(n)} for n in range(count)]
    server = {"server_id": "127.0.0.1", "device": devices}
    return {"version": "1.0", "server_count": "1", "server_list": [server], "status": "completed"}


@dataclass
class Started:
    """A launch that was started, and what it has printed so far."""

    process: subprocess.Popen[bytes]
    out: Path
    mark: str
    command: str
    since: float = field(default_factory=time.monotonic)
    terminal: int = -1  # our end of its terminal
    slave: int = -1  # its end; kept open, because the end of the last one ends the terminal
    readers: list[threading.Thread] = field(default_factory=list)

    def printed(self, name: str) -> str:
        """What is on its stdout or stderr; the first 4,000,000 bytes."""
        try:
            with open(self.out / name, "rb") as file:
                return file.read(4_000_000).decode(errors="replace").replace("\r\n", "\n")
        except OSError:
            return ""

    def hang_up(self) -> bool:
        """The terminal goes away."""
        if self.terminal < 0:
            return False
        os.close(self.terminal)
        self.terminal = -1
        return True

    def finish(self) -> None:
        """Waits until everything it has printed is read."""
        if self.slave >= 0:
            os.close(self.slave)
        for reader in self.readers:
            reader.join(3)
        self.hang_up()


def start(world: World, launch: Launch, setting: Setting, name: str, mark: str) -> Started:
    """Starts the launch."""
    out = world.folder / name
    out.mkdir()
    if setting.words[:1] == ["setpriv"]:
        world.open_to_all()
    environment = world.environment(launch, out, mark)
    setting = world.resolved(setting, environment)
    script = str(world.project / "scripts" / launch.script)
    words = [script, *launch.words(str(ROOT / "tests/chaos/rank.py"))]
    files, lines, readers, terminal, slave = {}, [], [], -1, -1
    if launch.stdout == "pty":
        terminal, slave = pty.openpty()
        lines.append(f"exec <{os.ttyname(slave)} >{os.ttyname(slave)} 2>&1")
        readers.append(_reader(os.dup(terminal), out / "stderr", 0))
    for stream in ("stdout", "stderr"):
        if launch.stdout != "pty":
            files[stream], reader = _stream(getattr(launch, stream), stream, out, lines)
            readers += [reader] if reader else []
    setting.before = [*lines, *setting.before]
    command = settings.command(setting, world.bash, words)
    process = subprocess.Popen(
        command,
        cwd=world.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=files.get("stdout", subprocess.DEVNULL),
        stderr=files.get("stderr", subprocess.DEVNULL),
        start_new_session=True,
    )
    for descriptor in files.values():
        os.close(descriptor)
    shown = settings.shown(setting, world.bash, words)
    return Started(
        process,
        out,
        mark,
        f"CHAOS_DO={launch.do()!r} CHAOS_IMPORT={launch.imports!r} {shown}",
        terminal=terminal,
        slave=slave,
        readers=readers,
    )


def _stream(kind: str, name: str, out: Path, lines: list[str]) -> tuple[int, threading.Thread | None]:
    """The file for the new process, and who reads it."""
    if kind == "file":
        return os.open(out / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666), None
    if kind in ("full", "closed"):
        if kind == "closed":
            lines.append("exec >&-" if name == "stdout" else "exec 2>&-")
        return os.open("/dev/full" if kind == "full" else "/dev/null", os.O_WRONLY), None
    source, sink = os.pipe()
    if kind == "gone":
        os.close(source)
        return sink, None
    return sink, _reader(source, out / name, 1.5 if kind == "stalled" else 0)


def _reader(source: int, path: Path, pause: float) -> threading.Thread:
    """Copies what comes from `source` to the file, from `pause` seconds on."""

    def copy() -> None:
        time.sleep(pause)
        with open(path, "wb", buffering=0) as file:
            try:
                while block := os.read(source, 65536):
                    file.write(block)
            except OSError:  # the end of a terminal
                pass
        os.close(source)

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


def default_signals() -> None:
    """What starts us with & or nohup leaves signals ignored, and the launches would rightly ignore them, too."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
