"""The parallel modes: what each requires of a config, and which part of the data a rank gets."""

from __future__ import annotations

import math

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Modes in which MindSpore itself cuts the network; its CPU back end has no such pass.
BY_MINDSPORE = ("semi_auto_parallel", "auto_parallel")

# Networks of tools/trainer/models/parallel.py that are bound to a mode: they communicate, or have stages.
TENSOR_PARALLEL, STAGES_BY_HAND, STAGED = "hybrid_parallel_net", "hand_pipeline_net", "pipeline_net"
CUT_BY_SHARD = "semi_auto_parallel_net"
NETS = (TENSOR_PARALLEL, STAGES_BY_HAND, STAGED, CUT_BY_SHARD)
HIDDEN_SIZE = 128  # width of their inner layers
IN_STAGES = {STAGED: 3, "resnet50": 16}  # into how many parts a network can be cut
BY_HAND = (TENSOR_PARALLEL, STAGES_BY_HAND)

SLICED = ("mnist", "cifar10")  # types of data whose images can be cut into patches


class Patches(Record):
    """Each image is cut into rows x columns patches; patch number `patch`, counted row by row, is read."""

    rows: int = 1
    columns: int = 1
    patch: int = 0


class Part(Record):
    """A rank's part of the data: shard number `shard` of `shards`, and `patches` of each image.

    samples: of the samples in their order (first, how many), instead of a shard, whose samples are dealt out and
    filled up to the same number for all ranks.
    """

    shard: int = 0
    shards: int = 1
    patches: Patches = Patches()
    samples: tuple[int, int] | None = None


EVERYTHING = Part()


# ---- what a config may ask for -----------------------------------------------------------------------


def problems(config: dict[str, Any], ranks: int, target: str) -> list[Problem]:
    """Problems of `config` (with all defaults) for a job of `ranks` ranks on `target`, in reading order."""
    if not config["system"]["distribute"]:
        return _accumulation(config)
    mode = config["parallel"]["mode"]
    found = _refused_by_cpu(config, target) or _only_for_graphs(config)
    if not found and mode not in BY_MINDSPORE:
        found = _only_for_mindspore(config, mode)
    found += _network(config, mode, ranks) + _pipeline(config, ranks)
    return found + _strategy(config, ranks) + _accumulation(config)


def _refused_by_cpu(config: dict[str, Any], target: str) -> list[Problem]:
    section = config["parallel"]
    if target != "CPU" or section["mode"] not in BY_MINDSPORE:
        return []
    remedy = tr("use data_parallel, or hybrid_parallel with model.name hybrid_parallel_net (hand-written partitioning)")
    if section["pipeline_stages"] > 1:
        remedy = tr("use mode hybrid_parallel with model.name hand_pipeline_net, two stages with Send and Receive")
    return [Problem("cpu-refuses", "/parallel/mode", not_on_cpu(section["mode"]), remedy)]


def not_on_cpu(mode: str) -> str:
    """Why a mode in which MindSpore cuts the network does not run there."""
    return tr(
        '{mode} does not run on CPU: MindSpore\'s CPU back end refuses it ("Invalid backend: CPU"); '
        "it needs Ascend or GPU",
        mode=mode,
    )


def _only_for_graphs(config: dict[str, Any]) -> list[Problem]:
    mode = config["parallel"]["mode"]
    if config["system"]["mode"] == 0 or mode not in BY_MINDSPORE:
        return []
    remedy = tr("write 0, or set parallel.mode to data_parallel")
    return [Problem("graph-only", "/system/mode", not_in_pynative(mode), remedy)]


def not_in_pynative(mode: str) -> str:
    """What such a mode does in PyNative mode, as seen on CPU with MindSpore 2.10."""
    return tr(
        "MindSpore cuts a graph, which PyNative mode does not have: with {mode} every rank would train the whole "
        "network by itself",
        mode=mode,
    )


def _only_for_mindspore(config: dict[str, Any], mode: str) -> list[Problem]:
    section = config["parallel"]
    is_set = {
        "pipeline_stages": section["pipeline_stages"] > 1,
        "micro_batches": section["micro_batches"] > 1,
        "search_mode": "search_mode" in section,
        "dataset_strategy": section["dataset_strategy"] != "data_parallel",
        "strategy_ckpt_save_file": "strategy_ckpt_save_file" in section,
        "strategy_ckpt_load_file": "strategy_ckpt_load_file" in section,
    }
    remedy = tr("remove it, or set mode to semi_auto_parallel or auto_parallel")
    return [
        Problem(
            "other-mode", f"/parallel/{name}", tr("{name} has no meaning in mode {mode}", name=name, mode=mode), remedy
        )
        for name in is_set
        if is_set[name]
    ]


