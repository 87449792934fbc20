"""Explains why MindSpore has no GPUs here: what its GPU back end needs, and does not find.

MindSpore 2.10's wheel has one back end for CUDA 11.1 and one for 11.6.  On import MindSpore asks nvcc in CUDA_HOME for
CUDA's version and loads the one that fits.  MindSpore's own message does not name the variable.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re

from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, one_line

# A program that fails with REFUSED.  As for a trainer, the current folder is not where modules come from.
QUESTION = "import sys; del sys.path[0]; import mindspore; mindspore.set_context(device_target='GPU')"
REFUSED = "Unsupported device target GPU"  # how MindSpore begins its message


def why_not(said: str) -> tuple[str, str]:
    """(the reason, the remedy).  said: MindSpore's own message, which has REFUSED."""
    loading = re.search(r"Load dynamic library: (libmindspore_gpu\S*) failed\. (.+)", said)
    if loading:
        remedy = tr(
            "install what docs/gpu.md lists, and put the folders of CUDA's and cuDNN's libraries into LD_LIBRARY_PATH"
        )
        return tr("MindSpore cannot load {library}: {reason}", library=loading[1], reason=loading[2]), remedy
    versions = _versions()
    if not versions:
        return tr("this MindSpore has no GPU back end"), tr("install one that has")
    home = os.environ.get("CUDA_HOME")
    if not home:
        return tr("CUDA_HOME is not set, and MindSpore looks nowhere else for CUDA"), tr("set it to CUDA's folder")
    place = f"CUDA_HOME {one_line(home)}"
    if not os.path.isfile(os.path.join(home, "bin", "nvcc")):
        return tr("{place} has no bin/nvcc, which tells MindSpore the version of CUDA", place=place), tr(
            "install nvcc there"
        )
    known = tr(" and ").join(versions)
    return tr(
        "this MindSpore is for CUDA {known}, and nvcc in {place} is of another version", known=known, place=place
    ), tr("install one of these")


def refusal(said: str) -> str:
    """The reason and the remedy in one text."""
    return clauses(*why_not(said))


def _versions() -> list[str]:
    """The versions of CUDA for which the MindSpore of this Python has a back end."""
    spec = importlib.util.find_spec("mindspore")
    folders = spec.submodule_search_locations or () if spec else ()
    patterns = [os.path.join(glob.escape(folder), "lib", "plugin", "libmindspore_gpu.so.*") for folder in folders]
    return sorted(file.partition(".so.")[2] for pattern in patterns for file in glob.glob(pattern))
