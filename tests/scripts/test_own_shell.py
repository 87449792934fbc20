"""What the caller's environment tells bash and Python changes no launch, and reaches the ranks as it was."""

import difflib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from suite.cases import eventually
from suite.needs import need

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
SCRIPTS = ROOT / "scripts"
STARTED = [path for path in [*SCRIPTS.glob("*.sh"), SCRIPTS / "lib" / "start.sh"] if path.name != "doctor.sh"]

LINES = [line.partition(" ") for line in (FIXTURES / "bash_variables.txt").read_text().splitlines()]
VARIABLES = {name: value for name, _, value in LINES if name not in ("", "#")}
# These would hide what others do, or end more than one shell: each has a launch of its own.
ALONE = ("SHELLOPTS", "POSIXLY_CORRECT", "TMOUT", "PYTHONVERBOSE", "PYTHONWARNDEFAULTENCODING")
# bash runs this file before the first line of a script, and it may do anything.
OUT_OF_REACH = ("BASH_ENV",)
# Their values change all the time, count shells, or say which shell started the program: what EXECIGNORE=* hides is
# bash, too, and then bash takes the caller's login shell for itself.
CHANGING = (
    "BASH",
    "BASH_ARGV0",
    "BASH_VERSION",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "BASH_MONOSECONDS",
    "LINENO",
    "SHLVL",
    "_",
)
# What our scripts call.
COMMANDS = """
bash chmod chrt cp cut date dirname env grep head hostname id ln ls mkdir mpirun msrun nice paste ps python python3
readlink rm rmdir salloc sbatch scontrol sed setsid sh sleep sort srun ssh stat tail timeout tr uname xargs
"""
GROUPS = [tuple(name for name in VARIABLES if name not in (*ALONE, *OUT_OF_REACH)), *((name,) for name in ALONE)]
EXITS = {"check_network.sh": "1", "doctor.sh without Python": "1"}  # of undisturbed programs, if not 0
PROGRAMS = ("ascend2p.sh", "run_mpirun.sh", "doctor.sh", "doctor.sh without Python", "check_network.sh")


def own_functions():
    """The names of all functions of our scripts."""
    return set(re.findall(r"(?m)^([\w:]+)\(\)", (SCRIPTS / "doctor.sh").read_text()))


def furnish(tmp_path):
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


@pytest.fixture
def environment(tmp_path):
    """The environment of an undisturbed launch in `tmp_path`."""
    return furnish(tmp_path)


class Shared:
    """A folder in which launches are compared, and what is seen of an undisturbed launch of each program there."""

    def __init__(self, path):
        self.path = path
        self.environment = furnish(path)
        self.undisturbed = functools.cache(lambda program: seen(program, self.environment, path))

    def differences(self, program, disturbance):
        """What is not as in the undisturbed launch; the machine may have changed since that, so it runs again."""
        disturbed = {**self.environment, **disturbance}
        found = differences(program, self.environment, disturbed, self.path, self.undisturbed(program))
        if found:
            again = seen(program, self.environment, self.path)
            found = differences(program, self.environment, disturbed, self.path, again)
        return found


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return Shared(tmp_path_factory.mktemp("shared"))


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
    }
    found = {name: ["bash", str(SCRIPTS / name), *words] for name, words in found.items()}
    return {**found, "doctor.sh without Python": ["env", "PYTHON=/no/such", "bash", str(SCRIPTS / "doctor.sh")]}


def without_chance(text):
    """The text without times, process ids, ports and names of run folders."""
    text = re.sub(r"-\d{8}T\d{6}Z-\d+(-\d+)?", "-RUN", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r'((?:MS_SCHED|MASTER)_PORT": ")\d+', r"\1PORT", text)
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
        lines = [line for line in page["lines"] if line["name"] != ".pyc"]  # which is about Python's own variables
        found["stdout"] = "\n".join(line["name"] + " " + line["status"] for line in lines)
    if (tmp_path / "logs").exists():
        document = json.loads((tmp_path / "logs" / "latest" / "launch.json").read_text())
        document["outcome"]["members"].pop("mpirun", None)  # the launcher ends it, sooner or later
        for member in document["outcome"]["members"].values():
            del member["pid"]
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
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True)
    return json.loads(ended.stdout.splitlines()[-1])


