"""TAB in real shells: the command line after it, as the words that mslaunch would get."""

import os
import pty
import select
import shlex
import subprocess
import sys
import time

import pytest
from suite.needs import need

from hccl_tools.common import project
from tools.front.tab import script

# mslaunch is a function that writes its words down; completion does not know that.
_RC = """\
PS1='ready> '
{read}
mslaunch() {{ printf '%s\\0' "$@" >{words}; echo D''ONE; }}
source {script}
"""
_READ = {
    "bash": "set -u; HISTFILE=; bind 'set bell-style none'",
    "zsh": "autoload -Uz compinit; compinit -u -D",  # it asks nothing about folders, and writes nothing
}


class Terminal:
    """A shell on a terminal of its own, in the folder."""

    def __init__(self, shell, folder):
        need(shell)
        self.shell, self.folder, self.words = shell, folder, folder.parent / "words"
        home = folder.parent / "home"
        home.mkdir()
        (home / "script").write_text(script.text(shell))
        rc = home / {"bash": "rc", "zsh": ".zshrc"}[shell]
        quoted = {"words": shlex.quote(str(self.words)), "script": shlex.quote(str(home / "script"))}
        rc.write_text(_RC.format(read=_READ[shell], **quoted))
        command = {"bash": ["bash", "--noprofile", "--rcfile", str(rc), "-i"], "zsh": ["zsh", "-d", "-i"]}[shell]
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "ZDOTDIR": str(home), "LC_ALL": "C.UTF-8"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, {**environment, "TERM": "dumb"})
        self._until("ready> ")

    def typed(self, line):
        """The words of mslaunch after the line, TAB and Enter."""
        self.words.unlink(missing_ok=True)
        os.write(self.terminal, f"{line}\t\r".encode())
        self._until("DONE")
        self._until("ready> ")
        words = self.words.read_bytes().decode().split("\0")[:-1]
        return [word.rstrip("/") for word in words]  # zsh takes away what it has put behind a folder

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)

    def _until(self, text):
        seen, end = "", time.monotonic() + 300
        while text not in seen:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            assert ready, f"never seen: {text}; seen: {seen}"
            seen += os.read(self.terminal, 1).decode(errors="replace")


@pytest.fixture(params=script.SHELLS)
def terminal(request, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    found = Terminal(request.param, folder)
    yield found
    found.close()


@pytest.mark.slow
def test_commands_options_and_values(terminal):
    assert terminal.typed("mslaunch diagn") == ["diagnose"]
    assert terminal.typed("mslaunch table bui") == ["table", "build"]
    assert terminal.typed("mslaunch --hang-t") == ["--hang-timeout"]
    assert terminal.typed("mslaunch --console ta") == ["--console", "table"]
    assert terminal.typed("mslaunch --console=ta") == ["--console=table"]
    assert terminal.typed("mslaunch watch --on") == ["watch", "--once"]
    assert terminal.typed("mslaunch ascend8p --keep_p") == ["ascend8p", "--keep_plogs"]


@pytest.mark.slow
def test_files_folders_programs_and_runs(terminal):
    folder = terminal.folder
    (folder / "train_me.py").touch()
    (folder / "train_me.txt").touch()
    (folder / "some folder").mkdir()
    (folder / "some file").touch()
    (folder / "logs" / "run 1").mkdir(parents=True)
    (folder / "logs" / "run 1" / "launch.json").touch()
    (folder / "logs" / "run 2").mkdir()
    assert terminal.typed("mslaunch -n 4 train_") == ["-n", "4", "train_me.py"]
    assert terminal.typed("mslaunch --log_dir so") == ["--log_dir", "some folder"]
    assert terminal.typed("mslaunch --log_dir=so") == ["--log_dir=some folder"]
    assert terminal.typed("mslaunch --rank_table some\\ fi") == ["--rank_table", "some file"]
    assert terminal.typed("mslaunch report lo") == ["report", "logs/run 1"]
    assert terminal.typed("mslaunch report logs/run\\ ") == ["report", "logs/run 1"]
    if terminal.shell == "bash":  # zsh leaves the quote open, because a folder may go on
        assert terminal.typed("mslaunch report 'logs/ru") == ["report", "logs/run 1"]
    assert terminal.typed("mslaunch train_me.py --data so") == ["train_me.py", "--data", "some f"]
    assert terminal.typed("mslaunch train_me.py --consol") == ["train_me.py", "--consol"]


HOSTILE = ["$(touch gone).py", "`touch gone`.py", "a;touch gone;.py", "b 'c\" d.py", "e*&|.py"]


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_of_a_file_is_never_carried_out(terminal, name):
    folder = terminal.folder
    (folder / "only").mkdir()
    (folder / "only" / name).touch()
    (folder / "logs" / name).mkdir(parents=True)
    (folder / "logs" / name / "launch.json").touch()
    assert terminal.typed("mslaunch only/") == [f"only/{name}"]
    assert terminal.typed("mslaunch --rank_table=only/") == [f"--rank_table=only/{name}"]
    assert terminal.typed("mslaunch watch logs/") == ["watch", f"logs/{name}"]
    assert terminal.typed("mslaunch --log_dir logs/") == ["--log_dir", f"logs/{name}"]
    assert sorted(os.listdir(folder)) == ["logs", "only"]


def test_what_is_in_the_line_is_not_carried_out(terminal):
    typed = terminal.typed('mslaunch --log_dir "$(touch gone)" --quie')
    assert typed == ["--log_dir", "", "--quiet"]  # the shell itself carries it out at Enter
    (terminal.folder / "gone").unlink()
    os.write(terminal.terminal, b'mslaunch --log_dir "$(touch gone)" --quie\t\x15mslaunch x\r')
    terminal._until("DONE")
    assert not (terminal.folder / "gone").exists()


def test_the_command_prints_the_script(tmp_path):
    for shell in script.SHELLS:
        ended = subprocess.run(
            [sys.executable, "-m", "mindspore_launch", "--completion", shell],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": project.ROOT},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", script.text(shell))