def _network(config: dict[str, Any], mode: str, ranks: int) -> list[Problem]:
    name = config["model"]["name"]
    stages = config["parallel"]["pipeline_stages"]
    if mode == "hybrid_parallel":
        if name in BY_HAND:
            return _cut_by_hand(config, name, ranks)
        text = tr("network {name} has no hand-written partitioning, which mode hybrid_parallel needs", name=name)
        remedy = tr("write {wanted}, or set parallel.mode to data_parallel", wanted=tr(" or ").join(BY_HAND))
    elif name in BY_HAND:
        text = tr(
            "{name} has hand-written partitioning and communication, so it cannot run in mode {mode}",
            name=name,
            mode=mode,
        )
        remedy = tr("set parallel.mode to hybrid_parallel")
    elif mode in BY_MINDSPORE and (name not in IN_STAGES if stages > 1 else name == STAGED):
        text = tr("{name} cannot be combined with pipeline_stages {stages}", name=name, stages=stages)
        remedy = tr(
            "for more than 1 stage write {wanted}, for 1 stage another network", wanted=tr(" or ").join(IN_STAGES)
        )
    else:
        return []
    return [Problem("net-for-mode", "/model/name", text, remedy)]


def _cut_by_hand(config: dict[str, Any], name: str, ranks: int) -> list[Problem]:
    found = []
    if name == STAGES_BY_HAND and ranks != 2:
        text = tr("{name} has two stages and this job {ranks} ranks", name=name, ranks=ranks)
        found.append(Problem("stages", "/model/name", text, tr("start 2 ranks")))
    if name == STAGES_BY_HAND and "eval" in config:
        text = tr("no rank of {name} has the whole network to measure with", name=name)
        remedy = tr("remove this section; tools/convert_ckpt.py makes one checkpoint")
        found.append(Problem("stages", "/eval", text, remedy))
    width = config["model"].get("hidden_size", HIDDEN_SIZE)
    if name == TENSOR_PARALLEL and width % ranks:
        text = tr("{width} cannot be cut into {ranks} equal parts, one per rank", width=width, ranks=ranks)
        found.append(Problem("uneven", "/model/hidden_size", text, tr("write a multiple of {ranks}", ranks=ranks)))
    if not config["parallel"]["gradients_mean"]:
        text = tr("every rank sees the same samples, so the sum of their gradients counts each sample once per rank")
        found.append(Problem("counted-twice", "/parallel/gradients_mean", text, tr("write {wanted}", wanted="True")))
    return found


def _pipeline(config: dict[str, Any], ranks: int) -> list[Problem]:
    section, name = config["parallel"], config["model"]["name"]
    stages, micro = section["pipeline_stages"], section["micro_batches"]
    place = "/parallel/pipeline_stages"
    text = tr("{ranks} ranks cannot be divided into {stages} equal stages", ranks=ranks, stages=stages)
    found = _uneven(ranks, stages, Problem("stages", place, text, _divisor(ranks)))
    if stages > IN_STAGES.get(name, stages):
        text = tr(
            "{name} can be cut into {most} parts, and each of {stages} stages needs one",
            name=name,
            most=IN_STAGES[name],
            stages=stages,
        )
        found.append(Problem("stages", place, text, tr("write 2 to {most}", most=IN_STAGES[name])))
    if stages > 1 and micro < stages:
        text = tr(
            "{micro} micro-batches keep only {micro} of {stages} stages busy, and MindSpore needs one per stage",
            micro=micro,
            stages=stages,
        )
        found.append(Problem("stages", "/parallel/micro_batches", text, tr("write {stages} or more", stages=stages)))
    batch = config["train"]["loader"]["batch_size"]
    text = tr("a batch of {batch} cannot be divided into {micro} equal micro-batches", batch=batch, micro=micro)
    return found + _uneven(batch, micro, Problem("uneven", "/parallel/micro_batches", text, _divisor(batch)))


