"""A training step with a loss scale and clipped gradients, a step in two parts, and mixed precision of a network.

MindSpore's own step with a loss scale asks the device whether a number overflowed, which CPUs cannot answer.  This one
looks at the gradients, after the ranks have shared them.  So all ranks decide alike.
"""

from __future__ import annotations

import itertools
import time

import mindspore as ms
from mindspore import amp, nn, ops
from mindspore.common.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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


class Gradients(nn.Cell):
    """The part of a step before the ranks wait for each other: the loss and the gradients of the rank's own batch.

    forward: a Cell (data, label) -> loss.  With a loss_scale the gradients are those of the loss times its factor.
    """

    def __init__(self, forward: nn.Cell, optimizer: nn.Optimizer, loss_scale: LossScale | None = None) -> None:
        super().__init__(auto_prefix=False)
        self.forward, self.weights, self.loss_scale = forward, optimizer.parameters, loss_scale
        self.forward.set_grad()
        self.gradients = ops.GradOperation(get_by_list=True, sens_param=True)

    def construct(self, data: Tensor, label: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        loss = self.forward(data, label)
        factor = ops.ones_like(loss)
        if self.loss_scale is not None:
            factor = factor * self.loss_scale.value
        return loss, self.gradients(self.forward, self.weights)(data, label, factor)


class SharedTogether(nn.Cell):
    """The mean (or the sum) of all ranks' gradients, exchanged as one tensor.

    MindSpore exchanges gradients one by one on CPUs.  After backward none of them can wait beside other work: with 8
    ranks on 2 cores the exchange of LeNet-5's took three times as long as that of one tensor.
    """

    def __init__(self, weights: ms.ParameterTuple, mean: bool, ranks: int) -> None:
        super().__init__(auto_prefix=False)
        self.shapes = [weight.shape for weight in weights]
        ends = list(itertools.accumulate(weight.size for weight in weights))
        self.places = list(zip([0, *ends], ends))
        self.sum, self.factor = ops.AllReduce(), 1 / ranks if mean else 1.0

    def construct(self, gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        flat: tuple[Tensor, ...] = ()
        for gradient in gradients:
            flat += (gradient.reshape(-1),)
        shared = self.sum(ops.concat(flat)) * self.factor
        found: tuple[Tensor, ...] = ()
        for shape, (start, end) in zip(self.shapes, self.places):
            found += (shared[start:end].reshape(shape),)
        return found


def _sharing(weights: ms.ParameterTuple, mean: bool, ranks: int, together: bool = False) -> nn.Cell:
    """What exchanges the gradients of `weights`; NPUs and GPUs exchange several at a time by themselves."""
    if ranks == 1:
        return nn.Identity()
    if together and ms.get_context("device_target") == "CPU":
        return SharedTogether(weights, mean, ranks)
    return nn.DistributedGradReducer(weights, mean, ranks)


class Update(nn.Cell):
    """The rest of a step: the `ranks` share their gradients, and the optimizer changes the weights.  Returns the loss.

    mean: whether the gradients are averaged; otherwise they are added up.
    """

    def __init__(self, optimizer: nn.Optimizer, ranks: int, mean: bool = True) -> None:
        super().__init__(auto_prefix=False)
        self.optimizer, self.share = optimizer, _sharing(optimizer.parameters, mean, ranks, together=True)

    def construct(self, loss: Tensor, *gradients: Tensor) -> Tensor:
        return ops.depend(loss, self.optimizer(self.share(gradients)))


class ScaledUpdate(nn.Cell):
    """Like Update, for gradients with a loss scale; norm: the largest that they may have together, or None.

    Returns (loss, whether the gradients were finite, the loss scale): where they were not, no weight has changed.
    """

    def __init__(
        self,
        optimizer: nn.Optimizer,
        loss_scale: LossScale,
        norm: float | None,
        ranks: int,
        mean: bool,
        together: bool,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.optimizer, self.norm, self.loss_scale = optimizer, norm, loss_scale
        self.ranks, self.sum = ranks, ops.AllReduce() if ranks > 1 else nn.Identity()
        self.share = _sharing(optimizer.parameters, mean, ranks, together)

    def construct(self, loss: Tensor, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale = self.loss_scale.value * 1  # this step's: the parameter changes below
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


class Step(nn.Cell):
    """One step of `forward`, a Cell (data, label) -> loss, with `optimizer`.

    scale: the section loss_scaler of a config, or None; norm: the largest norm of the gradients, or None; mean: whether
    the gradients of several `ranks` are averaged; in_two: it is to run as InTwoParts.  Returns what ScaledUpdate does.
    """

    def __init__(
        self,
        forward: nn.Cell,
        optimizer: nn.Optimizer,
        scale: dict | None = None,
        norm: float | None = None,
        ranks: int = 1,
        mean: bool = True,
        in_two: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.loss_scale = LossScale(scale or {"type": "static", "loss_scale": 1, "scale_factor": 2, "scale_window": 1})
        self.own = Gradients(forward, optimizer, self.loss_scale)
        self.rest = ScaledUpdate(optimizer, self.loss_scale, norm, ranks, mean, together=in_two)

    def construct(self, data: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        loss, gradients = self.own(data, label)
        return self.rest(loss, *gradients)


class InTwoParts(nn.Cell):
    """A step as two programs, one after the other, so that it is known when a rank begins to wait for the others.

    own: (data, label) -> (loss, gradients), without the other ranks; rest: (loss, gradients) -> what the step returns.
    """

    def __init__(
        self, own: Gradients, rest: Update | ScaledUpdate, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        super().__init__(auto_prefix=False)
        self.own, self.rest, self.clock = own, rest, clock
        self.ended = 0.0

    def __call__(self, data: Tensor, label: Tensor) -> Any:
        """A step.  It is not compiled as a whole, as MindSpore would with `construct`."""
        loss, gradients = self.own(data, label)
        _wait_for(loss, gradients[0])  # the first layer's gradient, which backward has last
        self.ended = self.clock()
        outputs = self.rest(loss, *gradients)  # one by one: for another tuple MindSpore would compile again
        _wait_for(self.own.weights[-1])  # else the next step's time would begin before the exchange has ended
        return outputs

    def own_ended(self) -> float:
        """When, by the clock, the rank had the gradients of its own batch in the last step."""
        return self.ended


def _wait_for(*values: Tensor) -> None:
    """Returns when the device has computed all it was given; on CPUs, where MindSpore has no such call, `values`."""
    if ms.get_context("device_target") != "CPU":
        ms.runtime.synchronize()
        return
    for value in values:
        value.asnumpy()


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
    """The network that computes in float16 as far as `level` states; weights and outputs are float32.

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
