"""The hook for pre-commit: what its manifest says works, as pre-commit uses it."""

import json
import os
import re
import shlex
import subprocess
import sys

import documents
import good_tables
import pytest
import yaml

from hccl_tools.common import version

ROOT = documents.ROOT
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
PAGES = ("docs/checking_rank_tables.md", "docs/zh/checking_rank_tables.md")


@pytest.fixture
def tables(tmp_path):
    """A good table and a bad one, under names that the hook takes."""
    good = good_tables.edited(good_tables.servers(2), {})
    (tmp_path / "hccl_2p.json").write_text(json.dumps(good))
    (tmp_path / "my_rank_table.json").write_text(json.dumps({**good, "status": "initializing"}))
    return tmp_path


@pytest.fixture
def mslaunch(tmp_path, monkeypatch):
    """The program on PATH, as an installation makes it."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "mslaunch"
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from mindspore_launch.__main__ import main; sys.exit(main())"
    )
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), os.environ["PATH"]]))


def check(folder, *names):
    """What pre-commit runs: the entry, its arguments and the names of files."""
    words = [*shlex.split(HOOK["entry"]), *HOOK.get("args", []), *names]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)


def test_the_manifest_has_the_form_that_pre_commit_reads():
    assert set(HOOK) <= {"id", "name", "description", "entry", "language", "types", "files", "require_serial", "args"}
    assert HOOK["language"] == "python"  # pre-commit installs the repository by pip, and finds the entry there
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\n{HOOK["entry"].split()[0]} = "mindspore_launch.__main__:main"\n' in project


@pytest.mark.parametrize(
    ("path", "is_table"),
    [
        ("hccl.json", True),
        ("conf/hccl_8p_01234567_10.0.0.1.json", True),
        ("conf/my_rank_table.json", True),
        ("rank_table_16p.json", True),
        ("ranktable.json", True),
        ("package.json", False),
        ("hccl.yaml", False),
    ],
)
def test_it_takes_files_that_have_a_rank_tables_name(path, is_table):
    assert bool(re.search(HOOK["files"], path)) == is_table


def test_a_good_table_passes(mslaunch, tables):
    ended = check(tables, "hccl_2p.json")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_bad_table_fails_with_its_line(mslaunch, tables):
    ended = check(tables, "hccl_2p.json", "my_rank_table.json")
    assert ended.returncode == 1
    assert re.search(r"my_rank_table\.json:\d+: /status: .*\[bad-status\]", ended.stdout + ended.stderr)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_this_hook_and_this_version(page):
    (block,) = re.findall(r"(?s)```yaml\n(repos:.*?)```", documents.read(page))
    (repository,) = yaml.safe_load(block)["repos"]
    assert repository["rev"] == f"v{version.number()}"
    assert [hook["id"] for hook in repository["hooks"]] == [HOOK["id"]]
