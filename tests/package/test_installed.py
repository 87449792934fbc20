"""The package as another user has it: installed by root, read-only, for the oldest and the newest Python."""

import json
import os
import re
import shlex

import installing
import pytest

from hccl_tools.common import typed, version
from tools.front import pages

pytestmark = pytest.mark.thorough

ROOT = installing.ROOT
TRAINER = """
import os
print("epoch 1, loss is 0.5", flush=True)
if os.environ.get("STUB_FAILS") == os.environ["RANK_ID"]:
    raise RuntimeError("broken on purpose")
"""
# Files of the user's with names of ours and of Python's own modules; each ends the program that imports it.
DECOYS = ("tools/__init__.py", "hccl_tools/__init__.py", "signal.py", "json.py", "shlex.py")
SCRIPTS = sorted(path.stem for path in (ROOT / "scripts").glob("*.sh") if f"scripts/{path.name}" not in typed.WORDS)
TOOLS = sorted({name for file, name in typed.WORDS.items() if name and (ROOT / file).exists()})
NEED_NUMPY = {name for name in TOOLS if name.startswith("prepare ")}
HAVE_HELP = sorted({*TOOLS, *SCRIPTS} - NEED_NUMPY)
MODULE = ("-m", "mindspore_launch")
# What commands print, {command: [exit code, text]}: a fork each, that has what all of them import.
PRINTS = """
import importlib, json, os, sys, tempfile
sys.path[0] = os.path.dirname(sys.argv[1])
import mindspore_launch.__main__ as front
for module in ("argparse", "gettext", "rich.console", "shutil", "subprocess", "yaml"):
    importlib.import_module(module)
told = {}
for name in sys.argv[2:]:
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            os.dup2(file.fileno(), 1)
            os.dup2(1, 2)
            sys.argv = [sys.argv[1], *name.split()]
            code = 1
            try:
                code = front.main()
            except SystemExit as ended:
                code = ended.code or 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        file.seek(0)
        told[name] = [os.waitstatus_to_exitcode(status), file.read().decode()]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout."""
    return installing.build_wheel(tmp_path_factory)


