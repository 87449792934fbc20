"""Finds settings of precision, learning rate, optimizer and the end of training that do not fit together.

A schema cannot express this: each of the values is valid alone.
"""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem
from tools.config import modes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PYNATIVE = 1
_DECAYS = ("cosine_decay", "warmup_cosine_decay")

# key -> the values of scheduler.scheduler, of optimizer.opt or of loss_scaler.type that it has an effect with
_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "scheduler": {
        "min_lr": _DECAYS,
        "warmup_epochs": _DECAYS[1:],
        "warmup_factor": _DECAYS[1:],
        "decay_epochs": _DECAYS[1:],
    },
    "optimizer": {
        "eps": ("adam", "adamw"),
        "lars_coefficient": ("lars",),
        "lars_epsilon": ("lars",),
    },
    "loss_scaler": {"scale_factor": ("dynamic",), "scale_window": ("dynamic",)},
}
_CHOICES = {"scheduler": ("scheduler", "constant"), "optimizer": ("opt", ""), "loss_scaler": ("type", "")}


def problems(data: dict[str, Any]) -> list[Problem]:
    """What is wrong with a config, a dict that satisfies the schema."""
    found = [problem for name in _KEYS if name in data for problem in _without_effect(name, data[name])]
    return found + _rate(data["scheduler"]) + _optimizer(data) + _jit(data["system"]) + _step(data) + _early_stop(data)


def _without_effect(name: str, section: dict[str, Any]) -> list[Problem]:
    choice, default = _CHOICES[name]
    chosen = section.get(choice, default)
    return [
        Problem(
            "key-without-effect",
            f"/{name}/{key}",
            tr("{key} has no effect with {choice}: {chosen}", key=key, choice=choice, chosen=chosen),
            tr("remove it, or write {choice}: {wanted}", choice=choice, wanted=tr(" or ").join(fitting)),
        )
        for key, fitting in _KEYS[name].items()
        if key in section and chosen not in fitting
    ]


def _rate(section: dict[str, Any]) -> list[Problem]:
    if section.get("min_lr", 0) > section["lr"]:
        text = tr(
            "the learning rate would rise from {before} to {after}",
            before=section["lr"],
            after=section["min_lr"],
        )
        return [Problem("learning-rate", "/scheduler/min_lr", text, tr("write at most scheduler.lr"))]
    if section.get("scheduler") != "warmup_cosine_decay":
        return []
    if "warmup_epochs" not in section:
        text = tr('"{key}" is missing, {kind} needs it', key="warmup_epochs", kind="warmup_cosine_decay")
        return [Problem("missing-key", "/scheduler", text, tr('add "{key}"', key="warmup_epochs"))]
    epochs, warm = section["num_epochs"], section["warmup_epochs"]
    if warm >= epochs:
        text = tr("after {warm} epochs of warm-up none of {epochs} is left for the cosine", warm=warm, epochs=epochs)
        return [
            Problem("learning-rate", "/scheduler/warmup_epochs", text, tr("write less than {epochs}", epochs=epochs))
        ]
    if warm + section.get("decay_epochs", 0) > epochs:
        text = tr(
            "{warm} epochs of warm-up and {decay} of decay are more than {epochs}",
            warm=warm,
            decay=section["decay_epochs"],
            epochs=epochs,
        )
        return [
            Problem("learning-rate", "/scheduler/decay_epochs", text, tr("write at most {most}", most=epochs - warm))
        ]
    return []


def _optimizer(data: dict[str, Any]) -> list[Problem]:
    section, found = data["optimizer"], []
    if section.get("nesterov") and section["opt"] not in ("momentum", "sgd"):
        remedy = tr("write False, or opt: momentum")
        text = tr("{opt} has no Nesterov variant", opt=section["opt"])
        found.append(Problem("key-without-effect", "/optimizer/nesterov", text, remedy))
    elif section.get("nesterov") and section.get("momentum") == 0:
        text = tr("the Nesterov variant needs a momentum")
        found.append(Problem("optimizer", "/optimizer/momentum", text, tr("write more than 0, or nesterov: False")))
    cut = _cut(data)
    if section["opt"] == "lars" and cut:
        text = tr("lars needs the norm of whole layers, and {cut} cuts them", cut=cut)
        found.append(Problem("optimizer", "/optimizer/opt", text, tr("write momentum, sgd, adam or adamw")))
    return found


def _jit(system: dict[str, Any]) -> list[Problem]:
    if "jit_level" not in system or system.get("mode", 0) != _PYNATIVE:
        return []
    text = tr("jit_level has no effect in PyNative mode, which compiles no graph")
    return [Problem("key-without-effect", "/system/jit_level", text, tr("remove it, or write mode: 0"))]


def _step(data: dict[str, Any]) -> list[Problem]:
    """Problems of what changes a training step: precision, loss scale, clipping."""
    name, train, found = data["model"]["name"], data["train"], []
    level = data["system"].get("amp_level", "O0")
    if name == "crnn" and level in ("O2", "O3") and data["system"].get("mode", 0) == _PYNATIVE:
        text = tr("with {level} the gradients of crnn were not finite in PyNative mode (seen on CPU)", level=level)
        found.append(Problem("precision", "/system/amp_level", text, tr("write O1, or mode: 0")))
    if level != "O0" and name in modes.NETS:
        text = tr("{name} demonstrates a parallel mode, and is written for float32", name=name)
        found.append(Problem("precision", "/system/amp_level", text, tr("write O0, or take another network")))
    cut = _cut(data)
    if cut and "loss_scaler" in data:
        text = tr("a loss scale cannot be combined with {cut}, whose ranks would see different overflows", cut=cut)
        found.append(Problem("precision", "/loss_scaler", text, tr("remove this section")))
    if cut and train.get("clip_grad"):
        text = tr("clip_grad needs the norm of all gradients, and {cut} cuts them", cut=cut)
        found.append(Problem("precision", "/train/clip_grad", text, tr("write {wanted}", wanted="False")))
    if "clip_norm" in train and not train.get("clip_grad"):
        text = tr("clip_norm has no effect without clip_grad")
        found.append(Problem("key-without-effect", "/train/clip_norm", text, tr("write clip_grad: True, or remove it")))
    return found


def _cut(data: dict[str, Any]) -> str | None:
    """The key that gives a rank only a part of the gradients."""
    name, section = data["model"]["name"], data.get("parallel", {})
    if name in modes.BY_HAND:
        return f"model.name: {name}"
    mode = section.get("mode", "data_parallel")
    return f"parallel.mode: {mode}" if data["system"]["distribute"] and mode in modes.BY_MINDSPORE else None


def _early_stop(data: dict[str, Any]) -> list[Problem]:
    if "early_stop" not in data or ("eval" in data and data["system"].get("val_while_train")):
        return []
    if "eval" in data:
        text = tr("nothing is measured during training, because system.val_while_train is not True")
        remedy = tr("write val_while_train: True under system:")
    else:
        text = tr("nothing is measured, because there is no section eval:")
        remedy = tr("add one, or remove this section")
    return [Problem("early-stop", "/early_stop", text, remedy)]
