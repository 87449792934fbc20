"""Why ranks cannot be forks: KIND MODULE WHAT, as the parent and the agents report it, and text for people."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless
from tools.launch.programs import import_once


def text(told: str) -> str:
    """The text for people."""
    kind, _, rest = told.partition(" ")
    module, _, what = map(harmless, rest.partition(" "))
    if kind == "threads":
        return tr(
            "the import of {module} starts threads ({number}), which forks do not have", module=module, number=what
        )
    if kind == "children":
        return tr("the import of {module} starts processes ({number})", module=module, number=what)
    if kind == "open":
        return tr("the import of {module} opens {what}, which forks would share", module=module, what=what)
    if kind == "variable":
        return tr("the import of {module} reads {name}, which each rank has for itself", module=module, name=what)
    return (
        _of_ranks(kind, what)
        or _of_agents(kind, what)
        or tr("the import of {module} failed: {reason}", module=module, reason=what)
    )


def _of_ranks(kind: str, what: str) -> str:
    """The same of what has nothing to do with a module; empty: it is of another kind."""
    if kind == "differs":
        return tr("{name} is read at the import, and differs from rank to rank", name=what)
    if kind == "names":
        return tr("with {name}, MindSpore names its log after the rank at the import", name=what)
    if kind == "folder":
        folder, _, reason = what.partition("\t")
        return tr("{folder} cannot be written: {reason}", folder=folder, reason=tr(reason))
    if kind == "cores":
        return import_once.other_cores()
    if kind == "memory":
        return import_once.other_memory()
    if kind == "adopts":
        return tr("forks would not be our children: this kernel or this Python lacks prctl(2)")
    return ""


def _of_agents(kind: str, what: str) -> str:
    """The same of the agents of one host."""
    if kind == "processes":
        return tr("the engine has isolated the ranks of one host from one another")
    if kind == "socket":
        return tr("the agents of the host cannot communicate with each other: {reason}", reason=tr(what))
    if kind == "start":
        return tr("the process that imports for all ranks cannot be started: {reason}", reason=tr(what))
    if kind == "late":
        return tr("after {seconds} s not all ranks of the host had connected", seconds=what)
    return ""
