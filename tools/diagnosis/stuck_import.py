"""Finds the module and the code position of the process that imports for all ranks (--import_once) when the job hangs.

The stacks go to imports.stack next to its log, after a line with the name of the module.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless, quote
from hccl_tools.common.words import clauses, one_line, short_path
from tools.diagnosis import stacks
from tools.supervise import proc
from tools.supervise.members import IMPORTS

_MODULE = "Import: "  # the first line of the file
_IN_KERNEL = "State: in the kernel\n"  # instead of stacks
_OURS = "forking/hook/sitecustomize.py"  # whose frames are not the module's; py-spy has only the end of a path
_MOST = 1 << 20  # bytes of the file that are read


def tell(descriptor: int, folder: str, pid: int, module: str) -> None:
    """Saves where this process is, and writes it to this descriptor; module: that it imports, or ""."""
    found = stacks.save(folder, IMPORTS, pid)
    if not found and proc.state(pid) == "D":
        found = _IN_KERNEL
    path = os.path.join(folder, f"{IMPORTS}.stack")
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(f"{_MODULE}{module}\n{found}")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
        place = [tr("its stacks are in {path}", path=short_path(path))] if stacks.main_thread(found) else []
        stream.write(clauses(of_folder(folder), *place) + "\n")


def of_folder(folder: str) -> str:
    """The sentence about what was saved next to the logs of an attempt; nothing if that is nothing."""
    try:
        with open(os.path.join(folder, f"{IMPORTS}.stack"), encoding="utf-8", errors="replace") as file:
            first, _, found = file.read(_MOST).partition("\n")
    except OSError:
        return ""
    if not first.startswith(_MODULE):
        return ""
    module = harmless(first[len(_MODULE) :])
    if not module:
        return tr("the job hung: the process that imports for all ranks was {where}", where=one_line(_where(found)))
    said = tr(
        "the job hung: the process that imports for all ranks was importing {module}, {where}",
        module=one_line(module),
        where=one_line(_where(found)),
    )
    if found != _IN_KERNEL:
        return said
    command = f"python -v -c {quote(f'import {module}')}"
    return clauses(said, tr("the last line that this command prints names the file: {command}", command=command))


def _where(found: str) -> str:
    if found == _IN_KERNEL:
        return tr("waiting in the kernel, as for a file on NFS that does not answer")
    lines = found.splitlines(keepends=True)
    last = next((number for number, line in enumerate(lines) if _OURS in line), len(lines))
    return stacks.place("".join(lines[:last]))
