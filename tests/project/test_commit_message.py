"""git's hook for the messages of commits."""

import subprocess

import pytest
from suite import commit_message

GOOD = "rank tables: names a port twice\n\nTwo devices had one port, and nobody said so.\n# a comment of git\n"


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "\n" + GOOD,
        GOOD + commit_message._CUT + "\n" + "+" * 99,
        "Merge branch 'x'",
        'Revert "x: y"',
        "",
        "# nothing yet\n",
    ],
)
def test_a_good_message(text):
    assert list(commit_message.faults(text)) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (GOOD.replace("rank tables: ", ""), "COMPONENT: WHAT IT DOES"),
        (GOOD.replace("twice", "twice" + "x" * 42), "has 73 columns; at most 72"),
        (GOOD.replace("\n\n", "\n"), "the second line is not empty"),
        ("docs: more\n", "nothing follows the first line"),
        ("docs: more\n\n# only a comment\n", "nothing follows the first line"),
    ],
)
def test_another_message(text, word):
    (found,) = commit_message.faults(text)
    assert word in found


def test_git_asks_the_hook(tmp_path):
    def git(*words):
        name = ["-c", "user.name=x", "-c", "user.email=x@x"]
        return subprocess.run(["git", *name, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    git("init", "--quiet")
    (tmp_path / ".git" / "hooks").mkdir(exist_ok=True)
    (tmp_path / ".git" / "hooks" / "commit-msg").symlink_to(commit_message.__file__)
    refused = git("commit", "--allow-empty", "-m", "more")
    assert refused.returncode == 1 and "commit message: the first line is 'more'" in refused.stderr
    command = refused.stderr.splitlines()[-1].partition("correct it: git ")[2].replace("--edit ", "").split()
    (tmp_path / ".git" / "COMMIT_EDITMSG").write_text(GOOD)
    assert git(*command, "--allow-empty").returncode == 0
