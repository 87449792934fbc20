"""A recording of what a new user types in README.md and sees: docs/recordings, one text for each Python.

  python tests/project/first_minutes.py --update   makes the recordings anew, with each Python of VERSIONS that is here

It really does what README.md says: a new environment, `pip install .`, and the page's blocks in an empty folder.
Exit: 0 made, 1 no Python of VERSIONS is here or pip reaches no index, 2 usage error.
"""

import glob
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import documents
import documents_output
from documents_world import ROOT, World

VERSIONS = ("3.9", "3.13")  # the oldest and the newest
FOLDER = ROOT / "docs" / "recordings"
_INSTALL = re.compile(r"<!-- not run: installs packages.*?-->\n```bash\n(.*?)```", re.DOTALL)
_LIMIT = 300  # seconds for one command
_CARETS = re.compile(r"(?m)^[ \t]*[~^]+\n")  # Python 3.11 and later point at a part of a traceback's line
_ROW = re.compile(r"(rank_\d+\.log):\d+")


class CannotRecord(Exception):
    """There is no such Python, or pip reaches no index."""


def path(version):
    """The recording's file."""
    return FOLDER / f"first_minutes_python{version}.txt"


def python(version):
    """The program of a Python of this version, on PATH or below PYENV_ROOT.  Raises CannotRecord."""
    below = glob.glob(os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions/*/bin"))
    for folder in [*sorted(below), *os.get_exec_path()]:
        program = os.path.join(folder, f"python{version}")
        asked = ["-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        if os.access(program, os.X_OK) and _run([program, *asked], "/", os.environ)[1].strip() == version:
            return program
    raise CannotRecord(f"no Python {version} on PATH or below PYENV_ROOT")


def commands(page="README.md"):
    """(what is typed, its exit code, the block or None) of the page: how to install it, then its blocks of a laptop."""
    text = documents.read(page)
    for line in _INSTALL.search(text)[1].splitlines():
        yield line.partition("    #")[0], 0, None
    for block in documents.blocks(page, text):
        if block.verb == "file":
            yield block.text, 0, block
        elif block.verb == "run" and block.options["on"] == "laptop":
            yield block.text, block.options["exit"], block


class Session:
    """A new user of one Python: types what README.md says."""

    def __init__(self, world, version):
        self.world, self.python = world, python(version)
        self.folder = world.home / "first"
        self.lines = []  # of the recording
        self.outputs = {}  # {line of a block in README.md: what it printed}
        self.wrong = []  # commands with another exit code
        bin_folder = world.home / "venv" / "bin"
        kept = {name: os.environ[name] for name in os.environ if name.lower().endswith("_proxy") or name[:4] == "PIP_"}
        self.env = {
            **kept,
            "HOME": str(world.home),
            "LANG": "C.UTF-8",
            "LAUNCH_LOCKS": str(world.home / "locks"),
            "DOCUMENTS_WORLD": world.base,
            "PATH": os.pathsep.join([str(bin_folder), os.path.dirname(self.python), "/usr/bin", "/bin"]),
        }

    def play(self):
        """Types everything.  Raises CannotRecord."""
        where = self.world.folder
        for typed, code, block in commands():
            if block is None:
                self._install(typed, where)
                continue
            if where != self.folder:
                where = self.folder
                where.mkdir()
                self._show("mkdir ~/first && cd ~/first", "")
            if block.verb == "file":
                (where / block.word).write_text(block.text, encoding="utf-8")
                self._show(f"cat {block.word}", block.text)
                continue
            self._type(typed, code, block.line)

    def _type(self, typed, code, number):
        """Types the lines of the block at a line of the page; the last one must end with `code`, the others with 0."""
        ends, output = [], ""
        for line in typed.splitlines():
            status, printed = _run(["bash", "-c", line], self.folder, self.env)
            self._show(line, self._plain(printed))
            ends.append(status)
            output += printed
        if ends[-1] != code or any(ends[:-1]):
            self.wrong.append(f"{typed.strip()}: exit codes {ends}, the last one must be {code}\n{output}")
        self.outputs[number] = self._plain(output)

    def _install(self, typed, where):
        line = typed.replace("python -m venv", f"{self.python} -m venv", 1)
        status, printed = _run(["bash", "-c", line], where, self.env)
        if status:
            self._ask_index()
            self.wrong.append(f"{typed}: exit code {status}\n{printed}")
        done = re.findall(r"(?m)^Successfully installed .*?(mindspore-launch-\S+)", printed)
        self._show(typed, f"...\nSuccessfully installed {done[0]} ...\n" if done else "")

    def _ask_index(self):
        """Raises CannotRecord where pip cannot get what builds the package.  Only a failure needs the answer."""
        asked = ["-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps", "-d", str(self.world.home)]
        if _run([self.python, *asked, "hatchling"], self.world.home, self.env)[0]:
            raise CannotRecord("pip reaches no package index")

    def _show(self, typed, printed):
        self.lines += [f"$ {typed}", *printed.splitlines()]

    def _plain(self, printed):
        printed = printed.replace(self.world.base, "")
        return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "myhost", printed)

    def text(self):
        """The recording."""
        return "\n".join(self.lines) + "\n"


def unlike_page(session, page="README.md"):
    """Where README.md shows something else than what was printed, as text, or None."""
    before = None
    for block in documents.blocks(page, documents.read(page)):
        if block.verb == "prints" and before is not None and before.line in session.outputs:
            printed = _CARETS.sub("", session.outputs[before.line]).replace("/home/me/first", "/home/me/project")
            shown = type(block)(**{**vars(block), "text": _ROW.sub(r"\1:N", block.text)})
            difference = documents_output.difference(shown, _ROW.sub(r"\1:N", printed))
            if difference:
                return difference
        before = block
    return None


def like(recording, text):
    """Whether two recordings differ in times and other things of a run only."""
    versions = re.compile(r"(mindspore-launch)-\S+")
    one, other = (documents_output.plain(versions.sub(r"\1", each)) for each in (recording, text))
    return one == other


def _run(command, folder, env):
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_LIMIT,
    )
    return done.returncode, done.stdout.decode(errors="replace")


def record(version):
    """A session that has played.  Raises CannotRecord."""
    with closing(World()) as world:
        shutil.rmtree(Path(world.folder, ".venv"))
        session = Session(world, version)
        session.play()
        return session


def main(words):
    if words != ["--update"]:
        print(__doc__, file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    made = 0
    for version in VERSIONS:
        try:
            session = record(version)
        except CannotRecord as error:
            print(f"{path(version).name}: left as it is: {error}")
            continue
        print(*session.wrong, sep="\n", end="")
        if not path(version).exists() or not like(path(version).read_text(encoding="utf-8"), session.text()):
            path(version).write_text(session.text(), encoding="utf-8")
            print(f"{path(version).name}: updated")
        made += not session.wrong
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
