"""YAML of anybody's: bounded before anything is made of it, and refused with a message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.config import config_file, yaml_text
from tools.config.yaml_text import NotYaml

_CHAIN = range(1, 60)
_BOMBS = {
    "list": "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in _CHAIN),
    "keys": "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}\n" for n in _CHAIN),
    "merge": "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in _CHAIN),
    "long text": "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 100 + "]\n",
}


@pytest.mark.parametrize("kind", _BOMBS)
def test_aliases_that_multiply_are_refused_with_the_line_on_which_it_is_too_much(kind):
    with pytest.raises(NotYaml, match="more than 2097152 characters once its aliases") as caught:
        yaml_text.read(_BOMBS[kind])
    assert 1 < caught.value.line < 25


def test_aliases_that_stack_are_refused_as_too_deep():
    chain = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 5000))
    with pytest.raises(NotYaml, match="more than 50 levels") as caught:
        yaml_text.read(chain)
    assert caught.value.line == 48


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\ufffe"])
def test_a_character_that_does_not_print_is_named_with_its_line(character):
    with pytest.raises(NotYaml, match=f"has the character U[+]{ord(character):04X}, which does not print$") as caught:
        yaml_text.read(f"é: 1\nb: x{character}y\n")
    assert caught.value.line == 2


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: [1, *a]}", "a: &a\n  <<: *a\n", "&a a: &b {c: *b}"])
def test_a_value_that_is_part_of_itself_is_refused(text):
    with pytest.raises(NotYaml, match="is part of itself; write the values out"):
        yaml_text.read(text)


@pytest.mark.parametrize("text", ["[" * (1 << 20), "- " * (1 << 19), "{a: " * 1000, "? " * 5000], ids=range(4))
def test_a_million_levels_end_in_a_sentence_and_not_in_a_crash(text):
    with pytest.raises(NotYaml, match="more than 50 levels") as caught:
        yaml_text.read(text)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("010", 8),
        ("0b11", 3),
        ("1_000", 1000),
        ("1:30", 90),
        ("1e-3", 0.001),
        ("yes", True),
        ("~", None),
        (".inf", 1e999),
    ],
)
def test_what_yaml_1_1_reads_is_read_as_before(text, value):
    assert yaml_text.read(text)[0] == value


@pytest.mark.parametrize(
    "text",
    [
        "!!int x",
        "!!int ''",
        "!!float x",
        "!!bool x",
        "!!timestamp x",
        "!!binary é",
        "!!int [1]",
        "!!int 0x" + "f" * 9999,
    ],
)
def test_a_type_that_its_text_is_not_is_refused(text):
    with pytest.raises(NotYaml):
        yaml_text.read(text)


_TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="abx0123456789.:-+_eE&*!<>[]{},?|\"'#%@ \n\t\r\0\ud800", max_size=80),
    st.lists(
        st.sampled_from(
            ["a: ", "&a ", "*a", "<<: ", "- ", "[", "]", "{", "}", "!!int ", "!!set ", "? ", "\n", "1", "|\n x"]
        )
    ).map("".join),
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(_TEXTS)
def test_no_text_makes_reading_raise_anything_else(text):
    try:
        yaml_text.read(text)
    except NotYaml as error:
        (line,) = error.lines
        assert line.isprintable() and len(line) < 400


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(_TEXTS, st.sampled_from(["system", "scheduler.num_epochs", "train.dataset", "parallel.dataset_strategy", "x.y"]))
def test_no_override_makes_checking_a_config_raise_anything_else(text, key):
    config = config_file.load(str(config_file.schema_check.project.path("configs", "mnist", "lenet5_digits.yaml")))
    try:
        config.override([f"{key}={text}"])
    except config_file.ConfigError:
        return
    for line in config.problems():
        assert line.isprintable() and len(line) < 2000
