"""Dataset slicing: one patch of every image, for ranks that share the same samples.

With parallel.dataset_strategy [[n, 1, h, w], [n]] each image is cut into h rows and w columns, and a
rank reads one of these patches (tools.config.modes.data_part says which).
"""

from __future__ import annotations

from tools.config.modes import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mindspore.dataset import Dataset
    from mindspore.dataset.transforms import TensorOperation


def map_images(data: Dataset, operations: list[TensorOperation], patches: Patches, workers: int) -> Dataset:
    """The dataset `data` with `operations` done on its column image (H, W, C), cut, and as (C, H, W).

    All in one map where nothing is cut: a map more is a thread and a queue more, 10 to 20 % of the images per second.
    """
    from mindspore.dataset import vision

    if patches == Patches():
        return data.map([*operations, vision.HWC2CHW()], "image", num_parallel_workers=workers)
    data = cut(data.map(operations, "image", num_parallel_workers=workers), patches)
    return data.map(vision.HWC2CHW(), "image", num_parallel_workers=workers)


def cut(data: Dataset, patches: Patches, column: str = "image") -> Dataset:
    """The dataset `data` with patch number `patch`, counted row by row, in the place of each image (H, W, C).

    An image that cannot be divided evenly is filled up with 0 at its right and lower edge.
    """
    from mindspore.dataset import vision

    names = [f"{column}_{number}" for number in range(patches.rows * patches.columns)]
    others = [name for name in data.get_col_names() if name != column]
    data = data.map(vision.SlicePatches(patches.rows, patches.columns), [column], names)
    data = data.project([names[patches.patch], *others])
    return data.rename([names[patches.patch]], [column])
