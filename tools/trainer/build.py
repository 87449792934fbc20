"""Builds what is trained: network, loss, optimizer, and the MindSpore Model that runs them in the config's mode."""

from __future__ import annotations

import os

import mindspore as ms
from mindspore import nn

from hccl_tools.common.record import Record
from tools.config import modes
from tools.trainer import checkpoints, losses, metrics, models
from tools.trainer.checkpoints import saving, strategies
from tools.trainer.models import parallel


class Run(Record):
    """`model` trains and `measure` evaluates; they differ where training needs a different form of the network."""

    network: nn.Cell
    optimizer: nn.Optimizer
    model: ms.Model
    measure: ms.Model | None


def build(config: dict, rank: int, ranks: int, steps: int) -> Run:
    """The Run of `config` for rank `rank` of `ranks`, with `steps` steps an epoch."""
    loss = losses.build(config["loss"])
    if config["model"]["name"] == modes.STAGES_BY_HAND:
        return _stages_by_hand(config, rank, loss, steps)
    network = build_network(config, rank, ranks)
    optimizer = build_optimizer(config, network.trainable_params(), steps)
    if config["model"]["name"] == modes.TENSOR_PARALLEL:
        folder = checkpoints.folder_of(config)
        with saving.into(folder):
            os.makedirs(folder, exist_ok=True)
            strategies.write(
                os.path.join(folder, strategies.NAME), cuts(network, optimizer), ranks
            )  # each rank the same
    measures = metrics.build(config["loss"]["name"])
    pipeline = config["parallel"]["pipeline_stages"] > 1
    parts = config["parallel"]["micro_batches"] if pipeline else config["train"]["gradient_accumulation_steps"]
    if pipeline or parts > 1:
        whole = parallel.in_parts(network, loss, parts, pipeline)
        if config["parallel"]["mode"] in modes.BY_MINDSPORE:
            model = ms.Model(whole, optimizer=optimizer)
        else:  # the step that Model would choose for it leaves out the exchange of gradients between ranks
            model = ms.Model(nn.TrainOneStepCell(whole, optimizer))
        measure = ms.Model(network, loss, metrics=measures)
        return Run(network=network, optimizer=optimizer, model=model, measure=measure)
    model = ms.Model(network, loss, optimizer, metrics=measures)
    return Run(network=network, optimizer=optimizer, model=model, measure=model)


def build_network(config: dict, rank: int, ranks: int) -> nn.Cell:
    """The network that the section `model` names."""
    if config["model"]["name"] not in modes.NETS:
        network = models.build(config["model"])
        if config["parallel"]["pipeline_stages"] > 1:
            network.set_pipeline_stages(config["parallel"]["pipeline_stages"])
        return network
    return parallel.build(config, rank, ranks)


def cuts(network: parallel.HybridParallelNet | parallel.SemiAutoParallelNet, optimizer: nn.Optimizer) -> dict:
    """How the network's parameters are cut, and the same for the optimizer's moments of them."""
    found = dict(network.cuts)
    for parameter in optimizer.get_parameters():
        of = parameter.name.partition(".")[2]  # moments.fc1.weight -> fc1.weight
        if of in network.cuts and parameter.name not in found:
            found[parameter.name] = network.cuts[of]
    return found


def build_optimizer(config: dict, parameters: list[ms.Parameter], steps: int) -> nn.Optimizer:
    """The optimizer that the section `optimizer` names, for these parameters."""
    section = config["optimizer"]
    common = {"learning_rate": learning_rate(config["scheduler"], steps), "weight_decay": section["weight_decay"]}
    if section["opt"] == "momentum":
        return nn.Momentum(parameters, momentum=section["momentum"], **common)
    return nn.Adam(parameters, **common)


def learning_rate(section: dict, steps: int) -> float | list[float]:
    """The learning rate, or a list of one for each step, as the section `scheduler` says."""
    if section["scheduler"] == "constant":
        return section["lr"]
    epochs = section["num_epochs"]
    return nn.cosine_decay_lr(0.0, section["lr"], steps * epochs, steps, epochs)


def _stages_by_hand(config: dict, rank: int, loss: nn.Cell, steps: int) -> Run:
    step = parallel.HandPipelineStep(
        rank,
        config["train"]["loader"]["batch_size"],
        loss,
        lambda parameters: build_optimizer(config, parameters, steps),
        config["system"]["device_target"],
        seed=config["system"]["seed"],
        **{key: config["model"][key] for key in ("num_classes", "hidden_size") if key in config["model"]},
    )
    return Run(network=step.stage, optimizer=step.optimizer, model=ms.Model(step), measure=None)
