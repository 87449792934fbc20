"""Variables that a host adds to its ranks' environment; those of the launch's own shell go to all ranks anyway."""

from __future__ import annotations

import hashlib
import os
import re

from hccl_tools.common.words import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.preflight.difference import Value
    from tools.preflight.question import Question

WATCHED = ("HCCL_", "ASCEND_", "MS_", "GLOG_", "OMP_")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SHOWN = 120  # characters of a value; a digest stands for the rest
_DIGITS = 8
_MOST = 200  # variables


def collect(question: Question) -> dict[str, Value]:
    """The watched variables that are set only here."""
    own = [name for name in watched(os.environ) if name not in question.set_here]
    return {f"variable:{name}": _shown(name, os.environ[name], question.salt) for name in own[:_MOST]}


def watched(environment: Mapping[str, str]) -> list[str]:
    """The names that matter to a job, sorted."""
    return sorted(name for name in environment if name.startswith(WATCHED) and _NAME.fullmatch(name))


def _shown(name: str, value: str, salt: str) -> str:
    """The value, as far as it may be known: a secret is compared by a digest that is of use in this check only."""
    from tools.diagnosis.bundle import names  # most hosts have no such variables

    found = hashlib.sha256(os.fsencode(salt + name + value)).hexdigest()[:_DIGITS]
    if names.is_secret(name):
        return f"<{found}>"
    return value if len(value) <= _SHOWN else f"{short(value, _SHOWN)} <{found}>"
