"""Every script that starts ranks has a test in rank_environment.bats, and mutations that the tests must notice."""

import re

import documents
import pytest

from tests.mutations import declarations, variables

BATS = (documents.ROOT / "tests" / "scripts" / "rank_environment.bats").read_text(encoding="utf-8")
SCRIPTS = declarations.scripts(documents.ROOT)


def test_the_scripts_that_start_ranks_are_found():
    assert len(SCRIPTS) > 15


@pytest.mark.parametrize("script", [path.name for path in SCRIPTS])
def test_every_script_that_starts_ranks_has_a_test(script):
    assert re.search(rf'^@test "{re.escape(script)}[ :]', BATS, re.MULTILINE)


@pytest.mark.parametrize("script", [path.name for path in SCRIPTS])
def test_every_declaration_can_be_changed(script):
    assert declarations.of_script(documents.ROOT, script)


@pytest.mark.parametrize(
    "text, words",
    [
        ("local CONFIG \\\n  devices='[4,8)' -- \"$@\"\n", "[4,8) local CONFIG"),
        ("msrun log_dir=output/a without='a b' -- \"$@\"\n", "output/a msrun"),
        ('srun A B device_target=Ascend -- "$@"\n', "Ascend srun A B"),
        ('mpirun A B placement=x -- "$@"\n\\. "$LAUNCH_LIB/start.sh" local A -- "$@"\n', "x mpirun A B local A"),
    ],
)
def test_the_words_of_a_declaration(text, words, tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.sh").write_text(
        f'case a=b in\nesac\n\\. "$LAUNCH_LIB/start.sh" {text}', encoding="utf-8"
    )
    assert " ".join(word.value for word in declarations.words(tmp_path, "a.sh")) == words


def test_every_variable_of_the_page_can_be_changed():
    assert sorted(variables.names()) == sorted({mutation.variable for mutation in variables.general()})


def test_what_is_to_be_replaced_is_there():
    for mutation in [*variables.controls(), *variables.general(), *variables.of_scripts(documents.ROOT)]:
        mutation.changed(documents.ROOT)
