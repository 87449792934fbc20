"""tests/bare.sh: a machine without engines and test hosts, on which everything else is as it was."""

import os
import shutil
import subprocess
import sys

import pytest
from documents import ROOT

pytestmark = pytest.mark.thorough

ABSENT = """
mpirun mpirun.openmpi mpiexec orterun orted prte prterun prted prun pterm sshd ip munge munged slurmctld slurmd
srun salloc sbatch sbcast scancel scontrol sinfo squeue sacct sacctmgr sattach sstat strigger
"""
PRESENT = "ipcs siphash ssh sprof sinfonia print mpirank"


@pytest.fixture
def bare(tmp_path):
    """bare(word...): runs a command in the profile, on a machine that has all of these programs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in (ABSENT + PRESENT).split():
        (programs / name).write_text("#!/bin/sh\necho here\n")
        (programs / name).chmod(0o755)
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def run(*words, **env):
        path = f"{programs}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "TMPDIR": str(temporary), "VIRTUAL_ENV": sys.prefix, **env}
        return subprocess.run(["bash", str(ROOT / "tests/bare.sh"), *words], capture_output=True, text=True, env=env)

    run.temporary = temporary
    return run


def test_engines_and_test_hosts_are_absent_and_all_else_is_there(bare):
    ask = 'for name; do type -t "$name" >/dev/null && echo "$name"; done'
    assert bare("bash", "-c", ask, "-", *(ABSENT + PRESENT).split()).stdout.split() == PRESENT.split()


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        (["tests/lab/lab.sh", "probe"], "lab.sh: needs ip\n"),
        (["tests/fixtures/slurm.sh", "up", "/none/such"], "needs slurmctld\n"),
    ],
)
def test_what_looks_beside_the_folders_of_programs_finds_them_as_little(bare, words, lacks):
    ended = bare("bash", ROOT / words[0], *words[1:])
    assert ended.stdout + ended.stderr == lacks


def test_python_is_the_profiles_with_the_packages_of_the_environment(bare):
    told = bare(
        "python", "-c", "import os, sys, pytest; print(sys.executable, os.path.realpath(pytest.__file__), sep='\\n')"
    )
    executable, package = told.stdout.splitlines()
    assert executable.startswith(f"{bare.temporary}/bare.") and executable.endswith("/bin/python")
    assert package == os.path.realpath(pytest.__file__)


def test_an_environment_that_is_made_with_another_python_outlives_the_profile(bare, tmp_path):
    (tmp_path / "programs/python3.99").symlink_to(sys._base_executable)
    no_environment = {"PATH": f"{tmp_path}/programs:{os.path.dirname(shutil.which('bash'))}", "VIRTUAL_ENV": "none"}
    told = bare("python3.99", "-m", "venv", "--without-pip", tmp_path / "made", **no_environment)
    assert (told.returncode, told.stderr) == (0, "")
    python = subprocess.run([tmp_path / "made/bin/python", "-c", "print('works')"], capture_output=True, text=True)
    assert python.stdout == "works\n"


SHIM = """#!/usr/bin/env bash
# A version manager's: the version that is chosen, or else the program of its own name in another folder than its own.
[[ ${0##*/} != python3.98 ]] || exec %s "$@"
export ASKED=$((${ASKED-0} + 1)) PATH=:$PATH:
((ASKED < 9)) || exit 99
PATH=${PATH//:${0%%/*}:/:}
exec "${0##*/}" "$@"
"""


@pytest.mark.parametrize(("name", "ends"), [("python3.98", 0), ("python3.99", 127)])
def test_a_version_managers_python_is_asked_once_which_it_is(bare, tmp_path, name, ends):
    for shim in ("python3.98", "python3.99"):
        (tmp_path / "programs" / shim).write_text(SHIM % sys._base_executable)
        (tmp_path / "programs" / shim).chmod(0o755)
    no_environment = {"PATH": f"{tmp_path}/programs:{os.path.dirname(shutil.which('bash'))}", "VIRTUAL_ENV": "none"}
    told = bare(name, "-c", "import sys; print(sys.executable)", **no_environment)
    assert told.returncode == ends, told.stderr
    assert ends or told.stdout == f"{os.path.realpath(sys._base_executable)}\n"


def test_without_any_python_it_says_nothing_of_its_own(bare, tmp_path):
    for name in ["bash", "mktemp", "chmod", "mkdir", "ln", "rm", "readlink", "env"]:
        (tmp_path / "programs" / name).unlink(missing_ok=True)
        (tmp_path / "programs" / name).symlink_to(shutil.which(name))
    told = bare("echo", "here", PATH=str(tmp_path / "programs"), VIRTUAL_ENV="none")
    assert (told.returncode, told.stdout, told.stderr) == (0, "here\n", "")


def test_activated_it_is_the_profile_still(bare):
    told = bare(
        "bash", "-c", 'source "$VIRTUAL_ENV/bin/activate" && echo "${PATH%%:*}" "$VIRTUAL_ENV/bin"'
    ).stdout.split()
    assert told[0] == told[1] and told[0].startswith(f"{bare.temporary}/bare.")


def test_what_demands_an_engine_or_a_lab_is_not_set(bare):
    told = bare("env", OPEN_MPI="5", LAB_REQUIRED="1", OTHER="1").stdout
    assert [name for name in ("OPEN_MPI", "LAB_REQUIRED", "OTHER") if f"\n{name}=" in told] == ["OTHER"]


def test_the_exit_code_is_the_commands_and_nothing_stays(bare):
    told = bare("bash", "-c", 'stat -c %a "$VIRTUAL_ENV"; exit 7')
    assert (told.returncode, told.stdout, told.stderr) == (7, "755\n", "")
    assert os.listdir(bare.temporary) == []


def test_without_a_command_the_usage_is_told(bare):
    told = bare()
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("Usage: bash tests/bare.sh COMMAND")