def differences(program, environment, disturbed, tmp_path, undisturbed):
    """What is not as in the undisturbed launch, as text."""
    found, ranks = seen(program, disturbed, tmp_path)
    wrong = [
        "\n".join(
            difflib.unified_diff(value.splitlines(), found.get(name, "").splitlines(), name, "disturbed", "", "", 0, "")
        )
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


def compare(program, shared, disturbance):
    """Fails, with the names of the variables that do it, if the disturbance changes what is seen."""
    undisturbed = shared.undisturbed(program)
    if program != "doctor.sh":  # its end depends on what this machine has
        assert undisturbed[0]["exit"] == EXITS.get(program, "0"), undisturbed
    together = shared.differences(program, disturbance)
    if not together:
        return
    causes = {name: shared.differences(program, {name: value}) for name, value in disturbance.items()}
    told = [f"{name}={disturbance[name]}: {'; '.join(wrong)}" for name, wrong in causes.items() if wrong]
    pytest.fail("\n".join(told or ["only together: " + " ".join(disturbance), *together]))


def harmful(names, tmp_path):
    """{name: the value of bash_variables.txt}"""
    path = os.environ["PATH"]
    return {name: VARIABLES[name].replace("{world}", str(tmp_path)).replace("{PATH}", path) for name in names}


def installed(program):
    if program == "run_mpirun.sh":
        need("mpirun")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0] if len(group) < 9 else "all others")
def test_no_variable_of_bash_or_python_disturbs(program, group, shared):
    installed(program)
    compare(program, shared, harmful(group, shared.path))


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_exported_function_disturbs(program, shared):
    installed(program)
    builtins = subprocess.run(["bash", "-c", "compgen -bk"], capture_output=True, text=True).stdout.split()
    body = f"() {{  {shutil.which('touch')} EVIL; }}"
    names = {*builtins, *COMMANDS.split(), *own_functions()}
    compare(program, shared, {f"BASH_FUNC_{name}%%": body for name in sorted(names)})


@pytest.mark.parametrize("program", ["ascend2p.sh", "run_mpirun.sh"])
def test_under_bash_env_ranks_run_and_get_what_the_caller_exported(program, environment, tmp_path):
    installed(program)
    disturbed = {**environment, **harmful(OUT_OF_REACH, tmp_path), "OF_CALLER": "mine"}
    found, ranks = seen(program, disturbed, tmp_path)
    assert found["exit"] == "0", found
    assert {name: ranks[name] for name in ("BASH_ENV", "OF_CALLER")} == {
        name: disturbed[name] for name in ("BASH_ENV", "OF_CALLER")
    }
    assert not [name for name in ranks if name.startswith("LAUNCH_") and name not in ("LAUNCH_JOB", "LAUNCH_LOCKS")]


def test_the_scripts_set_only_variables_that_are_ours():
    """A rank would get the script's value if the caller exported a variable of this name."""
    texts = [path.read_text() for path in STARTED]
    texts = [re.sub(r"(?m)\\\n|^#.*\n", "", text) for text in texts]  # no comments, and long lines in one
    names = {name for text in texts for name in re.findall(r"(?m)(?:^|&& |then |[;{(] ) *([A-Za-z]\w*)\+?=", text)}
    names |= {name for text in texts for name in re.findall(r"\bfor (\w+)", re.sub(r"(?m)(^|\s)#.*$", "", text))}
    assert "LAUNCH_LIB" in names
    others = {name for name in names if not name.startswith("LAUNCH_")}
    assert others <= {"POSIXLY_CORRECT", "LC_ALL"}  # Python puts the first back; the other is for one command
    assert not [text for text in texts if re.search(r"\bLC_ALL=(?!C printf )", text)]


