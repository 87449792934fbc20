"""Packages that each start of Python compiles again, because nothing keeps their compiled files (.pyc)."""

from __future__ import annotations

import os

from hccl_tools.machine import bytecode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_MOST = 20  # of the program's modules


def collect(question: Question) -> dict[str, Value]:
    """Their names and folders; a package whose files the next start writes is none of them."""
    modules = dict.fromkeys([*bytecode.OF_RANKS, *list(question.modules)[:_MOST]])
    found = [each for each in bytecode.look(modules, os.environ) if each.stays]
    return {"uncompiled": [f"{each.name} ({each.folder})" for each in found]}
