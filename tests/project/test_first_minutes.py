"""The first minutes of a new user, in README's words: installed and typed with the oldest and the newest Python."""

from contextlib import closing

import documents
import first_minutes
import pytest
from documents_world import World

AGAIN = "run: python tests/project/first_minutes.py --update"
RUN = "logs/mslaunch-20260131T120000Z-1/rank_2.log"


@pytest.mark.thorough
@pytest.mark.parametrize("version", first_minutes.VERSIONS)
def test_a_new_user_sees_what_the_recording_and_readme_show(version):
    try:
        session = first_minutes.record(version)
    except first_minutes.CannotRecord as error:
        pytest.skip(str(error))
    assert not session.wrong, "\n".join(session.wrong)
    recorded = first_minutes.path(version).read_text(encoding="utf-8")
    assert first_minutes.like(recorded, session.text()), f"{AGAIN}\n{session.text()}"
    assert first_minutes.unlike_page(session) is None


def test_readme_tells_to_install_it_and_to_type_five_things():
    typed = [typed.strip() for typed, _, block in first_minutes.commands() if block is None or block.verb == "run"]
    assert typed == [
        "python -m venv ~/venv && source ~/venv/bin/activate",
        "pip install .",
        "mslaunch -n 4 my_trainer.py",
        "mslaunch -n 4 fails.py",
        "mslaunch report\nmslaunch watch",
    ]
    assert documents.read("README.md").count("\n") <= 120
    assert documents.read("README_CN.md").count("\n") <= 120


@pytest.mark.parametrize("version", first_minutes.VERSIONS)
def test_a_recording_has_the_commands_of_readme(version):
    recorded = first_minutes.path(version).read_text(encoding="utf-8").splitlines()
    for typed, _, block in first_minutes.commands():
        lines = typed.splitlines() if block and block.verb == "file" else [f"$ {line}" for line in typed.splitlines()]
        assert [line for line in lines if line not in recorded] == [], AGAIN


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (f"exit 1 after 0.1 s; {RUN}", f"exit 1 after 2.3 s; {RUN.replace('Z-1', 'Z-77')}", True),
        ("installed mindspore-launch-1.0.0 ...", "installed mindspore-launch-1.2.0 ...", True),
        ("exit 1", "exit 2", False),
        ("failed first", "failed", False),
    ],
)
def test_recordings_differ_in_times_and_not_in_words(one, other, same):
    assert first_minutes.like(one, other) is same


class Played:
    """What a session has printed for the first block of README that shows something."""

    def __init__(self, change):
        blocks = documents.blocks("README.md", documents.read("README.md"))
        number = next(number for number, block in enumerate(blocks) if block.verb == "prints")
        self.outputs = {blocks[number - 1].line: change(blocks[number].text)}


def test_what_readme_shows_is_compared_with_what_was_printed():
    assert first_minutes.unlike_page(Played(lambda text: text.replace("\n...\n", "\nx\n"))) is None
    assert "exit 0" in first_minutes.unlike_page(Played(lambda text: text.replace("exit 0", "exit 3")))


def test_a_python_that_is_not_here_is_named():
    with pytest.raises(first_minutes.CannotRecord, match=r"no Python 3\.1 on PATH"):
        first_minutes.python("3.1")


def on_laptop(world, command):
    (block,) = documents.blocks("x.md", f"<!-- run on=laptop -->\n```bash\n{command}\n```\n")
    return world.run(block)


@pytest.mark.thorough
def test_the_laptop_of_the_documents_has_what_pip_installs_and_no_mindspore():
    with closing(World()) as world:
        found = on_laptop(world, "command -v mslaunch python")
        assert found == (0, "/home/me/venv/bin/mslaunch\n/home/me/venv/bin/python\n")
        here, gone = ["yaml", "jsonschema", "rich"], ["mindspore", "numpy", "pytest"]
        for name in [*here, *gone]:
            code, output = on_laptop(world, f"cd ~; python -c 'import {name}'")
            assert (code == 0) is (name in here), output


@pytest.mark.thorough
@pytest.mark.parametrize("on", ["here", "stub", "npu", "laptop"])
def test_in_every_world_mslaunch_is_typed_by_its_name(on):
    with closing(World()) as world:
        (block,) = documents.blocks("x.md", f"<!-- run on={on} -->\n```bash\nmslaunch tabel\n```\n")
        code, output = world.run(block)
        assert (code, output.partition("did you mean ")[2]) == (2, "mslaunch table?; see: mslaunch --help\n")
