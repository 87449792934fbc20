"""configs/progress.yaml: which numbers a trainer's lines have."""

import math

import pytest
from suite.cases import for_each

from hccl_tools.common.refusal import Refusal
from tools.progress import lines

PATTERNS = lines.load({})
SAMPLES = [(pattern.name, line, dict(says)) for pattern in PATTERNS for line, says in pattern.samples]


@pytest.fixture
def own(tmp_path):
    """own(text): the file that LAUNCH_PROGRESS names, read; or the lines of the refusal."""

    def load(text):
        (tmp_path / "mine.yaml").write_text(text)
        try:
            return lines.load({lines.VARIABLE: str(tmp_path / "mine.yaml")})
        except Refusal as refusal:
            return [line.replace(str(tmp_path), "") for line in refusal.lines]

    return load


def test_every_entry_has_samples():
    assert all(pattern.samples for pattern in PATTERNS)


@for_each("name, line, says", SAMPLES)
def test_a_sample_says_what_is_written_there(name, line, says):
    found = lines.last_of(line, PATTERNS)
    assert found.pop("metric", None) == says.pop("metric", None)
    assert found == pytest.approx(says, nan_ok=True)


@pytest.mark.parametrize(
    "text", ["", "epoch", "loss", "step: 5", "100%|", "epoch: x step: y, loss is z", "a=b\x00\x1b[31m"]
)
def test_other_lines_say_nothing(text):
    assert lines.last_of(text, PATTERNS) == {}


def test_the_last_value_of_each_kind_counts_and_a_place_is_that_of_one_line():
    text = (
        "epoch: 1 step: 8, loss is 2.5\nepoch: 1 step: 8, step time is 40 ms\n"
        "epoch: 1, accuracy on held-out data: 50.0%\nepoch: 2 step: 3, loss is inf\nnothing\n"
    )
    found = lines.last_of(text, PATTERNS)
    assert found == {"epoch": 2, "step": 3, "loss": math.inf, "step_ms": 40.0, "metric": "accuracy", "percent": 50.0}


def test_a_number_that_is_too_long_for_a_step_is_none():
    assert lines.last_of(f"epoch: {'9' * 400} step: 1, loss is 1", PATTERNS) == {"step": 1, "loss": 1.0}


@pytest.mark.parametrize("line", ["at 5, of 9: loss=0.5,", "at 1,000 of x: loss=none", "at ٣ of 9: loss="])
def test_what_the_users_expression_finds_may_be_no_number(own, line):
    mine = own(r"progress: [{name: mine, pattern: 'at (?P<step>\S+) of (?P<steps>\w+): loss=(?P<loss>\S*)'}]")[:1]
    assert "loss" not in lines.last_of(line, mine)
    assert lines.Kinds(mine).losses_of(line) == []


def test_own_entries_come_first(own):
    found = own(
        r"progress: [{name: mine, pattern: 'epoch: \d+ step: (?P<step>\d+), loss is \d+ \((?P<loss><number>)'}]"
    )
    assert lines.last_of("epoch: 1 step: 2, loss is 3 (4)", found) == {"step": 2, "loss": 4.0}
    assert lines.last_of("epoch: 1 step: 2, loss is 3", found)["loss"] == 3.0


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "is not a regular expression: missing )"),
        ("x*", "matches every line, also an empty one"),
        ("(?P<losss>x)", "a group is named losss; the names are epoch, epochs, step,"),
        ("loss x", "has no group with a name, such as (?P<loss><number>)"),
    ],
)
def test_a_mistake_in_the_users_file_is_told_with_its_line(own, pattern, said):
    (line,) = own(f"progress:\n  - name: mine\n    pattern: '{pattern}'\n")
    assert line.startswith("/mine.yaml:3: ") and said in line


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["", "progress: 5", "other: []", "progress: [{name: x}]", "{", "progress: [{pattern: x, name: y, z: 1}]"]
)
def test_a_file_of_another_form_is_refused(own, text):
    assert all(line.startswith("/mine.yaml") for line in own(text)) and own(text)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refusal, match="no such file"):
        lines.load({lines.VARIABLE: str(tmp_path / "none.yaml")})
