"""Checkpoints of a job: each rank's in a folder of its own, and which of them can be continued from.

    ckpt/rank_0/newest_run.json     the run begun last in this folder
    ckpt/strategy.json              how layers cut by hand are cut, in MindSpore's format; none otherwise
    ckpt/rank_0/lenet5-3_22.ckpt    after epoch 3, step 22 of it, as MindSpore names them
    ckpt/rank_0/lenet5-3_22.json    what it is of, its size and checksum: written last

Both files are written beside and renamed, the second when the first is on the disk.  So a checkpoint
without its second file, or that does not fit it, was torn by whatever ended the job, and is passed over.
A job continues from the newest checkpoint that every one of its ranks has: the ranks ask each other,
since their folders may be on different hosts.
"""

import contextlib
import glob
import json
import os
import time
import zlib
from collections import namedtuple

from hccl_tools.common.problem import Problem
from hccl_tools.common.words import one_line

STRATEGY, NEWEST = "strategy.json", "newest_run.json"
_LABEL = {"model": str, "mode": str, "run": int, "epoch": int, "steps": int, "rank": int, "ranks": int}
_SEEN = {"bytes": int, "crc32": int}


class CheckpointError(Exception):
    """A checkpoint cannot be used: the text names it, says why, and what to do."""


class Label(namedtuple("Label", [*_LABEL, *_SEEN])):
    """What a checkpoint is of.

    model, mode: as in the config; run: seconds since 1970 when the run was first started, the same on
    all ranks and kept when it is resumed; epoch, steps: epochs done, and steps in each; rank, ranks:
    whose it is, in a job of how many; bytes, crc32: size and checksum of the .ckpt file.
    """

    __slots__ = ()

    @property
    def point(self):
        """What orders checkpoints: the newest run first, in it the latest epoch."""
        return (self.run, self.epoch)


def folder_of(config):
    """The folder of this run's checkpoints: train.ckpt_save_dir, else ckpt in the run's log folder."""
    return config["train"].get("ckpt_save_dir") or os.path.join(os.environ.get("LOG_DIR", "."), "ckpt")


def rank_folder(folder, rank):
    """Where rank `rank` keeps its checkpoints under `folder`."""
    return os.path.join(folder, f"rank_{rank}")


def problems(config):
    """Problems of the checkpoints that `config` (with all defaults) names; seen before MindSpore is imported."""
    section, found = config["train"], []
    for key, is_there, kind in (("pretrained", os.path.isfile, "file"), ("resume_from", os.path.isdir, "folder")):
        if key in section and not is_there(section[key]):
            what = f"no such {kind}" if not os.path.exists(section[key]) else f"is no {kind}"
            remedy = f"name a {kind}; a relative path counts from {one_line(os.getcwd())}"
            found.append(Problem("no-checkpoint", f"/train/{key}", f"{section[key]}: {what}", remedy))
    return found


# ---- writing -----------------------------------------------------------------------------------------


def save(network, folder, prefix, label, integrated=True):
    """Writes a checkpoint of `network` (a Cell, with its optimizer) and its label; returns the path.

    label: {field: value} of Label, without size and checksum; integrated: whether MindSpore merges what
    it has cut itself.  Raises OSError when the disk is full or the like.
    """
    import mindspore as ms

    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{prefix}-{label['epoch']}_{label['steps']}.ckpt")
    draft = os.path.join(folder, f".{os.path.basename(path)[:-5]}.part.ckpt")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)  # a torn one of an earlier attempt; MindSpore leaves its files read-only
    ms.save_checkpoint(network, draft, integrated_save=integrated)
    size, checksum = seen(draft)
    _publish(draft, path)
    _write_label(path, {**label, "bytes": size, "crc32": checksum})
    return path


def seen(path):
    """(size, CRC-32) of the file; asks for it to be on the disk first, so that a renamed file is whole."""
    size = checksum = 0
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        while block := file.read(1 << 20):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return size, checksum


def _write_label(path, label):
    _write_json(path[: -len(".ckpt")] + ".json", label)


def relabel(path, label, rank, ranks):
    """Labels the checkpoint `path` as `label` says, but as that of rank `rank` of `ranks`."""
    size, checksum = seen(path)
    _write_label(path, {**label._asdict(), "rank": rank, "ranks": ranks, "bytes": size, "crc32": checksum})


def _write_json(path, document):
    draft = f"{path}.{os.getpid()}.part"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    _publish(draft, path)


