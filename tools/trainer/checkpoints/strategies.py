"""Strategy files: how the parameters of a network are cut over ranks, in MindSpore's format.

MindSpore writes one where it cuts the network itself; we write one for layers cut by hand.  A layout is a list.  Its
dev_matrix has the devices in rows and columns.  Its tensor_map has the axis of these for each axis of the parameter,
counted from the last (-1: not cut).
"""

from __future__ import annotations

import math
import os

from hccl_tools.common import documents
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import one_line
from tools.trainer.checkpoints import CheckpointError, labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Shapes = dict[str, tuple[int, ...]]
    Cuts = dict[str, tuple[tuple[int, ...], "int | None"]]

NAME = "strategy.json"  # in the folder of checkpoints, one for all ranks
FOLDER = "strategy"  # there, where MindSpore cuts and writes its binary format, with a file of each rank


def beside(source: str) -> str:
    """The strategy file of the checkpoints in the folder `source`, there or not."""
    by_hand = os.path.join(source, NAME)
    return by_hand if os.path.isfile(by_hand) else os.path.join(source, FOLDER, "rank_0.ckpt")


def layouts(cuts: Cuts, ranks: int) -> dict[str, tuple[list[int], list[int]]]:
    """{parameter: (dev_matrix, tensor_map)} of parameters that are cut along one axis, over `ranks` ranks.

    cuts: {parameter name: (shape of the whole, axis that is cut or None)}.
    """
    return {
        name: ([ranks], [0 if dimension == axis else -1 for dimension in range(len(shape))])
        for name, (shape, axis) in cuts.items()
    }


