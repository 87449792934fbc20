"""Code that commands with a trained network share: its config, and its weights from checkpoints of any job."""

from __future__ import annotations

import os

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import one_line
from tools.config import config_file as configs
from tools.config import modes
from tools.trainer import checkpoints, datasets
from tools.trainer.checkpoints import choosing, converting, saving, strategies

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mindspore as ms
    from mindspore import nn

    from hccl_tools.common.command_line import Parser
    from tools.trainer.checkpoints.labels import Label


def add_arguments(parser: Parser) -> None:
    """--config and --ckpt."""
    parser.option("config", tr(" (that of the network in the checkpoint)"), required=True)
    parser.option("ckpt", required=True)


def check_source(path: str) -> None:
    """Refuses a --ckpt that does not exist."""
    if not os.path.exists(path):
        raise checkpoints.CheckpointError(tr("--ckpt {path}: no such file or folder", path=one_line(path)))


def check_folder(out: str) -> None:
    """Refuses a file to write whose folder does not exist."""
    folder = os.path.dirname(out) or "."
    if not os.path.isdir(folder):
        text = tr(
            "{path} cannot be written: no folder {folder}; make it first", path=one_line(out), folder=one_line(folder)
        )
        raise checkpoints.CheckpointError(text)


def unwritable(out: str, error: OSError) -> str:
    """The line about a file `out` that could not be written."""
    return tr(
        "{path} cannot be written: {reason}; make room, or name another file",
        path=one_line(out),
        reason=strerror(error),
    )


def check_held_out(path: str, filled: dict) -> None:
    """Refuses the config `path` where it names no held-out data, or this is not there."""
    if "eval" not in filled:
        text = tr("{path}: has no section eval:, which names the held-out data; add one", path=one_line(path))
        raise configs.ConfigError(text)
    datasets.check_held_out(filled)


def load_whole(path: str, network: nn.Cell) -> None:
    """Loads the undivided `network` from a file, or from the checkpoints of a job on any number of ranks."""
    with converting.whole(path) as file:
        saving.load(file, network, source=path)


def load_slices(source: str, config: dict, model: ms.Model, network: nn.Cell, ranks: int, images: ms.Tensor) -> None:
    """Loads this rank's slices of `network`, of `ranks` ranks, from the checkpoints of a job on any number of ranks.

    model: of the network; images: what it will be called with, by which MindSpore finds out how it cuts.
    """
    files = choosing.in_all_ranks(source)
    labels = [label for _, label in files.values()]
    if config["model"]["name"] == modes.TENSOR_PARALLEL:
        layouts = strategies.layouts(network.cuts, ranks)
        wanted = {name: [*layout, [], 0, 0, None] for name, layout in layouts.items()}
        _load_cut(source, files, network, wanted)
    elif labels[0].whole:  # MindSpore cuts the weights when it compiles the network
        saving.load(files[0][0], network)
    else:
        _load_cut(source, files, network, model.infer_predict_layout(images))


def _load_cut(source: str, files: dict[int, tuple[str, Label]], network: nn.Cell, wanted: dict[str, list]) -> None:
    """Calls mindspore.load_distributed_checkpoint, which silently passes over what does not fit: it is checked here.

    wanted: {parameter: its layout here}, as infer_predict_layout gives it.
    """
    import mindspore as ms

    strategy = strategies.beside(source)
    strategies.check_ranks(strategy, len(files))
    first = saving.read(files[0][0])
    shapes = {name: tuple(parameter.shape) for name, parameter in first.items()}
    wholes = strategies.whole_shapes(strategy, shapes, source)
    own = {name: strategies.parts(layout[0], layout[1]) for name, layout in wanted.items()}
    for parameter in network.get_parameters():
        parts = own.get(parameter.name, (1,) * len(parameter.shape))
        whole = tuple(size * number for size, number in zip(parameter.shape, parts))
        saving.check_fit(source, wholes, {parameter.name: whole})
    try:
        ms.load_distributed_checkpoint(network, [path for path, _ in files.values()], wanted, strategy)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = one_line(str(error).strip().partition("\n")[0])
        text = tr("MindSpore cannot load {source}: {reason}", source=one_line(source), reason=reason)
        raise checkpoints.CheckpointError(text) from error
