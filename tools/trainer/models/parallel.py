"""One network per parallel mode, all of them the same dense net: images -> hidden -> hidden -> classes.

They are for small grey images, (batch, 1, 32, 32) float32, and give (batch, num_classes) logits.  Their weights come
from one generator in one order.  So nets of one seed are equal however they are cut, and can be compared with
`WholeNet`, the undivided one.
"""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.tensor import Tensor

from tools.config import modes

Strategy = tuple[tuple[int, ...], ...]  # how the inputs of an operator are cut

# The axis that is cut of the parameters that are: the first layer's columns, the second's rows.
CUT = {"fc1.weight": 1, "fc1.bias": 0, "fc2.weight": 0}

PIXELS = 32 * 32


def dense_weights(num_classes: int = 10, hidden_size: int = modes.HIDDEN_SIZE, seed: int = 42) -> dict[str, np.ndarray]:
    """The weights of the undivided net: {name: float32 array}, He-uniform; biases are 0."""
    draw = np.random.default_rng(seed)
    sizes = [PIXELS, hidden_size, hidden_size, num_classes]
    weights = {}
    for number, (inputs, outputs) in enumerate(zip(sizes, sizes[1:]), 1):
        bound = np.sqrt(6 / inputs)
        weights[f"fc{number}.weight"] = draw.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
        weights[f"fc{number}.bias"] = np.zeros(outputs, np.float32)
    return weights


