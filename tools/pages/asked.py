"""Asks many commands for their `--help`: one process imports their modules once, and forks for each of them.

A command by itself takes 0.1 s, most of it for imports, and the pages have 40 commands in two languages.

  python -m tools.pages.asked COMMAND...

prints {"scripts/x.sh": what it prints, ...} as JSON, without those that fail.  A COMMAND is a launch script or a Python
file in the current folder.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

from hccl_tools.common import language

_RECORDER = "#!/bin/sh\nprintf '%s\\0' \"$@\"\n"  # takes Python's place, and prints with what a script starts it


def main(commands: list[str]) -> int:
    """The command."""
    for module in ("tools.launch.launcher", *(name[:-3].replace("/", ".") for name in commands if name[-3:] == ".py")):
        with contextlib.suppress(ImportError, SystemExit):  # it lacks a package, and fails when it is asked
            importlib.import_module(module)
    language.speaks_chinese()  # reads the catalogue
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        recorder = Path(folder, "python")
        recorder.write_text(_RECORDER, encoding="utf-8")
        recorder.chmod(0o755)
        told = {command: _printed(_words(command, str(recorder))) for command in commands}
    json.dump({command: text for command, text in told.items() if text}, sys.stdout)
    return 0


def _words(command: str, recorder: str) -> list[str]:
    """The Python file that the command runs, and its arguments; none where a script fails."""
    if command.endswith(".py"):
        return [command, "--help"]
    env = {**os.environ, "PYTHON": recorder}
    done = subprocess.run(["bash", command, "--help"], env=env, stdout=subprocess.PIPE, text=True)
    return done.stdout.split("\0")[2:-1]  # after Python's options -E -s


def _printed(words: list[str]) -> str:
    """What the Python file prints with these arguments; nothing where it fails."""
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            os.dup2(file.fileno(), 1)
            os._exit(_run(words))
        if os.waitpid(child, 0)[1]:
            return ""
        file.seek(0)
        return file.read().decode()


def _run(words: list[str]) -> int:
    """Runs the file as Python does; returns the exit code."""
    sys.argv[:] = words
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        return 1 if end.code else 0
    except BaseException:
        return 1
    finally:
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
