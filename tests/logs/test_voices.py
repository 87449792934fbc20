"""Logs of several ranks in one file, and files that are named in the ways of mpirun, torchrun, Slurm and Kubernetes."""

import gzip
import itertools
import json

import pytest
from known import ENTRIES
from suite.cases import for_each

from tools.diagnosis import job_logs
from tools.logs import known_failures, line_heads, owners, sources
from tools.logs.voices import Voices

TIME = "2026-11-25-10:11:{:02}.212.164"
HEAD = "[{}] DISTRIBUTED({},7f0cc4c0eb80,python):{} [a.cc:3] Run] "
WAITED = "EI0006: Getting socket times out. Reason: The remote rank did not start."


def waits(rank):
    at = TIME.format(40 + rank)
    return [
        HEAD.format("WARNING", 70 + rank, TIME.format(1 + rank)) + f"This node {rank} rank id: {rank}",
        f"step 1 of rank {rank}",
        HEAD.format("ERROR", 70 + rank, at) + WAITED,
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 9, in <module>',
        "    init()",
        f"RuntimeError: {WAITED}",
    ]


def raises(rank):
    return [
        HEAD.format("WARNING", 70 + rank, TIME.format(1 + rank)) + f"This node {rank} rank id: {rank}",
        f"step 1 of rank {rank}",
        "",
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 4, in <module>',
        "    main()",
        '  File "/job/data.py", line 7, in main',
        "    return total / 0",
        "ZeroDivisionError: division by zero",
    ]


def dies_of(text):
    """The last line of rank 1, and not an exception."""
    return lambda rank: [*waits(rank)[:2], "", text]


def without_ranks(text):
    """Lines of a program that does not say which rank it is."""
    return [line for line in text if "rank id" not in line]


JOBS = {
    "raises": {0: waits(0), 1: raises(1), 2: waits(2)},
    "says no rank": {0: without_ranks(waits(0)), 1: without_ranks(raises(1)), 2: without_ranks(waits(2))},
    "aborts": {0: waits(0), 1: dies_of("Fatal Python error: Aborted")(1), 2: waits(2)},
}

# one file: how the line of a rank looks
MIXED = {
    "mpirun": "[1,{rank}]<stderr>:{text}",
    "mpirun 5": "[prterun-node1-77@1,{rank}]<stdout>: {text}",
    "mpirun with times": "Tue Nov 25 10:12:{second:02} 2026[1,{rank}]<stderr>:{text}",
    "horovodrun": "[{rank}]<stderr>:{text}",
    "kubectl": "[pod/train-worker-{rank}/main] {text}",
    "kubectl with times": "[pod/train-worker-{rank}/main] 2026-11-25T10:12:{second:02}.123456789Z {text}",
    "torchrun": "[default{rank}]:{text}",
    "PyTorch": "[rank{rank}]: {text}",
    "srun": "{rank}: {text}",
    "srun, wide": "  {rank}: {text}",
    "MPICH": "[{rank}] {text}",
    "compose": "trainer-{rank}  | {text}",
    "pod of mpirun": "[pod/train-launcher-x7k2p/mpi] [1,{rank}]<stderr>:{text}",
    "ts": "Nov 25 10:12:{second:02} [1,{rank}]<stderr>:{text}",
    "colours": "\x1b[32m[1,{rank}]<stderr>:\x1b[0m{text}\x1b[0m",
    "rank3:": "rank{rank}: {text}",
}

# a file for each rank: what it is called
NAMED = {
    "msrun": "worker_{rank}.log",
    "ours": "rank_{rank}.log",
    "mpirun 4": "1/rank.{rank:02}/stderr",
    "mpirun 3": "out.1.{rank:02}",
    "mpirun 5": "prterun-node1-77@1/rank.{rank}/stdout",
    "torchrun": "none_ab12cd34/attempt_0/{rank}/stderr.log",
    "Slurm": "slurm-123_{rank}.out",
    "ModelArts": "modelarts-job-0a1b2c3d-worker-{rank}.log",
    "ModelArts' ranks": "modelarts-job-0a1b2c3d-proc-rank-{rank}-device-{rank}.txt",
    "kubectl": "train-worker-{rank}.log",
    "MindSpore's tutorials": "device{rank}/train.log{rank}",
}


def answer(path):
    """Roots, how sure, what cause: the same whatever the form is."""
    found = job_logs.of_paths([str(path)], ENTRIES)
    verdict = found.verdict
    roots = [one.rank for one in verdict.roots] if verdict else []
    return roots, verdict and verdict.certainty, [fault.entry.code for fault in found.faults]


