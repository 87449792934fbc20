"""What the words of a command line become; tests/scripts has what the scripts say of them."""

import os
import random
import re
import shlex
import subprocess

import pytest
from command_lines import command, declared, request
from suite.cases import for_each

from hccl_tools.common import project
from hccl_tools.common.quoting import harmless, quote, quoted
from hccl_tools.common.refusal import USAGE, Refusal
from tools.command import language, retyped, table
from tools.command.command import MOST_TYPED, read
from tools.command.declaration import Declaration
from tools.command.help import HelpAsked
from tools.command.line import Line
from tools.command.parse import parse
from tools.launch import instead
from tools.launch.request import Request
from tools.output.voice import Voice


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("config.yaml", "train.py", "neither", "tool"):
        (tmp_path / name).touch()
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "run" / "rank_0").mkdir(parents=True)
    return tmp_path


def test_the_plan_gets_the_scripts_words_then_the_users():
    asked = request("ascend2p.sh", "--device-target cpu --quiet config.yaml -- -o --help")
    assert (asked.script, asked.engine, asked.script_devices) == ("ascend2p.sh", "local", "[0,2)")
    assert (asked.device_target, asked.config, asked.trainer_arguments) == ("CPU", "config.yaml", ("-o", "--help"))
    assert (asked.job_pid, asked.quiet, asked.program, asked.max_restarts) == (os.getpid(), True, False, 0)
    assert asked.typed == "scripts/ascend2p.sh --device-target cpu --quiet config.yaml -- -o --help"
    assert os.path.isabs(request("run.sh", "run 8").default_config)


def test_a_copy_of_sbatch_is_called_by_the_path_of_the_script():
    words = ["script=/var/spool/slurm_script", "name=run_slurm.sh", "srun", "CONFIG", "device_target=Ascend"]
    asked = Request.from_words(read(Declaration.from_words(words), ["config.yaml"], {}).words)
    assert (asked.script, asked.typed) == ("run_slurm.sh", f"{project.path('scripts', 'run_slurm.sh')} config.yaml")


def test_a_command_line_that_is_too_long_is_not_kept():
    assert request("ascend2p.sh", "config.yaml --", "x" * MOST_TYPED).typed == ""


def test_the_launchers_own_options_are_no_words_of_the_plan():
    words = "--grace 007 --timeout=5 --hang_timeout 6 --max_restarts 2 --report --straggler 1.5 --console all"
    found = command("ascend2p.sh", words, "config.yaml")
    settings = found.settings
    assert (settings.grace, settings.timeout, settings.hang_timeout, settings.max_restarts) == (7, 5, 6, 2)
    assert (settings.report, settings.straggler, settings.metrics, settings.console_given) == (True, "1.5", None, True)
    assert Request.from_words(found.words).max_restarts == 2
    assert command("run_pod.sh", "config.yaml").settings.grace == 25


def test_stop_before_is_a_time_before_the_timeout():
    settings = command("ascend2p.sh", "--timeout 1h --stop_before 5m", "config.yaml").settings
    assert (settings.stop_before, settings.timeout, settings.grace_given) == (300, 3600, False)
    assert command("ascend2p.sh", "--stop-before=90 --grace 10", "config.yaml").settings.grace_given
    with pytest.raises(Refusal, match="--stop_before 60 is not shorter than --timeout 60: the job would end at once"):
        command("ascend2p.sh", "--timeout 1m --stop_before 60", "config.yaml")


@pytest.mark.parametrize(
    ("words", "console"),
    [
        ("", "0"),
        ("--quiet", "none"),
        ("--quiet --console all", "all"),
        ("--console 0,3", "0,3"),
        ("--console 0-3", "0,1,2,3"),
        ("--console 7,0-2,1", "7,0,1,2"),
        ("--tail_worker_log=1", "1"),
        ("--tail_worker_log 0,3", "0,3"),
        ("--tail_worker_log=-1", "all"),
    ],
)
def test_what_the_console_shows(words, console):
    assert command("ascend2p.sh", words, "config.yaml").settings.console == console


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        ("config.yaml", True),
        ("--dry_run config.yaml", False),
        ("--device_target CPU config.yaml", False),
        ("--device_target cpu --bind_core config.yaml", True),
        ("--device_target cpu --bind_core --bind_core=False config.yaml", False),
    ],
)
def test_a_job_on_devices_or_cores_of_its_own_needs_a_lock(words, needs):
    assert command("ascend2p.sh", words).needs_lock is needs