@pytest.mark.parametrize("program", ["ascend2p.sh", "run_mpirun.sh"])
def test_ranks_get_variables_with_names_that_programs_like_to_use(program, environment, tmp_path):
    installed(program)
    names = {
        "name",
        "record",
        "kept",
        "words",
        "i",
        "line",
        "say",
        "REPLY",
        "ENGINE",
        "OPTIONS",
        "LOG_NAME",
        "container",
    }
    odd = {name: f"of the caller: {name}" for name in names}
    _, ranks = seen(program, {**environment, **odd}, tmp_path)
    assert {name: ranks.get(name) for name in odd} == odd


# German writes 0,1 for a tenth; the small letter of I is not i in Turkish; bash 4 has capitals in English a-z.
LOCALES = {"LC_NUMERIC": "de_DE", "LC_CTYPE": "tr_TR", "LC_COLLATE": "en_US"}


def test_no_locale_disturbs(shared):
    """One locale has what disturbs in each of several: localedef takes more than a second for one."""
    need("localedef")
    source = shared.path / "mixed"
    source.write_text("".join(f'{part}\ncopy "{name}"\nEND {part}\n' for part, name in LOCALES.items()))
    command = ["localedef", "--quiet", "--force", "-i", str(source), "-f", "UTF-8", f"{source}.UTF-8"]
    made = subprocess.run(command, capture_output=True)
    if made.returncode > 1:
        pytest.skip(f"needs locales: the sources of {', '.join(LOCALES.values())}: {made.stderr}")
    locale = {"LOCPATH": str(shared.path), "LC_ALL": "mixed.UTF-8"}
    bash = ["bash", "-c", "printf %.1f 0,5"]
    spoken = subprocess.run(bash, env={**shared.environment, **locale}, capture_output=True)
    assert (spoken.stdout, spoken.stderr) == (b"0,5", b"")  # bash has the locale
    compare("ascend2p.sh", shared, locale)


@pytest.mark.parametrize("shell", ["sh", "dash", "bash --posix", "bash -e -u -f", "busybox sh"])
def test_typed_with_another_shell(shell, environment, tmp_path):
    need(shell.split()[0])
    command = [*shell.split(), *commands(tmp_path)["ascend2p.sh"][1:]]
    disturbed = {**environment, **harmful(["SHELLOPTS", "TMOUT"], tmp_path)}
    assert subprocess.run(command, cwd=tmp_path, env=disturbed).returncode == 0
    ranks = json.loads((tmp_path / "out" / "rank_1.json").read_text())["env"]
    assert ranks["TMOUT"] == "1"
    words = ["-c", 'echo "$SHELLOPTS"']
    plain = subprocess.run([*shell.split(), *words], env=disturbed, capture_output=True, text=True).stdout
    assert ("errexit" in ranks["SHELLOPTS"]) == ("errexit" in plain)  # bash 4.2 --posix reads none


def test_what_ranks_get_is_in_their_file(environment, tmp_path):
    odd = {"TMOUT": "9", "PYTHONOPTIMIZE": "1", "REPLY": "two words", "log": "a 'b' \"c\"", "LOG_NAME": "mine"}
    found, ranks = seen("ascend2p.sh", {**environment, **odd}, tmp_path)
    assert {name: ranks[name] for name in odd} == odd
    assert not [name for name in ranks if name.startswith("LAUNCH_") and name not in ("LAUNCH_JOB", "LAUNCH_LOCKS")]
    print_them = 'source logs/latest/rank_1.env && printf "%s\\n" "$TMOUT$PYTHONOPTIMIZE" "$REPLY" "$log" "$LOG_NAME"'
    sourced = subprocess.run(["bash", "-c", print_them], cwd=tmp_path, capture_output=True, text=True)
    assert sourced.stdout.splitlines() == ["91", "two words", "a 'b' \"c\"", "mine"]
    written = (tmp_path / "logs" / "latest" / "rank_1.env").read_text()
    assert set(re.findall(r"\bLAUNCH_\w+", written)) <= {"LAUNCH_JOB", "LAUNCH_LOCKS"}


