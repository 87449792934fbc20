"""Documents and code are in plain technical English; language.yaml lists what is not."""

import os
import subprocess
import sys

import documents
import language
import language_code
import pytest
from suite.cases import for_each, none

EXAMPLES = "tests/project/test_language.py"  # this file has the forbidden words, as examples


def code():
    """The files of code."""
    found = [
        *language_code.files(".py", "hccl_tools", "tools", "tests", "examples"),
        *language_code.files(".sh", "scripts", "tools", "examples"),
        *language_code.files(".json", "schemas"),
    ]
    found.remove(EXAMPLES)
    return found


@pytest.mark.slow
@for_each("page", language.pages)
def test_pages_and_the_messages_in_their_outputs_are_in_plain_english(page):
    none(language.problems(page, documents.read(page)))


@pytest.mark.slow
@for_each("path", code)
def test_code_is_in_plain_english(path):
    none(language_code.problems(path, documents.read(path)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("The code is said to be right.", '"is said"; write: '),
        ("The mark stands\nin the head.", '"stands"; write: is'),
        ("| a |\n|---|\n| 4 rank(s) |", '"rank(s)"; write: '),
        ("See [what is\nsaid](x.md).", '"is said"'),
        ("<!-- prints -->\n```text\n4 rank(s)\n```", '"rank(s)"'),
        ("One " + "word " * 25 + "more.", "27 words, 25 are enough: One word"),
        ("- One " + "word " * 25 + "more.", "27 words, 25 are enough"),
        ("![One " + "word " * 25 + "more.](x.svg)", "27 words, 25 are enough"),
    ],
)
def test_what_is_not_plain_is_found(text, complaint):
    (problem,) = language.problems("page.md", text)
    assert problem.startswith("page.md:") and complaint in problem


@pytest.mark.parametrize(
    "text",
    [
        "There is no rank table.",
        "RANK stands for a number.",
        "Code is free: `rank(s)`.",
        "<!-- run -->\n```bash\necho 'rank(s)'\n```",
        "<!-- a comment of rank(s) -->",
        "| a |\n|---|\n| " + "word " * 40 + "|",
        "A word. " + "Some words in one. " * 20,
        "One " + "word " * 20 + "[of a link](https://example.org/one/two/three) `a b c d e f g`.",
    ],
)
def test_what_is_plain_is_left(text):
    assert list(language.problems("page.md", text)) == []


@pytest.mark.parametrize(
    ("path", "source", "line"),
    [
        ("a.py", '"""The code is\nsaid to be right."""\n', 1),
        ("a.py", "# The code is\n# said to be right.\n", 1),
        ("a.py", "x = 1  # it stands here\n", 1),
        ("a.py", "x = 1\nprint(f'{x} rank(s)')\n", 2),
        ("a.py", "print('it is ' 'said')\n", 1),
        ("a.sh", "# The code is\n# said to be right.\n", 1),
        ("a.sh", "x=1 # it stands here\n", 1),
        ("a.sh", 'x=1\necho "$x rank(s)"\n', 2),
        ("a.json", '{\n  "title": "it is said"\n}\n', 2),
    ],
)
def test_what_is_not_plain_in_code_is_found(path, source, line):
    (problem,) = language_code.problems(path, source)
    assert problem.startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.py", "is_said = shall = 1\n"),
        ("a.py", "x = 1  # this is\n\n# said with a line between\n"),
        ("a.py", "f'{shall} is {said}'\n"),
        ("a.sh", "x=${y#is} # said\n"),
        ("a.json", '{"pattern": "it is said"}\n'),
    ],
)
def test_what_is_plain_in_code_is_left(path, source):
    assert list(language_code.problems(path, source)) == []


def test_figures_count_words_of_sentences():
    text = "# Title\n\nThree words here. Two words.\n\nCode is `a b c` one: e.g. This. (Four words are here.)\n"
    assert language.lengths(text) == [1, 3, 2, 6, 4]
    assert language.figures(text) == (5, 3, 6, 6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "code", "printed"),
    [
        ("language.py docs/gpu.md", 0, "words per sentence"),
        ("documents.py --help", 0, "--update PAGE"),
        ("first_minutes.py", 2, "Exit: 0 made"),
    ],
)
def test_the_programs_that_contributing_names_start_without_pytest(typed, code, printed):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program, *words = typed.split()
    ended = subprocess.run(
        [sys.executable, f"tests/project/{program}", *words],
        cwd=documents.ROOT, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == code and printed in ended.stdout + ended.stderr, ended.stderr
