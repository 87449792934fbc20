"""Variables that a module reads when it is imported, so that ranks which import once share one value of each.

They were traced in MindSpore 2.10 and NumPy 1.26: calls of getenv(3), and reads of os.environ.  MindSpore does not read
MS_ROLE, MS_NODE_ID, MS_SCHED_*, RANK_TABLE_FILE, PMIX_* and SLURM_* at that time, and RANK_ID only for a log of its
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_THREADS = ("OMP_", "GOMP_", "GOTO", "OPENBLAS_")  # of the libraries that compute
# From these, mindspore.communication.management sets RANK_ID, DEVICE_ID, RANK_SIZE and its own device, in one
# function.  No native code reads them at the import.
OF_MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE")
# module -> the beginnings of names; one that is whole ends with "="
TABLE: dict[str, tuple[str, ...]] = {
    "mindspore": (
        *("DEVICE_ID=", "GLOG_", "GOOGLE_", "VLOG_v=", "logger_", "MS_SUBMODULE_LOG_v=", "MS_SIMULATION_LEVEL="),
        *("MS_DEV_LAUNCH_BLOCKING=", "MS_DEV_DISABLE_AUTO_H2D=", "MS_CACHE_", "MS_AUTO_DYNAMIC_SHAPE_ENABLE="),
        *("ACC_", "CUDA_HOME=", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=", *_THREADS),
        *(f"{name}=" for name in OF_MPI),
    ),
    "numpy": (*_THREADS, "NPY_", "GFORTRAN_", "NUMPY_"),
}
OF_PYTHON = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG")  # read at the start of every process
TAKEN_ANEW = ("DEVICE_ID", *OF_MPI)  # each fork tells MindSpore its own: see hook/forked_rank.py
_SET = re.compile(rb"(?:environb?\s*\[\s*|putenv\s*\(\s*|setdefault\s*\(\s*)b?[\"'](\w+)[\"']\s*(?:\]\s*=(?!=)|,)")


def beginnings(modules: Iterable[str]) -> tuple[str, ...]:
    """The beginnings of the names that these modules read; MindSpore imports NumPy."""
    roots = {module.partition(".")[0] for module in modules}
    if "mindspore" in roots:
        roots.add("numpy")
    return tuple(dict.fromkeys(begin for root in sorted(roots) for begin in TABLE.get(root, ())))


def is_read(name: str, begins: tuple[str, ...]) -> bool:
    """Whether a variable of this name is one of those."""
    return f"{name}=".startswith(begins)


def set_in(text: bytes, begins: tuple[str, ...]) -> str:
    """The first such variable that this source sets by itself; empty: none."""
    names = (match[1].decode() for match in _SET.finditer(text))
    return next((name for name in names if is_read(name, begins)), "")


def differing(owns: Sequence[Mapping[bytes, bytes]], begins: tuple[str, ...]) -> str:
    """The first such variable that differs between ranks, and that a fork cannot set again; empty: none.

    owns: what each rank has besides the job's part.
    """
    for name in sorted({name for own in owns for name in own}):
        text = name.decode("utf-8", "replace")
        if is_read(text, (*begins, *OF_PYTHON)) and text not in TAKEN_ANEW and len({own.get(name) for own in owns}) > 1:
            return text
    return ""


def names_log(environment: Mapping[bytes, bytes], modules: Iterable[str]) -> str:
    """The variable with which MindSpore makes a file for its log at the import, named by the rank; empty: none is set.

    Then its native code reads RANK_ID, which the hook cannot see.
    """
    wanted = any(module.partition(".")[0] == "mindspore" for module in modules)
    return "GLOG_logtostderr=0" if wanted and environment.get(b"GLOG_logtostderr") == b"0" else ""