class User:
    """Somebody who uses the installation, in a folder of his own."""

    def __init__(self, installed, before, folder):
        self.installed = installed
        self.before = before
        self.folder = folder
        self.variables = {}

    def types(self, *words, status=0, where="."):
        """What a command prints, on stdout and stderr, which must end so."""
        environ = installing.environment(self.folder, self.installed.bin, **self.variables)
        ended = installing.run(*self.before, *words, cwd=self.folder / where, env=environ)
        told = ended.stdout + ended.stderr
        assert ended.returncode == status, f"{words}: exit {ended.returncode}\n{told}"
        assert not re.search('File ".*/mindspore_launch/', ended.stderr), told
        return told

    def writes(self, name, text):
        """A file in his folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture(scope="module", params=installing.versions())
def owned(request, wheel):
    """The installation of one Python, to which its owner may write.  At the end of all tests it is as it was."""
    if not installing.python(request.param):
        pytest.skip(f"needs Python {request.param} with its modules venv and ensurepip")
    folder = installing.open_folder()
    try:
        found = installing.Installed(folder, request.param)
        found.install(wheel)
        found.before = found.files()
        yield found
        assert found.changed() == set()
    finally:
        installing.remove(folder)


@pytest.fixture(scope="module")
def installed(owned):
    """The same when nobody may write to it any more."""
    owned.before = owned.files()
    owned.close()
    owned.another = owned.as_another()
    return owned


@pytest.fixture
def user(installed, request):
    """Another user than the one who installed it."""
    folder = installed.job_folder(re.sub(r"\W+", "-", request.node.name))
    found = User(installed, installed.another, folder)
    found.writes("trainer.py", TRAINER)
    return found


@pytest.fixture(scope="module")
def reader(installed):
    """The same for those who only read."""
    return User(installed, installed.another, installed.job_folder("reader"))


def test_its_owner_does_not_write_into_it_either(owned):
    """With the permission to write, too, it stays as it was: no bytecode, no log, no lock.  This test comes first."""
    owner = User(owned, [], owned.folder / "home")
    owner.writes("trainer.py", TRAINER)
    owner.variables = {"STUB_FAILS": "0"}
    owner.types("mslaunch", "-n", "2", "trainer.py", status=1)
    for words in (("diagnose", "logs/latest"), ("runs",), ("report", "logs/latest"), ("table", "check", "--help")):
        owner.types("mslaunch", *words)
    assert owned.changed() == set()


def test_the_other_user_may_not_write_into_it(user):
    (package,) = (user.installed.folder / "venv" / "lib").glob("python3*/site-packages/mindspore_launch")
    for place in (package, package / "tools", user.installed.bin):
        assert user.types("sh", "-c", f"touch {place}/x 2>/dev/null || echo refused") == "refused\n"


def test_our_packages_are_no_modules_of_this_environment(reader):
    code = "import importlib.util as u; print([u.find_spec(name) for name in ('tools', 'hccl_tools')])"
    assert reader.types("python", "-c", code) == "[None, None]\n"


def test_version_and_help(reader):
    assert reader.types("mslaunch", "--version") == f"mindspore-launch {version.number()}\n"
    told = reader.types("mslaunch", "--help")
    assert "\nUsage: mslaunch " in told
    assert len(told.splitlines()) <= 24
    assert [line for line in told.splitlines() if len(line) > 80] == []
    module = reader.types("python", *MODULE, "--help")
    assert module.replace(f"{reader.installed.bin}/python -m mindspore_launch", "mslaunch") == told
    assert reader.types("python", *MODULE, "--version") == f"mindspore-launch {version.number()}\n"


def test_tab_in_bash(reader):
    line = "mslaunch --hang"
    fill = f"COMP_LINE='{line}' COMP_POINT={len(line)}; _mslaunch mslaunch --hang mslaunch"
    told = reader.types("bash", "-c", f'source <(mslaunch --completion bash); {fill}; echo "${{COMPREPLY[@]}}"')
    assert told == "--hang_timeout\n"


def test_it_speaks_chinese(reader):
    reader.variables = {"LANG": "zh_CN.UTF-8"}
    try:
        for name in ("run_pod", "watch"):
            assert "用法" in reader.types("mslaunch", name, "--help"), name
    finally:
        reader.variables = {}


def test_a_launch_and_what_is_asked_about_it(user):
    told = user.types("mslaunch", "-n", "2", "trainer.py")
    assert "mslaunch: exit 0; logs and launch.json are in logs/mslaunch-" in told
    assert json.loads((user.folder / "logs/latest/launch.json").read_text())["outcome"]["exit"] == 0
    assert "ended with 0" in user.types("mslaunch", "watch", "--once")
    assert "trainer.py" in user.types("mslaunch", "runs")
    assert user.types("mslaunch", "report", "logs/latest") == "logs/latest/report.html\n"
    assert re.search(rf"launcher +{re.escape(version.number())}\n", user.types("mslaunch", "doctor", status=1))
    assert "2 ranks on devices" in user.types("python", *MODULE, "-n", "2", "trainer.py")


def test_a_failure_is_told_in_words_of_mslaunch(user):
    user.variables = {"STUB_FAILS": "1"}
    told = user.types("mslaunch", "-n", "2", "trainer.py", status=1)
    assert "RuntimeError: broken on purpose" in told
    assert "broken on purpose" in user.types("mslaunch", "diagnose")
    assert "broken on purpose" in user.types("mslaunch", "diagnose", "logs/latest")
    assert not re.search(r"\bbash |python tools/|scripts/\w+\.sh|site-packages/mindspore_launch/", told)


def test_what_a_refusal_says_to_type_works(user):
    """A launch on NPUs, of which this machine has none, is refused with the line to type instead."""
    if os.path.exists("/dev/davinci_manager"):
        pytest.skip("needs a machine without NPUs")
    told = user.types("mslaunch", "ascend2p", "trainer.py", status=78)
    commands = installing.remedies(told)
    assert commands, told
    for command in commands:
        assert "exit 0" in user.types(*shlex.split(command))
    told = user.types("mslaunch", "--no_such_option", "trainer.py", status=2)
    assert installing.remedies(told) == ["mslaunch --help"]


def test_rank_tables(user):
    user.writes("hccn.conf", "".join(f"address_{n}=192.168.1.{n + 1}\n" for n in range(8)))
    words = ("--device_num", "[0,8)", "--server_ip", "10.0.0.1", "--hccn_conf", "hccn.conf")
    path = str(user.folder / "table.json")
    assert path in user.types("mslaunch", "table", "build", *words, "--output", "table.json").splitlines()
    assert user.types("mslaunch", "table", "check", "table.json")
    assert "10.0.0.1" in user.types("mslaunch", "table", "show", "table.json")
    user.writes("table.json", '{"version": "1.0"}')
    told = user.types("mslaunch", "table", "check", "table.json", status=1)
    assert "hccl_tools/" not in told and ".py" not in told


TOPICS = [*pages.topics(), "launch", "scripts"]


@pytest.fixture(scope="module")
def told(reader):
    """{command: [exit code, what it prints]} of all that only print."""
    commands = [*(f"{name} --help" for name in HAVE_HELP), *(f"help {name}" for name in TOPICS)]
    return json.loads(reader.types("python", "-c", PRINTS, reader.installed.bin / "mslaunch", *commands))


@pytest.mark.parametrize("name", HAVE_HELP)
def test_every_command_has_its_help(told, name):
    status, text = told[f"{name} --help"]
    assert status == 0 and not re.search('File ".*/mindspore_launch/', text), text
    assert re.search(rf"(?im)^(?:usage:|  ).* ?mslaunch {name}\b", text), text
    others = "\n".join(line for line in text.splitlines() if "sbatch" not in line)  # which takes a file of a shell
    assert not re.search(r"bash (?:\S*/)?scripts/|python (?:\S*/)?(?:tools|hccl_tools)/", others), told


def test_what_lacks_a_package_says_so_by_its_own_name(reader):
    for name in sorted(NEED_NUMPY):
        told = reader.types("mslaunch", *name.split(), "data", status=2)
        assert re.fullmatch(rf"mslaunch {name}: \S+ has no numpy; install it: \S+ -m pip install numpy\n", told), told


def test_every_topic_has_its_page(reader, told):
    for name in TOPICS:
        status, text = told[f"help {name}"]
        assert status == 0 and len(text) > 300 and "<!--" not in text, name
        assert not re.search('File ".*/mindspore_launch/', text), text
    assert "kubernetes" in reader.types("mslaunch", "help", "kubernets", status=2)


def test_modules_of_the_user_with_our_names_are_not_ours(user):
    for name in DECOYS:
        user.writes(name, f"raise SystemExit('{name} was imported')\n")
    user.writes("job/trainer.py", "print('trained')\n")
    if os.geteuid() == 0:
        os.chown(user.folder / "job", user.folder.stat().st_uid, -1)
    for more in ({}, {"PYTHONPATH": str(user.folder)}):
        user.variables = more
        for front in (["mslaunch"], ["python", *MODULE]):
            assert user.types(*front, "--version").startswith("mindspore-launch ")
        assert "usage: mslaunch watch" in user.types("mslaunch", "watch", "--help")
        assert "logs: no such folder" in user.types("mslaunch", "runs", status=2)
        told = user.types("mslaunch", "-n", "2", "--dry_run", "trainer.py", where="job")
        assert "2 ranks; this is what it would start" in told
    user.variables = {}
    assert "trained" in user.types("mslaunch", "-n", "2", "trainer.py", where="job")
