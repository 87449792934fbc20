"""Builds the page that --help prints: the script's header comment, its options and its exit codes."""

from __future__ import annotations

from hccl_tools.common.language import marked, tr
from tools.command import table
from tools.command.declaration import Declaration
from tools.command.line import Line

_USAGE = ("Usage:", "用法：")
_EXIT = marked(
    "0 if all ranks ended with 0; the code of the rank that failed first (128+N for signal N);\n"
    "2 usage; 78 the launch was refused; 124 a time limit was reached; 128+N if signal N stopped the launcher."
)

_FRONT = marked(
    """Starts any number of ranks of any program, in the environment where this command runs, and supervises them.

Usage: mslaunch [options] PROGRAM [arguments]
       mslaunch [options] CONFIG [-- trainer arguments]

PROGRAM is a Python file, -m and a module, an executable file, or a program on PATH. All words after it are its
arguments. CONFIG is a training config, *.yaml. What starts the ranks:
  this machine alone                        the launcher itself
  --hostfile, -H or --hosts                 Open MPI
  a rank table of several servers           the launcher itself: type the command on each of them
  an allocation of Slurm                    srun
  a pod of a job                            the launcher itself, in each pod
Use --engine to choose another way. Each has a page: mslaunch help TOPIC.

Example:
  mslaunch -n 8 train.py --lr 0.1
  mslaunch -n 2 --device_target CPU train.py --epochs 1
  mslaunch --devices "[4,8)" -m package.train --config any.yaml
  mslaunch -H node1:8,node2:8 train.py"""
)


class HelpAsked(Exception):
    """The user asked for help; text: the page."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def page(line: Line) -> str:
    """The page."""
    options = tr("Options (hyphens and underscores are the same):")
    if line.launches:
        options = tr("Options (hyphens and underscores are the same; SECONDS may be 90s, 10m, 1h30m or 1d):")
    parts = [*header(line.declaration), "", options]
    for name, option in line.table.items():
        value = "" if option.takes == "-" else f" {option.takes}"
        parts += [f"  {table.typed(name)}{value}", f"      {tr(option.meaning)}"]
    parts += ["", tr("Exit: {codes}", codes=tr(line.declaration.exit_codes or _EXIT))]
    return "\n".join(parts) + "\n"


def version() -> str:
    """What --version prints."""
    from hccl_tools.common import version as versions

    return f"mindspore-launch {versions.described()}\n"


def usage(declaration: Declaration) -> list[str]:
    """The lines that state what to type; none where the script's header cannot be read."""
    try:
        lines = header(declaration)
    except OSError:
        return []
    start = next((at for at, text in enumerate(lines) if text.startswith(_USAGE)), len(lines))
    end = next((at for at, text in enumerate(lines) if at > start and not text.startswith("  ")), start)
    return lines[start:end]


def header(declaration: Declaration) -> list[str]:
    """The lines of the comment at the beginning of the script, in the user's language."""
    if declaration.is_front():
        return tr(_FRONT).split("\n")
    from hccl_tools.common import script_help

    return script_help.page(declaration.script)
