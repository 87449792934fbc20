"""The optimizers that a config can name.  MindSpore has most; AdamW and Lars are written here for every device.

MindSpore's AdamWeightDecay leaves out the correction of the first steps' moments, its AdamW is for Ascend only, and its
LARS is deprecated.
"""

from __future__ import annotations

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.tensor import Tensor

BETA1, BETA2 = 0.9, 0.999


class AdamW(nn.Optimizer):
    """Adam with a decay that does not pass through the moments (Loshchilov and Hutter).

    decays: the weight decay of every parameter.
    """

    def __init__(
        self, parameters: list[ms.Parameter], learning_rate: float | list[float], decays: list[float], eps: float
    ) -> None:
        super().__init__(learning_rate, parameters)
        self.decays, self.eps = tuple(decays), eps
        self.moment1 = self._parameters.clone(prefix="moment1", init="zeros")
        self.moment2 = self._parameters.clone(prefix="moment2", init="zeros")
        # 1 - BETA to the power of the step: as 1 minus a power the first ones would lose half of their digits
        self.share1 = ms.Parameter(Tensor(0, ms.float32), name="share1")
        self.share2 = ms.Parameter(Tensor(0, ms.float32), name="share2")

    def construct(self, gradients: tuple[Tensor, ...]) -> Tensor:
        """Changes the weights; `gradients` are in the order of the parameters."""
        rate = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        share1, share2 = self.share1 * BETA1 + (1 - BETA1), self.share2 * BETA2 + (1 - BETA2)
        done: tuple[Tensor, ...] = (ops.assign(self.share1, share1), ops.assign(self.share2, share2))
        for index in range(len(self._parameters)):
            gradient, weight = gradients[index], self._parameters[index]
            mean = BETA1 * self.moment1[index] + (1 - BETA1) * gradient
            square = BETA2 * self.moment2[index] + (1 - BETA2) * gradient * gradient
            change = mean / share1 / (ops.sqrt(square / share2) + self.eps) + self.decays[index] * weight
            done += (ops.assign(self.moment1[index], mean), ops.assign(self.moment2[index], square))
            done += (ops.assign(weight, weight - rate * change),)
        return ops.depend(self.global_step, done)


class Lars(nn.Optimizer):
    """Momentum, where each layer has a rate of its own, by the norms of its weights and its gradient (You et al.).

    decays: the weight decay of every parameter.  Parameters of one axis, biases and those of batch normalization,
    are changed as by plain momentum.
    """

    def __init__(
        self,
        parameters: list[ms.Parameter],
        learning_rate: float | list[float],
        decays: list[float],
        momentum: float,
        coefficient: float,
        epsilon: float,
    ) -> None:
        super().__init__(learning_rate, parameters)
        self.decays, self.momentum, self.coefficient, self.epsilon = tuple(decays), momentum, coefficient, epsilon
        self.moments = self._parameters.clone(prefix="moments", init="zeros")

    def construct(self, gradients: tuple[Tensor, ...]) -> Tensor:
        """Changes the weights; `gradients` are in the order of the parameters."""
        rate = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        done: tuple[Tensor, ...] = ()
        for index in range(len(self._parameters)):
            gradient, weight, decay = gradients[index], self._parameters[index], self.decays[index]
            change = gradient + decay * weight
            if len(weight.shape) > 1:
                change = change * self.share(norm(weight), norm(gradient), decay)
            moment = self.momentum * self.moments[index] + change
            done += (ops.assign(self.moments[index], moment), ops.assign(weight, weight - rate * moment))
        return ops.depend(self.global_step, done)

    def share(self, of_weight: Tensor, of_gradient: Tensor, decay: float) -> Tensor:
        """A layer's rate by the learning rate; 1 where a norm is 0."""
        found = self.coefficient * of_weight / (of_gradient + decay * of_weight + self.epsilon)
        return ops.select(ops.logical_and(of_weight > 0, of_gradient > 0), found, ops.ones_like(found))


def norm(tensor: Tensor) -> Tensor:
    """The Euclidean norm of all elements."""
    return ops.sqrt(ops.reduce_sum(ops.square(tensor)))


def build(section: dict, parameters: list[ms.Parameter], learning_rate: float | list[float]) -> nn.Optimizer:
    """The optimizer that the section `optimizer` (filled) names, for these parameters."""
    name, decay = section["opt"], section["weight_decay"]
    kept = [section["filter_bias_and_bn"] and len(parameter.shape) < 2 for parameter in parameters]
    decays = [0.0 if keep else float(decay) for keep in kept]
    if name == "adamw":
        return AdamW(parameters, learning_rate, decays, section["eps"])
    if name == "lars":
        own = (section["momentum"], section["lars_coefficient"], section["lars_epsilon"])
        return Lars(parameters, learning_rate, decays, *own)
    groups = _groups(parameters, kept, float(decay)) if decay and any(kept) else parameters
    rate = {"learning_rate": learning_rate, "weight_decay": decay}
    if name == "adam":
        return nn.Adam(groups, eps=section["eps"], **rate)
    nesterov = section["nesterov"]
    if name == "sgd":
        return nn.SGD(groups, momentum=float(section["momentum"]), nesterov=nesterov, **rate)
    return nn.Momentum(groups, momentum=section["momentum"], use_nesterov=nesterov, **rate)


def _groups(parameters: list[ms.Parameter], kept: list[bool], decay: float) -> list[dict]:
    """MindSpore's form of parameters of which some are `kept` from the decay; their order stays."""
    return [
        {"params": [p for p, keep in zip(parameters, kept) if not keep], "weight_decay": decay},
        {"params": [p for p, keep in zip(parameters, kept) if keep], "weight_decay": 0.0},
        {"order_params": parameters},
    ]
