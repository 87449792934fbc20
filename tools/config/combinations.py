"""Checks which network, data and loss fit together, and which keys each of them takes.

A schema cannot express this: a config that trains a text reader on handwritten digits is well-formed.
"""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.record import Record
from tools.config import modes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CLASSES = ("CrossEntropyLoss", "SoftmaxCrossEntropyExpand")
_LABELLED = ("data_dir", "label_file")
_OF_TEXTS = ("image_width", "max_text_len")


class Network(Record):
    """Everything that fits a network: its type of data, its losses, and the keys of its section."""

    data: tuple[str, ...]
    losses: tuple[str, ...]
    keys: tuple[str, ...]


class Dataset(Record):
    """The keys that a type of data must have, and those that it may have."""

    must: tuple[str, ...] = ()
    may: tuple[str, ...]


def _classifier(data: str, *keys: str) -> Network:
    return Network(data=(data,), losses=_CLASSES, keys=("num_classes", *keys))


NETWORKS = {
    "lenet5": _classifier("mnist"),
    "dense": _classifier("mnist", "image_size"),
    "resnet50": _classifier("cifar10"),
    **{name: _classifier("mnist", "hidden_size") for name in modes.NETS},
    "crnn": Network(data=("RecDataset", "LMDBDataset"), losses=("CTCLoss",), keys=("num_classes", "hidden_size")),
    "dbnet": Network(data=("DetDataset",), losses=("DBLoss",), keys=("channels", "k")),
}

DATASETS = {
    "mnist": Dataset(may=("usage", "image_size", "num_samples")),
    "cifar10": Dataset(may=("usage", "image_size", "num_samples", "augment")),
    "RecDataset": Dataset(must=(*_LABELLED, "characters"), may=_OF_TEXTS),
    "LMDBDataset": Dataset(must=("data_dir", "characters"), may=_OF_TEXTS),
    "DetDataset": Dataset(must=_LABELLED, may=("image_size",)),
}

# loss -> keys of its own
LOSSES = {"DBLoss": ("bce_scale", "l1_scale", "eps")}


def problems(data: dict[str, Any]) -> list[Problem]:
    """What is wrong with a config (a dict that satisfies the schema) whose parts do not fit each other."""
    name, loss = data["model"]["name"], data["loss"]["name"]
    network = NETWORKS[name]
    found = _strange_keys("/model", data["model"], ("name", *network.keys), tr("the network {name}", name=name))
    found += _strange_keys("/loss", data["loss"], ("name", *LOSSES.get(loss, ())), loss)
    if loss not in network.losses:
        text = tr("{name} cannot be trained with {loss}", name=name, loss=loss)
        remedy = tr("write {wanted}", wanted=tr(" or ").join(network.losses))
        found.append(Problem("loss-of-another-network", "/loss/name", text, remedy))
    for part in ("train", "eval"):
        if part in data:
            found += _dataset(f"/{part}/dataset", data[part]["dataset"], name)
    return found


def _dataset(pointer: str, section: dict[str, Any], network: str) -> list[Problem]:
    """The problems of one section `dataset`."""
    kind, wanted = section["type"], NETWORKS[network].data
    if kind not in wanted:
        text = tr("{network} cannot read data of type {kind}", network=network, kind=kind)
        remedy = tr("write {wanted}", wanted=tr(" or ").join(wanted))
        return [Problem("data-of-another-network", f"{pointer}/type", text, remedy)]
    keys = DATASETS[kind]
    known = ("type", "dataset_root", *keys.must, *keys.may)
    return _strange_keys(pointer, section, known, tr("data of type {kind}", kind=kind)) + [
        Problem(
            "missing-key",
            pointer,
            tr('"{key}" is missing, {kind} needs it', key=key, kind=kind),
            tr('add "{key}"', key=key),
        )
        for key in keys.must
        if key not in section
    ]


def _strange_keys(pointer: str, section: dict[str, Any], known: tuple[str, ...], what: str) -> list[Problem]:
    remedy = tr("remove it; {what} has the keys {known}", what=what, known=", ".join(known))
    return [
        Problem("key-without-effect", f"{pointer}/{key}", tr("{what} knows no {key}", what=what, key=key), remedy)
        for key in section
        if key not in known
    ]
