"""Options of torchrun, msrun and mpirun on our scripts: what they become."""

import pytest
from command.command_lines import command, request

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import host
from tools.launch.request import Request


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("config.yaml", "train.py"):
        (tmp_path / name).touch()


def test_options_of_torchrun_that_need_nothing_are_said():
    words = "--standalone --nnodes 1 --nproc 4 --rdzv-conf --a --join --cluster_time_out 9 config.yaml"
    found = command("launch.sh", words)
    assert found.notes == (
        "note: --standalone is not needed: the launch needs no rendezvous server",
        "note: --rdzv_conf is not needed: MindSpore has a scheduler of its own",
        "note: --join is not needed: the launch always waits for its ranks",
    )
    assert Request.from_words(found.words).n == 4
    assert found.environment == {"MS_TOPO_TIMEOUT": "9"}


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ("-n 4", (4, None, None)),
        ("-np 4", (4, None, None)),
        ("-np4", (4, None, None)),
        ("-n=4", (4, None, None)),
        ("--num_processes 4", (4, None, None)),
        ("--num_machines 2 --num-processes=8 --machine_rank 1 --main_process_ip h --main_process_port 8119", (8, 4, 1)),
        ("--nproc_per_node 4", (4, 4, None)),
        ("--local_worker_num 4", (None, 4, None)),
        ("--nnodes 2 --nproc_per_node 4 --node_rank 1", (8, 4, 1)),
        ("--nproc-per-node=4 --nnodes=2 --node-rank=0", (8, 4, 0)),
        ("--num_nodes 2 --worker_num 8", (8, 4, None)),
        ("--nnodes 2 --worker_num 8 --local_worker_num 4", (8, 4, None)),
        ("--nnodes 1 --worker_num 4", (4, 4, None)),
    ],
)
def test_ranks_of_msrun_as_other_launchers_write_them(words, ranks):
    asked = request("run_msrun.sh", f"{words} train.py")
    assert (asked.worker_num, asked.local_worker_num, asked.node_rank) == ranks


@pytest.mark.parametrize(
    "words",
    [
        "-np 4",
        "-np=4",
        "-np4",
        "-n4",
        "-n=4",
        "-ppn4",
        "--num_processes=4",
        "--nproc_per_node 4",
        "--num-gpus 4",
        "--npernode 4",
        "-ppn 4",
        "--ntasks-per-node=4",
    ],
)
def test_ranks_of_this_host_as_other_launchers_write_them(words):
    assert request("launch.sh", f"{words} train.py").n == 4


@pytest.fixture
def has(monkeypatch):
    """has(4): so many NPUs; and two cores, and no GPU."""

    def have(number):
        monkeypatch.setattr(host, "nodes", lambda: list(range(number)))
        monkeypatch.setattr(host, "devices", lambda: list(range(number)))

    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3, 5})
    monkeypatch.setattr("hccl_tools.machine.programs.on_path", lambda _: False)
    for name in ("ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    have(0)
    return have


@pytest.mark.parametrize(
    ("npus", "words", "ranks", "target"),
    [
        (4, "auto", None, "Ascend"),
        (4, "npu", None, "Ascend"),
        (4, "CPU", 2, "CPU"),
        (4, "auto --device_target cpu", 2, "CPU"),
        (0, "auto", 2, "CPU"),
        (0, "auto --devices 0-2", None, "CPU"),
        (0, "auto -n 5", 5, "CPU"),
        (4, "gpu", None, "GPU"),
    ],
)
def test_torchruns_words_for_one_rank_on_each_device(has, npus, words, ranks, target):
    has(npus)
    found = command("launch.sh", f"--nproc_per_node {words} train.py")
    asked = Request.from_words(found.words)
    assert (asked.n, asked.device_target) == (ranks, target)
    is_needless = ranks in (None, 5)
    end = "is not needed: one rank starts for each device" if is_needless else "2 ranks, one for each core"
    assert found.notes[0].endswith(end)


@pytest.mark.parametrize(
    ("script", "words", "field", "number"),
    [
        ("run_msrun.sh", "--nproc_per_node=auto", "worker_num", 4),
        ("run_msrun.sh", "--nproc_per_node=npu --nnodes 2 --node_rank 1", "worker_num", 8),
        ("run_msrun.sh", "--nproc_per_node=auto --devices 0,1", "local_worker_num", 2),
        ("run_pod.sh", "--nproc-per-node auto", "local_worker_num", 4),
        ("run_mpirun.sh", "--nproc_per_node npu", "npernode", 4),
        ("run_mpirun.sh", "--nproc_per_node npu -H a:2,b:2", "npernode", None),
        ("run_slurm.sh", "--nproc_per_node auto", "ntasks_per_node", None),
    ],
)
def test_they_become_the_scripts_own_number(has, script, words, field, number):
    has(4)
    found = command(script, f"{words} train.py")
    assert getattr(Request.from_words(found.words), field) == number
    assert ("is not needed" in found.notes[0]) is (number is None)


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        ("run_msrun.sh", "auto", "this host has no visible NPU; write the number of ranks, or: --device_target CPU"),
        ("launch.sh", "gpu --device_target CPU", "name different hardware; give one of them"),
        ("ascend2p.sh", "auto", "is not a whole number of at most 8 digits"),
        ("launch.sh", "tpu", "is not a whole number of at most 8 digits"),
    ],
)
def test_a_number_that_nobody_can_tell_is_refused(has, script, words, said):
    with pytest.raises(Refusal, match=said):
        command(script, f"--nproc_per_node {words} train.py")


