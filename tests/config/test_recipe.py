"""Precision, learning rate, optimizer, MindOCR's common keys: what does not go together, and the learning rates."""

import math
import pathlib
from types import SimpleNamespace

import pytest
from suite.cases import for_each

from tools.config import config_file as configs
from tools.launch import job
from tools.trainer import schedules

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
DIGITS, CRNN = CONFIGS / "mnist" / "lenet5_digits.yaml", CONFIGS / "rec" / "crnn" / "crnn_resnet34_zh.yaml"
HYBRID, SEMI = CONFIGS / "parallel" / "hybrid_digits.yaml", CONFIGS / "parallel" / "semi_auto_digits.yaml"
SCALER = "loss_scaler={type: dynamic, loss_scale: 1024}"
WARM = ["scheduler.scheduler=warmup_cosine_decay", "scheduler.warmup_epochs=2"]


def loaded(path, *assignments):
    config = configs.load(str(path))
    config.override(assignments)
    return config


@for_each(
    "path, assignments, said",
    [
        (DIGITS, ["system.amp_level=O4"], '/system/amp_level: "O4" is not known here'),
        (
            HYBRID,
            ["system.amp_level=O2"],
            "hybrid_parallel_net demonstrates a parallel mode, and is written for float32",
        ),
        (
            CRNN,
            ["system.amp_level=O2", "system.mode=1"],
            "with O2 the gradients of crnn were not finite in PyNative mode",
        ),
        (DIGITS, ["system.jit_level=O0", "system.mode=1"], "jit_level has no effect in PyNative mode"),
        (HYBRID, [SCALER], "/loss_scaler: a loss scale cannot be combined with model.name: hybrid_parallel_net"),
        (SEMI, [SCALER], "/loss_scaler: a loss scale cannot be combined with parallel.mode: semi_auto_parallel"),
        (SEMI, ["train.clip_grad=True"], "/train/clip_grad: clip_grad needs the norm of all gradients"),
        (SEMI, ["optimizer.opt=lars"], "/optimizer/opt: lars needs the norm of whole layers"),
        (DIGITS, ["train.clip_norm=1"], "/train/clip_norm: clip_norm has no effect without clip_grad"),
        (DIGITS, ["loss_scaler.type=static"], '/loss_scaler: "loss_scale" is missing'),
        (
            DIGITS,
            ["loss_scaler={type: static, loss_scale: 8, scale_window: 5}"],
            "scale_window has no effect with type: static; remove it, or write type: dynamic",
        ),
        (
            DIGITS,
            ["optimizer.eps=1e-6"],
            "eps has no effect with opt: momentum; remove it, or write opt: adam or adamw",
        ),
        (CRNN, ["optimizer.nesterov=True"], "/optimizer/nesterov: adam has no Nesterov variant"),
        (DIGITS, ["optimizer={opt: sgd, momentum: 0, nesterov: True}"], "the Nesterov variant needs a momentum"),
        (DIGITS, ["scheduler.min_lr=0.01"], "min_lr has no effect with scheduler: constant"),
        (DIGITS, ["scheduler.scheduler=cosine_decay", "scheduler.min_lr=1"], "would rise from 0.05 to 1"),
        (DIGITS, WARM[:1], '/scheduler: "warmup_epochs" is missing, warmup_cosine_decay needs it'),
        (DIGITS, [WARM[0], "scheduler.warmup_epochs=8"], "after 8 epochs of warm-up none of 8 is left"),
        (DIGITS, [*WARM, "scheduler.decay_epochs=7"], "are more than 8; write at most 6"),
        (
            DIGITS,
            ["early_stop.patience=3"],
            "/early_stop: nothing is measured during training, because system.val_while_train",
        ),
        (CRNN, ["common.use_space_char=True"], "adds to the characters of character_dict_path, but that is not set"),
        (CRNN, ["common.infer_mode=True"], "/common/infer_mode: infer_mode: True is for MindOCR's inference"),
        (CRNN, ["common.character_dict_path=nix.txt"], "nix.txt cannot be read: No such file or directory"),
    ],
)
def test_what_does_not_go_together_is_named(path, assignments, said):
    found = loaded(path, *assignments).problems()
    assert any(said in line for line in found), found


def test_a_place_in_the_file_is_named(tmp_path):
    text = DIGITS.read_text(encoding="utf-8").replace("  lr: 0.05\n", "  lr: 0.05\n  decay_epochs: 3\n")
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    (line,) = loaded(tmp_path / "c.yaml").problems()
    assert "c.yaml:20: /scheduler/decay_epochs: decay_epochs has no effect with scheduler: constant" in line