def write(path: str, cuts: Cuts, ranks: int) -> None:
    """Writes a strategy file.  It is what MindSpore itself writes in semi-auto mode, for devices in one row."""
    items = {}
    for name, (matrix, tensor_map) in layouts(cuts, ranks).items():
        items[name] = {
            "dev_matrix": matrix,
            "tensor_map": tensor_map,
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
    labels.write_json(path, document)


def write_for(ranks: int, path: str, new: str) -> None:
    """Writes the strategy file `path`, of devices in one row, for `ranks` ranks as `new`.  Raises CheckpointError."""
    if not os.path.isfile(path):
        text = tr(
            "{path} is missing; it says how the layers were cut; copy it from the run that saved", path=one_line(path)
        )
        raise CheckpointError(text)
    try:
        document = documents.read_json(path)
        for layout in document["parallel_layout_item"].values():
            layout["dev_matrix"] = [ranks]
    except OSError as error:
        message = tr("{path} cannot be read: {reason}", path=one_line(path), reason=strerror(error))
        raise CheckpointError(message) from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(_damaged(one_line(path))) from error
    labels.write_json(new, document)


class Layout(Record):
    """How a parameter is cut: the `devices`, and into how many `parts` along each axis."""

    devices: int
    parts: tuple[int, ...]


def read(path: str) -> dict[str, Layout]:
    """{parameter: Layout} of a strategy file of one of MindSpore's two formats.  Raises CheckpointError."""
    import mindspore as ms

    shown = tr("strategy file {path}", path=one_line(path))
    if not os.path.isfile(path):
        text = tr("{path}: no such file; name one that the training, or tools/strategy.py, wrote", path=shown)
        raise CheckpointError(text)
    try:
        found = {name: _layout(layout) for name, layout in ms.build_searched_strategy(path).items()}
    except OSError as error:
        raise CheckpointError(tr("{path} cannot be read: {reason}", path=shown, reason=strerror(error))) from error
    except Exception as error:  # of what is not a strategy, MindSpore and protobuf raise exceptions of any kind
        raise CheckpointError(_damaged(shown)) from error
    if not found or not all(layout.devices > 0 for layout in found.values()):
        raise CheckpointError(_damaged(shown))
    return found


def _layout(layout: Any) -> Layout:
    matrix = list(layout.dev_matrix[0].dim)
    axes: list[Any] = [list(axis.dim) for axis in layout.tensor_map]
    cut = parts(matrix, axes[0] if len(axes) == 1 else axes)
    if cut and layout.opt_weight_shard_size > 0:
        cut = (cut[0] * int(layout.opt_weight_shard_size), *cut[1:])
    return Layout(devices=math.prod(matrix), parts=cut)


def parts(matrix: list[int], tensor_map: list[Any]) -> tuple[int, ...]:
    """Into how many parts each axis of a parameter is cut; in `tensor_map` an axis may have several of the devices'."""
    axes = [axis if isinstance(axis, (list, tuple)) else [axis] for axis in tensor_map]
    return tuple(math.prod(matrix[-1 - device_axis] for device_axis in axis if device_axis >= 0) for axis in axes)


def _damaged(shown: str) -> str:
    return tr("{path} is damaged, or no strategy file; copy it again from the run that saved", path=shown)


def ranks(path: str) -> int:
    """The number of ranks that a strategy file is for.  Raises CheckpointError."""
    layouts = read(path)
    return max(1, len(_stages(layouts))) * next(iter(layouts.values())).devices


def check_ranks(path: str, wanted: int) -> None:
    """Raises CheckpointError unless the strategy file `path` is for `wanted` ranks (of one pipeline stage)."""
    found = ranks(path)
    if found != wanted:
        text = tr(
            "strategy file {path} is for {found} ranks, but there are {wanted}; write one for {wanted} with "
            "tools/strategy.py",
            path=one_line(path),
            found=found,
            wanted=wanted,
        )
        raise CheckpointError(text)


def check(shapes: Shapes, source: str, before: str | None, after: str | None) -> None:
    """Raises CheckpointError unless the parameters of `source` can be cut again.

    shapes: {parameter name: shape of rank 0's slice}; before, after: the strategy files, None where nothing is cut.
    MindSpore would take the slices of parameters that it does not find in a strategy file for whole ones.
    """
    wholes = whole_shapes(before, shapes, source) if before else shapes
    for name, layout in _of(after, shapes, source) if after else ():
        for size, number in zip(wholes[name], layout.parts):
            if size % number:
                text = tr(
                    "{name} of {source} has {size} rows or columns, which cannot be cut into "
                    "{number} equal parts; take a number of ranks that divides {size}",
                    name=one_line(name),
                    source=one_line(source),
                    size=size,
                    number=number,
                )
                raise CheckpointError(text)


def whole_shapes(path: str, shapes: Shapes, source: str) -> Shapes:
    """The shapes of the whole parameters for the slices `shapes`, according to the strategy file `path`."""
    layouts = dict(_of(path, shapes, source))
    return {
        name: tuple(size * number for size, number in zip(shape, layouts[name].parts)) if name in layouts else shape
        for name, shape in shapes.items()
    }


def _of(path: str, shapes: Shapes, source: str) -> Iterator[tuple[str, Layout]]:
    """(parameter, its Layout) of the strategy file `path` for the parameters in `shapes`.  Raises CheckpointError."""
    layouts = read(path)
    if _stages(layouts):
        return  # no checkpoint has the parameters of all stages
    for name, layout in layouts.items():
        # An optimizer's moments, such as moments.fc1.weight, are not in every checkpoint.
        if name not in shapes and name.partition(".")[2] in layouts:
            continue
        if name not in shapes or len(shapes[name]) != len(layout.parts):
            text = tr(
                "strategy file {path} belongs to another network: {source} has no such {name}; name the strategy "
                "file of the run that saved",
                path=one_line(path),
                source=one_line(source),
                name=one_line(name),
            )
            raise CheckpointError(text)
        yield name, layout


def _stages(names: Iterable[str]) -> set[str]:
    """The pipeline stages that a strategy file of several has in the names of its parameters."""
    return {stage for stage, dash, _ in (name.partition("-") for name in names) if dash and stage.isdigit()}