@pytest.mark.parametrize(
    ("script", "words", "program", "arguments"),
    [
        ("ascend2p.sh", "train.py --dry_run -- x", "train.py --dry_run -- x", {}),
        ("ascend2p.sh", "-m package -x", "-m package -x", {}),
        ("ascend2p.sh", "-- train.py -x", "train.py -x", {}),
        ("launch.sh", "-n 2 ./tool -n 3", "./tool -n 3", {"n": 2}),
        ("launch.sh", "-n 2 sh -c true", "sh -c true", {"n": 2}),
        ("run.sh", "run 8 train.py 3", "train.py 3", {"data_path": "run", "rank_size": 8}),
        ("run.sh", "8 sh", "sh", {"data_path": None, "rank_size": 8}),
        ("run_mpirun_1.sh", "-H a:1 sh", "sh", {"hosts": "a:1"}),
    ],
)
def test_where_a_program_begins(script, words, program, arguments):
    found = command(script, words)
    asked = Request.from_words(found.words)
    assert found.program == asked.trainer_arguments == tuple(program.split())
    assert asked.program
    assert {name: getattr(asked, name) for name in arguments} == arguments


@pytest.mark.parametrize(
    ("words", "resume", "config"),
    [("--resume run config.yaml", "run", "config.yaml"), ("--resume config.yaml", "newest", "config.yaml")],
)
def test_the_word_after_resume(words, resume, config):
    asked = request("ascend2p.sh", words)
    assert (asked.resume, asked.config) == (resume, config)