def written(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return path


def mixed(job, form):
    rows = itertools.zip_longest(*[[(rank, line) for line in text] for rank, text in job.items()])
    lines = [pair for row in rows for pair in row if pair]
    return [form.format(rank=rank, text=text, second=number % 60) for number, (rank, text) in enumerate(lines)]


@pytest.fixture(params=JOBS)
def job(request):
    return JOBS[request.param]


@pytest.fixture
def right(job, tmp_path):
    folder = tmp_path / "right"
    for rank, text in job.items():
        written(folder, f"rank_{rank}.log", text)
    return answer(folder)


@pytest.mark.slow
@for_each("form", MIXED.values())
def test_one_file_of_all_ranks(job, right, form, tmp_path):
    path = written(tmp_path / "mixed", "run.log", mixed(job, form))
    assert answer(path) == right
    assert answer(path.parent) == right


@pytest.mark.slow
@for_each("form", NAMED.values())
def test_files_with_names_of_others(job, right, form, tmp_path):
    for rank, text in job.items():
        written(tmp_path / "named", form.format(rank=rank), text)
    assert answer(tmp_path / "named") == right


@pytest.mark.parametrize("form", ["1/rank.{}/", "none_ab12cd34/attempt_0/{}/"], ids=["mpirun", "torchrun"])
def test_stdout_and_stderr_of_a_rank_are_one_process(form, tmp_path):
    for rank, text in JOBS["raises"].items():
        written(tmp_path, form.format(rank) + "stdout", text[:2])
        written(tmp_path, form.format(rank) + "stderr", text[2:])
    found = job_logs.of_paths([str(tmp_path)], ENTRIES)
    assert [one.rank for one in found.job.processes] == [0, 1, 2]
    assert [one.host for one in found.job.processes] == [None] * 3


def test_the_last_attempt_of_torchrun_counts(tmp_path):
    for attempt, failed in enumerate((2, 1)):
        for rank in range(3):
            text = raises(rank) if rank == failed else waits(rank)
            written(tmp_path, f"none_ab12cd34/attempt_{attempt}/{rank}/stderr.log", text)
    found = job_logs.of_paths([str(tmp_path)], ENTRIES)
    assert ([one.rank for one in found.verdict.roots], found.job.others) == ([1], 3)
    for rank in range(3):  # one that was ended before it could say anything
        written(tmp_path, f"none_ab12cd34/attempt_2/{rank}/stderr.log", [])
    assert answer(tmp_path)[0] == [1]


def test_rows_are_those_of_the_file(tmp_path):
    text = mixed(JOBS["raises"], MIXED["mpirun"])
    path = written(tmp_path, "run.log", ["mpirun says", *text])
    one = next(one for one in sources.read([str(path)], ENTRIES).findings if one.owner.rank == 1)
    told = next(row for row, line in enumerate(text) if "ZeroDivisionError" in line)
    assert (one.exception.row, one.exception.message) == (told + 1, "division by zero")
    waiting = next(one for one in sources.read([str(path)], ENTRIES).findings if one.owner.rank == 0)
    assert waiting.hits[0].seen[0].row == next(row for row, line in enumerate(text) if "EI0006" in line) + 2


@pytest.mark.parametrize(
    "text",
    [
        ["3: cat", "4: dog", "5: mouse"],
        ["epoch 1", "3: loss 0.5", "epoch 2", "epoch 3", "epoch 4"],
        ["INFO: a", "INFO: b", "INFO: c", "WARNING: d", "INFO: e"],
        ["valid | loss 3", "train | loss 2", "train | loss 1", "valid | loss 0"],
        ["step1: 1", "step2: 2", "step3: 3", "step4: 4"],
        ["INFO     | main:12 - begins", "INFO     | main:13 - goes on", "INFO     | main:14 - goes on"],
        ["[1] Killed", "x", "y", "z"],
    ],
)
def test_lines_that_begin_so_by_chance(text, tmp_path):
    path = written(tmp_path, "train.log", [*text, *raises(1)[2:]])
    findings = sources.read([str(path)], ENTRIES).findings
    assert [(one.owner.rank, one.owner.role) for one in findings] == [(None, "rank")]
    assert findings[0].exception.text == "ZeroDivisionError: division by zero"


def test_what_a_rank_prints_of_others_is_its_own(tmp_path):
    text = ["[rank0]: loss 1", "[rank1]: loss 2", "x", "y", "z", *raises(0)[2:]]
    path = written(tmp_path, "rank_0.log", text)
    (one,) = sources.read([str(path)], ENTRIES).findings
    assert (one.owner.rank, one.exception.type) == (0, "ZeroDivisionError")


def test_lines_of_the_engine_are_of_no_rank(tmp_path):
    text = ["srun: error: node1: task 1: Exited with exit code 1", *mixed(JOBS["raises"], MIXED["srun"])]
    path = written(tmp_path, "slurm-123.out", [*text, "srun: Terminating StepId=123.0", "Traceback of something"])
    findings = sources.read([str(path)], ENTRIES).findings
    assert sorted((one.owner.rank or 0, one.owner.role) for one in findings) == [
        (0, "engine"),
        (0, "rank"),
        (1, "rank"),
        (2, "rank"),
    ]


def test_a_master_is_rank_0(tmp_path):
    for rank, pod in enumerate(("train-master-0", "train-worker-0", "train-worker-1")):
        written(tmp_path, f"{pod}.log", without_ranks(JOBS["raises"][rank]))
    assert answer(tmp_path)[0] == [1]


@pytest.mark.slow
def test_memory_and_cost_do_not_grow_with_the_lines():
    voices, line = Voices(), b"[1,%d]<stderr>:" + b"x" * 50 + b"\n"
    block = b"".join(line % (number % 100) for number in range(50_000))
    most = 0
    for _ in range(8):
        for part in voices.take(block):
            assert len(part.rows) == part.block.count(b"\n")
        most = max(most, voices.waits)
    assert most < 20 << 20
    assert most > 0


def test_a_file_with_thousands_of_names_is_read():
    voices = Voices()
    block = b"".join(b"[1,%d]<stderr>:text\n" % number for number in range(5000))
    parts = [*voices.take(block), *voices.rest()]
    assert sum(part.block.count(b"\n") for part in parts) == 5000
    assert max(len(part.rows) for part in parts) == 3000  # of those beyond the limit


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("scheduler.log", "scheduler"),
        ("train-scheduler-0.log", "scheduler"),
        ("e_msrun.log", "engine"),
        ("torchrun.log", "engine"),
        ("train-launcher-x7k2p.log", "engine"),
        ("device-os_20261125101112.log", "host"),
        ("slog/dev-os-0/debug/device-0/device-0_20261125101112.log", "host"),
        ("messages", "host"),
        ("worker_3.log", "rank"),
        ("plog-7_20261125101112.log", "rank"),
        ("learning_rate_scheduler_test.log", "rank"),
    ],
)
def test_roles(name, role):
    assert owners.of_name(name).role == role