def begin(folder, run):
    """Marks `run` as the newest in a rank's folder: what earlier runs left there is not continued."""
    os.makedirs(folder, exist_ok=True)
    _write_json(os.path.join(folder, NEWEST), {"run": run})


def _publish(draft, path):
    os.replace(draft, path)
    handle = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(handle)  # the new name, too
    finally:
        os.close(handle)


def write_strategy(folder, cuts, ranks):
    """Writes how the parameters are cut, for mindspore.transform_checkpoints; returns the path.

    cuts: {parameter name: (shape of the whole, axis that is cut or None)}.  It is what MindSpore itself
    writes in semi-auto mode: devices in one row, and for each axis the device axis that it is cut along.
    """
    items = {}
    for name, (shape, axis) in cuts.items():
        items[name] = {
            "dev_matrix": [ranks],
            "tensor_map": [0 if dimension == axis else -1 for dimension in range(len(shape))],
            "param_split_shape": [],
            "field": 0,
            "opt_weight_shard_step": 0,
            "opt_weight_shard_size": 0,
        }
    document = {
        "current_stage": 0,
        "parallel_strategy_item": {"by_hand": {"stage": 0, "parallel_strategy": []}},
        "parallel_layout_item": items,
    }
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, STRATEGY)
    _write_json(path, document)  # by every rank, each the same
    return path


# ---- finding -----------------------------------------------------------------------------------------


def labels(folder):
    """{path of a .ckpt: Label} of all labelled checkpoints directly in `folder`, whole or not."""
    found = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "*.json")):
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError):
            continue  # not readable, so it labels nothing
        kinds = {**_LABEL, **_SEEN}
        if isinstance(data, dict) and all(type(data.get(key)) is kind for key, kind in kinds.items()):
            found[path[: -len(".json")] + ".ckpt"] = Label(**{key: data[key] for key in kinds})
    return found


def is_whole(path, label):
    """Whether the checkpoint is there and is what its label says."""
    try:
        return os.path.getsize(path) == label.bytes and seen(path) == (label.bytes, label.crc32)
    except OSError:
        return False


def newest_first(folder, limit=None):
    """[(path, Label)] of the whole checkpoints in `folder` of the run begun last, at most `limit`."""
    ordered = sorted(labels(folder).items(), key=lambda item: item[1].point, reverse=True)
    try:
        with open(os.path.join(folder, NEWEST), encoding="utf-8") as file:
            run = json.load(file)["run"]
        ordered = [(path, label) for path, label in ordered if label.run == run]
    except FileNotFoundError:
        pass  # made by tools/convert_ckpt.py: one run only
    return [(path, label) for path, label in ordered if is_whole(path, label)][:limit]


def choose(folder, rank, ranks, model, gather=None):
    """(path, Label) of the checkpoint from which rank `rank` of `ranks` goes on, or None: from the start.

    `gather` gives the lists of points of all ranks, the same on every rank.  Raises CheckpointError when
    there are checkpoints, but of another model or another number of ranks.
    """
    own = newest_first(rank_folder(folder, rank), GATHERED)
    fitting = [(path, label) for path, label in own if label.model == model and label.ranks == ranks]
    if own and not fitting:
        _refuse(own[0], folder, ranks, model)
    points = [label.point for _, label in fitting]
    common = set(points).intersection(*(gather(points) if gather else []))
    return next(((path, label) for path, label in fitting if label.point in common), None)


def _refuse(checkpoint, folder, ranks, model):
    path, label = checkpoint
    if label.model != model:
        raise CheckpointError(
            f"{one_line(path)} is of the network {label.model}, this config's is {model}; name the folder of this "
            "network's checkpoints with train.resume_from or train.ckpt_save_dir"
        )
    raise CheckpointError(
        f"{one_line(path)} is of a job of {label.ranks} ranks, this one has {ranks}; make checkpoints for {ranks} with "
        f"python tools/convert_ckpt.py {one_line(folder)} NEW_FOLDER --ranks {ranks} and continue from there with "
        "-o train.resume_from=NEW_FOLDER"
    )


# How many checkpoints of each rank the ranks tell each other of: more than a rank could be ahead.
GATHERED = 8
_YEAR_2020 = 1577836800  # seconds since 1970; what is counted from here fits into 32 bits until 2088


