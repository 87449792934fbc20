"""A restart after the loss of a host: who takes its place, the plan, the table, the checkpoints; no host is asked.

With real hosts and nodes: tests/features/elastic_restarts.bats, elastic_restarts_slurm.bats.
"""

import json
import os

import pytest
from good_tables import servers, super_pods
from launching import request
from test_resuming import RUN, saved

from hccl_tools.build import merging, parts
from hccl_tools.check import verdict
from hccl_tools.common.problem import errors
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.machine import programs
from hccl_tools.machine.programs import Ended
from tools.launch import run_folder
from tools.launch.engines import open_mpi, slurm
from tools.launch.engines.facts import Cluster, LocalFacts, OpenMpi
from tools.launch.engines.placement import Placement
from tools.launch.hosts import elastic, spares
from tools.launch.planned import Plan
from tools.launch.programs import trainer_command
from tools.trainer import checkpoints
from tools.trainer.checkpoints import CheckpointError, choosing, labels

HOSTS = [("a", 2), ("b", 2), ("c", 2), ("d", 2)]


def names(hosts):
    return "".join(name for name, _ in hosts)


# ---- which hosts have ranks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "active", "standing_by"),
    [
        ([], "ab", "cd"),
        (["a"], "cb", "d"),
        (["b", "a"], "dc", ""),
        (["a", "c"], "db", ""),  # the spare one is lost, too
        (["c", "a"], "db", ""),  # it was lost before it was needed
        (["a", "b", "c"], "d", ""),
        (["a", "b", "c", "d"], "", ""),
        (["x", "b"], "ac", "d"),  # a host that is in the list no more
    ],
)
def test_a_spare_host_takes_the_place_of_the_lost_one(lost, active, standing_by):
    found, others = spares.split(HOSTS, ["c", "d"], lost)
    assert (names(found), names(others)) == (active, standing_by)


def test_without_spare_hosts_the_others_go_on():
    assert names(spares.split(HOSTS, [], ["b"])[0]) == "acd"


def test_the_cost_of_many_lost_hosts_is_bounded():
    many = [(f"n{n}", 8) for n in range(8192)]
    found, others = spares.split(many, [name for name, _ in many[-64:]], [f"n{n}" for n in range(64)])
    assert len(found) == 8192 - 64 and others == [] and found[0][0] == "n8128"


@pytest.mark.parametrize(
    ("given", "hosts", "marked", "said"),
    [
        ({"spare": "1"}, "abc", "", "--spare 1: spare hosts are for restarts; add --max_restarts N"),
        (
            {"spare": "3", "max_restarts": "1"},
            "abc",
            "",
            "--spare 3: the job has 3 hosts in all, and at least one must",
        ),
        ({"spare": "9", "max_restarts": "1"}, "abc", "", "--spare 9: the job has 3 hosts in all"),
        ({"spare": "1", "max_restarts": "1"}, "a", "", "--spare 1: the job has 1 host in all"),
        (
            {"spare": "1", "max_restarts": "1"},
            "abc",
            "b",
            r"--spare 1: the hostfile also has spare hosts \(b\); give only one",
        ),
        (
            {"max_restarts": "1"},
            "ab",
            "ab",
            "every host of the hostfile is spare; remove the word spare from those that",
        ),
    ],
)
def test_what_cannot_be_of_spare_hosts(given, hosts, marked, said):
    with pytest.raises(Refusal, match=said) as refusal:
        spares.named(request(**given), list(hosts), list(marked))
    assert refusal.value.status == USAGE


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"min_ranks": "2"}, "--min_ranks 2: the number of ranks can only drop at a restart; add --max_restarts N"),
        (
            {"min_ranks": "5", "max_restarts": "1"},
            "--min_ranks 5: the job begins with 4 ranks; give at most that number",
        ),
    ],
)
def test_what_cannot_be_of_the_least_number_of_ranks(given, said):
    with pytest.raises(Refusal, match=said) as refusal:
        spares.check(request(**given), Placement(ranks=[(n, n) for n in range(4)], world=4, engine=LocalFacts()))
    assert refusal.value.status == USAGE