@pytest.mark.parametrize(
    "assignments",
    [
        [*WARM, "scheduler.decay_epochs=6", "optimizer={opt: adamw, momentum: 0.95, nesterov: False, eps: 1e-6}"],
        ["system.amp_level=O3", SCALER, "train.clip_grad=True", "train.clip_norm=5.0", "optimizer.opt=lars"],
        ["early_stop.patience=3", "system.val_while_train=True", "system.jit_level=O1"],
    ],
)
def test_what_goes_together_is_accepted(assignments):
    assert loaded(DIGITS, *assignments).problems() == []


# ---- learning rate -----------------------------------------------------------------------------------


def test_warm_up_and_cosine_at_every_step():
    section = {"scheduler": "warmup_cosine_decay", "lr": 0.4, "num_epochs": 5}
    section.update(min_lr=0.1, warmup_epochs=1, warmup_factor=0.25, decay_epochs=2)
    rates = schedules.learning_rate(section, 4)
    line = [0.1, 0.175, 0.25, 0.325]
    half = [0.25 + 0.15 * math.cos(math.pi * step / 8) for step in range(8)]
    assert rates == pytest.approx(line + half + [0.1] * 8)
    section.update(warmup_epochs=0, decay_epochs=5)
    assert schedules.learning_rate(section, 4)[0] == 0.4


def test_the_learning_rate_by_epochs_and_the_constant_one():
    section = {"scheduler": "cosine_decay", "lr": 0.1, "min_lr": 0.0, "num_epochs": 4}
    by_epoch = [0.1, 0.08535534, 0.05, 0.01464466]  # as MindSpore's nn.cosine_decay_lr
    assert schedules.learning_rate(section, 3) == pytest.approx([rate for rate in by_epoch for _ in range(3)])
    assert schedules.learning_rate({"scheduler": "constant", "lr": 1}, 3) == 1.0


# ---- MindOCR's section common ------------------------------------------------------------------------


def test_common_values_stand_in_for_missing_ones_and_only_for_these(tmp_path):
    text = CRNN.read_text(encoding="utf-8")
    for gone in ("  num_classes: 37", "    batch_size: 16", "    characters: ", "    batch_size: 50"):
        text = "\n".join(line for line in text.split("\n") if not line.startswith(gone))
    letters = tmp_path / "letters.txt"
    letters.write_text("一\n二\n", encoding="utf-8")
    common = f"common: {{num_classes: 4, batch_size: 8, max_text_len: 24, character_dict_path: {letters}, "
    (tmp_path / "c.yaml").write_text(f"{common}use_space_char: True, infer_mode: False}}\n{text}", encoding="utf-8")
    config = loaded(tmp_path / "c.yaml", "eval.loader.batch_size=3", "eval.dataset.characters=ab")
    assert config.problems() == []
    filled = config.filled
    assert filled["model"]["num_classes"] == 4
    assert [filled[part]["loader"]["batch_size"] for part in ("train", "eval")] == [8, 3]
    assert [filled[part]["dataset"]["characters"] for part in ("train", "eval")] == ["一二 ", "ab"]
    assert filled["train"]["dataset"]["max_text_len"] == 24
    config.override(["common.character_dict_path=null"])
    assert config.filled["train"]["dataset"]["characters"] == "0123456789abcdefghijklmnopqrstuvwxyz "
    letters.write_text("ab\n", encoding="utf-8")
    config.override([f"common.character_dict_path={letters}"])
    assert any("is not UTF-8 text with one character a line" in line for line in config.problems())


def test_a_mistake_in_common_is_named_where_it_is():
    (line,) = loaded(CRNN, "common.num_clases=3").problems()
    assert 'common.num_clases=3: /common/num_clases: no such key: "num_clases"; did you mean "num_classes"?' in line
    (line,) = loaded(DIGITS, "common=3").problems()
    assert "/common: 3 is a number; write a group of keys" in line


# ---- --no_sink ---------------------------------------------------------------------------------------


def no_sink_remarks(**of_job):
    return job.no_sink_remarks(SimpleNamespace(no_sink=True), SimpleNamespace(**of_job))


def test_no_sink_sets_jit_level_where_a_graph_is_compiled_and_says_what_took_effect():
    words = job.without_sink(loaded(DIGITS), ["-o", "scheduler.lr=1", "--x"])
    assert words == ["-o", "scheduler.lr=1", "system.jit_level=O0", "--x"]
    (said,) = no_sink_remarks(is_own=True, words=words)
    assert said.startswith("note: --no_sink means system.jit_level=O0; it also sets GRAPH_OP_RUN, ")
    words = job.without_sink(loaded(DIGITS, "system.mode=1"), ["--x"])
    assert words == ["--x"]
    (said,) = no_sink_remarks(is_own=True, words=words)
    assert said.endswith("; PyNative mode runs operators one by one anyway")
    (said,) = no_sink_remarks(is_own=False, words=["python", "net.py"])
    assert said.endswith('MindSpore 2.10 does not read; your program needs set_context(jit_config={"jit_level": "O0"})')