def gather_points(points):
    """The lists of points of all ranks; every rank must call it at the same time."""
    import mindspore as ms
    import numpy as np

    numbers = [(run - _YEAR_2020, epoch) for run, epoch in points[:GATHERED]]
    numbers += [(-1, -1)] * (GATHERED - len(numbers))
    everyone = _all_gather(ms.Tensor(np.array(numbers, np.int32)))
    return [[(int(run) + _YEAR_2020, int(epoch)) for run, epoch in part if run >= 0] for part in everyone]


def common_time(ranks):
    """Seconds since 1970 by the clock of the rank that is ahead: the same number on all ranks."""
    now = int(time.time())
    if ranks == 1:
        return now
    import mindspore as ms
    import numpy as np

    return int(_all_gather(ms.Tensor(np.array([now - _YEAR_2020], np.int32))).max()) + _YEAR_2020


def _all_gather(tensor):
    from mindspore import nn, ops

    class AllGather(nn.Cell):
        def __init__(self):
            super().__init__()
            self.gather = ops.AllGather()

        def construct(self, value):
            return self.gather(value)

    return AllGather()(tensor).asnumpy().reshape(-1, *tensor.shape)


def in_all_ranks(folder):
    """{rank: (path, Label)}: the newest checkpoint that is whole on all ranks of its job, all under `folder`.

    For a folder that holds every rank's.  Raises CheckpointError when there is none.
    """
    own = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "rank_*")):
        number = os.path.basename(path)[len("rank_") :]
        if number.isdigit():
            own[int(number)] = newest_first(path)
    points = {label.point for found in own.values() for _, label in found}
    for point in sorted(points, reverse=True):
        files = {rank: item for rank, found in own.items() for item in found if item[1].point == point}
        if set(files) == set(range(next(iter(files.values()))[1].ranks)):
            return files
    raise CheckpointError(
        f"{one_line(folder)} has no checkpoint of tools/train.py that is whole on all ranks; name the folder in which "
        "rank_0, rank_1 ... are, and bring those of other hosts there"
    )


# ---- reading -----------------------------------------------------------------------------------------


def read(path):
    """{parameter name: Parameter} in the file `path`.  Raises CheckpointError."""
    import mindspore as ms

    shown = one_line(path)
    if not os.path.isfile(path):
        what = "is a folder, name a .ckpt file in it" if os.path.isdir(path) else "no such file"
        raise CheckpointError(f"checkpoint {shown}: {what}")
    label = labels(os.path.dirname(path) or ".").get(path)
    if label and not is_whole(path, label):
        raise CheckpointError(
            f"checkpoint {shown} is not what was saved: it is damaged or cut off; take an earlier one"
        )
    try:
        return ms.load_checkpoint(path)
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(
            f"checkpoint {shown} cannot be read, it is damaged, cut off, or no checkpoint: {one_line(reason)}"
        ) from error


def load(path, *cells):
    """Loads the file `path` into the cells (a network, an optimizer); all of each cell's parameters must fit."""
    import mindspore as ms

    values = read(path)
    for cell in cells:
        check_fit(path, values, {parameter.name: tuple(parameter.shape) for parameter in cell.get_parameters()})
    for cell in cells:
        ms.load_param_into_net(cell, values)


def check_fit(path, values, wanted):
    """Raises CheckpointError unless `values` has every parameter of `wanted` ({name: shape}) in its shape."""
    for name, shape in wanted.items():
        if name not in values:
            raise CheckpointError(
                f"checkpoint {one_line(path)} has no {name}: it is of another network or optimizer, or of another "
                "rank's part of the network; take one that was saved with this config"
            )
        if tuple(values[name].shape) != shape:
            raise CheckpointError(
                f"checkpoint {one_line(path)}: {name} has the shape {tuple(values[name].shape)}, here it is {shape}; "
                "it is of another network, or cut for another number of ranks (tools/convert_ckpt.py cuts anew)"
            )


def remove_old(folder, run, keep):
    """Removes checkpoints of the run `run` from `folder`, except for the newest `keep`; others' stay."""
    own = [(path, label) for path, label in labels(folder).items() if label.run == run]
    own.sort(key=lambda item: item[1].point, reverse=True)
    for path, _ in own[keep:]:
        for name in (path[: -len(".ckpt")] + ".json", path):  # the label first: what is half gone is not whole
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def free_prefix(folder, name):
    """`name`, or name_1, name_2 ..., so that no file of an earlier run in `folder` is written over."""
    number, prefix = 0, name
    while glob.glob(os.path.join(glob.escape(folder), f"{glob.escape(prefix)}-*.ckpt")):
        number += 1
        prefix = f"{name}_{number}"
    return prefix
