"""Variables that a module reads when it is imported, so that ranks which import once have one value of them.

They were traced in MindSpore 2.10 and NumPy 1.26: calls of getenv(3), and reads of os.environ.  MindSpore does not read
MS_ROLE, MS_NODE_ID, MS_SCHED_*, RANK_ID and RANK_TABLE_FILE then.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_THREADS = ("OMP_", "GOMP_", "GOTO", "OPENBLAS_")  # of the libraries that compute
# module -> the beginnings of names; one that is whole ends with "="
TABLE: dict[str, tuple[str, ...]] = {
    "mindspore": (
        *("DEVICE_ID=", "GLOG_", "GOOGLE_", "VLOG_v=", "logger_", "MS_SUBMODULE_LOG_v=", "MS_SIMULATION_LEVEL="),
        *("MS_DEV_LAUNCH_BLOCKING=", "MS_DEV_DISABLE_AUTO_H2D=", "MS_CACHE_", "MS_AUTO_DYNAMIC_SHAPE_ENABLE="),
        *("ACC_", "CUDA_HOME=", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=", "OMPI_COMM_WORLD_", *_THREADS),
    ),
    "numpy": (*_THREADS, "NPY_", "GFORTRAN_", "NUMPY_"),
}
OF_PYTHON = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG")  # read at the start of every process
TAKEN_ANEW = ("DEVICE_ID",)  # each fork tells MindSpore its own: see hook/sitecustomize.py
_SET = re.compile(rb"(?:environb?\s*\[\s*|putenv\s*\(\s*|setdefault\s*\(\s*)b?[\"'](\w+)[\"']\s*(?:\]\s*=(?!=)|,)")


def beginnings(modules: Iterable[str]) -> tuple[str, ...]:
    """Of the names that these modules read; MindSpore imports NumPy."""
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
    """The first such variable that is not the same for all ranks, and that a fork cannot take anew; empty: none.

    owns: what each rank has besides the job's part.
    """
    for name in sorted({name for own in owns for name in own}):
        text = name.decode("utf-8", "replace")
        if is_read(text, (*begins, *OF_PYTHON)) and text not in TAKEN_ANEW and len({own.get(name) for own in owns}) > 1:
            return text
    return ""
