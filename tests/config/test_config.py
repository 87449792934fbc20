"""Configs: every mistake is reported with its line, and a good config is accepted."""

import pathlib

import pytest
from suite.cases import for_each

from hccl_tools.check import schema_check
from tools.config import config_file as configs

PROJECT = pathlib.Path(__file__).resolve().parents[2]
FAULTS = PROJECT / "configs" / "faults"  # known failures, as in diagnoses.yaml beside the folders
SHIPPED = sorted(path for path in (PROJECT / "configs").rglob("*/*.yaml") if path.parent != FAULTS)
DIGITS = PROJECT / "configs" / "mnist" / "lenet5_digits.yaml"


@pytest.fixture
def written(tmp_path):
    """written(text): the path of a config with that text."""

    def write(text):
        path = tmp_path / "c.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@for_each("path", SHIPPED, ids=lambda path: path.name)
def test_every_shipped_config_is_good(path):
    assert configs.load(str(path)).problems() == []


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("mode: 0 ", "mode: 2 ", 5, "/system/mode: 2 is not known here; write 0 or 1 [bad-value]"),
        ("distribute: True", "distribute: yes please", 6, "is a text; write True or False [wrong-type]"),
        ("name: lenet5", "name: lenet", 12, '/model/name: "lenet" is not known here; did you mean "lenet5"?'),
        ("lr: 0.05", "lr: 0", 19, "/scheduler/lr: 0 is too small; write more than 0"),
        ("lr: 0.05", "lr: .inf", 19, "/scheduler/lr: Infinity is not a finite number; write a number [wrong-type]"),
        ("lr: 0.05", "lr: .nan", 19, "/scheduler/lr: NaN is not a finite number; write a number [wrong-type]"),
        ("lr: 0.05", "lr: [1" + "0" * 99 + "]", 19, "is a list; write a number [wrong-type]"),
        ("num_epochs: 8", "num_epochs: .inf", 20, "Infinity is not a finite number; write a whole number [wrong-type]"),
        ("num_epochs: 8", "num_epochs: 2026-01-01", 20, "datetime.date(2026, 1, 1) is a date; write a whole number"),
        ("num_epochs: 8", "num_epochs: 2.5", 20, "2.5 is a number; write a whole number"),
        ("momentum: 0.9", "momentun: 0.9", 24, '/optimizer/momentun: no such key: "momentun"; did you mean "momentum"'),
        ("  opt: momentum\n", "", 22, '/optimizer: "opt" is missing; add "opt": the optimizer'),
        ("loss:\n  name: CrossEntropyLoss", "loss: CrossEntropyLoss", 15, "is a text; write a group of keys"),
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


def test_aliases_are_not_taken_for_keys_given_twice(written):
    assert configs.load(written("a: &a {x: 1, y: 2}\nb: [*a, *a]\nc: {<<: [*a, {x: 3}], z: 4}\n")).get("c.y") == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[" * 5000, ":1: more than 50 levels"),
        (
            b"a: 1\nb: 2024-13-45\n",
            ":2: YAML reads 2024-13-45 as timestamp, but it is not one; write a date such as 2024-01-31",
        ),
        (b"a: !!python/object:os.system {}\n", ":1: not YAML: could not determine a constructor"),
        (b"\ttab: 1\n", ":1: not YAML: "),
        (b"a: b: c\n", ":1: not YAML: mapping values are not allowed"),
        (b"? [x]\n: 1\n", ":1: not YAML: found unhashable key"),
        (b"a: 1\nb: 1\na: 2\n", ":3: a is on line 1 too; delete one of the two"),
        (b"b: {a: 1, a: 1}\n", ":1: a is on line 1 too"),
        (b"a: 1\nb: [\xff]\n", "byte 10 is not UTF-8; save the file as UTF-8"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "not YAML: "),
        (b"", "is empty; start from one of the files in configs/"),
        (b"- 1\n", "has no sections"),
        (b"a" * (1 << 20) + b": 1", "is larger than 1048576 bytes"),
    ],
    ids=range(13),
)
def test_odd_files_are_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "c.yaml"
    path.write_bytes(text)
    with pytest.raises(configs.ConfigError) as caught:
        configs.load(str(path))
    (line,) = caught.value.lines
    assert "c.yaml" in line and said in line and "\n" not in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "scheduler.num_epochs=2024-13-45",
            "YAML reads 2024-13-45 as timestamp, but it is not one; write a date such as",
        ),
        ("scheduler.num_epochs=0x_", "YAML reads 0x_ as int, but it is not one; write a whole number such as 12"),
        (
            "scheduler.num_epochs=" + "9" * 5000,
            """or put a text in quotes; the shell takes quotes away: -o 'KEY="TEXT"'""",
        ),
        ("scheduler.num_epochs=" + "[" * 100_000, "more than 50 levels inside each other"),
        ("scheduler.num_epochs=\udcff", "a byte of it is not UTF-8"),
        ("x" + ".x" * 50 + "=1", "write key=value, such as scheduler.num_epochs=3"),
    ],
    ids=range(6),
)
def test_an_override_of_any_text_is_refused_with_its_key_and_its_value_in_short(text, said):
    with pytest.raises(configs.ConfigError) as caught:
        configs.load(str(DIGITS)).override([text])
    (line,) = caught.value.lines
    assert line.startswith(f"-o {text[:20]}".replace("\udcff", "")) and said in line and len(line) < 300


def test_defaults_come_from_the_schema():
    filled = configs.load(str(DIGITS)).filled
    assert filled["parallel"]["mode"] == "data_parallel"
    assert filled["train"]["keep_checkpoint_max"] == 3
    assert filled["train"]["loader"]["num_workers"] == 1
    assert schema_check.accepts(filled, schema_check.load_schema("train_config"))
