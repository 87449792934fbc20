"""A rank in its job: its device, its place among the ranks, and its end.

Nothing here imports MindSpore at the top: that takes 2.5 s, and happens only for a training.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import threading
import time

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import BAD, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.machine import interpreter
from tools.config import modes
from tools.config.unusable import Unusable
from tools.trainer import checkpoints, gpu_backend, place
from tools.trainer.checkpoints import strategies

_REST = 5  # seconds for the other threads, on a busy machine


def before_mindspore(config: dict) -> int | None:
    """Ends the command where MindSpore is missing, and sets what it reads when it is imported.

    Returns the number of this process's device, None on CPU, which has no numbers.  It must be read now: on import,
    MindSpore replaces DEVICE_ID by the local rank that mpirun gave this process, though it may have another device.
    """
    interpreter.check("mindspore")
    # On processors with AVX-512 the oneDNN in MindSpore 2.10 takes a reference implementation for convolutions
    # (seen with ONEDNN_VERBOSE=1: "ref:any"), 20 to 60 times slower than the one for AVX2.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    return None if config["system"]["device_target"] == "CPU" else place.device()


def import_mindspore() -> None:
    """Imports MindSpore, and tells Python's collector that what it has made stays.

    The collector would look at these 160,000 objects during the import, and again each time that MindSpore compiles.
    Without that, one rank that trains LeNet-5 for an epoch takes a fifth less time.
    """
    if "mindspore" in sys.modules:
        return
    gc.disable()
    try:
        importlib.import_module("mindspore")
    finally:
        gc.freeze()
        gc.enable()


def start(config: dict, device: int | None) -> tuple[int, int]:
    """Sets the device up and joins the job; returns (rank, number of ranks)."""
    import mindspore as ms

    set_device(config, device)
    if "jit_level" in config["system"]:
        message = tr("MindSpore compiles with jit_level {level}", level=ms.get_context("jit_config")["jit_level"])
        print(message, flush=True)
    ms.set_seed(config["system"]["seed"])
    if not config["system"]["distribute"]:
        return 0, 1
    from mindspore import communication

    communication.init()
    rank, ranks = communication.get_rank(), communication.get_group_size()
    expected = os.environ.get("RANK_ID", str(rank))
    if expected != str(rank):
        text = tr(
            "MindSpore made this rank {rank}, but the launcher started it as RANK_ID={expected}",
            rank=rank,
            expected=expected,
        )
        raise Refusal(BAD, text)
    set_mode(config, rank, ranks)
    return rank, ranks


def set_device(config: dict, device: int | None) -> None:
    """Sets the device, see before_mindspore, and how MindSpore executes on it."""
    import mindspore as ms

    target = config["system"]["device_target"]
    try:
        ms.set_device(target, *(() if device is None else (device,)))
    except (RuntimeError, ValueError) as error:
        raise Unusable(_why_not(target, str(error))) from error
    ms.set_context(mode=config["system"]["mode"])
    if "jit_level" in config["system"]:
        ms.set_context(jit_config={"jit_level": config["system"]["jit_level"]})


def _why_not(target: str, said: str) -> str:
    """Why MindSpore cannot use the target, of which it said so, and the remedy."""
    if gpu_backend.REFUSED in said:
        return f"{gpu_backend.REFUSED}: {gpu_backend.refusal(said)}"
    reason = one_line(said.strip().partition("\n")[0].partition(". ")[0])
    return tr(
        "MindSpore cannot use {target} here: {reason}; -o system.device_target=CPU takes the CPU",
        target=target,
        reason=reason,
    )


def set_mode(config: dict, rank: int, ranks: int) -> None:
    """Sets the job's parallel mode; where MindSpore cuts the network itself it reads and writes strategy files."""
    import mindspore as ms

    section = config["parallel"]
    settings = {
        "parallel_mode": section["mode"],
        "gradients_mean": section["gradients_mean"],
        "device_num": ranks,
        "global_rank": rank,
    }
    if section["mode"] in modes.BY_MINDSPORE:
        strategy = section["dataset_strategy"]
        settings["dataset_strategy"] = strategy if isinstance(strategy, str) else tuple(map(tuple, strategy))
        settings["pipeline_stages"] = section["pipeline_stages"]
        settings["strategy_ckpt_config"] = _strategy_files(config, rank, ranks)
        if section["mode"] == "auto_parallel":
            settings["search_mode"] = section.get("search_mode", "recursive_programming")
    ms.set_auto_parallel_context(**settings)


def _strategy_files(config: dict, rank: int, ranks: int) -> dict[str, str | bool]:
    """MindSpore's strategy_ckpt_config: the files, and that the optimizer's moments are in them as well."""
    section = config["parallel"]
    default = os.path.join(checkpoints.folder_of(config), strategies.FOLDER, "rank_{rank}.ckpt")
    file = section.get("strategy_ckpt_save_file", default).replace("{rank}", str(rank))
    found: dict[str, str | bool] = {"save_file": os.path.abspath(file), "only_trainable_params": False}
    if "strategy_ckpt_load_file" in section:
        found["load_file"] = section["strategy_ckpt_load_file"]
        strategies.check_ranks(section["strategy_ckpt_load_file"], ranks // section["pipeline_stages"])
    return found


def finish(config: dict) -> None:
    """Leaves the job in order: every rank has trained before the first one lets go of the others."""
    if config["system"]["distribute"]:
        from mindspore import communication

        communication.release()


def leave(code: int) -> None:
    """Ends this process at once: MindSpore 2.10 may crash when the interpreter takes a rank apart.

    The crash (SIGSEGV, in MindSpore's function at exit) came after all work was done and communication
    released, on a busy machine; it would end the job as failed.  That function also tells MindSpore's
    scheduler that this rank leaves.  tools/launch/engines/mindspore_scheduler.py sees it without being
    told, under msrun too.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    end = time.monotonic() + _REST
    while runs_another_thread() and time.monotonic() < end:
        time.sleep(0.005)
    os._exit(code)


def runs_another_thread() -> bool:
    """Whether another thread of this process has something to do, such as the answer to a rank's last message.

    Without that answer, the other rank waits for 30 s in its last collective, and fails.
    """
    own = str(threading.get_native_id())
    for number in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{number}/stat", "rb") as file:  # it may have ended
            if number != own and file.read().rpartition(b") ")[2][:1] == b"R":
                return True
    return False
