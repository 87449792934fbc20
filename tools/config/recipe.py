"""What of precision, learning rate, optimizer and the end of training does not go together in a config.

A schema cannot say that: each of the values is fine alone.
"""

from __future__ import annotations

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
            f"{key} has no effect with {choice}: {chosen}",
            f"remove it, or write {choice}: {' or '.join(fitting)}",
        )
        for key, fitting in _KEYS[name].items()
        if key in section and chosen not in fitting
    ]


def _rate(section: dict[str, Any]) -> list[Problem]:
    if section.get("min_lr", 0) > section["lr"]:
        text = f"the learning rate would rise from {section['lr']} to {section['min_lr']}"
        return [Problem("learning-rate", "/scheduler/min_lr", text, "write at most scheduler.lr")]
    if section.get("scheduler") != "warmup_cosine_decay":
        return []
    if "warmup_epochs" not in section:
        text = '"warmup_epochs" is missing, warmup_cosine_decay needs it'
        return [Problem("missing-key", "/scheduler", text, 'add "warmup_epochs"')]
    epochs, warm = section["num_epochs"], section["warmup_epochs"]
    if warm >= epochs:
        text = f"after {warm} epochs of warm-up none of {epochs} is left for the cosine"
        return [Problem("learning-rate", "/scheduler/warmup_epochs", text, f"write less than {epochs}")]
    if warm + section.get("decay_epochs", 0) > epochs:
        text = f"{warm} epochs of warm-up and {section['decay_epochs']} of decay are more than {epochs}"
        return [Problem("learning-rate", "/scheduler/decay_epochs", text, f"write at most {epochs - warm}")]
    return []


def _optimizer(data: dict[str, Any]) -> list[Problem]:
    section, found = data["optimizer"], []
    if section.get("nesterov") and section["opt"] not in ("momentum", "sgd"):
        remedy = "write False, or opt: momentum"
        text = f"{section['opt']} has no form of Nesterov's"
        found.append(Problem("key-without-effect", "/optimizer/nesterov", text, remedy))
    elif section.get("nesterov") and section.get("momentum") == 0:
        text = "Nesterov's form needs a momentum"
        found.append(Problem("optimizer", "/optimizer/momentum", text, "write more than 0, or nesterov: False"))
    cut = _cut(data)
    if section["opt"] == "lars" and cut:
        text = f"lars needs the norm of whole layers, and {cut} cuts them"
        found.append(Problem("optimizer", "/optimizer/opt", text, "write momentum, sgd, adam or adamw"))
    return found


def _jit(system: dict[str, Any]) -> list[Problem]:
    if "jit_level" not in system or system.get("mode", 0) != _PYNATIVE:
        return []
    text = "jit_level has no effect in PyNative mode, which compiles no graph"
    return [Problem("key-without-effect", "/system/jit_level", text, "remove it, or write mode: 0")]


def _step(data: dict[str, Any]) -> list[Problem]:
    """Problems of what changes a training step: precision, loss scale, clipping."""
    name, train, found = data["model"]["name"], data["train"], []
    level = data["system"].get("amp_level", "O0")
    if name == "crnn" and level in ("O2", "O3") and data["system"].get("mode", 0) == _PYNATIVE:
        text = f"with {level} the gradients of crnn were not finite in PyNative mode (seen on CPU)"
        found.append(Problem("precision", "/system/amp_level", text, "write O1, or mode: 0"))
    if level != "O0" and name in modes.NETS:
        text = f"{name} shows a parallel mode, and is written for float32"
        found.append(Problem("precision", "/system/amp_level", text, "write O0, or take another network"))
    cut = _cut(data)
    if cut and "loss_scaler" in data:
        text = f"a loss scale does not go with {cut}, whose ranks would see different overflows"
        found.append(Problem("precision", "/loss_scaler", text, "remove this section"))
    if cut and train.get("clip_grad"):
        text = f"clip_grad needs the norm of all gradients, and {cut} cuts them"
        found.append(Problem("precision", "/train/clip_grad", text, "write False"))
    if "clip_norm" in train and not train.get("clip_grad"):
        text = "clip_norm has no effect without clip_grad"
        found.append(Problem("key-without-effect", "/train/clip_norm", text, "write clip_grad: True, or remove it"))
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
        text = "nothing is measured during training, because system.val_while_train is not True"
        remedy = "write val_while_train: True under system:"
    else:
        text, remedy = "nothing is measured, because there is no section eval:", "add one, or remove this section"
    return [Problem("early-stop", "/early_stop", text, remedy)]
