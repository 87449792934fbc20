"""Faults that are there before the start: odd variables, limits, programs that are slow or fail, an odd clock."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.chaos.allowed import Allowed

# Variables that a site, a login or another program may have exported. None of them may change what a launch does.
ODD_VARIABLES = [
    {"TMOUT": "1"},
    {"SHELLOPTS": "braceexpand:errexit:hashall:interactive-comments:nounset"},
    {"SHELLOPTS": "noglob:noclobber:pipefail"},
    {"BASHOPTS": "nullglob:nocasematch:failglob"},
    {"POSIXLY_CORRECT": "1"},
    {"FUNCNEST": "3"},
    {"BASH_ENV": "bash_env.sh"},
    {"ENV": "bash_env.sh"},
    {"IFS": "/0123456789"},
    {"LC_ALL": "tr_TR.UTF-8"},
    {"LC_ALL": "no_SUCH"},
    {"LANG": "C", "LC_ALL": "C"},
    {"TERM": "dumb"},
    {"TERM": ""},
    {"TMPDIR": "no/such"},  # relative: mpirun makes it
    {"CDPATH": "/:/tmp", "GLOBIGNORE": "*", "GREP_OPTIONS": "-v", "GREP_COLOR": "1"},
    {"PS4": "$(kill -9 $$)", "PROMPT_COMMAND": "exit 9", "BASH_XTRACEFD": "1"},
    {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"},
    {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "1"},
    {"PYTHONDEVMODE": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONCOERCECLOCALE": "0"},
    {"HOSTNAME": "", "PWD": "/dev/null/such", "OLDPWD": "relative", "SHLVL": "x", "HOME": "/dev/null/such", "UID": "7"},
    {"REPLY": "x", "LAUNCH_LIB": "/none", "JUDGING_FIRST": "0", "PLAN_RANKS": "9", "LAUNCH_JOB": "other"},
    {"COLUMNS": "1", "LINES": "0", "RANDOM": "1", "SECONDS": "1", "OPTIND": "9", "MAILCHECK": "0", "MAIL": "x"},
]
FUNCTIONS = ["read", "kill", "printf", "wait", "exec", "trap", "command", "grep", "local", "log::say", "clock::now"]

# Programs of a PATH on which they fail, and such on which they are slow.
FAILING = ["stat", "tail", "chrt", "tr", "mv", "ln", "id"]
SLOW = ["grep", "stat", "tail", "mkdir", "rm", "readlink", "chrt", "tr", "mv", "ln"]


@dataclass
class Setting:
    """How a launch is started in a world that is not as it should be."""

    name: str = "none"
    kind: str = "none"
    variables: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)  # lines for the shell that becomes the launch
    words: list[str] = field(default_factory=list)  # programs that become the launch
    allowed: Allowed = field(default_factory=Allowed)
    lacks: str = ""  # why this machine cannot have it


def draw(random: Random) -> Setting:
    """A setting; in half of the rounds nothing is odd.  What this machine cannot have says so in `lacks`."""
    kind = random.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
    setting = KINDS[kind][0](random)
    setting.kind = kind
    return setting


def prepare(folder: Path) -> None:
    """Makes the files that some settings need."""
    (folder / "bash_env.sh").write_text("shopt -s nullglob; set -f; umask 077; alias read=false\nkill() { :; }\n")
    for kind, names in (("failing", FAILING), ("slow", SLOW)):
        (folder / kind).mkdir()
        for name in names:
            program = folder / kind / name
            real = shutil.which(name) or "false"
            program.write_text(
                "#!/bin/sh\nexit 1\n" if kind == "failing" else f'#!/bin/sh\nsleep 0.2\nexec {real} "$@"\n'
            )
            program.chmod(0o755)


def _variables(random: Random) -> Setting:
    variables = random.choice(ODD_VARIABLES)
    return Setting(f"variables {variables}", variables=variables)


def _function(random: Random) -> Setting:
    name = random.choice(FUNCTIONS)
    return Setting(f"exported function {name}", variables={f"BASH_FUNC_{name}%%": "() { :; }"})


def _failing(random: Random) -> Setting:
    return Setting("programs that fail", variables={"PATH": "failing"})


def _slow(random: Random) -> Setting:
    return Setting("programs that are slow", variables={"PATH": "slow"})


def _open_files(random: Random) -> Setting:
    number = random.choice([16, 40, 100, 256])
    codes = {78} if number < 256 else set()
    return Setting(f"ulimit -n {number}", before=[f"ulimit -n {number}"], allowed=Allowed(codes))


def _file_size(random: Random) -> Setting:
    blocks = random.choice([1, 4, 16, 64])
    # 153: a rank ends by SIGXFSZ where it would write its environment
    codes = {78, 153} if blocks < 16 else set()
    allowed = Allowed(codes, {"disk", "SIGXFSZ"})
    return Setting(f"ulimit -f {blocks}", before=[f"ulimit -f {blocks}"], allowed=allowed)


def _processes(random: Random) -> Setting:
    number = random.choice([4, 8, 12, 20, 30])
    allowed = Allowed(
        {78, 254}, {"processes", "plan", "fork"}, leftovers="no process could be started to look for them"
    )
    setting = Setting(f"ulimit -u {number}", before=[f"ulimit -u {number}"], allowed=allowed)
    user = 100_000_000 + random.randrange(10_000_000)  # has no other processes; the limit does not hold for root
    if os.getuid():
        setting.lacks = "ulimit -u: needs root, to become a user without other processes"
    elif not (python := python_of(user)):
        setting.lacks = "ulimit -u: another user cannot run this Python, nor /usr/bin/python3 with PyYAML"
    else:
        setting.words = ["setpriv", "--reuid", str(user), "--clear-groups"]
        setting.variables = python
    return setting


def python_of(user: int) -> dict[str, str]:
    """The variables with which this user has a Python with PyYAML; nothing if there is none."""
    import yaml

    site = os.path.dirname(os.path.dirname(yaml.__file__))
    for python in (sys.executable, "/usr/bin/python3"):
        command = ["setpriv", "--reuid", str(user), "--clear-groups", python, "-c", "import yaml"]
        variables = {"PYTHON": python, "PYTHONPATH": site}
        if not subprocess.run(command, env={**os.environ, **variables}, capture_output=True).returncode:
            return variables
    return {}


def _clock(random: Random) -> Setting:
    wanted = random.choice([0.2, 3, 86_400_000])
    with open("/proc/uptime") as file:
        offset = int(wanted - float(file.read().split()[0]))
    words = ["unshare", "--time", "--boottime", str(offset)]
    lacks = ""
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        lacks = "an odd clock: unshare --time needs root, or is not there"
    return Setting(f"uptime {wanted}", words=words, lacks=lacks)


def _planted(random: Random) -> Setting:
    """What somebody has left in the folder of the locks."""
    what = random.choice(["mkfifo -m 666", "mkdir", "ln -s /none/such", "ln -s /etc/passwd", "echo '{}' >"])
    return Setting(f"in the folder of the locks: {what}", before=[f'{what} "$LAUNCH_LOCKS/1.1"'])


def _none(random: Random) -> Setting:
    return Setting()


KINDS = {
    "none": (_none, 20),
    "variables": (_variables, 8),
    "function": (_function, 2),
    "failing": (_failing, 2),
    "slow": (_slow, 2),
    "open files": (_open_files, 1),
    "file size": (_file_size, 2),
    "processes": (_processes, 3),
    "clock": (_clock, 2),
    "locks": (_planted, 2),
}


def command(setting: Setting, bash: str, words: list[str]) -> list[str]:
    """The words, started in this setting.  A plain shell sets the limits, then `env` the odd variables."""
    odd = [f"{name}={value}" for name, value in setting.variables.items()]
    inner = [*setting.words, *(["env", *odd] if odd else []), bash, *words]
    if not setting.before:
        return inner
    return [bash, "-c", "\n".join([*setting.before, 'exec "$@"']), "-", *inner]


def shown(setting: Setting, bash: str, words: list[str]) -> str:
    """The same, for a person."""
    return " ".join(map(shlex.quote, command(setting, bash, words)))
