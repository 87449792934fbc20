"""Which network, data and loss belong together, and which keys each of them takes.

A schema cannot say that: a config that trains a reader of text on handwritten digits is well formed.
"""

from hccl_tools.common.problem import Problem

_CLASSES = ("CrossEntropyLoss", "SoftmaxCrossEntropyExpand")
_LABELLED = ("data_dir", "label_file")

# network -> (types of data, losses, keys of its own)
NETWORKS = {
    "lenet5": (("mnist",), _CLASSES, ("num_classes",)),
    "dense": (("mnist",), _CLASSES, ("num_classes", "image_size")),
    "resnet50": (("cifar10",), _CLASSES, ("num_classes",)),
    # the examples of parallel modes, tools/trainer/models/parallel.py
    "hybrid_parallel_net": (("mnist",), _CLASSES, ("num_classes", "hidden_size")),
    "semi_auto_parallel_net": (("mnist",), _CLASSES, ("num_classes", "hidden_size")),
    "pipeline_net": (("mnist",), _CLASSES, ("num_classes", "hidden_size")),
    "hand_pipeline_net": (("mnist",), _CLASSES, ("num_classes", "hidden_size")),
    "crnn": (("RecDataset",), ("CTCLoss",), ("num_classes", "hidden_size")),
    "dbnet": (("DetDataset",), ("DBLoss",), ("channels", "k")),
}

# type of data -> (keys it must have, keys it may have)
DATASETS = {
    "mnist": ((), ("usage", "image_size")),
    "cifar10": ((), ("usage", "image_size", "augment")),
    "RecDataset": ((*_LABELLED, "characters"), ("image_width",)),
    "DetDataset": (_LABELLED, ("image_size",)),
}

# loss -> keys of its own
LOSSES = {"DBLoss": ("bce_scale", "l1_scale", "eps")}


def problems(data):
    """A list of Problem for a config (a dict that satisfies the schema) whose parts do not fit each other."""
    name, loss = data["model"]["name"], data["loss"]["name"]
    types, losses, keys = NETWORKS[name]
    found = _strange_keys("/model", data["model"], ("name", *keys), f"the network {name}")
    found += _strange_keys("/loss", data["loss"], ("name", *LOSSES.get(loss, ())), loss)
    if loss not in losses:
        found.append(
            Problem(
                "loss-of-another-network", "/loss/name", f"{name} does not learn from {loss}", f"write {_any(losses)}"
            )
        )
    for part in ("train", "eval"):
        if part in data:
            found += _dataset(f"/{part}/dataset", data[part]["dataset"], name, types)
    return found


def _dataset(pointer, section, network, types):
    """The problems of one section `dataset`."""
    kind = section["type"]
    if kind not in types:
        text = f"{network} cannot read data of type {kind}"
        return [Problem("data-of-another-network", f"{pointer}/type", text, f"write {_any(types)}")]
    must, may = DATASETS[kind]
    found = _strange_keys(pointer, section, ("type", "dataset_root", *must, *may), f"data of type {kind}")
    for key in must:
        if key not in section:
            found.append(Problem("missing-key", pointer, f'"{key}" is missing, {kind} needs it', f'add "{key}"'))
    return found


def _strange_keys(pointer, section, known, what):
    return [
        Problem(
            "key-without-effect",
            f"{pointer}/{key}",
            f"{what} knows no {key}",
            f"take it out; it knows {', '.join(known)}",
        )
        for key in section
        if key not in known
    ]


def _any(names):
    return " or ".join(names)
