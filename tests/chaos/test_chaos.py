"""Some rounds of `make chaos`, and the tests of what judges it."""

import os
import re
import shutil
import subprocess
import sys
import warnings

import pytest

from tests.chaos import processes, rounds, verdicts, world
from tests.chaos.allowed import Allowed
from tests.chaos.launches import Launch, Rank
from tests.chaos.settings import Setting
from tests.chaos.verdicts import Ended

pytestmark = pytest.mark.thorough

SECONDS = os.environ.get("CHAOS_SECONDS", "6")
SEED = os.environ.get("CHAOS_SEED", "2026")  # the same rounds in every run; `make chaos` draws others
REPORT = """\
ascend2p.sh: rank 1 (device 1) exited with code 3 after 0.1 s; stopping the other rank
rank  device  exit                         time      log
0     0       143 SIGTERM, stopped by us   0.1 s     logs/x/rank_0.log
1     1       3, failed first              0.1 s     logs/x/rank_1.log
ascend2p.sh: the last lines of logs/x/rank_1.log:
    Traceback (most recent call last): a rank's, not ours
ascend2p.sh: exit 3; logs and launch.json are in logs/x
"""


def chaos(root, *words):
    command = [sys.executable, "-m", "tests.chaos", *words]
    return subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.filterwarnings("default")
def test_launches_under_random_faults(root):
    """A failed round is played three times more; if it never fails again, that is a warning, unlike in `make chaos`."""
    print(f"CHAOS_SEED={SEED}")
    played = chaos(root, "--seconds", SECONDS, "--seed", SEED)
    print(played.stdout)
    rounds_failed = re.findall(r"(?m)^chaos: failed: .*--round (\d+)", played.stdout)
    assert (played.returncode == 0) == (not rounds_failed), f"CHAOS_SEED={SEED}:\n{played.stdout}"
    assert len(rounds_failed) < 4, f"CHAOS_SEED={SEED}:\n{played.stdout}"
    for number in rounds_failed:
        for _ in range(3):
            again = chaos(root, "--seed", SEED, "--round", number)
            assert again.returncode == 0, f"python -m tests.chaos --seed {SEED} --round {number}:\n{again.stdout}"
        warnings.warn(f"chaos: round {number} of seed {SEED} failed once of four times:\n{played.stdout}", stacklevel=1)
    assert re.search(r"(?m)^chaos: [1-9]\d* rounds, ", played.stdout)


