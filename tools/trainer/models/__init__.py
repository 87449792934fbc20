"""The networks that a config can name: one module per network."""

from __future__ import annotations

from tools.trainer.models.crnn import CRNN
from tools.trainer.models.dbnet import DBNet
from tools.trainer.models.dense import DenseNet
from tools.trainer.models.lenet import LeNet5
from tools.trainer.models.resnet import ResNet50

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mindspore import nn

MODELS = {"lenet5": LeNet5, "dense": DenseNet, "resnet50": ResNet50, "crnn": CRNN, "dbnet": DBNet}


def build(section: dict) -> nn.Cell:
    """The network that the section `model` (a dict) names; its other keys are the network's arguments."""
    arguments = {key: value for key, value in section.items() if key != "name"}
    return MODELS[section["name"]](**arguments)
