"""This project on other hosts: how their Python finds it, and what we say of another version."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from hccl_tools.hosts import elsewhere, finder, node_sets

HERE = elsewhere.Version(number="1.0.0", digest="a" * 64)
OTHER = elsewhere.Version(number="1.0.1", digest="b" * 64)


def make(package, number="1.0.0", checkout=False):
    """A small project: installed, all is in the package; in a checkout, beside it."""
    root = package.parent if checkout else package
    for name, text in (("tools/rank/agent.py", "agent"), ("hccl_tools/__init__.py", ""), ("configs/x.yaml", "")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("tools/__init__.py", "tools/rank/__init__.py"):
        (root / name).write_text("")
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(f'"""A project."""\n\n__version__ = "{number}"\n')
    return root


def asked(here, *command, **variables):
    """What the text says, or what its command does, on a host with these variables."""
    words = [*elsewhere.question()[:-1], str(here), *command]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(words, env={**environment, **variables}, capture_output=True, text=True, check=False)


def test_the_text_is_one_line_that_the_shell_takes_as_one_word():
    words = elsewhere.question()
    assert words[:3] == [sys.executable, "-I", "-c"] and "\n" not in words[3] and "'" not in words[3]
    assert len(words[3]) < 4000
    assert shlex.split(shlex.join(words)) == words
    assert json.loads(words[3][len("exec(") : -1]).startswith("import hashlib")


def test_a_host_that_has_the_folder_says_so(tmp_path):
    root = make(tmp_path / "site" / "mindspore_launch")
    found = elsewhere.read(asked(root).stdout.strip())
    assert found == elsewhere.Found(
        version=elsewhere.Version(number="1.0.0", digest=finder.digest(str(root))), folder=str(root)
    )


@pytest.mark.parametrize("checkout", [False, True])
def test_a_host_that_has_it_elsewhere_is_found_by_its_python(tmp_path, checkout):
    root = make(tmp_path / "site" / "mindspore_launch", checkout=checkout)
    found = elsewhere.read(asked(tmp_path / "no", PYTHONPATH=f"{tmp_path}:{tmp_path}/site").stdout.strip())
    assert found and found.elsewhere and found.folder == str(root) and found.version
    assert (found.version.number, found.version.digest) == ("1.0.0", finder.digest(str(root)))


def test_packages_of_the_user_are_found_unless_that_is_switched_off(tmp_path, monkeypatch):
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    make(tmp_path / "lib" / version / "site-packages" / "mindspore_launch")
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "")
    import site

    monkeypatch.setattr(site, "USER_BASE", None)
    monkeypatch.setattr(site, "USER_SITE", None)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", sys.meta_path)
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    assert finder.place("/no") == ""
    monkeypatch.delenv("PYTHONNOUSERSITE")
    assert finder.place("/no") == str(tmp_path / "lib" / version / "site-packages" / "mindspore_launch")


def test_a_host_without_it_says_none_and_starts_nothing(tmp_path):
    assert asked(tmp_path / "no\x1b").stdout == "none\n"
    ended = asked(tmp_path / "no\x1b", "/bin/echo", "started")
    assert (ended.returncode, ended.stdout) == (78, "")
    assert ended.stderr.startswith("this project is neither at '") and "\x1b" not in ended.stderr


def test_the_command_gets_the_files_of_its_host_and_every_other_word_as_it_is(tmp_path):
    here = tmp_path / "here"
    root = make(tmp_path / "site" / "mindspore_launch")
    (tmp_path / "here").mkdir()
    (here / "mine.yaml").write_text("")
    kept = [
        f"{here}/mine.yaml",
        f"{here}/tools/no.py",
        f"{here}2/tools/rank/agent.py",
        f"--x={here}/configs/x.yaml",
        "a b'",
    ]
    words = ["/bin/echo", f"{here}/tools/rank/agent.py", f"{here}/configs/x.yaml", *kept]
    said = asked(here, *words, PYTHONPATH=str(tmp_path / "site")).stdout
    assert said == " ".join([f"{root}/tools/rank/agent.py", f"{root}/configs/x.yaml", *kept]) + "\n"


def test_the_digest_is_of_the_modules_that_run_there_and_not_of_their_folder(tmp_path):
    one, two = (make(tmp_path / name / "mindspore_launch", checkout=name == "two") for name in ("one", "two"))
    first = finder.digest(str(one))
    assert finder.digest(str(two)) == first
    for name in ("configs/x.yaml", "tools/pages/x.py", "tools/data/x.py", "tools/rank/__pycache__/x.py", "tools/x.txt"):
        (two / name).parent.mkdir(parents=True, exist_ok=True)
        (two / name).write_text("x")
    (two / "tools" / "pages" / "__init__.py").write_text("")
    assert finder.digest(str(two)) == first
    (two / "tools" / "rank" / "agent.py").write_text("tnega")
    assert finder.digest(str(two)) != first
    os.unlink(two / "tools" / "rank" / "agent.py")
    os.symlink("gone", two / "tools" / "rank" / "agent.py")
    assert finder.digest(str(two)) == "unreadable"


def test_our_own_modules_are_all_in_the_digest(root, tmp_path):
    """A copy as pip installs it has the same digest, and a change of any room another one."""
    for name in ("hccl_tools", "tools"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "pages"))
    assert finder.digest(str(tmp_path)) == elsewhere.own().digest
    paths = [*(tmp_path / "tools").rglob("*.py"), *(tmp_path / "hccl_tools").rglob("*.py")]
    assert sorted(map(str, paths)) == sorted(
        path for name in ("hccl_tools", "tools") for path in finder.modules(str(tmp_path / name))
    )


@pytest.mark.parametrize(
    "said",
    [
        "",
        "same",
        f"same 1.0 {'a' * 64}",
        f"some 1.0 {'a' * 64} /x",
        f"same 1.0 {'a' * 63} /x",
        f"other $(x) {'a' * 64} /x",
        f"other {'1' * 41} {'a' * 64} /x",
        "nonesuch",
    ],
)
def test_an_answer_of_another_form_is_none(said):
    assert elsewhere.read(said) is None


@pytest.mark.parametrize(
    "words", [None, [], ["1.0"], ["1.0", 3], ["1.0", "x"], "ab", {"a": "b", "c": "d"}, ["1\n", "a" * 64]]
)
def test_a_version_of_another_form_is_none(words):
    assert elsewhere.version_of(words) is None
    assert elsewhere.version_of(HERE.words()) == HERE


def found(version, folder="/opt/x"):
    return elsewhere.Found(version=version, elsewhere=True, folder=folder)


def problems(monkeypatch, hosts, installed=False, root="/my project"):
    monkeypatch.setattr(elsewhere, "own", lambda: HERE)
    monkeypatch.setattr(elsewhere.project, "ROOT", root)
    monkeypatch.setattr(elsewhere.project, "is_installed", lambda: installed)
    monkeypatch.setattr(elsewhere.version, "number", lambda: "1.0.0")
    monkeypatch.setattr(os.path, "isdir", lambda path: path.endswith("tools"))
    return elsewhere.problems(hosts)


def test_hosts_with_the_version_of_here_have_no_problem(monkeypatch):
    assert problems(monkeypatch, {"a": found(HERE), "b": found(HERE, "/my project")}) == []


def test_hosts_of_another_version_are_one_line_with_the_command_that_helps(monkeypatch):
    hosts = {f"node{number}": found(OTHER) for number in range(1, 100)}
    hosts.update(node7=found(HERE), node100=found(None, ""), node101=found(HERE.replace(digest="c" * 64)))
    lines = problems(monkeypatch, hosts)
    copy = (
        r"share its folder, or copy it to each of them: ssh {0} mkdir\ -p\ /my\\\ project && "
        r"rsync -a -s --delete /my\ project/{{hccl_tools,tools}} {0}:/my\ project/"
    )
    assert lines == [
        "node[1-6,8-99]: another version of this project in /opt/x: 1.0.1; this host has 1.0.0; "
        + copy.format("node1"),
        f"node100: this project is neither at /my project there nor installed in {sys.executable}; "
        + copy.format("node100"),
        "node101: another version of this project in /opt/x: 1.0.0, with files cccccccc; this host has 1.0.0, "
        "with files aaaaaaaa; " + copy.format("node101"),
    ]


def test_where_it_is_installed_the_command_is_pip_s(monkeypatch):
    changed = found(HERE.replace(digest="c" * 64))
    hosts = {"a": found(OTHER), "b": changed, "c": found(None, "")}
    lines = problems(monkeypatch, hosts, installed=True)
    install = f"{sys.executable} -m pip install "
    assert [line.partition(install)[2] for line in lines] == [
        "mindspore-launch==1.0.0",
        "--force-reinstall --no-deps mindspore-launch==1.0.0",
        "mindspore-launch==1.0.0",
    ]


def test_the_command_that_copies_works_when_pasted(monkeypatch, tmp_path):
    """With an ssh and an rsync that note their words."""
    for name in ("ssh", "rsync"):
        (tmp_path / name).write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@" >>{tmp_path}/said\n')
        (tmp_path / name).chmod(0o755)
    (line,) = problems(monkeypatch, {"node1": found(OTHER)})
    line = line.rpartition(" of them: ")[2]
    subprocess.run(["bash", "-c", line], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    said = (tmp_path / "said").read_text().splitlines()
    assert said[:3] == ["ssh", "node1", r"mkdir -p /my\ project"]
    assert said[3:] == [
        *("rsync", "-a", "-s", "--delete", "/my project/hccl_tools", "/my project/tools"),
        "node1:/my project/",
    ]


def test_what_a_host_says_commands_no_terminal(monkeypatch):
    (line,) = problems(monkeypatch, {"a": found(OTHER, "/x\x1b[2J\n")})
    assert line.isprintable()


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ([], ""),
        (["login"], "login"),
        (["node1"], "node1"),
        (["node1", "node2"], "node[1-2]"),
        (["node0", "node1", "node10"], "node[0-1,10]"),
        (["node3", "login", "node1", "node2", "node7"], "node[1-3,7], login"),
        (["n08-ib", "n09-ib", "n10-ib"], "n[08-09]-ib, n10-ib"),
        (["10.0.0.9", "10.0.0.10", "10.0.1.9"], "10.0.0.[9-10], 10.0.1.9"),
        (["a", "b", "c", "d"], "a, b, c and 1 more"),
    ],
)
def test_many_hosts_are_few_words(hosts, text):
    assert node_sets.folded(hosts, 3) == text


def test_a_folded_set_is_the_same_hosts():
    hosts = [f"r{rack}n{number:03d}" for rack in (1, 2) for number in (*range(1, 40), 77, 120)]
    words = node_sets.folded(hosts, 9).split(", ")
    assert [host for word in words for host in node_sets.expand(word)] == hosts