MISTAKES = r"""
ascend2p.sh||PROGRAM or CONFIG is missing
ascend2p.sh|--log_dir train.py|PROGRAM or CONFIG is missing; --log_dir took train.py as its value
ascend2p.sh|config.yaml 'a b'|one argument too many: a\ b; trainer arguments come after --
ascend2p.sh|--no-such=5|unknown option --no-such
ascend2p.sh|-z|unknown option -z; trainer arguments come after --
ascend2p.sh|--ESC[2J|unknown option --\x1b[2J
ascend2p.sh|--quiet=1|--quiet takes no value
ascend2p.sh|--timeout|--timeout needs a value: --timeout SECONDS
ascend2p.sh|--bind_core=ESC|--bind_core=$'\E': write --bind_core, --bind_core=True or --bind_core=False
ascend2p.sh|--grace ٤ c.yaml|--grace ٤ is not a time: write whole seconds of at most 8 digits, or 90s, 10m, *
ascend2p.sh|--timeout=999999999 c.yaml|--timeout 999999999 is not a time: *
run_pod.sh|--pod-wait=5x c.yaml|--pod_wait 5x is not a time: *
ascend2p.sh|--lang fr c.yaml|--lang fr: write one of zh, en
ascend2p.sh|--nnodes 2|--nnodes 2: for this host alone, the value is --nnodes 1; several hosts: *
ascend2p.sh|--nproc 4|--nproc 4: ascend2p.sh has no such option; any number of ranks: scripts/launch.sh -n N
ascend2p.sh|--pytest a.py ./train.py|train.py is a program, and --pytest names another one; give one of them
ascend2p.sh|neither|neither: is this a config or a program? For a config: --config neither; for a program: python neit*
ascend2p.sh|--resume none/x|--resume none/x: this is not the folder of a run *
ascend2p.sh|--restart_args x c.yaml|--restart_args is for restarts; add --max_restarts N
launch.sh|--max_restart 2 train.py|unknown option --max_restart; did you mean --max_restarts?
launch.sh|--hostfile h train.py|unknown option --hostfile; run_mpirun.sh, run_cluster.sh take it
launch.sh|-mca pml ob1 train.py|unknown option -mca; run_mpirun.sh takes it
launch.sh|-x A=1 train.py|unknown option -x; every variable that you export reaches the ranks: *
ascend2p.sh|--console 0,x c.yaml|--console 0,x: write ranks such as 3, 0,3 or 0-3, or all, table or none
ascend2p.sh|--console 3-1 c.yaml|--console 3-1: write ranks *
ascend2p.sh|--console= c.yaml|--console needs a value: *
ascend2p.sh|--console 0, c.yaml|--console 0,: write ranks *
ascend2p.sh|--console 0-99999999 c.yaml|--console 0-99999999: a job has at most 65536 ranks
ascend2p.sh|-n 4 c.yaml|-n 4: ascend2p.sh has no such option; any number of ranks: scripts/launch.sh -n N
run.sh|-np 4 data 2|-np 4: the number of ranks is the argument RANK_SIZE
launch.sh|-n 2 pythonn train.py|pythonn: there is no program of this name on PATH, and no such file; did *
launch.sh|-n 2 pythonn -c pass|pythonn: there is no program of this name on PATH, and no such file; did *
launch.sh|-n 2 pythonn --epochs 3|pythonn: there is no program of this name on PATH, and no such file; did *
launch.sh|GLOG_v=3|GLOG_v=3 is a variable: write it before the command, as in GLOG_v=3 bash scripts/launch.sh
launch.sh|A=1 B=2 tool x|A=1 is a variable: write it before the command, as in A=1 bash scripts/launch.sh, or start *
run_mpirun_1.sh|A=1 train.py|A=1 is a variable: *
ascend2p.sh|--sim_level 1 train.py|unknown option --sim_level; launch.sh, run_msrun.sh take it*
run_msrun.sh|--nnodes 2 train.py|--nnodes 2: how many ranks does each host have? Add the number, *
run_msrun.sh|--nnodes 2 --worker_num 5 train.py|--nnodes 2: 5 ranks cannot be divided equally among the hosts; *
run_msrun.sh|--nnodes 2 --worker_num 6 --nproc_per_node 2 train.py|--nnodes 2: 6 ranks cannot be divided *
run_msrun.sh|--nnodes 1:4 --nproc_per_node 2 train.py|--nnodes 1:4: write how many hosts there are, such as 2
run_mpirun.sh|-mca pml aESC|-mca: $'a\E' has a control character
run_mpirun.sh|-mca=pml ob1|-mca: write its values after it, without =
run_mpirun.sh|-H a:1 --rank-by node c.yaml|--rank-by node: the launch fills one host after the other, in the order *
run_mpirun.sh|--bind-to core --bind_core c.yaml|--bind_core and --bind-to contradict each other; give only one of them
run_mpirun.sh|-x RANK_ID=3|-x RANK_ID=...: the launch itself sets RANK_ID
msrun_launcher.sh|net.py 1 2|2 arguments after the command; write none, WORKER_NUM alone, 5 or 8
msrun_launcher.sh|--worker_num 4 net.py 2|--worker_num 4 and the word 2 after the command contradict each other; *
"""


@for_each("case", MISTAKES.strip().splitlines())
def test_a_mistake_is_said_in_one_line(case):
    script, typed, text = case.split("|", 2)
    with pytest.raises(Refusal) as refusal:
        command(script, typed.replace("ESC", "\33"))
    (line,) = refusal.value.lines
    said, _, end = line.rpartition("; see: ")
    assert (refusal.value.status, end) == (USAGE, f"bash scripts/{script} --help")
    text = text.replace(": scripts/", f": bash {project.ROOT}/scripts/")  # as it can be pasted here
    assert said.startswith(text[:-1]) if text.endswith("*") else said == text


def test_help_has_the_scripts_header_and_all_its_options(folder):
    script = folder / "own.sh"
    script.write_text("#!/bin/sh\n# Trains.\n#\n#   bash own.sh\necho\n# not this\n")
    link = folder / "link.sh"
    link.symlink_to(script)
    declaration = Declaration.from_words([f"script={link}", "local", "CONFIG", "options=n", "without=devices"])
    with pytest.raises(HelpAsked) as asked:
        read(declaration, ["--n", "4", "-h", "a", "b"], {})
    assert asked.value.text.startswith(
        "Trains.\n\n  bash own.sh\n\nOptions (hyphens and underscores are the same; SECONDS "
    )
    names = [line.split()[0] for line in asked.value.text.splitlines() if line.startswith("  -")]
    shared = [table.typed(key.split()[0]) for key in table.SHARED if key != "devices RANGE"]
    assert names == ["--config", "-n", *shared]
    assert (
        asked.value.text.endswith("\n128+N if signal N stopped the launcher.\n") or "Exit: 0 if all" in asked.value.text
    )


