"""Builds the training: network, loss, optimizer, and the MindSpore Model that runs them in the config's mode."""

from __future__ import annotations

import os

import mindspore as ms
from mindspore import nn

from hccl_tools.common.record import Record
from tools.config import modes
from tools.trainer import before_collective, checkpoints, losses, metrics, models, optimizers, schedules, steps
from tools.trainer.checkpoints import saving, strategies
from tools.trainer.models import parallel


class Run(Record):
    """`model` trains and `measure` evaluates; they differ where training needs a different form of the network.

    state: what a checkpoint has beside the network: the optimizer, or the step that has it and a loss scale; parts: the
    step where it is in two parts, see tools.trainer.before_collective.
    """

    network: nn.Cell
    state: nn.Cell
    model: ms.Model
    measure: ms.Model | None
    metrics: dict[str, metrics.Count] = {}
    parts: steps.InTwoParts | None = None


def build(config: dict, rank: int, ranks: int, per_epoch: int) -> Run:
    """The Run of `config` for rank `rank` of `ranks`, with `per_epoch` steps an epoch."""
    loss = losses.build(config["loss"])
    if config["model"]["name"] == modes.STAGES_BY_HAND:
        return _stages_by_hand(config, rank, loss, per_epoch)
    network = build_network(config, rank, ranks)
    optimizer = build_optimizer(config, network.trainable_params(), per_epoch)
    if config["model"]["name"] == modes.TENSOR_PARALLEL:
        folder = checkpoints.folder_of(config)
        with saving.into(folder):
            os.makedirs(folder, exist_ok=True)
            strategies.write(
                os.path.join(folder, strategies.NAME), cuts(network, optimizer), ranks
            )  # each rank the same
    measures = metrics.build(config["loss"]["name"])
    pipeline, scale, clip = config["parallel"]["pipeline_stages"] > 1, config.get("loss_scaler"), _clip_norm(config)
    parts = config["parallel"]["micro_batches"] if pipeline else config["train"]["gradient_accumulation_steps"]
    whole = parallel.in_parts(network, loss, parts, pipeline) if pipeline or parts > 1 else None
    split = before_collective.is_measured(config, ranks)
    if not (whole or scale or clip or split):
        model = ms.Model(network, loss, optimizer, metrics=measures)
        return Run(network=network, state=optimizer, model=model, measure=model, metrics=measures)
    mean, state, parts = config["parallel"]["gradients_mean"], optimizer, None
    forward = whole or nn.WithLossCell(network, loss)
    if scale or clip:
        state = steps.Step(forward, optimizer, scale, clip, ranks, mean, in_two=split)
        parts = steps.InTwoParts(state.own, state.rest) if split else None
        model = ms.Model(parts or state)
    elif split:
        parts = steps.InTwoParts(steps.Gradients(forward, optimizer), steps.Update(optimizer, ranks, mean))
        model = ms.Model(parts)
    elif config["parallel"]["mode"] in modes.BY_MINDSPORE:
        model = ms.Model(whole, optimizer=optimizer)
    else:  # the step that Model would choose for it leaves out the exchange of gradients between ranks
        model = ms.Model(nn.TrainOneStepCell(whole, optimizer))
    measure = ms.Model(network, loss, metrics=measures)
    return Run(network=network, state=state, model=model, measure=measure, metrics=measures, parts=parts)


def _clip_norm(config: dict) -> float | None:
    """The largest norm that gradients may have; None where they are not clipped."""
    return config["train"]["clip_norm"] if config["train"]["clip_grad"] else None


def build_network(config: dict, rank: int, ranks: int) -> nn.Cell:
    """The network that the section `model` names."""
    if config["model"]["name"] not in modes.NETS:
        network = models.build(config["model"])
        if config["parallel"]["pipeline_stages"] > 1:
            network.set_pipeline_stages(config["parallel"]["pipeline_stages"])
        return steps.lower_precision(network, config["system"]["amp_level"])
    return parallel.build(config, rank, ranks)


def cuts(network: parallel.HybridParallelNet | parallel.SemiAutoParallelNet, optimizer: nn.Optimizer) -> dict:
    """How the network's parameters are cut, and the same for the optimizer's moments of them."""
    found = dict(network.cuts)
    for parameter in optimizer.get_parameters():
        of = parameter.name.partition(".")[2]  # moments.fc1.weight -> fc1.weight
        if of in network.cuts and parameter.name not in found:
            found[parameter.name] = network.cuts[of]
    return found


def build_optimizer(config: dict, parameters: list[ms.Parameter], per_epoch: int) -> nn.Optimizer:
    """The optimizer that the section `optimizer` names, for these parameters."""
    rate = schedules.learning_rate(config["scheduler"], per_epoch)
    return optimizers.build(config["optimizer"], parameters, rate)


def _stages_by_hand(config: dict, rank: int, loss: nn.Cell, per_epoch: int) -> Run:
    step = parallel.HandPipelineStep(
        rank,
        config["train"]["loader"]["batch_size"],
        loss,
        lambda parameters: build_optimizer(config, parameters, per_epoch),
        config["system"]["device_target"],
        seed=config["system"]["seed"],
        **{key: config["model"][key] for key in ("num_classes", "hidden_size") if key in config["model"]},
    )
    return Run(network=step.stage, state=step.optimizer, model=ms.Model(step), measure=None)
