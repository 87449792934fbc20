"""Turns samples into batches: the order, a rank's shard and patch, and the columns (data, label).

With parallel.dataset_strategy [[n, 1, h, w], [n]] each image is cut into h rows and w columns. A rank reads one of
these patches (tools.config.modes.data_part chooses it).
"""

from __future__ import annotations

import functools

from tools.config.modes import EVERYTHING, Part, Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from mindspore.dataset import Dataset


def order(loader: dict, part: Part, samples: int | None = None) -> dict[str, Any]:
    """The options that every MindSpore data set takes: whether to shuffle, its shard, and how many of all `samples`."""
    if part.samples is not None:
        from mindspore.dataset import SequentialSampler

        first, count = part.samples
        return {"sampler": SequentialSampler(first, count)}
    each = samples and samples // part.shards
    return {"shuffle": loader["shuffle"], "num_shards": part.shards, "shard_id": part.shard, "num_samples": each}


def batches(data: Dataset, loader: dict) -> Dataset:
    """The samples of `data` in batches."""
    return data.batch(loader["batch_size"], drop_remainder=loader["drop_remainder"])


def filled_up(data: Dataset, size: int) -> Dataset:
    """The batches of `data`, each with `size` samples."""
    for name in data.get_col_names():
        data = data.map(functools.partial(filled, size=size), name, num_parallel_workers=1)
    return data


def filled(batch: np.ndarray, size: int) -> np.ndarray:
    """The samples of `batch`, and copies of the first one, `size` in all."""
    import numpy as np

    lacking = size - len(batch)
    return np.concatenate([batch, batch[:1].repeat(lacking, axis=0)]) if lacking else batch


def image_batches(data: Dataset, operations: list, loader: dict, part: Part) -> Dataset:
    """Batches of the column image (H, W, C), with `operations` done on it, cut, as (C, H, W), and of int32 label.

    All in one map where nothing is cut: a second map adds a thread and a queue, and costs 10 to 20 % of the images per
    second.
    """
    import mindspore as ms
    from mindspore.dataset import transforms, vision

    workers = loader["num_workers"]
    last = [vision.HWC2CHW()]
    if part.patches == EVERYTHING.patches:
        last = [*operations, *last]
    else:
        data = cut(data.map(operations, "image", num_parallel_workers=workers), part.patches)
    data = data.map(last, "image", num_parallel_workers=workers)
    data = data.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=workers)
    return batches(data, loader)


def cut(data: Dataset, patches: Patches) -> Dataset:
    """The dataset `data` with patch number `patch`, counted row by row, in the place of each image (H, W, C).

    An image that cannot be divided evenly is filled up with 0 at its right and lower edge.
    """
    from mindspore.dataset import vision

    names = [f"image_{number}" for number in range(patches.rows * patches.columns)]
    others = [name for name in data.get_col_names() if name != "image"]
    data = data.map(vision.SlicePatches(patches.rows, patches.columns), ["image"], names)
    data = data.project([names[patches.patch], *others])
    return data.rename([names[patches.patch]], ["image"])