def test_a_script_that_launches_nothing_has_only_the_options_that_it_names():
    words = ["script=doctor.sh", "options=json lang help"]
    line = Line(Declaration.from_words(words), {})
    parse(line, ["--json"])
    assert (list(line.table), line.options) == (["json", "lang", "help"], [("json", "1")])
    for word in ("--", "--devices"):
        with pytest.raises(Refusal, match=f"^unknown option {word}; see: bash doctor.sh --help$"):
            parse(Line(Declaration.from_words(words), {}), [word])
    with pytest.raises(Refusal, match="^one argument too many: train.py; see: "):
        parse(Line(Declaration.from_words(words), {}), ["train.py"])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--lang zh", "zh"),
        ("--quiet --lang=en config.yaml", "en"),
        ("--lang fr --lang zh", ""),
        ("--lang", ""),
        ("-- --lang zh", ""),
        ("--config=c.yaml t.py --lang zh", ""),
        ("-m package --lang zh", ""),
        ("train.py --lang zh", ""),
        ("--train_script train.py --lang zh", "zh"),
    ],
)
def test_the_language_that_was_typed(words, found):
    assert language.typed(words.split()) == found


@pytest.mark.parametrize(
    ("words", "environ", "found"),
    [
        ([], {"LANG": "zh_CN.UTF-8"}, "zh"),
        ([], {"LANG": "en_US.UTF-8"}, ""),
        ([], {"LANG": "zh_CN.UTF-8", "LAUNCH_LANG": "en"}, "en"),
        (["--lang", "zh"], {"LAUNCH_LANG": "en"}, "zh"),
        (["--lang", "en"], {"LANG": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_the_language_of_the_jobs_processes(words, environ, found):
    assert language.exported(words, environ) == found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"tab\t, \\x1b, \xe4\xb8\x96 \xc3\xbc \xf0\x9f\x8c\x8d", None),
        (b"a\nb\r", r"a\nb\r"),
        (b"\x1b]0;x\x07\x7f\x01", r"\x1b]0;x\x07\x7f\x01"),
        (b"\xc2\x9b \x9b", r"\xc2\x9b \x9b"),
        (b"a\xe2\x80\xaeb\xe2\x81\xa6\xe2\x80\xa8", r"a\xe2\x80\xaeb\xe2\x81\xa6\xe2\x80\xa8"),
        (b"\xe4\xb8 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80", r"\xe4\xb8 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80"),
    ],
)
def test_harmless_text(text, shown):
    text = os.fsdecode(text)
    assert harmless(text) == (shown or text)
    assert harmless(harmless(text)) == harmless(text)


def test_every_byte_alone_and_after_others_becomes_what_prints():
    random_ = random.Random(14)
    starts = [bytes([byte]) for byte in range(1, 256)]
    odd = "世界\u202e\u2028\u2069\x9b\x85ü".encode()
    parts = [*starts, *(odd[i:j] for i in range(8) for j in range(i, 20))]
    text = os.fsdecode(b" ".join(starts) + b"".join(random_.choices(parts, k=3000)))
    dangerous = "[\0-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\udc80-\udcff]"

    def visible(match):
        return "".join({10: "\\n", 13: "\\r"}.get(byte, f"\\x{byte:02x}") for byte in os.fsencode(match[0]))

    assert harmless(text) == re.sub(dangerous, visible, text)


def test_a_message_is_one_harmless_line_with_the_scripts_own_name_in_it(capfd):
    Voice("a\x1b[2Jb.sh").say("the host\n \x1b]0;x\x07\udcff")
    assert capfd.readouterr().err == "a\\x1b[2Jb.sh: the host\\n \\x1b]0;x\\x07\\xff\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "''"),
        ("a/b.c,d:e=f@g%h+i-j", "a/b.c,d:e=f@g%h+i-j"),
        ("a b,c", r"a\ b\,c"),
        ("~ a=~:~b~ #", r"\~\ a=\~:\~b~\ #"),
        ("#", r"\#"),
        ("a\tb'", r"$'a\tb\''"),
        ("世 界", "世\\ 界"),
        ("世\n\udcff", r"$'\344\270\226\n\377'"),
    ],
)
def test_a_word_for_a_shell(text, word):
    assert quote(text) == word