@pytest.mark.parametrize("given", [{"spare": "0"}, {"spare": "-1"}, {"min_ranks": "0"}, {"min_ranks": "x"}])
def test_numbers_of_hosts_and_ranks_are_numbers(given):
    with pytest.raises(Refusal, match=f"--{next(iter(given))} .* is not a number from 1 to 65536"):
        request(**given)


def test_spare_hosts_that_no_restart_can_use_are_remarked():
    placed = Placement(ranks=[(0, 0)], world=1, engine=LocalFacts(), spares={"c": [0]})
    assert spares.remarks(request(), placed) == ["note: without --max_restarts no rank ever runs on the spare hosts c"]
    (said,) = spares.remarks(request(max_restarts="1"), placed)
    assert said == "spare, in case a host is lost: c"
    assert "--no-kill" in spares.remarks(request(max_restarts="1", engine="srun"), placed)[1]


@pytest.fixture
def mpirun(monkeypatch):
    """An Open MPI 5 that is not asked for anything else than its version."""
    monkeypatch.setattr(open_mpi, "installed", lambda request, several=False: OpenMpi(version="5.0.1"))
    monkeypatch.setattr(open_mpi.network, "others", lambda hosts: [])


def test_mpirun_gets_the_hosts_with_ranks_only(mpirun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("a slots=2\nb slots=2\nc slots=4 spare\n")
    of = {"hostfile": "hosts", "max_restarts": "2"}
    placed = open_mpi.place(request(**of))
    assert (placed.engine.hosts, placed.world, placed.spares) == (["a:2", "b:2"], 4, {"c": [0, 1, 2, 3]})
    placed = open_mpi.place(request(**of, attempt="1", lost="a", run_dir="run"))
    assert (placed.engine.hosts, placed.world, placed.hosts[0]) == (["c:4", "b:2"], 6, "c")
    placed = open_mpi.place(request(**of, n="3", attempt="1", lost="a,c", run_dir="run"))
    assert (placed.engine.hosts, placed.world) == (["b:2"], 2)  # -n 3 is for the start
    with pytest.raises(Refusal, match="no host is left"):
        open_mpi.place(request(**of, attempt="1", lost="a,b,c", run_dir="run"))
    (tmp_path / "hosts").write_text("a slots=2\nb slots=2\n")
    engine = open_mpi.place(request(**of)).engine  # as the user wrote them
    assert (engine.hosts, engine.hostfile) == ([], str(tmp_path / "hosts"))


def test_more_names_of_hosts_than_a_command_line_holds(mpirun):
    hosts = ",".join(f"node-with-a-long-name-{n}:8" for n in range(6000))
    with pytest.raises(Refusal, match="the names of the hosts have [0-9]+ characters in all"):
        open_mpi.place(request(hosts=hosts, n="8"))


# ---- what is lost ------------------------------------------------------------------------------------


def test_slurms_states_of_lost_nodes(monkeypatch):
    lines = "n0|mixed|none\nn1|down*|Not responding\nn2|draining|kernel | update\nn3|allocated*|none\n"
    lines += "n4|failing|x\x1b\nn9|down|\n"
    monkeypatch.setattr(programs, "ask", lambda *_: Ended(0, lines, ""))
    found = slurm.lost_nodes(["n0", "n1", "n2", "n3", "n4"])
    assert found == {
        "n1": "Slurm says: down*, Not responding",
        "n3": "Slurm says: allocated*, none",
        "n4": "Slurm says: failing, x\\x1b",
    }


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run of six ranks on the hosts a, b and c, of which nothing but launch.json is there."""
    monkeypatch.chdir(tmp_path)
    ranks = [{"rank": n, "device": n % 2, "log": f"rank_{n}.log", "host": "abc"[n // 2]} for n in range(6)]
    document = {"run_dir": str(tmp_path / "run"), "exports": {}, "trainer": ["python", "train.py"], "ranks": ranks}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "launch.json").write_text(json.dumps(document))
    return tmp_path / "run"


@pytest.fixture
def again(run, monkeypatch):
    """A restart of that run after the loss of these hosts; others are silent.  Returns (remarks, the plan's words)."""

    def made(asked):
        gone = asked.lost.split(",")
        hosts = [host for host in "abc" if host not in gone for _ in range(2)]
        return Plan(
            request=asked,
            run_dir=str(run),
            ranks=[(rank, rank % 2) for rank in range(len(hosts))],
            hosts=hosts,
            sizes=[2] * (len(hosts) // 2),
            engine=LocalFacts(),
            cluster=Cluster(),
            table=None,
            about="",
            trainer=["python", "other.py"],
            scheduler=[],
            exports={"RANK_SIZE": str(len(hosts))},
        )

    def restart(lost="", silent=(), attempt=1, **given):
        monkeypatch.setattr(
            elastic, "_silent", lambda _, hosts: {name: "no answer" for name in hosts if name in silent}
        )
        monkeypatch.setattr(elastic.network, "others", list)
        asked = request(lost=lost, attempt=str(attempt), run_dir=str(run), max_restarts="3", **given)
        return elastic.begin(asked, made)

    return restart


def document_of(run):
    return json.loads((run / "launch.json").read_text())


def test_the_plan_stays_if_every_host_answers(run, again):
    before = document_of(run)
    assert again() == ((), None) and document_of(run) == before


def test_the_plan_without_the_host_that_the_engine_has_named(run, again):
    remarks, plan = again("b")
    assert remarks[:2] == [
        "b (ranks 2,3) is excluded from this job from now on: mpirun can no longer reach it; check it before "
        "you use it again",
        "the job continues with 4 ranks on 2 hosts; it had 6 ranks",
    ]
    assert plan.lost == ["b mpirun can no longer reach it"] and "train.py" in plan.trainer
    assert plan.exports["RESUME_RANK_SIZES"] == "6"
    document = document_of(run)
    assert document["lost_hosts"] == [
        {"host": "b", "attempt": 0, "ranks": [2, 3], "reason": "mpirun can no longer reach it"}
    ]
    assert [len(plan["ranks"]) for plan in document["earlier_plans"]] == [6] and len(document["ranks"]) == 4


def test_each_loss_is_remembered_and_the_trainer_knows_all_numbers_of_ranks(run, again):
    again("b")
    _, plan = again(silent=["c"], attempt=2)
    assert plan.exports["RESUME_RANK_SIZES"] == "6,4" and plan.lost[-1] == "c no answer"
    losses = document_of(run)["lost_hosts"]
    assert [(loss["host"], loss["attempt"], loss["ranks"]) for loss in losses] == [("b", 0, [2, 3]), ("c", 1, [2, 3])]
    assert again("b", attempt=3) == ((), None)  # that one is known


def test_with_too_few_ranks_there_is_no_restart_and_the_loss_is_written_down(run, again):
    with pytest.raises(
        Refusal, match="no restart 1: only 4 ranks can still run, but --min_ranks is 5; lost: b; "
    ) as refusal:
        again("b", min_ranks="5")
    assert refusal.value.status == REFUSED
    assert document_of(run)["lost_hosts"][0]["host"] == "b" and len(document_of(run)["ranks"]) == 6


@pytest.mark.parametrize(
    "damage",
    [{"ranks": []}, {"ranks": [{"rank": 1}]}, {"lost_hosts": [{"host": 1}]}, {"trainer": [1]}, {"trainer": "python"}]
    + [{"lost_hosts": 3}, {"spares": "ab"}, {"earlier_plans": [{"ranks": 1}]}, {"restart": {}}],
)
def test_a_damaged_launch_json_is_refused_in_words(run, again, damage):
    (run / "launch.json").write_text(json.dumps({**document_of(run), **damage}))
    with pytest.raises(Refusal, match=r"no restart 1: .*launch.json is damaged"):
        again("b")


def test_a_launch_json_that_is_gone_is_refused_in_words(run, again):
    (run / "launch.json").unlink()
    with pytest.raises(Refusal, match="no restart 1: .*launch.json: no such file"):
        again("b")


# ---- the rank table ----------------------------------------------------------------------------------


def test_a_part_of_a_table_has_its_own_numbers_of_ranks():
    table = servers(2, 2, 2)
    part = parts.only(table, ["10.0.0.3", "10.0.0.1"])
    assert part["server_count"] == "2" and errors(verdict.check(part)) == []
    found = [(server["server_id"], [d["rank_id"] for d in server["device"]]) for server in part["server_list"]]
    assert found == [("10.0.0.1", ["0", "1"]), ("10.0.0.3", ["2", "3"])]
    assert table["server_list"][2]["device"][0]["rank_id"] == "4"  # the table itself stays


def test_a_part_of_a_table_has_the_super_pods_of_its_servers():
    part = parts.only(super_pods(), ["node_1"])
    assert part["super_pod_list"] == [{"super_pod_id": "a", "server_list": [{"server_id": "node_1"}]}]
    assert errors(verdict.check(part)) == []


def test_a_part_that_is_no_good_table_is_refused():
    with pytest.raises(merging.Refused):
        parts.only(servers(2, 2), ["10.9.9.9"])


# ---- checkpoints -------------------------------------------------------------------------------------


def chosen(root, rank, ranks, everyone, earlier=(6,)):
    found = choosing.choose(str(root), rank, ranks, "lenet5", lambda own: [own, *everyone], earlier)
    return found and (os.path.relpath(found[0], root), found[1].epoch)


def test_a_whole_network_of_more_ranks_is_gone_on_with(tmp_path):
    for rank in range(6):
        saved(tmp_path, rank, 6, 1)
        saved(tmp_path, rank, 6, 2)
    assert chosen(tmp_path, 3, 4, []) == ("rank_3/lenet5-2_5.ckpt", 2)
    with pytest.raises(CheckpointError, match="comes from a job of 6 ranks, but this job has 4"):
        chosen(tmp_path, 3, 4, [], earlier=())
    with pytest.raises(CheckpointError, match="for the network lenet5"):
        choosing.choose(str(tmp_path), 3, 4, "resnet50", None, (6,))


def test_a_number_of_ranks_that_the_job_never_had_is_not_gone_on_with(tmp_path):
    saved(tmp_path, 0, 5, 1)
    assert chosen(tmp_path, 0, 4, [[]]) is None


def test_slices_of_more_ranks_are_passed_over(tmp_path):
    saved(tmp_path, 0, 6, 1, whole=0)
    assert chosen(tmp_path, 0, 4, [[]]) is None
    saved(tmp_path, 0, 4, 2, whole=0)
    assert chosen(tmp_path, 0, 4, []) == ("rank_0/lenet5-2_5.ckpt", 2)


def test_on_a_disk_of_its_own_a_rank_finds_those_of_the_ranks_that_ran_there(tmp_path):
    saved(tmp_path, 4, 6, 1)
    saved(tmp_path, 4, 6, 2)
    saved(tmp_path, 5, 6, 2)
    os.truncate(tmp_path / "rank_4" / "lenet5-2_5.ckpt", 3)
    points = [(RUN, 2, 5), (RUN, 1, 5)]
    assert chosen(tmp_path, 2, 4, [points]) == ("rank_5/lenet5-2_5.ckpt", 2)  # rank 4's is torn
    assert chosen(tmp_path, 2, 4, [points[1:]]) == ("rank_4/lenet5-1_5.ckpt", 1)


def test_on_a_disk_with_very_many_ranks_a_rank_looks_at_its_own_only(tmp_path):
    for rank in range(70):
        saved(tmp_path, rank, 70, 1)
    assert chosen(tmp_path, 69, 60, [], earlier=(70,)) == ("rank_69/lenet5-1_5.ckpt", 1)
    assert chosen(tmp_path, 99, 60, [[]], earlier=(70,)) is None


def test_a_host_without_the_checkpoints_of_the_others_is_no_reason_to_begin_anew(tmp_path):
    with pytest.raises(
        CheckpointError, match=r"no checkpoint is on all the other hosts: rank 0 cannot continue; save where all"
    ):
        chosen(tmp_path, 0, 4, [[(RUN, 1, 5)]])


@pytest.mark.parametrize(("text", "sizes"), [("", []), ("6", [6]), ("6,4", [6, 4])])
def test_the_launcher_tells_the_earlier_numbers_of_ranks(monkeypatch, text, sizes):
    monkeypatch.setenv("RESUME_RANK_SIZES", text)
    monkeypatch.delenv("RESUME", raising=False)
    assert checkpoints.earlier_sizes() == []
    monkeypatch.setenv("RESUME", "1")
    assert checkpoints.earlier_sizes() == sizes


@pytest.mark.parametrize("text", ["x", "6,", "0", "6 4", "-1"])
def test_what_is_no_list_of_numbers_of_ranks_is_refused(monkeypatch, text):
    monkeypatch.setenv("RESUME", "1")
    monkeypatch.setenv("RESUME_RANK_SIZES", text)
    with pytest.raises(CheckpointError, match="RESUME_RANK_SIZES .* is not a list of numbers of ranks"):
        checkpoints.earlier_sizes()


def other_size(tmp_path, mode="data_parallel", whole=1, ranks=6):
    """The plan of 4 ranks after such checkpoints were saved, and the remarks."""
    from tools.launch.resume import other_sizes

    for rank in range(ranks):
        path = saved(tmp_path / "ckpt", rank, 6, 1, whole=whole)
        label = labels.read(os.path.dirname(path))[path]
        labels.write(path, label.replace(mode=mode))
    plan = Plan(
        request=request(attempt="2", run_dir=str(tmp_path)),
        run_dir=str(tmp_path),
        ranks=[(n, n) for n in range(4)],
        hosts=list("aacc"),
        sizes=[2, 2],
        engine=LocalFacts(),
        cluster=Cluster(),
        table=None,
        about="",
        trainer=["python", trainer_command.OWN, "--config", "c.yaml", "-o", "a=1"],
        restart=["python", trainer_command.OWN, "--config", "c.yaml", "--again"],
        scheduler=[],
        exports={},
        checkpoints={"folder": str(tmp_path / "ckpt"), "model": {}},
    )
    return other_sizes.checkpoints(plan, {}, 6)


def test_checkpoints_of_a_whole_network_need_no_conversion(tmp_path):
    plan, said = other_size(tmp_path)
    assert plan.resumed is None and plan.trainer[-1] == "a=1"
    assert said == ["note: a step now has the samples of 4 ranks, not of 6 ranks; the learning rate is unchanged"]


def test_layers_that_were_cut_by_hand_are_cut_anew(tmp_path):
    plan, _ = other_size(tmp_path, "hybrid_parallel", 0)
    folder = str(tmp_path / "restart_2" / "resumed")
    assert plan.resumed.convert[-3:] == [folder, "--ranks", "4"]
    assert plan.trainer[-2:] == ["a=1", f"train.resume_from={folder}"]
    assert plan.restart[-3:] == ["--again", "-o", f"train.resume_from={folder}"]


def test_slices_of_a_host_that_is_lost_with_its_disk_are_refused(tmp_path):
    with pytest.raises(Refusal, match="has no checkpoint of tools/train.py that is whole on all ranks"):
        other_size(tmp_path, "hybrid_parallel", 0, ranks=5)


def test_what_mindspore_has_cut_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(
        Refusal, match="slices that MindSpore cut in mode semi_auto_parallel for 6 ranks; with train.integ"
    ):
        other_size(tmp_path, "semi_auto_parallel", 0)


def test_a_conversion_that_fails_ends_the_job_in_words(tmp_path):
    plan, _ = other_size(tmp_path, "hybrid_parallel", 0)
    with pytest.raises(Refusal):
        run_folder.put_again(plan.replace(resumed=plan.resumed.replace(convert=["false"])), {})