def _strategy(config: dict[str, Any], ranks: int) -> list[Problem]:
    strategy, ranks = config["parallel"]["dataset_strategy"], ranks // config["parallel"]["pipeline_stages"]
    if strategy in ("data_parallel", "full_batch"):
        return []
    text = ""
    if isinstance(strategy, str):
        text = tr("{strategy} is not known here", strategy=strategy)
        remedy = tr("write data_parallel, full_batch, or such as [[1, 1, 1, 4], [1]]")
    elif config["train"]["dataset"]["type"] not in SLICED:
        text = tr("data of type {kind} cannot be cut into patches", kind=config["train"]["dataset"]["type"])
        remedy = tr("write data_parallel; {kinds} can be cut", kinds=tr(" and ").join(SLICED))
    elif [len(strategy[0]), len(strategy[1])] != [4, 1]:
        text = tr(
            "images have 4 axes (batch, channel, height, width) and labels 1, not {images} and {labels}",
            images=len(strategy[0]),
            labels=len(strategy[1]),
        )
        remedy = tr("write for example [[1, 1, 1, 4], [1]]: images in 4 columns")
    elif math.prod(strategy[0]) != ranks or strategy[0][1] != 1:
        text = tr(
            "images are cut into {cut} parts, for {ranks} ranks", cut="x".join(map(str, strategy[0])), ranks=ranks
        )
        remedy = tr("make the product that number, and leave channels whole (1)")
    elif strategy[0][0] != strategy[1][0]:
        text = tr(
            "labels are cut into {labels} parts and images into {images} along the batch",
            labels=strategy[1][0],
            images=strategy[0][0],
        )
        remedy = tr("write the same number in both")
    return [Problem("strategy", "/parallel/dataset_strategy", text, remedy)] if text else []


def _accumulation(config: dict[str, Any]) -> list[Problem]:
    parts, place = config["train"]["gradient_accumulation_steps"], "/train/gradient_accumulation_steps"
    batch = config["train"]["loader"]["batch_size"]
    text = tr("a batch of {batch} cannot be divided into {parts} equal parts", batch=batch, parts=parts)
    found = _uneven(batch, parts, Problem("uneven", place, text, _divisor(batch)))
    if (
        not found
        and parts > 1
        and (config["parallel"]["micro_batches"] > 1 or config["model"]["name"] == STAGES_BY_HAND)
    ):
        return [Problem("uneven", place, tr("a pipeline already divides its batches"), tr("write 1, or leave it out"))]
    return found


def _uneven(number: int, parts: int, problem: Problem) -> list[Problem]:
    """The `problem` of a `number` of things that cannot be cut into equal parts."""
    return [problem] if number % parts else []


def _divisor(number: int) -> str:
    return tr("write a divisor of {number}", number=number)


def saves_whole(config: dict[str, Any]) -> bool:
    """Whether each rank's checkpoint has the whole network; MindSpore merges what it has cut, but not stages."""
    section = config["parallel"]
    if section["mode"] in BY_MINDSPORE:
        return section["pipeline_stages"] == 1 and bool(config["train"]["integrated_save"])
    return config["model"]["name"] not in BY_HAND


# ---- which part of the data --------------------------------------------------------------------------


def data_part(config: dict[str, Any], rank: int, ranks: int) -> Part:
    """The Part of the training data that is this rank's.

    Data parallel, semi-auto and auto: a share of the samples.  By hand and full_batch: all of them on
    every rank.  A dataset_strategy [[n, 1, h, w], [n]] numbers the ranks row by row over the n shards
    and h x w patches, as MindSpore lays out its devices.
    """
    section = config["parallel"]
    if ranks == 1 or section["mode"] == "hybrid_parallel" or section["dataset_strategy"] == "full_batch":
        return EVERYTHING
    in_stage = ranks // section["pipeline_stages"]
    place = rank % in_stage
    if section["dataset_strategy"] == "data_parallel":
        return Part(shard=place, shards=in_stage)
    shards, _, rows, columns = section["dataset_strategy"][0]
    shard, patch = divmod(place, rows * columns)
    return Part(shard=shard, shards=shards, patches=Patches(rows=rows, columns=columns, patch=patch))


def held_out_ranks(config: dict[str, Any], ranks: int) -> int:
    """Among how many ranks held-out data is shared: all, where each has the whole network; else one reads all of it."""
    return ranks if config["parallel"]["mode"] == "data_parallel" else 1
