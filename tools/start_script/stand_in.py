"""Replaces python, mpirun and others while a start script runs (--zoo), and records what the script starts.

  stand_in.py FOLDER STDOUT LINE NAME PROGRAM WORD...

A training is recorded in FOLDER and ends at once with 0; everything else becomes PROGRAM, the real one. STDOUT is the
file to which the launcher itself prints, as device:inode. If the output would go to another file, that file gets LINE
instead.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from tools.launch.programs import command_words
from tools.rank import environment
from tools.rank.environment import Environment
from tools.supervise import proc

# With one of these a command is a rank of a job, or chooses its device, even if the script waits for it.
OF_RANKS = (b"RANK_ID", b"DEVICE_ID", b"RANK_SIZE", b"DEVICE_NUM", b"CUDA_VISIBLE_DEVICES", b"MS_ROLE")
# So begin the names of trainers: one of these is a training, too, even if the script waits for it.
TRAINERS = ("train", "pretrain", "finetune", "eval", "main", "run_")
TABLE_TOOLS = ("hccl_tools.py", "merge_hccl.py")
LAUNCHER = os.path.join(sys.path[0], "tools", "launch", "main.py")  # a script that has a launch of ours in it
NOT_FOUND = 127


def main(words: list[str]) -> int:
    """Notes the command, or becomes it."""
    folder, own_stdout, line, name, program, *command = words
    environ = environment.of_this_process()
    if name == "taskset":
        return become_taskset(program, command, environ)
    folders = environ.get(b"PATH", b"").split(b":")
    environ[b"PATH"] = b":".join(each for each in folders if each != os.fsencode(f"{folder}/bin"))
    if name == "tail" and any(word.startswith(("-f", "-F", "--follow")) for word in command):
        return 0  # the launch shows the log
    if name == "tail" or not (is_launch(name, command) or is_training(name, command, environ)):
        if program:
            os.execve(program, [program, *command], environ)
        sys.stderr.write(f"{name}: command not found\n")
        return NOT_FOUND
    note(folder, {"tool": name, "program": program, "words": command, "environ": as_text(environ)})
    tell(own_stdout, line)
    return 0


def is_launch(name: str, command: list[str]) -> bool:
    """Whether it is another launcher that starts something, and not only asked for its version."""
    return name in ("mpirun", "msrun") and command != [] and command[0] not in command_words.ASKS


def is_training(name: str, command: list[str], environ: Environment) -> bool:
    """Whether it trains: python FILE or python -m MODULE, which the script does not wait for or that is for a rank.

    Other commands are steps on the way, such as ``python -c``, and the script needs what they do.
    """
    kind, named = command_words.of_python(command)
    file = os.path.basename(named)
    if not name.startswith("python") or not kind or file in TABLE_TOOLS or os.path.realpath(named) == LAUNCHER:
        return False
    return is_behind() or (kind == "file" and (file.startswith(TRAINERS) or any(name in environ for name in OF_RANKS)))


def is_behind() -> bool:
    """Whether a shell without job control has started it with &: then Ctrl-C does not reach it, or stdin is /dev/null.

    A command in a pipe has the one, in a function or in parentheses the other.  The script's own stdin is a file.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return True
    try:
        return os.fstat(0).st_rdev == os.stat(os.devnull).st_rdev != 0
    except OSError:
        return False


def become_taskset(program: str, command: list[str], environ: Environment) -> int:
    """Becomes taskset, or its command alone where this machine has no such cores: it may have fewer than ranks."""
    at = next((at for at, word in enumerate(command) if not word.startswith("-")), len(command))
    options, rest = command[: at + 1], command[at + 1 :]
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    if program:
        trial = os.posix_spawn(program, [program, *options, "true"], environ, file_actions=quiet)
        if not rest or not os.waitpid(trial, 0)[1]:
            os.execve(program, [program, *command], environ)
    try:
        os.execvpe(rest[0], rest, environ)
    except (OSError, IndexError) as error:
        sys.stderr.write(f"taskset: {error}\n")
    return NOT_FOUND


def note(folder: str, found: dict[str, object]) -> None:
    """Writes what is known of the command; the names of the files are in the order of the starts."""
    began = int(proc.stat("self")[19])  # the ticks at which the process began, see proc(5)
    found["folder"] = os.getcwd()
    found["cores"] = sorted(os.sched_getaffinity(0))
    path = f"{folder}/{began:020}-{os.getpid():010}.json"
    with open(f"{path}.part", "w", encoding="ascii") as file:
        json.dump(found, file)
    os.rename(f"{path}.part", path)


def as_text(environ: Environment) -> dict[str, str]:
    """The variables as JSON can have them."""
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}


def tell(own_stdout: str, line: str) -> None:
    """If the script redirects the output to another file, writes a line to that file."""
    try:
        found = os.fstat(1)
        if stat.S_ISREG(found.st_mode) and f"{found.st_dev}:{found.st_ino}" != own_stdout:
            os.write(1, os.fsencode(f"{line}\n"))
    except OSError:
        return  # the script has closed it


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
