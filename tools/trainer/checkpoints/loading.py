"""Reads checkpoints, and refuses what does not fit before anything is loaded."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.trainer.checkpoints import CheckpointError, labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mindspore import Parameter, nn

    from tools.trainer.checkpoints.strategies import Shapes


def read(path: str) -> dict[str, Parameter]:
    """{parameter name: Parameter} in the file `path`.  Raises CheckpointError."""
    import mindspore as ms

    shown = tr("checkpoint {path}", path=one_line(path))
    if not os.path.isfile(path):
        folder = tr("{checkpoint}: is a folder, name a .ckpt file in it", checkpoint=shown)
        missing = tr("{checkpoint}: no such file", checkpoint=shown)
        raise CheckpointError(folder if os.path.isdir(path) else missing)
    label = labels.read(os.path.dirname(path) or ".").get(path)
    if label and not labels.is_whole(path, label):
        text = tr("{path} is not what was saved: it is damaged or cut off; take an earlier one", path=shown)
        raise CheckpointError(text)
    try:
        return ms.load_checkpoint(path)
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        reason = one_line(str(error).strip().partition("\n")[0])
        text = tr(
            "{path} cannot be read, it is damaged, cut off, or no checkpoint: {reason}", path=shown, reason=reason
        )
        raise CheckpointError(text) from error


def load(path: str, *cells: nn.Cell, source: str | None = None) -> None:
    """Loads the file `path` into the cells (a network, an optimizer); all of each cell's parameters must fit.

    source: what messages name instead, the folder from which the file was merged.
    """
    import mindspore as ms

    values = read(path)
    shapes = {name: tuple(parameter.shape) for name, parameter in values.items()}
    for cell in cells:
        check_fit(
            source or path, shapes, {parameter.name: tuple(parameter.shape) for parameter in cell.get_parameters()}
        )
    for cell in cells:
        ms.load_param_into_net(cell, values)


def check_fit(path: str, shapes: Shapes, wanted: Shapes) -> None:
    """Raises CheckpointError unless `shapes`, of `path`, has every parameter of `wanted` in its shape."""
    shown = tr("checkpoint {path}", path=one_line(path))
    for name, shape in wanted.items():
        if name not in shapes:
            text = tr(
                "{path} has no {name}: it is of another network or optimizer, or of another "
                "rank's part of the network; take one that was saved with this config",
                path=shown,
                name=name,
            )
            raise CheckpointError(text)
        if shapes[name] != shape:
            text = tr(
                "{path}: {name} has the shape {found}, here it is {shape}; it is of another "
                "network, or cut for another number of ranks (tools/convert_ckpt.py cuts anew)",
                path=shown,
                name=name,
                found=shapes[name],
                shape=shape,
            )
            raise CheckpointError(text)