class Dense(nn.Cell):
    """x @ weight + bias; `strategy` is how MatMul is cut in semi-auto mode, such as ((1, 1), (1, 2))."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray, strategy: Strategy | None = None) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(weight), name="weight")
        self.bias = ms.Parameter(Tensor(bias), name="bias")
        self.matmul, self.add = ops.MatMul(), ops.Add()
        if strategy:
            rows, columns = strategy[0][0], strategy[1][1]
            self.matmul.shard(strategy)
            self.add.shard(((rows, columns), (columns,)))

    def construct(self, x: Tensor) -> Tensor:
        """(batch, inputs) -> (batch, outputs)."""
        return self.add(self.matmul(x, self.weight), self.bias)


class WholeNet(nn.Cell):
    """The undivided net.  `sizes`: those of `dense_weights`; `strategies`: one per layer, for semi-auto mode."""

    def __init__(self, strategies: tuple[Strategy | None, ...] = (None, None, None), /, **sizes: int) -> None:
        super().__init__()
        weights = dense_weights(**sizes)
        layers = [Dense(weights[f"fc{n}.weight"], weights[f"fc{n}.bias"], strategies[n - 1]) for n in (1, 2, 3)]
        self.fc1, self.fc2, self.fc3 = layers
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        x = self.relu(self.fc1(x.reshape(-1, PIXELS)))
        return self.fc3(self.relu(self.fc2(x)))


# ---- hybrid parallel: layers cut by hand -------------------------------------------------------------


class SumOverRanks(nn.Cell):
    """The sum of all ranks' x.

    AllReduce alone would also sum the gradients.  But every rank computes the same loss from the same sum, so
    the gradient of x is already what each rank has; summed it would count once a rank.
    """

    def __init__(self) -> None:
        super().__init__()
        self.all_reduce = ops.AllReduce()

    def construct(self, x: Tensor) -> Tensor:
        """x of any shape, the same on all ranks."""
        return self.all_reduce(x)

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        """The gradient goes through unchanged."""
        return (dout,)


class HybridParallelNet(nn.Cell):
    """The net with its two big layers cut over `ranks` ranks, for mode hybrid_parallel.

    The first layer is cut by columns: each rank computes some of the hidden values.  The second is cut by
    rows, so it takes just these values, and gives a part of every sum; adding the parts up is the only
    communication.  What is cut has layerwise_parallel=True: MindSpore leaves its gradient alone.
    """

    def __init__(self, rank: int = 0, ranks: int = 1, **sizes: int) -> None:
        super().__init__()
        whole = dense_weights(**sizes)
        self.cuts = {name: (value.shape, CUT.get(name)) for name, value in whole.items()}
        own = {**whole, **{name: np.split(whole[name], ranks, axis)[rank] for name, axis in CUT.items()}}
        self.fc1 = Dense(own["fc1.weight"], own["fc1.bias"])
        self.fc2 = Dense(own["fc2.weight"], np.zeros_like(own["fc2.bias"]))
        self.fc3 = Dense(own["fc3.weight"], own["fc3.bias"])
        self.sum = SumOverRanks() if ranks > 1 else nn.Identity()
        self.relu = nn.ReLU()
        for parameter in (self.fc1.weight, self.fc1.bias, self.fc2.weight):
            parameter.layerwise_parallel = ranks > 1

    def construct(self, x: Tensor) -> Tensor:
        """Logits of a batch of images, the same on all ranks."""
        x = self.relu(self.fc1(x.reshape(-1, PIXELS)))
        x = self.sum(self.fc2.matmul(x, self.fc2.weight)) + self.fc2.bias  # the bias once, after the sum
        return self.fc3(self.relu(x))


class HandOver(nn.Cell):
    """Gives rank `source`'s tensor to the other one of two ranks: called on both, the result is the other's.

    Send and Receive on Ascend and GPU.  MindSpore 2.10's CPU back end has no such kernels ("Unsupported op
    [Send] on CPU"), but it has Broadcast, which between two ranks is the same.
    """

    def __init__(self, rank: int, source: int, shape: tuple[int, ...], target: str) -> None:
        super().__init__()
        self.sends, self.by_broadcast = rank == source, target == "CPU"
        self.broadcast = ops.Broadcast(source)
        self.send = ops.Send(sr_tag=source, dest_rank=1 - source)
        self.receive = ops.Receive(sr_tag=source, src_rank=source, shape=list(shape), dtype=ms.float32)
        self.place = ops.zeros(tuple(shape), ms.float32)  # what a rank that receives brings along to Broadcast

    def construct(self, x: Tensor) -> Tensor:
        """What `source` gave as x; on the other rank x only states what must be done before."""
        if self.by_broadcast:
            return self.broadcast((x if self.sends else ops.depend(self.place, x),))[0]
        return ops.depend(x, self.send(x)) if self.sends else self.receive(x)


class HandPipelineStep(nn.Cell):
    """One training step of the net in two stages on two ranks, with the communication written by hand.

    Rank 0 has the first layer: it hands over what comes out of it, and gets the gradient of that.  Rank 1
    has the other two and the loss.  Called with (images, labels), the same batch on both; both give the
    loss.  `make_optimizer` takes a list of parameters.
    """

    def __init__(
        self,
        rank: int,
        batch_size: int,
        loss: nn.Cell,
        make_optimizer: Callable[[list[ms.Parameter]], nn.Optimizer],
        target: str = "CPU",
        **sizes: int,
    ) -> None:
        super().__init__(auto_prefix=False)  # names as in the undivided net
        self.first = rank == 0
        net = WholeNet(**sizes)
        self.stage = FirstStage(net) if self.first else LastStage(net, loss)
        self.optimizer = make_optimizer(self.stage.trainable_params())
        hidden = (batch_size, *net.fc1.bias.shape)
        self.forward = HandOver(rank, 0, hidden, target)
        self.backward = HandOver(rank, 1, hidden, target)
        self.report = HandOver(rank, 1, (1,), target)
        if self.first:
            self.gradients = ops.GradOperation(get_by_list=True, sens_param=True)(self.stage, self.optimizer.parameters)
        else:
            self.gradients = ops.GradOperation(get_all=True, get_by_list=True)(self.stage, self.optimizer.parameters)

    def construct(self, images: Tensor, labels: Tensor) -> Tensor:
        """The loss of the batch, after the weights were changed."""
        return self.first_stage(images) if self.first else self.last_stage(images, labels)

    def first_stage(self, images: Tensor) -> Tensor:
        """Forward, then backward with what the other rank found."""
        gradient = self.backward(self.forward(self.stage(images)))
        changed = self.optimizer(self.gradients(images, gradient))
        return ops.depend(self.report(gradient), changed)

    def last_stage(self, images: Tensor, labels: Tensor) -> Tensor:
        """Forward and backward of the rest."""
        hidden = self.forward(images)
        loss = self.stage(hidden, labels)
        of_inputs, of_weights = self.gradients(hidden, labels)
        done = self.backward(of_inputs[0])
        changed = self.optimizer(of_weights)
        return ops.depend(self.report(ops.depend(loss.reshape((1,)), done)), changed)


class FirstStage(nn.Cell):
    """Images -> hidden values."""

    def __init__(self, net: WholeNet) -> None:
        super().__init__(auto_prefix=False)  # names as in the undivided net
        self.fc1, self.relu = net.fc1, net.relu

    def construct(self, x: Tensor) -> Tensor:
        """(batch, 1, 32, 32) -> (batch, hidden_size)."""
        return self.relu(self.fc1(x.reshape(-1, PIXELS)))


class LastStage(nn.Cell):
    """Hidden values and labels -> loss."""

    def __init__(self, net: WholeNet, loss: nn.Cell) -> None:
        super().__init__(auto_prefix=False)  # names as in the undivided net
        self.fc2, self.fc3, self.relu, self.loss = net.fc2, net.fc3, net.relu, loss

    def construct(self, x: Tensor, labels: Tensor) -> Tensor:
        """(batch, hidden_size), (batch,) -> scalar."""
        return self.loss(self.fc3(self.relu(self.fc2(x))), labels)


# ---- cut by MindSpore (Ascend and GPU) ---------------------------------------------------------------


class SemiAutoParallelNet(WholeNet):
    """The net with shard() strategies for `ranks` ranks, for mode semi_auto_parallel: cut as
    HybridParallelNet is, but the communication is MindSpore's.  In other modes shard() has no effect.
    """

    def __init__(self, ranks: int = 1, **sizes: int) -> None:
        columns, rows, whole = ((1, 1), (1, ranks)), ((1, ranks), (ranks, 1)), ((1, 1), (1, 1))
        super().__init__((columns, rows, whole), **sizes)
        self.cuts = {name: (value.shape, CUT.get(name)) for name, value in dense_weights(**sizes).items()}


class PipelineNet(WholeNet):
    """The net in `stages` stages, for pipeline_stages above 1: its three layers are dealt out in order."""

    def __init__(self, stages: int = 2, **sizes: int) -> None:
        super().__init__(**sizes)
        for number, layer in enumerate((self.fc1, self.fc2, self.fc3)):
            layer.pipeline_stage = number * stages // 3


# ---- batches in parts --------------------------------------------------------------------------------


class LossOfPart(nn.Cell):
    """The loss of one of `parts` parts of a batch, divided by `parts`: their sum is the batch's loss."""

    def __init__(self, network: nn.Cell, loss: nn.Cell, parts: int) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.loss, self.parts = network, loss, parts

    def construct(self, data: Tensor, label: Tensor) -> Tensor:
        return self.loss(self.network(data), label) / self.parts


def in_parts(network: nn.Cell, loss: nn.Cell, parts: int, pipeline: bool = False) -> nn.Cell:
    """A Cell (data, label) -> loss that takes the batch in `parts` parts; in a pipeline they overlap."""
    cell = LossOfPart(network, loss, parts)
    return nn.PipelineCell(cell, parts) if pipeline else nn.GradAccumulationCell(cell, parts)


def build(config: dict, rank: int, ranks: int) -> nn.Cell:
    """The network of a config whose model is one of this module's, for rank `rank` of `ranks`."""
    section = config["model"]
    arguments = {key: section[key] for key in ("num_classes", "hidden_size") if key in section}
    arguments["seed"] = config["system"]["seed"]
    if section["name"] == modes.TENSOR_PARALLEL:
        return HybridParallelNet(rank=rank, ranks=ranks, **arguments)
    stages = config["parallel"]["pipeline_stages"]
    if section["name"] == modes.STAGED:
        return PipelineNet(stages=stages, **arguments)
    return SemiAutoParallelNet(ranks=ranks // stages, **arguments)
