"""Configs: every mistake is reported with its line, and a good config is accepted."""

import pathlib

import pytest

from hccl_tools.check import schema_check
from tools.config import config_file as configs

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SHIPPED = sorted((PROJECT / "configs").rglob("*/*.yaml"))  # diagnoses.yaml is beside them and not a config
DIGITS = PROJECT / "configs" / "mnist" / "lenet5_digits.yaml"


@pytest.fixture
def written(tmp_path):
    """written(text): the path of a config with that text."""

    def write(text):
        path = tmp_path / "c.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_shipped_config_is_good(path):
    assert configs.load(str(path)).problems() == []


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("mode: 0 ", "mode: 2 ", 4, "/system/mode: 2 is not known here; write 0 or 1 [bad-value]"),
        ("distribute: True", "distribute: yes please", 5, "is a text; write True or False [wrong-type]"),
        ("name: lenet5", "name: lenet", 11, '/model/name: "lenet" is not known here; did you mean "lenet5"?'),
        ("lr: 0.05", "lr: 0", 18, "/scheduler/lr: 0 is too small; write more than 0"),
        ("num_epochs: 8", "num_epochs: 2.5", 19, "2.5 is a number; write a whole number"),
        ("momentum: 0.9", "momentun: 0.9", 23, '/optimizer/momentun: no such key: "momentun"; did you mean "momentum"'),
        ("  opt: momentum\n", "", 21, '/optimizer: "opt" is missing; add "opt": its name'),
        ("loss:\n  name: CrossEntropyLoss", "loss: CrossEntropyLoss", 14, "is a text; write a group of keys"),
    ],
)
def test_a_mistake_is_named_with_its_line(written, old, new, line, said):
    text = DIGITS.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    problems = configs.load(written(text.replace(old, new, 1))).problems()
    assert any(f"c.yaml:{line}: " in problem and said in problem for problem in problems), problems


def test_an_override_changes_a_value_and_is_read_as_yaml():
    config = configs.load(str(DIGITS))
    config.override(["system.distribute=False", "scheduler.lr=1e-1", "scheduler.num_epochs=3"])
    config.override(["parallel.mode=data_parallel"])
    assert config.get("system.distribute") is False
    assert config.get("scheduler.num_epochs") == 3
    assert config.get("scheduler.lr") == 0.1  # a text in YAML 1.1, which needs a dot
    assert config.problems() == []


def test_a_mistake_in_an_override_is_named_by_the_override():
    config = configs.load(str(DIGITS))
    config.override(["scheduler.num_epoch=3"])
    assert config.problems() == [
        '-o scheduler.num_epoch=3: /scheduler/num_epoch: no such key: "num_epoch"; '
        'did you mean "num_epochs"? [unknown-key]'
    ]


@pytest.mark.parametrize("text", ["epochs", "=3", ".=3", "a..b=3", "system.mode.x=1", "system.mode=[1"])
def test_an_override_that_makes_no_sense_is_refused(text):
    with pytest.raises(configs.ConfigError, match="-o "):
        configs.load(str(DIGITS)).override([text])


def test_aliases_are_not_taken_for_keys_given_twice_and_do_not_blow_up(written):
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert configs.load(written(bomb)).get("a0") == ["x", "x"]


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, "a: 2024-13-45\n", "a: !!python/object:os.system {}\n", "\ttab: 1\n", "a: b: c\n", "? [x]\n: 1\n"],
)
def test_odd_files_are_refused_in_words_or_read(written, text):
    try:
        configs.load(written(text))
    except configs.ConfigError as error:
        assert len(error.lines) == 1
        assert "\n" not in error.lines[0]


def test_defaults_come_from_the_schema():
    filled = configs.load(str(DIGITS)).filled
    assert filled["parallel"]["mode"] == "data_parallel"
    assert filled["train"]["keep_checkpoint_max"] == 3
    assert filled["train"]["loader"]["num_workers"] == 1
    assert schema_check.accepts(filled, schema_check.load_schema("train_config"))