def test_a_launch_by_mpirun_is_left_out_where_there_is_none(tmp_path, monkeypatch):
    drawn = next(found for n in range(1000) if (found := rounds.draw(7, n)).launch.script == "run_mpirun.sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = rounds.play(drawn, 1, world.World(tmp_path / "round", "bash", tmp_path), disk=False)
    assert (result.problems, result.lacks) == ([], ["run_mpirun.sh: needs mpirun"])
    assert os.listdir(tmp_path) == []


def test_the_seed_and_the_round_say_what_is_drawn():
    assert repr(rounds.draw(7, 3)) == repr(rounds.draw(7, 3))
    drawn = [repr(rounds.draw(seed, number)) for seed in (7, 8) for number in range(20)]
    assert len(set(drawn)) == 40


@pytest.mark.parametrize(
    ("ranks", "restarts", "disturbed", "codes"),
    [
        ([Rank(""), Rank("")], 0, False, {0}),
        ([Rank(""), Rank("", 3, 3), Rank("", 7, 7)], 0, False, {3, 7}),
        ([Rank(""), Rank("wait", None, None)], 0, False, set()),
        ([Rank("", 3, 3), Rank("wait", None, None)], 0, False, {3}),
        ([Rank("", 3, 0)], 1, False, {0}),
        ([Rank("", 3, 0)], 1, True, {0, 3}),
        ([Rank("", 3, 0)], 0, True, {3}),
    ],
)
def test_the_codes_of_a_launch(ranks, restarts, disturbed, codes):
    assert Launch("ascend2p.sh", ranks, restarts=restarts).codes(disturbed) == codes


SCRIPT = "python -E -s /x/tools/launch/main.py script=/x/scripts/run_mpirun.sh caller=/ ignored=0 mpirun -- config.yaml"
AGENT = "python -I -S /x/tools/rank/agent.py python -u /x/tests/chaos/rank.py"
ROLES = [  # role, pid, its parent, its command
    ("launcher", 1001, 1000, SCRIPT),
    ("guardian", 1002, 1001, "mindspore-launch-guardian"),
    ("console", 1003, 1001, "mindspore-launch-console"),
    ("report", 1004, 1001, "mindspore-launch-report"),
    ("starting", 1005, 1001, SCRIPT),
    ("engine", 1006, 1001, f"{{engine}} -n 2 {AGENT}"),
    ("agent", 1007, 1006, AGENT),
    ("agent", 1008, 1006, f"{{engine}} -n 2 {AGENT}"),
    ("starting", 1009, 1007, AGENT),
    ("watcher", 1010, 1007, "mindspore-launch-watcher"),
    ("rank", 1011, 1007, "python -u /x/tests/chaos/rank.py"),
    ("child", 1012, 1011, "python -u /x/tests/chaos/rank.py"),
    ("scheduler", 1013, 1001, "python -u /x/tools/launch/engines/mindspore_scheduler.py"),
]


def test_the_process_that_imports_is_no_rank_and_a_fork_of_it_that_has_begun_is_one():
    words, mark = "python -u /x/tests/chaos/rank.py", b"LAUNCH_IMPORTS=3,4,5,---\0"
    ranks = [processes.Process(pid, 1001, pid, "S", words, environ) for pid, environ in ((1003, mark), (1004, b""))]
    there = [processes.Process(1001, 1000, 1001, "S", SCRIPT, b""), *ranks]
    assert processes.roles(there, 1001, set()) == {"launcher": [1001], "imports": [1003], "rank": [1004]}
    assert processes.roles(there, 1001, {1003}) == {"launcher": [1001], "rank": [1003, 1004]}


def test_a_part_of_the_rounds_imports_once_and_all_do_if_wanted_where_it_can_be():
    for always in (False, True):
        launches = [rounds.draw(7, number, always).launch for number in range(60)]
        having = [launch for launch in launches if any("--import_once=" in word for word in launch.options)]
        assert all(launch.imports for launch in having) and having != launches
        others = [launch.script for launch in launches if launch not in having]
        assert (set(others) == {"run_mpirun.sh"}) == always
        assert any("force" in word for launch in having for word in launch.options)


@pytest.mark.parametrize("engine", ["mpirun", "prterun"])
@pytest.mark.parametrize("known", [set(), {1011}])
def test_the_roles_of_processes_under_mpirun(engine, known):
    """Of all these only 1011 may get a signal that is meant for a rank."""
    there = [processes.Process(pid, up, pid, "S", words.format(engine=engine), b"") for _, pid, up, words in ROLES]
    roles = processes.roles(there, 1001, known)
    found = {pid: role for role, pids in roles.items() for pid in pids}
    assert found == {pid: role for role, pid, *_ in ROLES}


def judge(allowed=None, **changes):
    """What is wrong with the report above, after these changes of it."""
    launch = Launch("ascend2p.sh", [Rank("wait", None, None), Rank("exit 3", 3, 3)])
    return verdicts.judge(
        launch, allowed or Allowed(), Ended(**{"code": 3, "stderr": REPORT, "ranks_ran": True, **changes})
    )


def test_a_good_end_is_good():
    assert judge() == []


def test_a_terminal_has_colours():
    said = "\x1b[1;31mascend2p.sh:\x1b[0m ulimit -n is 100, too few open files\n"
    assert judge(Allowed({78}), code=78, stderr=said, ranks_ran=False) == []
    assert "SIGTERM" in judge(stderr=REPORT + "\x1b[1mascend2p.sh:\x1b[0m SIGTERM: stopping all ranks\n")[0]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"code": 4}, "exit code 4 is none of"),
        ({"code": None}, "it hangs"),
        ({"left": ["pid 7"]}, "left running: pid 7"),
        ({"held": ["locks/7"]}, "a lock is still held: locks/7"),
        ({"stderr": REPORT.replace("rank  device", "")}, "no table"),
        ({"stderr": REPORT.replace(": exit 3;", ": exit 4;")}, 'no line "exit 3'),
        ({"stderr": "", "ranks_ran": False}, "no word about why"),
        ({"stderr": REPORT + "ascend2p.sh: is the disk full?\n"}, "is the disk full"),
        ({"stderr": REPORT + "x.sh: line 7: y: unbound variable\n"}, "unbound variable"),
        ({"stderr": REPORT + "Traceback (most recent call last):\n"}, "Traceback"),
        ({"stderr": REPORT + "ascend2p.sh: SIGTERM: stopping all ranks\n"}, "claims that SIGTERM"),
        ({"stderr": REPORT.replace("code 3 after", "code 5 after")}, "cannot have failed so"),
        ({"stderr": REPORT.replace("3, failed", "5, failed")}, "cannot have ended so"),
    ],
)
def test_a_bad_end_is_found(changes, complaint):
    assert any(complaint in problem for problem in judge(**changes))


def test_what_a_fault_allows_is_allowed():
    allowed = Allowed({4}, {"disk", "SIGTERM"}, "it was killed", "nobody can end them")
    said = "ascend2p.sh: SIGTERM: stopping all ranks\nascend2p.sh: is the disk full?\n"
    assert judge(allowed, code=4, stderr=said, left=["pid 7"]) == []


def test_a_launcher_without_its_sweep_is_found(root, tmp_path):
    for name in ("scripts", "tools", "hccl_tools", "schemas", "configs"):
        shutil.copytree(root / name, tmp_path / name, symlinks=True)
    code = tmp_path / "tools/supervise/proc.py"
    text = code.read_text()
    assert "            send(pid, _signal.SIGKILL)\n" in text
    code.write_text(text.replace("            send(pid, _signal.SIGKILL)\n", "            send(pid, 0)\n"))
    ranks = [Rank("fork session 60, sleep 0.1"), Rank("")]
    launch = Launch("ascend2p.sh", ranks, ["--leftovers", "end"], ["config.yaml"])
    place = world.World(tmp_path / "chaos" / "round_0", "bash", tmp_path)
    result = rounds.play(rounds.Drawn(launch, Setting(), []), 0, place, disk=False)
    assert any("left running" in problem for problem in result.problems)
