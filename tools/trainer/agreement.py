"""Exchanges values among the ranks of a job; all ranks must make each of these calls at the same time."""

from __future__ import annotations

import time

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from tools.config import modes
from tools.trainer.checkpoints.choosing import GATHERED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.trainer.checkpoints.choosing import Points

_YEAR_2020 = 1577836800  # seconds since 1970; what is counted from here fits into 32 bits until 2088


def gather_points(points: Points) -> list[Points]:
    """The lists of points (see checkpoints.labels.Label) of all ranks."""
    numbers = [(run - _YEAR_2020, epoch, steps) for run, epoch, steps in points[:GATHERED]]
    numbers += [(-1, -1, -1)] * (GATHERED - len(numbers))
    everyone = _all_gather(numbers)
    return [
        [(int(run) + _YEAR_2020, int(epoch), int(steps)) for run, epoch, steps in part if run >= 0] for part in everyone
    ]


def common_time(ranks: int) -> int:
    """Seconds since 1970 by the clock of the rank that is ahead."""
    now = int(time.time())
    return now if ranks == 1 else int(_all_gather([now - _YEAR_2020]).max()) + _YEAR_2020


def sums(numbers: list[int]) -> list[int]:
    """The sums of all ranks' numbers, each at least 0."""
    halves = _all_gather([divmod(number, 1 << 31) for number in numbers])  # what the ranks exchange has 32 bits
    return [(int(high) << 31) + int(low) for high, low in halves.sum(0, np.int64)]


class Gather:
    """Calls give the numbers of all ranks, a row each; compiled once, because the list always has the same length."""

    def __init__(self) -> None:
        self._gather = _AllGather()

    def __call__(self, numbers: list[int]) -> list[list[int]]:
        tensor = ms.Tensor(np.array(numbers, np.int32))
        rows: list[list[int]] = self._gather(tensor).asnumpy().reshape(-1, len(numbers)).tolist()
        return rows


def broadcast(network: nn.Cell, config: dict) -> None:
    """Gives every rank rank 0's values of all parameters that are not slices of its own.

    MindSpore's own parameter_broadcast is silently without effect in PyNative mode (2.10), so this is
    done by hand in both modes.
    """
    if config["parallel"]["mode"] in modes.BY_MINDSPORE or config["model"]["name"] == modes.STAGES_BY_HAND:
        return
    send = _FromRankZero()
    for parameter in network.get_parameters():
        if not parameter.layerwise_parallel:
            parameter.set_data(ms.Tensor(send(ms.Tensor(parameter.asnumpy())).asnumpy()))


class _FromRankZero(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.broadcast = ops.Broadcast(0)

    def construct(self, value: ms.Tensor) -> ms.Tensor:
        return self.broadcast((value,))[0]


class _AllGather(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.gather = ops.AllGather()

    def construct(self, value: ms.Tensor) -> ms.Tensor:
        return self.gather(value)


def _all_gather(numbers: list[Any]) -> np.ndarray:
    """int32 (ranks, *shape of `numbers`)."""
    tensor = ms.Tensor(np.array(numbers, np.int32))
    return _AllGather()(tensor).asnumpy().reshape(-1, *tensor.shape)