def test_a_python_whose_path_has_an_equals_sign(environment, tmp_path):
    """env would take it for a variable."""
    folder = tmp_path / "a=b"
    folder.mkdir()
    (folder / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / "python").chmod(0o755)
    found, ranks = seen("ascend2p.sh", {**environment, "TMOUT": "9", "PYTHON": str(folder / "python")}, tmp_path)
    assert (found["exit"], ranks["TMOUT"]) == ("0", "9"), found


def test_bash_x_still_traces(environment, tmp_path):
    command = ["bash", "-x", *commands(tmp_path)["ascend2p.sh"][1:]]
    traced = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert traced.returncode == 0
    assert re.search(r"(?m)^\++ exec .*/tools/launch/main.py", traced.stderr)
    assert "xtrace" not in json.loads((tmp_path / "out" / "rank_1.json").read_text())["env"].get("SHELLOPTS", "")


def left(tmp_path):
    """The processes of this test that live."""
    mark = f"TEST_MARK={tmp_path}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


@pytest.fixture
def behind(environment, tmp_path):
    """behind({name: value}, what the ranks do, *options): a launch in the background; ends what it left."""

    def start(disturbance, do, *options):
        env = {**environment, **disturbance, "STUB_DO": do}
        command = [*commands(tmp_path)["ascend2p.sh"][:-1], *options, "config.yaml"]
        process = subprocess.Popen(command, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, start_new_session=True)
        eventually(lambda: len(list((tmp_path / "out").glob("rank_?.json"))) == 2)
        return process

    yield start
    for pid in left(tmp_path):
        os.kill(pid, signal.SIGKILL)


def test_the_guardian_ends_stubborn_ranks_whatever_is_exported(behind, tmp_path):
    options = harmful(["SHELLOPTS", "TMOUT", "FUNCNEST"], tmp_path)
    options["BASH_FUNC_kill%%"] = options["BASH_FUNC_read%%"] = "() {  exit 0; }"
    launcher = behind(options, "0: ignore TERM; 1: ignore TERM", "--grace", "1")
    launcher.kill()
    launcher.wait()
    eventually(lambda: not left(tmp_path))


def test_ranks_outlive_the_time_of_tmout(behind, tmp_path):
    launcher = behind({"TMOUT": "1"}, "0: tick 20; 1: tick 20")
    assert launcher.wait(timeout=300) == 0


def test_a_ranks_code_and_the_grace_time_under_errexit(behind, tmp_path):
    launcher = behind({"SHELLOPTS": "errexit:errtrace"}, "0: await 1, exit 7; 1: ignore TERM", "--grace", "1")
    assert launcher.wait(timeout=300) == 7
    document = json.loads((tmp_path / "logs" / "latest" / "launch.json").read_text())
    assert document["outcome"]["members"]["1"]["status"] == 137
    assert document["outcome"]["members"]["1"]["seconds"] >= 1


def test_the_first_lines_of_all_scripts_are_the_same():
    found = {}
    of_slurm = re.compile(r"if .* == slurm_script .*\n(  .*\n)*fi\n")  # sbatch runs a copy of the script
    for path in SCRIPTS.glob("*.sh"):
        text = of_slurm.sub("", re.sub(r"\A(#.*\n)*", "", path.read_text()))
        found.setdefault(text[: text.index("\nfi\n")], []).append(path.name)
    assert len(found) == 1, found
    (lines,) = found
    assert lines.startswith("case ${BASH_VERSION-} in") and "POSIXLY_CORRECT=" in lines.splitlines()[1]
    assert not (SCRIPTS / "lib" / "start.sh").read_text().startswith("#!")