def test_what_a_script_starts_anyway_may_be_typed():
    assert request("ascend2p.sh", "-n 2 train.py").script_devices == "[0,2)"


def test_options_of_msrun_that_need_nothing_are_said():
    found = command("run_slurm.sh", "--worker_log_name w_{ip} --rank_table_file t.json train.py")
    assert found.notes == (
        "note: --worker_log_name is not needed: the log of each rank is rank_N.log in the run's folder",
        "note: --rank_table_file is not needed: the ranks find each other without a rank table",
    )


def test_what_mpirun_gets_of_its_words():
    words = "-np 2 -mca pml ob1 --map_by=slot:pe=1 -q -v --report-bindings -mca plm_ssh_agent rsh config.yaml"
    found = command("run_mpirun.sh", words)
    assert " ".join(found.mpirun.passed) == "--mca pml ob1 --map-by slot:pe=1 -v --report-bindings"
    assert found.mpirun.given == {"pml": "ob1", "map_by": "slot:pe=1"}
    assert found.mpirun.binds() and not command("run_mpirun.sh", "config.yaml").mpirun.binds()
    asked = Request.from_words(found.words)
    assert (asked.n, asked.ssh, found.settings.quiet) == (2, "rsh", True)


def test_variables_of_mpirun():
    words = "-x HOME -x NOBODY -x 'NEW=a b' -x NEW -x=DATA_PATH=data config.yaml"
    found = command("run_mpirun.sh", words, environ={"HOME": "/"})
    assert found.mpirun.export == {"HOME", "NOBODY", "NEW"}
    assert found.mpirun.values == {"NEW": "a b", "DATA_PATH": "data"}
    assert found.environment == {"DATA_PATH": "data"}
    assert found.notes == ("note: -x NOBODY: your shell exports no such variable",)


def test_no_hosts_are_this_host():
    found = command("run_mpirun_1.sh", "-npernode 4")
    assert found.notes == ("note: no HOSTS are named: all ranks run on this host",)
    asked = Request.from_words(found.words)
    assert (asked.n, asked.npernode) == (None, 4)


@pytest.mark.parametrize(
    "words",
    [
        "-N 4",
        "--npernode 4",
        "-npernode=4",
        "-ppn 4",
        "--ntasks-per-node=4",
        "--nproc_per_node 4",
        "--map-by ppr:4:node",
    ],
)
def test_ranks_of_each_host(words):
    """-H may come again, as mpirun takes it."""
    found = command("run_mpirun.sh", f"-np 8 -H a {words} -H b config.yaml")
    asked = Request.from_words(found.words)
    assert (asked.n, asked.npernode, asked.hosts, found.mpirun.passed) == (8, 4, "a,b", [])


def test_what_else_a_mapping_says_is_passed_on():
    found = command("run_mpirun.sh", "--map-by ppr:4:node:PE=2 config.yaml")
    assert (Request.from_words(found.words).npernode, found.mpirun.passed) == (4, ["--map-by", "slot:PE=2"])


def test_the_words_after_a_quoted_command():
    found = command("msrun_launcher.sh", "--log_dir out -- 'python net.py' 4 2 h 8119 1 out True 99")
    asked = Request.from_words(found.words)
    assert (asked.trainer_arguments, asked.worker_num, asked.local_worker_num) == (("python", "net.py"), 4, 2)
    assert (asked.master_addr, asked.master_port, asked.node_rank, asked.log_dir) == ("h", 8119, 1, "out")
    assert (found.environment, found.notes) == ({"MS_TOPO_TIMEOUT": "99"}, ())
    assert command("msrun_launcher.sh", "net.py").environment == {"MS_TOPO_TIMEOUT": "7200"}
    assert command("msrun_launcher.sh", "net.py", environ={"MS_TOPO_TIMEOUT": "1"}).environment == {}


def test_on_one_host_address_and_number_of_the_host_are_not_used():
    found = command("msrun_launcher.sh", "net.py 2 2 h 8119 1 out False 99")
    assert [note.split(";")[0] for note in found.notes] == [
        "note: all 2 ranks are on this host: MASTER_ADDR and NODE_RANK are not used",
        "note: the launch waits for its ranks, even with JOIN False",
    ]
    asked = Request.from_words(found.words)
    assert (asked.master_addr, asked.node_rank) == (None, None)