@pytest.mark.parametrize(
    ("text", "role"),
    [
        (["Start worker process with rank id:0, log file:a/worker_0.log. Execute command: python t.py"], "engine"),
        ([HEAD.format("WARNING", 7, TIME.format(1)) + "Begin to Initialize MetaServerNode."], "scheduler"),
        (["[ERROR] HCCP(7,hccp_service.bin):2026-11-25-10:11:12.212.164 [a.cc:1]ra failed"], "host"),
        (["[ERROR] HCCL(7,python3):2026-11-25-10:11:12.212.164 [a.cc:1]ra failed"], "rank"),
    ],
)
def test_roles_by_what_is_said(text, role, tmp_path):
    path = written(tmp_path, "run.log", text)
    assert [one.owner.role for one in sources.read([str(path)], ENTRIES).findings] == [role]


def test_a_pod_with_several_ranks_is_a_host(tmp_path):
    text = [HEAD.format("WARNING", 7, TIME.format(1)) + f"This node {rank} rank id: {rank}" for rank in (8, 9)]
    path = written(tmp_path, "train-worker-1.log", text)
    (one,) = sources.read([str(path)], ENTRIES).findings
    assert (one.owner.rank, one.owner.host) == (None, "train-worker-1")


BEFORE = [
    "    ",
    "Nov 25 10:11:12 ",
    "[2026-11-25 10:11:12] ",
    "2026-11-25T10:11:12.123456789Z ",
    "2026-11-25T10:11:12.123456789+08:00 stderr F ",
    "[2026-11-25T10:11:12.123Z] ",
    "[Tue Nov 25 10:11:12 2026] ",
    "10:11:12 ",
    "[rank3]: ",
    "[1,3]<stderr>:",
    "2026-11-25T10:11:12.123456789Z [rank3]: ",
    "\x1b[31m",
]


