"""What the caller's environment tells bash changes no launch, and reaches the ranks as it was."""

import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
SCRIPTS = ROOT / "scripts"
LIBRARY = SCRIPTS / "lib"

LINES = [line.partition(" ") for line in (FIXTURES / "bash_variables.txt").read_text().splitlines()]
VARIABLES = {name: value for name, _, value in LINES if name not in ("", "#")}
# These would hide what others do, or end more than one shell: each has a launch of its own.
ALONE = ("SHELLOPTS", "POSIXLY_CORRECT", "BASH_ENV", "TMOUT", "PYTHONVERBOSE", "PYTHONWARNDEFAULTENCODING")
# Their values change all the time, count shells, or say which shell started the program.
CHANGING = ("BASH", "RANDOM", "SRANDOM", "SECONDS", "EPOCHREALTIME", "EPOCHSECONDS", "BASH_MONOSECONDS", "LINENO", "SHLVL", "_")
COMMANDS = (
    "bash chmod chrt cp cut date dirname env grep head hostname id ln ls mkdir mpirun msrun nice paste ps python python3 "
    "readlink rm salloc sbatch scontrol sed setsid sh sleep sort srun ssh stat tail timeout tr uname xargs"
).split()


GROUPS = [tuple(name for name in VARIABLES if name not in ALONE), *((name,) for name in ALONE)]
EXITS = {"check_network.sh": "1", "lib/abandoned.sh": "78"}  # of undisturbed programs, if not 0
PROGRAMS = ("ascend2p.sh", "run_mpirun.sh", "doctor.sh", "check_network.sh", "lib/abandoned.sh")


def own_functions():
    """The names of all functions of scripts/lib."""
    texts = [path.read_text() for path in LIBRARY.rglob("*.sh")]
    return {name for text in texts for name in re.findall(r"(?m)^([\w:]+)\(\)", text)}


@pytest.fixture
def environment(tmp_path):
    """The environment of an undisturbed launch in `tmp_path`, with all that the launch and the stub trainer need."""
    (tmp_path / "config.yaml").write_text("system:\n  distribute: True\n")
    (tmp_path / "hccn.conf").write_text("".join(f"address_{n}=10.1.1.1{n}\n" for n in range(8)))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "out").mkdir()
    (tmp_path / "bash_env.sh").write_text(BASH_ENV)
    (tmp_path / "startup.py").write_text("open('EVIL', 'w')\n")
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "LOCPATH") if name in os.environ}
    return {
        **keep,
        "LANG": "C.UTF-8",
        "PYTHON": sys.executable,
        "PYTHONPATH": str(FIXTURES / "stub_mindspore"),
        "STUB_OUT": str(tmp_path / "out"),
        "LAUNCH_LOCKS": str(tmp_path / "locks"),
        "TEST_MARK": str(tmp_path),
    }


BASH_ENV = """\
set -f -u -a
shopt -s nocasematch nullglob expand_aliases
alias exec='touch EVIL;' export='touch EVIL;' unset='touch EVIL;' source='touch EVIL;' set='touch EVIL;'
read() { touch EVIL; }
exec() { touch EVIL; }
export() { touch EVIL; }
trap 'touch EVIL' EXIT
trap 'touch EVIL' USR1
"""


def commands(tmp_path):
    """The programs of ours that are shells, and what each is asked to do here."""
    stub = ["--device_target", "CPU", "--console", "none", "--train_script", str(FIXTURES / "stub_trainer.py")]
    found = {
        "ascend2p.sh": [*stub, "--hccn_conf", "hccn.conf", "config.yaml"],
        "run_mpirun.sh": ["-n", "2", *stub, "config.yaml"],
        "doctor.sh": ["--format", "json"],
        "check_network.sh": ["broken.json"],
        "lib/abandoned.sh": ["254", "ascend2p.sh", "", "", ""],
    }
    return {name: ["bash", str(SCRIPTS / name), *words] for name, words in found.items()}


def without_chance(text):
    """The text without times, process ids, ports and names of run folders."""
    text = re.sub(r"-\d{8}T\d{6}Z-\d+(-\d+)?", "-RUN", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r'(?<=MS_SCHED_PORT": ")\d+', "PORT", text)
    return re.sub(r"\b\d+\.\d( s\b|,|\n|$)", r"N\1", text)


def of_bash(text):
    """Its lines without the name of the program that has printed them."""
    return {re.sub(r"^\S+: (line \d+: )?", "", line) for line in text.splitlines()}


