"""The config of another trainer is not judged; what nearly every trainer would stumble over is noted."""

import re

import pytest
import yaml

from hccl_tools.common.refusal import Refusal
from tools.launch.programs import foreign_config

MINDOCR = "system:\n  distribute: True\nmodel:\n  type: rec\nloss:\n  name: x\n"
STUMBLES = "few trainers can read it as it is: correct it"


def said_by_yaml(text):
    """What this version of PyYAML says of the text."""
    with pytest.raises(yaml.YAMLError) as error:
        yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return error.value.problem


@pytest.fixture
def notes(world):
    """notes(content, name): what is noted about a file of this content."""

    def of(content, name="c.yaml"):
        (world / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return foreign_config.notes(name)

    return of


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("system:\n\tdistribute: True\n", "c.yaml:2: not YAML: a tab before the text; indent with blanks (column 1)"),
        ("a:\n  b: 1\n\tc: 2\n", "c.yaml:3: not YAML: a tab before the text; indent with blanks (column 1)"),
        ("a: @b\n", 'c.yaml:1: not YAML: a text cannot begin with "@"; put it in quotes (column 4)'),
        ("a: b: c\n", f"c.yaml:1: not YAML: {said_by_yaml('a: b: c')} (column 5)"),
        (MINDOCR.encode("utf-16"), "c.yaml: is UTF-16, not UTF-8"),
        ("a: 中\n".encode("gbk"), "c.yaml: byte 4 is not UTF-8"),
        ("", "c.yaml: is empty"),
        (" \n", "c.yaml: is empty"),
    ],
)
def test_what_trainers_stumble_over_is_noted_in_one_line(notes, content, said):
    assert notes(content) == [f"note: {said}; {STUMBLES}"]


def test_a_list_that_has_no_end_is_noted_with_its_line(notes):
    (note,) = notes("a: 1\nb: [1,\nc: 2\n")
    assert re.match(r"note: c.yaml:[34]: not YAML: ", note) and note.endswith(STUMBLES)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (MINDOCR.replace("system", "systen"), 'c.yaml:1: "systen": did you mean "system"?'),
        ("a: 1\nSystem:\n  distribute: True\n", 'c.yaml:2: "System": did you mean "system"?'),
        (MINDOCR + "optimzer:\n  lr: 1\n", 'c.yaml:7: "optimzer": did you mean "optimizer"?'),
        ("system:\n  mode: 0\n  distribut: True\n", 'c.yaml:3: "distribut": did you mean "distribute"?'),
    ],
)
def test_a_name_that_is_nearly_one_of_mindocrs_is_noted(notes, content, said):
    assert notes(content) == [f"note: {said}"]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (MINDOCR, "c.yaml"),
        ("systems:\n  a: 1\ntraining: {b: 1}\nmodels: [c]\n", "c.yaml"),  # another trainer's own
        ("system:\n  distributed: True\n", "c.yaml"),  # the same
        ("---\na: !tag {b: 1}\n---\nb: 2\n", "c.yaml"),
        (f"a: {'[' * 5000}{']' * 5000}\n", "c.yaml"),
        ("a: 1\na: 2\n", "c.yaml"),
        ("- 1\n- 2\n", "c.yaml"),
        ("[section]\nkey = b: 1: 2\n", "c.toml"),
        (MINDOCR.encode("utf-16"), "c.cfg"),
    ],
)
def test_another_shape_is_not_judged(notes, content, name):
    assert notes(content, name) == []


@pytest.mark.parametrize(("content", "found"), [(MINDOCR, True), ("system:\n  distribute:\n", None), ("a: 1\n", "-")])
def test_distribute_is_read_also_where_it_has_no_value(world, content, found):
    (world / "c.yaml").write_text(content)
    config = foreign_config.read("c.yaml", [])
    assert (config.get("system.distribute") if config else "-") == found


def test_a_config_that_is_not_there_is_refused_with_the_name_that_was_meant(world):
    (world / "my_config.yaml").touch()
    with pytest.raises(Refusal, match=r"^my_confg.yaml: no such file; .*; did you mean my_config.yaml\?$"):
        foreign_config.read("my_confg.yaml", [])