def test_a_shell_reads_the_same_words_again():
    texts = [chr(number) for number in range(1, 0x2100, 7)] + [f"{a}{chr(b)}x" for a in " ~=:a#" for b in range(1, 128)]
    texts = [os.fsdecode(os.fsencode(text)) for text in ("", "\udcff \udc80", "a\u202eb", *texts)]
    script = "printf '%s\\0' " + " ".join(f"{quote(text)} {quoted(text)}" for text in texts)
    bash = ["bash", "-c", os.fsencode(script)]
    read_again = subprocess.run(bash, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}, text=False).stdout
    assert read_again.split(b"\0")[:-1] == [os.fsencode(text) for text in texts for _ in range(2)]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("--report e.py --lang zh", ""),  # of the program
        ("--quiet t.py --lang zh", ""),
        ("--config e.py --lang zh c.yaml", "zh"),
        ("--train_script=t.py --lang zh c.yaml", "zh"),
        ("--config=c.yaml t.py --lang zh", ""),
        ("-m package --lang zh", ""),
    ],
)
def test_a_language_after_the_program_is_the_programs(words, name):
    assert language.typed(words.split()) == name


# ---- the words once more, for a remedy that can be pasted -----------------------------------------------


@pytest.mark.parametrize(
    ("script", "typed", "found"),
    [
        ("ascend2p.sh", "config.yaml", "--device_target CPU config.yaml"),
        ("ascend2p.sh", "--quiet --device-target=Ascend config.yaml", "--device_target CPU --quiet config.yaml"),
        ("run.sh", "data --device_target GPU 2 --quiet", "--device_target CPU data 2 --quiet"),
        ("run.sh", "data 2 -- --device_target Ascend", "--device_target CPU data 2 -- --device_target Ascend"),
        ("launch.sh", "-n 2 x.py --device_target GPU", "--device_target CPU -n 2 x.py --device_target GPU"),
        ("run_mpirun.sh", "-np 2 -mca pml ob1 config.yaml", "--device_target CPU -np 2 -mca pml ob1 config.yaml"),
        ("msrun_launcher.sh", "'x.py --device_target GPU' 2", "--device_target CPU 'x.py --device_target GPU' 2"),
        ("run_pipeline.sh", "--quiet data Ascend", "--quiet data CPU"),
        ("run_pipeline.sh", "data ascend -- CPU ascend", "data CPU -- CPU ascend"),
    ],
)
def test_the_words_for_another_hardware(script, typed, found):
    words = shlex.split(typed)
    assert retyped.for_target(declared(script), words, "CPU") == shlex.split(found)


def test_options_that_a_script_does_not_have_are_not_added():
    options = {"dry_run": "", "rank_table": "t.json"}
    assert retyped.with_options(declared("run_mpirun.sh"), ["config.yaml"], options) == ["--dry_run", "config.yaml"]
    assert retyped.with_options(declared("ascend2p.sh"), ["--dry-run", "config.yaml", "--rank_table=x"], options) == [
        *("--dry_run", "--rank_table", "t.json"),
        "config.yaml",
    ]


def test_a_line_to_paste_has_what_may_have_been_typed_before_the_command(monkeypatch):
    monkeypatch.setenv("DATA_PATH", "my data")
    asked = command("run_mpirun.sh", "'a b.yaml'")
    assert instead.line(asked, ["a b.yaml"]) == r"DATA_PATH=my\ data bash scripts/run_mpirun.sh a\ b.yaml"
    assert instead.line(command("run.sh", "data 2"), ["x"]) == "bash scripts/run.sh x"


def test_a_line_to_paste_submits_the_job_of_which_slurm_ran_a_copy(monkeypatch):
    monkeypatch.delenv("DATA_PATH", raising=False)
    words = ["srun", "CONFIG", "device_target=Ascend", "name=run_slurm.sh"]
    asked = read(Declaration.from_words(["script=/var/spool/job7/slurm_script", *words]), ["config.yaml"], {})
    script = project.path("scripts", "run_slurm.sh")
    assert instead.line(asked, ["x"]) == f"bash {script} x"
    for name, value in {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS_PER_NODE": "4"}.items():
        monkeypatch.setenv(name, value)
    assert instead.line(asked, ["x"]) == f"sbatch --nodes=2 --ntasks-per-node=4 {script} x"
