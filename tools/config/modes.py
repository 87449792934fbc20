"""The parallel modes: what each asks of a config, which part of the data a rank gets, how a job is set up.

Nothing here imports MindSpore at the top: the launch plan asks `problems` before any rank starts.
"""

import math
import os
from collections import namedtuple

from hccl_tools.common.problem import Problem
from tools.trainer.datasets.patches import WHOLE, Patches

# Modes in which MindSpore itself cuts the network; its CPU back end has no such pass.
BY_MINDSPORE = ("semi_auto_parallel", "auto_parallel")

# Networks of tools/trainer/models/parallel.py that are bound to a mode: they communicate, or stand in stages.
TENSOR_PARALLEL, STAGES_BY_HAND, STAGED = "hybrid_parallel_net", "hand_pipeline_net", "pipeline_net"
CUT_BY_SHARD = "semi_auto_parallel_net"
NETS = (TENSOR_PARALLEL, STAGES_BY_HAND, STAGED, CUT_BY_SHARD)
HIDDEN_SIZE = 128  # width of their inner layers
IN_STAGES = {STAGED: 3, "resnet50": 16}  # into how many parts a network can be cut
BY_HAND = (TENSOR_PARALLEL, STAGES_BY_HAND)

SLICED = ("mnist", "cifar10")  # types of data whose images can be cut into patches

# A rank's part of the data: shard number `shard` of `shards`, and `patches` of each image.
Part = namedtuple("Part", "shard shards patches", defaults=(0, 1, WHOLE))


def ranks_of(config):
    """How many ranks the job of this process has, by its environment; 1 when it is not distributed."""
    return int(os.environ.get("RANK_SIZE", "1")) if config["system"]["distribute"] else 1


# ---- what a config may ask for -----------------------------------------------------------------------


def problems(config, ranks, target):
    """Problems of `config` (with all defaults) for a job of `ranks` ranks on `target`, in reading order."""
    if not config["system"]["distribute"]:
        return _accumulation(config)
    mode = config["parallel"]["mode"]
    found = _refused_by_cpu(config, target)
    if not found and mode not in BY_MINDSPORE:
        found = _only_for_mindspore(config, mode)
    found += _network(config, mode, ranks) + _pipeline(config, ranks)
    return found + _strategy(config, ranks) + _accumulation(config)


def _refused_by_cpu(config, target):
    section = config["parallel"]
    if target != "CPU" or section["mode"] not in BY_MINDSPORE:
        return []
    remedy = "use data_parallel, or hybrid_parallel with model.name hybrid_parallel_net (layers cut by hand)"
    if section["pipeline_stages"] > 1:
        remedy = "use mode hybrid_parallel with model.name hand_pipeline_net, two stages with Send and Receive"
    text = (
        f'{section["mode"]} does not run on CPU: MindSpore\'s CPU back end refuses it ("Invalid backend: CPU"); '
        "it needs Ascend or GPU"
    )
    return [Problem("cpu-refuses", "/parallel/mode", text, remedy)]


def _only_for_mindspore(config, mode):
    section = config["parallel"]
    asked = {
        "pipeline_stages": section["pipeline_stages"] > 1,
        "micro_batches": section["micro_batches"] > 1,
        "search_mode": "search_mode" in section,
        "dataset_strategy": section["dataset_strategy"] != "data_parallel",
    }
    return [
        Problem(
            "other-mode",
            f"/parallel/{name}",
            f"{name} has no meaning in mode {mode}",
            "remove it, or set mode to semi_auto_parallel or auto_parallel",
        )
        for name, is_asked in asked.items()
        if is_asked
    ]


