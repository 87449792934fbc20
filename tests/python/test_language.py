"""The documents are in plain technical English; language.yaml lists what is not."""

import documents
import language
import pytest

# Pages that are not rewritten yet: take a page out when `python tests/python/language.py PAGE` finds nothing in it.
TODO_PAGES = ["docs/doctor.md", "docs/options.md", "docs/rank_table_checks.md", "docs/when_it_fails.md"]
# Pages that show messages which are not rewritten yet; documents.py --update brings them up to date.
TODO_OUTPUTS = [
    *("docs/checkpoints.md", "docs/checking_rank_tables.md", "README.md", "CONTRIBUTING.md", "docs/gpu.md"),
    *("docs/migrating.md", "docs/mpirun.md", "docs/one_machine.md", "docs/parallel_modes.md"),
    *("docs/rank_tables.md", "docs/restarts.md", "docs/several_machines.md", "docs/without_hardware.md"),
]


@pytest.mark.parametrize("page", language.pages())
def test_a_page_is_in_plain_english(page):
    if page in TODO_PAGES:
        pytest.skip("not rewritten yet")
    found = list(language.problems(page, documents.read(page), ("prose", "table")))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", language.pages())
def test_messages_in_the_outputs_of_a_page_are_in_plain_english(page):
    if page in TODO_OUTPUTS:
        pytest.skip("shows messages that are not rewritten yet")
    found = list(language.problems(page, documents.read(page), ("output",)))
    assert not found, "\n".join(found)


def test_the_list_of_what_is_not_rewritten_names_pages():
    assert {*TODO_PAGES, *TODO_OUTPUTS} <= set(language.pages())


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


def test_figures_count_words_of_sentences():
    text = "# Title\n\nThree words here. Two words.\n\nCode is `a b c` one: e.g. This. (Four words are here.)\n"
    assert language.lengths(text) == [1, 3, 2, 6, 4]
    assert language.figures(text) == (5, 3, 6, 6)