@for_each("before", BEFORE)
def test_what_is_before_a_line(before, tmp_path):
    written(tmp_path, "rank_0.log", [before + "Fatal Python error: Aborted"])
    found = job_logs.of_paths([str(tmp_path)], ENTRIES)
    assert [fault.entry.code for fault in found.faults] == ["aborted"]
    lines = ["x", line_heads.without_colours(before.encode()).decode() + "Fatal Python error: Aborted"]
    assert [(entry.code, rows) for entry, rows in known_failures.by_lines(ENTRIES, lines)] == [("aborted", [1])]


@for_each("before", BEFORE)
def test_what_is_before_a_traceback(before, tmp_path):
    written(tmp_path, "rank_0.log", [before + line for line in raises(0)[2:]])
    (one,) = sources.read([str(tmp_path)], ENTRIES).findings
    raised = one.exception
    assert (raised.type, raised.file, raised.line, raised.row) == ("ZeroDivisionError", "/job/data.py", 7, 6)
    assert (raised.time is None) == ("Nov" not in before and "2026" not in before)


def test_the_year_of_a_time_without_one():
    now = line_heads.time.time()
    text = line_heads.time.strftime("%b %d %H:%M:%S ", line_heads.time.gmtime(now))
    assert abs(line_heads.time_of(text + "x") - now) < 2
    assert line_heads.time_of("[Tue Nov 25 10:11:12 2025] x") == line_heads.time_of("2025-11-25 10:11:12 x")


def test_a_progress_bar_before_a_line(tmp_path):
    written(tmp_path, "rank_0.log", [" 10%|#         | 1/10" * 500 + "\rFatal Python error: Aborted"])
    found = job_logs.of_paths([str(tmp_path)], ENTRIES)
    assert [fault.entry.code for fault in found.faults] == ["aborted"]


@pytest.mark.parametrize(
    ("source", "text", "takes"),
    [
        ("^a", "2026-11-25 10:11:12 a", True),
        ("^a", "b a", False),
        (r"\^a", "    a", False),
        ("[^a]b", "cb", True),
        ("(?:^|: )a", "x: a", True),
        ("(?:^|: )a", "  a", True),
        (r"^\s+a", "  a", True),
        (r"[]^]a", "^a", True),
    ],
)
def test_anchored(source, text, takes):
    assert bool(line_heads.re.search(line_heads.anchored(source), text)) == takes


# --- what Docker and Kubernetes keep ----------------------------------------------------------------------------------


def in_docker(line, second=0):
    return json.dumps({"log": f"{line}\n", "stream": "stderr", "time": f"2026-11-25T10:12:{second:02}.123456789Z"})


def in_cri(line, second=0):
    return f"2026-11-25T10:12:{second:02}.123456789Z stderr F {line}"


@pytest.mark.slow
@pytest.mark.parametrize("form", [in_docker, in_cri])
def test_files_in_which_containers_lines_are_kept(form, job, right, tmp_path):
    path = written(tmp_path / "mixed", "0a1b-json.log", map(form, mixed(job, MIXED["mpirun"])))
    assert answer(path) == right
    for rank, text in job.items():
        written(tmp_path / "named", f"rank_{rank}.log", map(form, text))
    assert answer(tmp_path / "named") == right


def test_a_line_of_docker_that_is_cut_off_loses_only_itself(tmp_path):
    path = written(tmp_path, "0a1b-json.log", [*map(in_docker, raises(1)), '{"log":3}', '{"log":"cut'])
    (one,) = sources.read([str(path)], ENTRIES).findings
    assert (one.exception.type, one.exception.row, one.rows) == ("ZeroDivisionError", 8, 11)
    assert one.exception.time == line_heads.time_of("2026-11-25 10:12:00.123456")


POD = {
    "pod.yaml": "apiVersion: v1\nkind: Pod\nstatus:\n  containerStatuses:\n  - lastState:\n      reason: {}\n",
    "pods.yaml": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  status:\n    reason: {}\n",
    "pod.json": '{{\n  "apiVersion": "v1",\n  "kind": "Pod",\n  "status": {{"reason": "{}"}}\n}}\n',
    "train-worker-0.txt": "Name:         train-worker-0\nNamespace:    default\n  State:  Terminated\n  Reason:  {}\n",
}


@pytest.mark.parametrize("name", POD)
def test_what_kubernetes_says_of_a_pod_is_read_and_is_of_no_rank(name, tmp_path):
    path = written(tmp_path, name, [POD[name].format("OOMKilled")])
    (one,) = sources.read([str(path)], ENTRIES).findings
    assert (one.owner.role, one.owner.rank, ENTRIES[one.hits[0].entry].code) == ("engine", None, "k8s-oom-killed")