def _network(config, mode, ranks):
    name, place = config["model"]["name"], "/model/name"
    if mode == "hybrid_parallel":
        if name not in BY_HAND:
            text = f"{name} is not cut by hand, which mode hybrid_parallel is for"
            return [Problem("net-for-mode", place, text, f"take {' or '.join(BY_HAND)}, or mode data_parallel")]
        return _cut_by_hand(config, name, ranks)
    if name in BY_HAND:
        text = f"{name} is cut by hand and does its own communication, so it does not go with mode {mode}"
        return [Problem("net-for-mode", place, text, "set parallel.mode to hybrid_parallel")]
    stages = config["parallel"]["pipeline_stages"]
    if mode in BY_MINDSPORE and (name not in IN_STAGES if stages > 1 else name == STAGED):
        text = f"{name} does not go with pipeline_stages {stages}"
        return [
            Problem("net-for-mode", place, text, f"above 1 stage take {' or '.join(IN_STAGES)}, for 1 another network")
        ]
    return []


def _cut_by_hand(config, name, ranks):
    found = []
    if name == STAGES_BY_HAND and ranks != 2:
        found.append(
            Problem("stages", "/model/name", f"{name} has two stages and this job {ranks} ranks", "start 2 ranks")
        )
    if name == STAGES_BY_HAND and "eval" in config:
        text = f"no rank of {name} has the whole network to measure with"
        found.append(
            Problem("stages", "/eval", text, "remove this section; tools/convert_ckpt.py makes one checkpoint")
        )
    width = config["model"].get("hidden_size", HIDDEN_SIZE)
    if name == TENSOR_PARALLEL and width % ranks:
        text = f"{width} cannot be cut into {ranks} equal parts, one a rank"
        found.append(Problem("uneven", "/model/hidden_size", text, f"write a multiple of {ranks}"))
    if not config["parallel"]["gradients_mean"]:
        text = "every rank sees the same samples, so adding their gradients would count each one once a rank"
        found.append(Problem("counted-twice", "/parallel/gradients_mean", text, "write True"))
    return found


def _pipeline(config, ranks):
    section = config["parallel"]
    stages, micro, batch = section["pipeline_stages"], section["micro_batches"], _batch_size(config)
    found = []
    if ranks % stages:
        text = f"{ranks} ranks cannot be cut into {stages} stages of one size"
        found.append(Problem("stages", "/parallel/pipeline_stages", text, f"write a divisor of {ranks}"))
    name = config["model"]["name"]
    if stages > IN_STAGES.get(name, stages):
        text = f"{name} can be cut into {IN_STAGES[name]} parts, and each of {stages} stages needs one"
        found.append(Problem("stages", "/parallel/pipeline_stages", text, f"write 2 to {IN_STAGES[name]}"))
    if stages > 1 and micro < stages:
        text = f"{micro} micro-batches keep only {micro} of {stages} stages busy, and MindSpore asks for one each"
        found.append(Problem("stages", "/parallel/micro_batches", text, f"write {stages} or more"))
    if micro > 1 and batch % micro:
        text = f"a batch of {batch} cannot be cut into {micro} micro-batches of one size"
        found.append(Problem("uneven", "/parallel/micro_batches", text, f"write a divisor of {batch}"))
    return found


def _strategy(config, ranks):
    strategy, place = config["parallel"]["dataset_strategy"], "/parallel/dataset_strategy"
    if isinstance(strategy, str):
        if strategy in ("data_parallel", "full_batch"):
            return []
        text = f"{strategy} is not known here"
        return [Problem("strategy", place, text, "write data_parallel, full_batch, or such as [[1, 1, 1, 4], [1]]")]
    if config["train"]["dataset"]["type"] not in SLICED:
        text = f"data of type {config['train']['dataset']['type']} cannot be cut into patches"
        return [Problem("strategy", place, text, f"write data_parallel; {' and '.join(SLICED)} can be cut")]
    images, labels, stages = strategy[0], strategy[1], config["parallel"]["pipeline_stages"]
    if len(images) != 4 or len(labels) != 1:
        text = f"images have 4 axes (batch, channel, height, width) and labels 1, not {len(images)} and {len(labels)}"
        return [Problem("strategy", place, text, "write for example [[1, 1, 1, 4], [1]]: images in 4 columns")]
    if math.prod(images) != ranks // stages or images[1] != 1:
        text = f"images are cut into {'x'.join(map(str, images))} parts, for {ranks // stages} ranks"
        return [Problem("strategy", place, text, "make the product that number, and leave channels whole (1)")]
    if labels[0] != images[0]:
        text = f"labels are cut into {labels[0]} parts and images into {images[0]} along the batch"
        return [Problem("strategy", place, text, "write the same number in both")]
    return []


