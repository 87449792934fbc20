"""What belongs together: a config whose parts do not fit each other is refused with its line."""

import pathlib

import pytest

from tools.config import config_file as configs

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
DIGITS, CRNN = CONFIGS / "mnist" / "lenet5_digits.yaml", CONFIGS / "rec" / "crnn" / "crnn_resnet34_zh.yaml"


def problems(path, *assignments):
    config = configs.load(str(path))
    config.override(assignments)
    return config.problems()


@pytest.mark.parametrize(
    ("path", "assignment", "said"),
    [
        (DIGITS, "model.name=crnn", "yaml:16: /loss/name: crnn cannot be trained with CrossEntropyLoss; write CTCLoss"),
        (DIGITS, "model.name=resnet50", "/train/dataset/type: resnet50 cannot read data of type mnist; write cifar10"),
        (DIGITS, "model.hidden_size=3", "=3: /model/hidden_size: the network lenet5 knows no hidden_size"),
        (DIGITS, "loss.eps=1", "/loss/eps: CrossEntropyLoss knows no eps"),
        (DIGITS, "train.dataset.augment=True", "/train/dataset/augment: data of type mnist knows no augment"),
        (CRNN, "eval.dataset.usage=test", "/eval/dataset/usage: data of type RecDataset knows no usage"),
    ],
)
def test_what_does_not_fit_is_named(path, assignment, said):
    assert any(said in problem for problem in problems(path, assignment))


def test_a_key_that_the_data_needs_is_named(tmp_path):
    text = CRNN.read_text(encoding="utf-8").replace("    label_file: rec/test/rec_gt.txt\n", "")
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    (problem,) = problems(tmp_path / "c.yaml")
    assert '/eval/dataset: "label_file" is missing, RecDataset needs it' in problem


def test_data_path_takes_the_place_of_the_folders_and_a_later_override_that_of_data_path():
    config = configs.load(str(DIGITS))
    config.take_data_from("/data")
    config.override(["eval.dataset.dataset_root=/held_out"])
    assert config.get("train.dataset.dataset_root") == "/data"
    assert config.get("eval.dataset.dataset_root") == "/held_out"
    assert config.place("/train/dataset/dataset_root") == "DATA_PATH"