@pytest.mark.parametrize(
    "text", ["apiVersion: v1\nkind: ConfigMap\ndata: OOMKilled\n", "model: big\nreason: OOMKilled\n"]
)
def test_other_yaml_files_in_a_folder_are_no_logs(text, tmp_path):
    written(tmp_path, "job.yaml", [text])
    assert sources.read([str(tmp_path)], ENTRIES).findings == []


CHANCE = {
    "classes": [f"{number % 5}: {number}.5" for number in range(40)],
    "epochs": [f"  {number // 10}: step {number}" for number in range(40)],
    "epochs in brackets": [f"[{number // 10}] step {number}" for number in range(40)],
    "layers": [f"layer{number % 4}: norm {number}" for number in range(40)],
    "columns": [f"epoch{number // 8}  | {number}" for number in range(40)],
    "cards": [f"GPU{number % 4}: {number} MB" for number in range(40)],
    "the ranks of others": [f"[rank{number % 4}]: is late {number}" for number in range(4)],
}


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("name", CHANCE)
def test_a_program_whose_lines_begin_with_names_says_itself_what_failed(name, again, tmp_path):
    """Half of the lines and more are as those of several ranks, but only lines without a name say what failed."""
    path = written(tmp_path, "train.log" if again else "train.log.gz", [*CHANCE[name], *raises(1)[2:]])
    if not again:
        path.write_bytes(gzip.compress(path.read_bytes()))
    (one,) = sources.read([str(path)], ENTRIES).findings
    assert (one.owner.rank, one.owner.role, one.exception.type) == (None, "rank", "ZeroDivisionError")
    assert one.exception.row == len(CHANCE[name]) + 6


def test_a_launcher_that_raises_what_its_ranks_did_not_say_is_no_rank(tmp_path):
    text = [
        *(f"{number % 4}: step {number}" for number in range(40)),
        "Traceback (most recent call last):",
        '  File "/job/launch.py", line 3, in <module>',
        "subprocess.CalledProcessError: Command 'srun' returned non-zero exit status 137.",
    ]
    path = written(tmp_path, "slurm-1.out", text)
    assert {one.owner.rank for one in sources.read([str(path)], ENTRIES).findings} == {0, 1, 2, 3, None}


def both_numbers(local, rank, line):
    """torchrun has put its number before each line, and PyTorch the global rank before those of a traceback."""
    raised = "Traceback" in line or line.startswith((" ", "ZeroDivision", "RuntimeError"))
    return f"[default{local}]:" + (f"[rank{rank}]: " if raised else "") + line


def test_the_rank_of_the_job_is_better_than_that_on_the_host(tmp_path):
    job = {rank: without_ranks(raises(rank) if rank == 9 else waits(rank)) for rank in (8, 9, 10)}
    text = [both_numbers(rank - 8, rank, line) for rank, lines in job.items() for line in lines]
    path = written(tmp_path, "node1.log", text)
    found = {one.owner.rank: one for one in sources.read([str(path)], ENTRIES).findings}
    assert sorted(found) == [8, 9, 10]
    assert found[9].exception.type == "ZeroDivisionError"
    assert answer(path)[0] == [9]


def test_pods_with_several_ranks_each(tmp_path):
    text = [
        f"[pod/job-worker-{pod}/main] " + both_numbers(local, 2 * pod + local, line)
        for pod in range(2)
        for local in range(2)
        for line in without_ranks(raises(1) if pod + local == 2 else waits(0))
    ]
    path = written(tmp_path, "job.log", text)
    findings = sources.read([str(path)], ENTRIES).findings
    assert [one.owner.rank for one in findings] == [0, 1, 2, 3]
    assert answer(path)[0] == [3]


def test_pods_whose_ranks_only_a_traceback_names(tmp_path):
    text = [f"[pod/a-x{pod}y/m] [rank{pod + 4}]: {line}" for pod in range(2) for line in raises(1)[2:]]
    findings = sources.read([str(written(tmp_path, "job.log", text))], ENTRIES).findings
    assert [one.owner.rank for one in findings] == [4, 5]


def test_a_pod_that_names_several_ranks_is_a_host(tmp_path):
    text = [f"[pod/job-worker-{pod}/m] [rank{2 * pod + local}]: x" for pod in range(2) for local in range(2)]
    findings = sources.read([str(written(tmp_path, "job.log", text))], ENTRIES).findings
    assert [(one.owner.rank, one.owner.host) for one in findings] == [(None, "job-worker-0"), (None, "job-worker-1")]
