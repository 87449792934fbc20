"""The networks that a config can name: one module each."""

from tools.models.crnn import CRNN
from tools.models.dbnet import DBNet
from tools.models.dense import DenseNet
from tools.models.lenet import LeNet5
from tools.models.resnet import ResNet50

MODELS = {"lenet5": LeNet5, "dense": DenseNet, "resnet50": ResNet50, "crnn": CRNN, "dbnet": DBNet}


def build(config):
    """The network that the section `model` (a dict) names; its other keys are the network's arguments."""
    arguments = {key: value for key, value in config.items() if key != "name"}
    return MODELS[config["name"]](**arguments)
