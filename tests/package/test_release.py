"""`make release` refuses what cannot be released, and tries what the README says."""

import os
import re
import subprocess
import sys

import documents
import pytest

sys.path.insert(0, str(documents.ROOT / "tests"))

import release

from hccl_tools.common import version

README = """
<!-- file a.py -->
```python
print(1)
```

<!-- run on=laptop exit=3 -->
```bash
mslaunch a.py
```

<!-- run -->
```bash
make demo
```
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small checkout, all of it committed."""
    for name, text in (
        ("mindspore_launch/__init__.py", '__version__ = "1.2.0"\n'),
        ("CHANGELOG.md", "# Changelog\n\n## 1.2.0 - 2026-01-01\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder, *words):
    me = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *me, *words], cwd=folder, check=True, capture_output=True)


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "x")


def test_a_committed_version_of_the_changelog_is_one(checkout):
    assert release.check() == "1.2.0"
    git(checkout, "tag", "v1.2.0")
    assert release.check() == "1.2.0"


def test_a_checkout_with_changes_is_none(checkout):
    (checkout / "new").touch()
    with pytest.raises(release.Refused, match="has changes, such as new; commit"):
        release.check()


def test_a_version_that_the_changelog_lacks_is_none(checkout):
    (checkout / "CHANGELOG.md").write_text("## 1.2.0.1\n\n## 1.1.0\n")
    commit(checkout)
    with pytest.raises(release.Refused, match=re.escape("no heading ## 1.2.0;")):
        release.check()


def test_a_version_that_is_out_is_none(checkout):
    git(checkout, "tag", "v1.2.0")
    commit(checkout)
    with pytest.raises(release.Refused, match=r"v1\.2\.0 is another commit; raise __version__"):
        release.check()


@pytest.mark.parametrize("number", ["1.2", "1.2.0rc1"])
def test_a_version_has_three_numbers(checkout, number):
    (checkout / "mindspore_launch" / "__init__.py").write_text(f'__version__ = "{number}"\n')
    commit(checkout)
    with pytest.raises(release.Refused, match="no __version__ of three numbers"):
        release.check()


def test_a_program_that_fails_is_told_with_its_last_lines():
    with pytest.raises(release.Refused, match="(?s)exit 4\nwhy$"):
        release.run("sh", "-c", "echo why; exit 4")


@pytest.fixture
def fresh(tmp_path):
    """A folder as release.install makes it, whose mslaunch ends with 3 and notes its words."""
    program = tmp_path / "venv" / "bin" / "mslaunch"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@" >>words\n[ -f "$1" ] && exit 3\n')
    program.chmod(0o755)
    return tmp_path


def test_the_readmes_commands_of_mslaunch_run_and_no_others(fresh):
    assert release.try_readme(fresh, README) == 1
    assert (fresh / "home" / "words").read_text() == "a.py\n"


def test_a_command_that_ends_otherwise_is_refused(fresh):
    with pytest.raises(release.Refused, match="exit 3, not 0, of:\nmslaunch a.py"):
        release.try_readme(fresh, README.replace(" exit=3", ""))


def test_a_readme_without_commands_is_refused(fresh):
    with pytest.raises(release.Refused, match="no command of mslaunch"):
        release.try_readme(fresh, README.replace("mslaunch", "python"))


def test_this_version_is_in_the_changelog():
    headings = re.findall(r"(?m)^## (\S+)", documents.read("CHANGELOG.md"))
    assert version.number() in headings


def test_an_indexs_page_has_no_link_to_a_file():
    pytest.importorskip("hatchling", reason="needs hatchling, which pip brings for a build only")
    import hatch_build

    text = "![a](docs/a.svg)\n\n<!-- run -->\nsee [b](docs/b.md#c), [d](https://d.org), [e](#e)\n"
    assert hatch_build.for_an_index(text) == "see b, [d](https://d.org), [e](#e)\n"