def _accumulation(config):
    parts, batch = config["train"]["gradient_accumulation_steps"], _batch_size(config)
    place = "/train/gradient_accumulation_steps"
    if batch % parts:
        text = f"a batch of {batch} cannot be cut into {parts} parts of one size"
        return [Problem("uneven", place, text, f"write a divisor of {batch}")]
    if parts > 1 and (config["parallel"]["micro_batches"] > 1 or config["model"]["name"] == STAGES_BY_HAND):
        return [Problem("uneven", place, "a pipeline cuts its batches already", "write 1, or leave it out")]
    return []


def _batch_size(config):
    return config["train"]["loader"]["batch_size"]


# ---- which part of the data --------------------------------------------------------------------------


def data_part(config, rank, ranks):
    """The Part of the training data that is this rank's.

    Data parallel, semi-auto and auto: a share of the samples.  By hand and full_batch: all of them on
    every rank.  A dataset_strategy [[n, 1, h, w], [n]] numbers the ranks row by row over the n shards
    and h x w patches, as MindSpore lays out its devices.
    """
    section = config["parallel"]
    if ranks == 1 or section["mode"] == "hybrid_parallel" or section["dataset_strategy"] == "full_batch":
        return Part()
    in_stage = ranks // section["pipeline_stages"]
    place = rank % in_stage
    if section["dataset_strategy"] == "data_parallel":
        return Part(place, in_stage)
    shards, _, rows, columns = section["dataset_strategy"][0]
    shard, patch = divmod(place, rows * columns)
    return Part(shard, shards, Patches(rows, columns, patch))


# ---- setting a job up --------------------------------------------------------------------------------


def set_context(config, rank, ranks, strategy_file):
    """Tells MindSpore the mode of this job; where it cuts the network itself it writes `strategy_file`."""
    import mindspore as ms

    section = config["parallel"]
    settings = {
        "parallel_mode": section["mode"],
        "gradients_mean": section["gradients_mean"],
        "device_num": ranks,
        "global_rank": rank,
    }
    if section["mode"] in BY_MINDSPORE:
        strategy = section["dataset_strategy"]
        settings["dataset_strategy"] = strategy if isinstance(strategy, str) else tuple(map(tuple, strategy))
        settings["pipeline_stages"] = section["pipeline_stages"]
        settings["strategy_ckpt_config"] = {"save_file": strategy_file}
        if section["mode"] == "auto_parallel":
            settings["search_mode"] = section.get("search_mode", "recursive_programming")
    ms.set_auto_parallel_context(**settings)


def broadcast(network, config):
    """Gives every rank rank 0's values of all parameters that are not slices of its own.

    MindSpore's own parameter_broadcast is silently without effect in PyNative mode (2.10), so this is
    done by hand in both modes.
    """
    import mindspore as ms
    from mindspore import nn, ops

    if config["parallel"]["mode"] in BY_MINDSPORE or config["model"]["name"] == STAGES_BY_HAND:
        return

    class FromRankZero(nn.Cell):
        def __init__(self):
            super().__init__()
            self.broadcast = ops.Broadcast(0)

        def construct(self, value):
            return self.broadcast((value,))[0]

    send = FromRankZero()
    for parameter in network.get_parameters():
        if not parameter.layerwise_parallel:
            parameter.set_data(ms.Tensor(send(ms.Tensor(parameter.asnumpy())).asnumpy()))
