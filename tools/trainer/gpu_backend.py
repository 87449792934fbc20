"""Why MindSpore has no GPUs here: what its GPU back end needs, and does not find.

MindSpore 2.10's wheel has one back end for CUDA 11.1 and one for 11.6.  On import MindSpore asks nvcc in CUDA_HOME for
CUDA's version and loads the one that fits.  Its own message names the variable nowhere.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re

from hccl_tools.common.words import one_line

REFUSED = "Unsupported device target GPU"  # how MindSpore begins its message


def why_not(said: str) -> str:
    """The reason and the remedy.  said: MindSpore's own message, which has REFUSED."""
    loading = re.search(r"Load dynamic library: (libmindspore_gpu\S*) failed\. (.+)", said)
    if loading:
        return (
            f"MindSpore cannot load {loading[1]}: {loading[2]}; install what docs/gpu.md lists, and put the "
            "folders of CUDA's and cuDNN's libraries into LD_LIBRARY_PATH"
        )
    versions = _versions()
    if not versions:
        return "this MindSpore has no GPU back end; install one that has"
    home = os.environ.get("CUDA_HOME")
    if not home:
        return "CUDA_HOME is not set, and MindSpore looks nowhere else for CUDA; set it to CUDA's folder"
    if not os.path.isfile(os.path.join(home, "bin", "nvcc")):
        return (
            f"CUDA_HOME {one_line(home)} has no bin/nvcc, which tells MindSpore the version of CUDA; install nvcc there"
        )
    return (
        f"this MindSpore is for CUDA {' and '.join(versions)}, and nvcc in CUDA_HOME {one_line(home)} is of another "
        "version; install one of these"
    )


def _versions() -> list[str]:
    """The versions of CUDA for which the MindSpore of this Python has a back end."""
    spec = importlib.util.find_spec("mindspore")
    folders = spec.submodule_search_locations or () if spec else ()
    patterns = [os.path.join(glob.escape(folder), "lib", "plugin", "libmindspore_gpu.so.*") for folder in folders]
    return sorted(file.partition(".so.")[2] for pattern in patterns for file in glob.glob(pattern))
