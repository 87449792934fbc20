"""The losses that a config can name.  Each is called as loss(output of the network, label)."""

from __future__ import annotations

from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype


class SoftmaxCrossEntropyExpand(nn.Cell):
    """Softmax cross entropy from small operators, mean over the batch.

    Equal to nn.CrossEntropyLoss; written out as in MindSpore's tutorials of distributed training because the
    parallel modes can split each small operator where they cannot split the fused one.

    logits: float32 (batch, classes); label: int32 (batch,).
    """

    def __init__(self) -> None:
        super().__init__()
        self.maximum = ops.ReduceMax(keep_dims=True)
        self.subtract = ops.Sub()
        self.exp = ops.Exp()
        self.add_up = ops.ReduceSum(keep_dims=True)
        self.log = ops.Log()
        self.one_hot = ops.OneHot()
        self.multiply = ops.Mul()
        self.negate = ops.Neg()
        self.mean = ops.ReduceMean()
        self.on = Tensor(1.0, mstype.float32)
        self.off = Tensor(0.0, mstype.float32)

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        logits = self.subtract(logits, self.maximum(logits, -1))  # exp of large logits would be infinite
        log_softmax = self.subtract(logits, self.log(self.add_up(self.exp(logits), -1)))
        label = self.one_hot(label, logits.shape[1], self.on, self.off)
        of_label = self.add_up(self.multiply(log_softmax, label), -1)
        return self.negate(self.mean(of_label, (0, 1)))


class CTCLoss(nn.Cell):
    """Connectionist temporal classification of text lines, mean over the batch.

    log_probabilities: float32 (batch, columns, classes), class 0 is the blank; label: int32 (batch, longest), the
    characters of a text, then zeros.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loss = nn.CTCLoss(blank=0, reduction="mean", zero_infinity=True)

    def construct(self, log_probabilities: Tensor, label: Tensor) -> Tensor:
        batch, columns = log_probabilities.shape[:2]
        input_lengths = ops.full((batch,), columns, dtype=mstype.int32)
        lengths = (label != 0).astype(mstype.int32).sum(axis=1).astype(mstype.int32)
        return self.loss(log_probabilities.transpose(1, 0, 2), label, input_lengths, lengths)


class DBLoss(nn.Cell):
    """The loss of DBNet: cross entropy of the text's pixels, distance of the thresholds, and dice.

    maps: float32 (batch, 3, h, w), see tools.trainer.models.dbnet.DBNet; label: float32 (batch, 5, h, w), see
    tools.trainer.datasets.text_boxes.  The weights bce_scale and l1_scale are the paper's alpha and beta.
    """

    def __init__(self, bce_scale: float = 5.0, l1_scale: float = 10.0, eps: float = 1e-6) -> None:
        super().__init__()
        self.bce_scale = bce_scale
        self.l1_scale = l1_scale
        self.eps = eps

    def construct(self, maps: Tensor, label: Tensor) -> Tensor:
        probability, threshold, binary = maps[:, 0], maps[:, 1], maps[:, 2]
        text, mask, border, border_mask = label[:, 0], label[:, 1], label[:, 2], label[:, 3]
        cross_entropy = self.balanced_cross_entropy(probability, text * mask, (1 - text) * mask)
        distance = (ops.abs(threshold - border) * border_mask).sum() / (border_mask.sum() + self.eps)
        return self.dice(binary, text, mask) + self.bce_scale * cross_entropy + self.l1_scale * distance

    def balanced_cross_entropy(self, probability: Tensor, text: Tensor, background: Tensor) -> Tensor:
        """Gives text and background the same weight, however few pixels are text."""
        probability = ops.clamp(probability, self.eps, 1 - self.eps)
        of_text = -(ops.log(probability) * text).sum() / (text.sum() + self.eps)
        of_background = -(ops.log(1 - probability) * background).sum() / (background.sum() + self.eps)
        return (of_text + of_background) / 2

    def dice(self, binary: Tensor, text: Tensor, mask: Tensor) -> Tensor:
        """1 - twice the common area by the sum of both."""
        common = (binary * text * mask).sum()
        return 1 - 2 * common / ((binary * mask).sum() + (text * mask).sum() + self.eps)


LOSSES = {
    "CrossEntropyLoss": nn.CrossEntropyLoss,
    "SoftmaxCrossEntropyExpand": SoftmaxCrossEntropyExpand,
    "CTCLoss": CTCLoss,
    "DBLoss": DBLoss,
}


def build(section: dict) -> nn.Cell:
    """The loss that the section `loss` (a dict) names; its other keys are the loss's arguments."""
    arguments = {key: value for key, value in section.items() if key != "name"}
    return LOSSES[section["name"]](**arguments)