def seen(program, environment, tmp_path):
    """What a user of the program sees, and the environment of its rank 1."""
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    shutil.rmtree(tmp_path / "logs", ignore_errors=True)
    options = {"cwd": tmp_path, "env": environment, "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60}
    ended = subprocess.run(commands(tmp_path)[program], text=True, **options)
    own = subprocess.run(["bash", "/dev/null"], text=True, **options).stderr  # bash's own words
    messages = [line for line in ended.stderr.splitlines() if not of_bash(line) <= of_bash(own)]
    found = {"exit": str(ended.returncode), "stdout": ended.stdout, "stderr": "\n".join(messages)}
    found = {name: without_chance(text) for name, text in found.items()}
    if program == "doctor.sh" and ended.stdout.startswith("{"):
        page = json.loads(ended.stdout)
        found["stdout"] = "\n".join(line["name"] + " " + line["status"] for line in page["lines"])
    if (tmp_path / "logs").exists():
        document = json.loads((tmp_path / "logs" / "latest" / "launch.json").read_text())
        document["outcome"]["members"].pop("mpirun", None)  # the launcher ends it, sooner or later
        found["launch.json"] = without_chance(json.dumps(document, indent=1))
    left = [path for path in tmp_path.iterdir() if path.name in ("EVIL", "history")]
    found["left behind"] = " ".join(path.name for path in left)
    for path in left:
        path.unlink()
    record = tmp_path / "out" / "rank_1.json"
    return found, json.loads(record.read_text())["env"] if record.exists() else {}


def of_caller(environment, tmp_path):
    """What a plain child of a plain bash has in its environment."""
    dump = "import json, os; print(json.dumps(dict(os.environ)))"
    (tmp_path / "plain.sh").write_text(f"{sys.executable} -I -S -c '{dump}'\n")
    command = [shutil.which("bash"), "plain.sh"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return json.loads(ended.stdout.splitlines()[-1])


def differences(program, environment, disturbed, tmp_path, undisturbed):
    """What is not as in the undisturbed launch, in words."""
    found, ranks = seen(program, disturbed, tmp_path)
    wrong = [
        "\n".join(difflib.unified_diff(value.splitlines(), found.get(name, "").splitlines(), name, "disturbed", "", "", 0, ""))
        for name, value in undisturbed[0].items()
        if found.get(name) != value
    ]
    if not ranks:
        return wrong
    callers = of_caller(disturbed, tmp_path)
    contract = {name for name in undisturbed[1] if undisturbed[1][name] != environment.get(name)}
    for name in sorted({*callers, *ranks} - contract - {*CHANGING}):
        if callers.get(name) != ranks.get(name):
            wrong.append(f"the rank has {name}={ranks.get(name)!r}, not {callers.get(name)!r}")
    return wrong


def compare(program, environment, disturbance, tmp_path):
    """Fails, with the names of the variables that do it, if the disturbance changes what is seen."""
    undisturbed = seen(program, environment, tmp_path)
    assert undisturbed[0]["exit"] == EXITS.get(program, "0"), undisturbed
    together = differences(program, environment, {**environment, **disturbance}, tmp_path, undisturbed)
    if not together:
        return
    alone = {name: {**environment, name: value} for name, value in disturbance.items()}
    causes = {name: differences(program, environment, env, tmp_path, undisturbed) for name, env in alone.items()}
    told = [f"{name}={disturbance[name]}: {'; '.join(wrong)}" for name, wrong in causes.items() if wrong]
    pytest.fail("\n".join(told or ["only together: " + " ".join(disturbance), *together]))


def harmful(names, tmp_path):
    """{name: the value of bash_variables.txt}"""
    path = os.environ["PATH"]
    return {name: VARIABLES[name].replace("{world}", str(tmp_path)).replace("{PATH}", path) for name in names}


def installed(program):
    if program == "run_mpirun.sh" and not shutil.which("mpirun"):
        pytest.skip("no mpirun (Debian: apt install openmpi-bin)")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0] if len(group) < 9 else "all others")
def test_no_variable_of_bash_or_python_disturbs(program, group, environment, tmp_path):
    installed(program)
    compare(program, environment, harmful(group, tmp_path), tmp_path)


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_exported_function_disturbs(program, environment, tmp_path):
    installed(program)
    builtins = subprocess.run(["bash", "-c", "compgen -bk"], capture_output=True, text=True).stdout.split()
    body = f"() {{  {shutil.which('touch')} EVIL; }}"
    names = {*builtins, *COMMANDS, *own_functions()}
    compare(program, environment, {f"BASH_FUNC_{name}%%": body for name in sorted(names)}, tmp_path)
