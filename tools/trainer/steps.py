"""A training step with a loss scale and clipped gradients, and mixed precision of a network.

MindSpore's own step with a loss scale asks the device whether a number overflowed, which CPUs do not know.  This one
looks at the gradients, after the ranks have shared them.  All ranks decide alike.
"""

from __future__ import annotations

import mindspore as ms
from mindspore import amp, nn, ops
from mindspore.common.tensor import Tensor

_LEAST_SCALE = 1.0


class LossScale(nn.Cell):
    """The factor of the loss, and how it changes: the rule of MindSpore's DynamicLossScaler.

    Checkpoints hold its two parameters, so a run that goes on has the same factor.
    """

    def __init__(self, section: dict) -> None:
        super().__init__()
        self.dynamic = section["type"] == "dynamic"
        self.factor, self.window = float(section["scale_factor"]), section["scale_window"]
        first = Tensor(section["loss_scale"], ms.float32)
        self.value = ms.Parameter(first, name="loss_scale.value", requires_grad=False)
        self.good = ms.Parameter(Tensor(0, ms.int32), name="loss_scale.good_steps", requires_grad=False)

    def construct(self, finite: Tensor) -> Tensor:
        """Takes note of a step; `finite`: whether its gradients were.  Returns the new factor."""
        if not self.dynamic:
            return self.value
        good = ops.select(finite, self.good + 1, ops.zeros_like(self.good))
        grows = good >= self.window
        larger, smaller = self.value * self.factor, ops.maximum(self.value / self.factor, _LEAST_SCALE)
        larger = ops.select(ops.isfinite(larger), larger, self.value * 1)
        value = ops.select(finite, ops.select(grows, larger, self.value * 1), smaller)
        good = ops.select(grows, ops.zeros_like(good), good)
        return ops.depend(value, (ops.assign(self.value, value), ops.assign(self.good, good)))


class Step(nn.Cell):
    """One step of `forward`, a Cell (data, label) -> loss, with `optimizer`.

    scale: the section loss_scaler of a config, or None; norm: the largest norm of the gradients, or None; mean: whether
    the gradients of several `ranks` are averaged.  Returns (loss, whether the gradients were finite, the loss scale):
    where they were not, no weight has changed.
    """

    def __init__(
        self,
        forward: nn.Cell,
        optimizer: nn.Optimizer,
        scale: dict | None = None,
        norm: float | None = None,
        ranks: int = 1,
        mean: bool = True,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.forward, self.optimizer, self.norm = forward, optimizer, norm
        self.forward.set_grad()
        self.weights = optimizer.parameters
        self.gradients = ops.GradOperation(get_by_list=True, sens_param=True)
        self.ranks, self.sum = ranks, ops.AllReduce() if ranks > 1 else nn.Identity()
        self.share = nn.DistributedGradReducer(self.weights, mean, ranks) if ranks > 1 else nn.Identity()
        self.loss_scale = LossScale(scale or {"type": "static", "loss_scale": 1, "scale_factor": 2, "scale_window": 1})

    def construct(self, data: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        loss = self.forward(data, label)
        scale = self.loss_scale.value * 1  # this step's: the parameter changes below
        gradients = self.gradients(self.forward, self.weights)(data, label, ops.ones_like(loss) * scale)
        gradients = self.unscaled(self.share(gradients), scale)
        # A device that reports overflows by itself does so for its own rank alone.
        finite = self.sum(amp.all_finite(gradients).astype(ms.float32).reshape(1)).sum() > self.ranks - 0.5
        if self.norm is not None:
            gradients = ops.clip_by_global_norm(gradients, self.norm)
        if finite:
            loss = ops.depend(loss, self.optimizer(gradients))
        return loss, finite, self.loss_scale(finite)

    def unscaled(self, gradients: tuple[Tensor, ...], scale: Tensor) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = ()
        for gradient in gradients:
            found += (gradient / scale.astype(gradient.dtype),)
        return found


# ---- mixed precision ---------------------------------------------------------------------------------

# What gains from float16 and does not need more: of MindSpore's own list for O1 those Cells that our networks have.
_GAINING = (nn.Conv2d, nn.Conv2dTranspose, nn.Dense)


class InFloat16(nn.Cell):
    """A Cell that computes in float16 between float32 inputs and outputs; names and weights stay as they are."""

    def __init__(self, cell: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.cell = cell.to_float(ms.float16)

    def construct(self, x: Tensor) -> Tensor:
        return self.cell(x).astype(ms.float32)


def lower_precision(network: nn.Cell, level: str) -> nn.Cell:
    """The network that computes in float16 as far as `level` says; weights and outputs are float32.

    O1 is done here: MindSpore's way writes a folder rewritten_network, with code, into the current one.
    """
    if level == "O0":
        return network
    return _with_gaining_cells(network) if level == "O1" else amp.auto_mixed_precision(network, level)


def _with_gaining_cells(network: nn.Cell) -> nn.Cell:
    """Puts the Cells in the network that gain from it into float16, as MindSpore does for O2 with its list."""
    for name, cell in network.name_cells().items():
        if isinstance(cell, _GAINING):
            network._cells[name] = InFloat16(cell)
        else:
            _with_gaining_cells(cell)
    if isinstance(network, nn.SequentialCell):
        network.cell_list = list(network.cells())
    return network
