"""--resume and RESUME=1 in the plan of a launch: invented runs, no training.  See also tests/launch/resume.bats."""

import json
import os
import shutil
import socket
import subprocess

import documents
import pytest
import yaml
from launching import request

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine.programs import Ended
from tools.config import config_file
from tools.launch import latest_link
from tools.launch.engines.facts import LocalFacts, MpirunFacts, OpenMpi
from tools.launch.engines.placement import Placement
from tools.launch.hosts import host_check
from tools.launch.programs import trainer_command
from tools.launch.resume import resuming
from tools.trainer import checkpoints
from tools.trainer.checkpoints import choosing, labels

RUN = 1_800_000_000


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RESUME", raising=False)
    shutil.copy(documents.ROOT / "configs" / "mnist" / "lenet5_digits.yaml", "config.yaml")


def saved(root, rank=0, ranks=2, epoch=1, model="lenet5", whole=1, steps=5):
    """An invented checkpoint of 5 steps an epoch; returns its path."""
    folder = checkpoints.rank_folder(str(root), rank)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{model}-{epoch}_{steps}.ckpt")
    with open(path, "wb") as file:
        file.write(b"weights" * epoch)
    of = {"run": RUN, "epoch": epoch, "steps": steps, "epoch_steps": 5, "rank": rank, "ranks": ranks, "whole": whole}
    labels.write(path, labels.sized(path, labels.Label(model=model, mode="data_parallel", **of)))
    return path


def a_run(tmp_path, time="20260101T000000Z", config="config.yaml", epochs=(1, 2), ranks=2, pid=1, **document):
    """The folder of an invented run, with checkpoints of these epochs."""
    run = tmp_path / "logs" / f"ascend2p-{time}-{pid}"
    run.mkdir(parents=True)
    words = ["python", "-u", trainer_command.OWN, "--config", config]
    document = {"trainer": words, "folder": str(tmp_path), "run_dir": str(run), "outcome": {}, **document}
    (run / "launch.json").write_text(json.dumps(document))
    for rank in range(ranks):
        for epoch in epochs:
            saved(run / "ckpt", rank, ranks, epoch)
    link = tmp_path / "logs" / "latest"
    link.unlink(missing_ok=True)
    link.symlink_to(run.name)
    return run


def found(resume, *overrides, world=2, first=0, hosts=(), run_dir=None, config="config.yaml"):
    """What a launch of `world` ranks goes on from."""
    read = config_file.load(config)
    read.override(overrides)
    given = {} if resume is None else {"resume": resume}
    count = world // 2 if first else world
    placed = Placement(
        ranks=[(first + i, i) for i in range(count)], world=world, engine=LocalFacts(), hosts=list(hosts)
    )
    return resuming.find(request(**given), read, config, placed, str(run_dir or "logs/new"))


def refused(*given, **more):
    """The line of the refusal."""
    with pytest.raises(Refusal) as refusal:
        found(*given, **more)
    (line,) = refusal.value.lines
    return line


# ---- which run -------------------------------------------------------------------------------------


def test_without_the_option_a_launch_begins_anew(tmp_path):
    a_run(tmp_path)
    assert found(None) is None


def test_the_newest_run_of_this_config_that_has_checkpoints(tmp_path):
    a_run(tmp_path, "20260101T000000Z")
    run = a_run(tmp_path, "20260102T000000Z")
    a_run(tmp_path, "20260103T000000Z", epochs=())
    a_run(tmp_path, "20260104T000000Z", config="other.yaml")
    a_run(tmp_path, "20260105T000000Z", trainer=["python", "-u", "mine.py", "--config", "config.yaml"])
    (tmp_path / "logs" / "ascend2p-20260106T000000Z-1").mkdir()
    resumed = found("newest")
    assert (resumed.run, resumed.source, resumed.folder) == (str(run), f"{run}/ckpt", f"{run}/ckpt")
    assert resumed.where() == "after epoch 2, from logs/ascend2p-20260102T000000Z-1/ckpt"
    assert resumed.record() == {"run": str(run), "folder": f"{run}/ckpt", "epoch": 2, "steps": 5, "ranks": 2}


def test_of_one_second_the_later_namesake_is_newer(tmp_path):
    a_run(tmp_path)
    later = a_run(tmp_path, pid="1-2")
    assert found("newest").run == str(later)


@pytest.mark.parametrize(
    "word", ["logs/latest", "logs/latest/", "logs/latest/ckpt", "./logs/ascend2p-20260101T000000Z-1"]
)
def test_a_named_run_is_known_without_links(tmp_path, word):
    run = a_run(tmp_path)
    resumed = found(word)
    assert (resumed.run, resumed.folder) == (str(run), f"{run}/ckpt")
    assert resumed.setting() == f"train.resume_from={run}/ckpt"


def test_a_folder_of_checkpoints_needs_no_run(tmp_path):
    for rank in (0, 1):
        saved(tmp_path / "mine", rank, epoch=1, steps=3)
    resumed = found("mine")
    assert resumed.run is None and resumed.where() == "after step 3 of epoch 1, from mine"
    assert "run" not in resumed.record()


def test_a_run_that_saved_elsewhere_and_one_that_was_moved(tmp_path):
    model = config_file.load("config.yaml").filled["model"]
    a_run(tmp_path, epochs=(), checkpoints={"folder": str(tmp_path / "kept"), "model": model})
    for rank in (0, 1):
        saved(tmp_path / "kept", rank)
    assert found("newest").folder == found("logs/latest").folder == str(tmp_path / "kept")
    run = a_run(tmp_path, pid=2)
    document = json.loads((run / "launch.json").read_text())
    document["checkpoints"] = {"folder": f"{run}/ckpt", "model": model}
    (run / "launch.json").write_text(json.dumps(document))
    run.rename(tmp_path / "moved")
    assert found("moved").folder == f"{tmp_path}/moved/ckpt"


def test_a_path_that_yaml_would_read_otherwise_is_quoted(tmp_path):
    for rank in (0, 1):
        saved(tmp_path / "a: #b 世界", rank)
    name, _, value = found("a: #b 世界").setting().partition("=")
    assert name == "train.resume_from" and yaml.safe_load(value) == str(tmp_path / "a: #b 世界")


# ---- what cannot be resumed ------------------------------------------------------------------------


def test_no_run_at_all_and_none_of_this_config(tmp_path):
    assert "no run of config.yaml in logs has checkpoints; name a run with --resume=FOLDER" in refused("newest")
    a_run(tmp_path, config="other.yaml")
    assert (
        "ascend2p-20260101T000000Z-1 has some, but from another config or trainer: --resume=logs/ascend2p-"
        in refused("newest")
    )


@pytest.mark.parametrize(
    ("word", "part"),
    [("no", "no such folder"), ("config.yaml", "is not a folder"), ("logs", "neither a launch.json nor checkpoints")],
)
def test_what_is_no_run(tmp_path, word, part):
    a_run(tmp_path)
    line = refused(word)
    assert line.startswith(f"--resume {word}: ") and part in line and "such as logs/latest" in line


def test_a_run_without_checkpoints(tmp_path):
    a_run(tmp_path, epochs=())
    assert "/ckpt has no checkpoint; name another run" in refused("logs/latest")


def test_another_network(tmp_path):
    a_run(tmp_path)
    assert "is for the network lenet5, but this config has dense" in refused("logs/latest", "model.name=dense")


def test_another_network_of_the_same_name(tmp_path):
    model = config_file.load("config.yaml").filled["model"]
    a_run(tmp_path, checkpoints={"folder": str(tmp_path), "model": {**model, "num_classes": 12}})
    assert "model.num_classes is 12 there and 10 here" in refused("logs/latest")


def test_a_run_that_goes_on_still(tmp_path):
    sleeper = subprocess.Popen(["bash", "-c", "read", "ascend2p.sh"], stdin=subprocess.PIPE)
    try:
        run = a_run(tmp_path, pid=sleeper.pid, host=socket.gethostname(), script="ascend2p.sh")
        document = json.loads((run / "launch.json").read_text())
        del document["outcome"]
        (run / "launch.json").write_text(json.dumps(document))
        assert f"still runs as process {sleeper.pid}; stop it first" in refused("newest")
    finally:
        sleeper.kill()
        sleeper.communicate()
    assert found("newest").run == str(run)  # its launcher was killed


def test_two_ways_to_say_it(tmp_path):
    a_run(tmp_path)
    line = refused("newest", "train.resume_from=logs/latest/ckpt")
    assert line.startswith("--resume and train.resume_from (-o train.resume_from=logs/latest/ckpt) both name")


def test_a_trainer_that_is_not_ours():
    with pytest.raises(Refusal, match=r"this launch runs the program x.*--restart_args"):
        resuming.refuse_foreign(request(resume="newest"), "the program x")
    resuming.refuse_foreign(request(), "the program x")


# ---- torn checkpoints, other ranks -----------------------------------------------------------------


def cut_off(path):
    with open(path, "r+b") as file:
        file.truncate(3)


def other_byte(path):
    with open(path, "r+b") as file:
        file.write(b"W")


@pytest.mark.parametrize("tear", [cut_off, other_byte, os.unlink], ids=lambda tear: tear.__name__)
def test_of_a_torn_checkpoint_the_one_before_is_taken_and_that_is_said(tmp_path, tear):
    run = a_run(tmp_path)
    tear(run / "ckpt" / "rank_1" / "lenet5-2_5.ckpt")
    resumed = found("newest")
    assert resumed.label.epoch == 1
    (note,) = resumed.remarks
    assert "/rank_1/lenet5-2_5.ckpt is damaged or cut off; an earlier checkpoint is taken" in note


def test_a_checkpoint_that_one_rank_lacks_is_not_taken(tmp_path):
    run = a_run(tmp_path)
    (run / "ckpt" / "rank_1" / "lenet5-2_5.json").unlink()
    assert found("newest").label.epoch == 1
    (run / "ckpt" / "rank_1" / "lenet5-1_5.json").unlink()
    assert "no checkpoint that is whole on all ranks of this host; name another run" in refused("newest")


def test_if_all_are_torn_the_newest_is_named(tmp_path):
    run = a_run(tmp_path)
    for epoch in (1, 2):
        cut_off(run / "ckpt" / "rank_0" / f"lenet5-{epoch}_5.ckpt")
    assert "rank_0/lenet5-2_5.ckpt is damaged or cut off" in refused("newest")


def test_only_one_checkpoint_of_each_rank_is_read_as_a_whole(tmp_path, monkeypatch):
    a_run(tmp_path, epochs=range(1, 9))
    read, real = [], labels.is_whole
    monkeypatch.setattr(labels, "is_whole", lambda path, label: read.append(path) or real(path, label))
    found("newest")
    assert [os.path.basename(path) for path in read] == ["lenet5-8_5.ckpt"] * 2


def test_a_whole_network_is_copied_for_another_number_of_ranks(tmp_path):
    run = a_run(tmp_path)
    resumed = found("newest", world=4, run_dir=tmp_path / "logs" / "new")
    assert resumed.source == f"{run}/ckpt" and resumed.folder == str(tmp_path / "logs" / "new" / "resumed")
    (tmp_path / "logs" / "new").mkdir()
    resumed.make()
    made = choosing.in_all_ranks(resumed.folder)
    assert [(label.rank, label.ranks, label.epoch) for _, label in made.values()] == [(n, 4, 2) for n in range(4)]
    assert "come from 2 ranks; they are copied for 4" in resumed.remarks[0]


def test_copies_that_cannot_be_made_are_refused(tmp_path):
    a_run(tmp_path)
    resumed = found("newest", world=4, run_dir=tmp_path / "no" / "new")
    with pytest.raises(Refusal, match=r"--resume: convert_ckpt.py: .*/no"):
        resumed.make()


def test_what_was_cut_the_user_converts(tmp_path):
    for rank in (0, 1):
        saved(tmp_path / "cut", rank, whole=0)
    line = refused("cut", world=4)
    assert "cut comes from a job of 2 ranks, but this job has 4" in line
    assert "/tools/convert_ckpt.py cut NEW_FOLDER --ranks 4, and then --resume=NEW_FOLDER" in line


def test_over_several_hosts_the_user_converts(tmp_path):
    a_run(tmp_path)
    line = refused("newest", world=4, hosts=["node1", "node1", "node2", "node2"])
    assert "--ranks 4, copy NEW_FOLDER to every host, and then --resume=NEW_FOLDER" in line


@pytest.mark.slow
def test_a_launch_that_is_typed_on_each_host_checks_its_own_ranks(tmp_path):
    run = a_run(tmp_path, ranks=4)
    cut_off(run / "ckpt" / "rank_0" / "lenet5-2_5.ckpt")
    assert found("newest", world=4, first=2).label.epoch == 2
    assert found("newest", world=4).label.epoch == 1


def test_when_all_epochs_are_done_a_note_says_how_to_train_more(tmp_path):
    a_run(tmp_path)
    (note,) = found("newest", "scheduler.num_epochs=2").remarks
    assert note.endswith("-o scheduler.num_epochs=3")
    assert found("newest", "scheduler.num_epochs=3").remarks == ()


# ---- RESUME=1 that a user types --------------------------------------------------------------------


def test_resume_1_without_a_checkpoint_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RESUME", "1")
    a_run(tmp_path)
    assert "RESUME=1: a new run has no checkpoint of its own; type --resume" in refused(None)
    line = refused(None, "train.ckpt_save_dir=kept")
    assert "RESUME=1: kept has no checkpoint" in line and "unset RESUME" in line


def test_resume_1_goes_on_in_the_folder_of_the_config(tmp_path, monkeypatch):
    monkeypatch.setenv("RESUME", "1")
    for rank in (0, 1):
        saved(tmp_path / "kept", rank)
    for key in ("ckpt_save_dir", "resume_from"):
        assert found(None, f"train.{key}=kept").folder == str(tmp_path / "kept")
    assert "--ranks 4" in refused(None, "train.ckpt_save_dir=kept", world=4)  # copies would mix with what is there


# ---- the link that moves ---------------------------------------------------------------------------


def test_checkpoints_named_through_latest_get_the_name_of_the_run(tmp_path):
    run = a_run(tmp_path)
    read = config_file.load("config.yaml")
    read.override(["train.resume_from=logs/latest/ckpt", "train.pretrained=logs/latest/../latest/x.ckpt"])
    words = latest_link.without_it(request(), read, ["-o", "a=1"])
    assert words == ["-o", "a=1", f"train.resume_from={run}/ckpt", f"train.pretrained={run}/x.ckpt"]
    assert latest_link.without_it(request(log_dir="elsewhere"), read, []) == []


def test_other_words_through_latest_stay_and_are_remarked(tmp_path):
    a_run(tmp_path)
    (note,) = latest_link.remarks(request("--x", "latest", "--ckpt=logs/latest/ckpt"))
    assert "name the run: logs/ascend2p-20260101T000000Z-1/ckpt" in note
    assert latest_link.remarks(request("-o", "train.resume_from=logs/latest/ckpt")) == []


# ---- other hosts -----------------------------------------------------------------------------------


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    """Two hosts, of which node2 has ranks 2 and 3 in a folder of its own, as if this one's were not shared."""
    for rank in range(4):
        for epoch in (1, 2):
            saved(tmp_path / ("here" if rank < 2 else "there"), rank, 4, epoch)

    def ask(_request, _placed, by_host):
        (question,) = by_host.values()
        there = question.replace(str(tmp_path / "here"), str(tmp_path / "there"))
        done = subprocess.run(["sh", "-c", there], stdout=subprocess.PIPE, text=True, check=False)
        return {"node2": Ended(done.returncode, done.stdout, "")}

    monkeypatch.setattr(host_check, "ask", ask)
    monkeypatch.setattr("tools.launch.hosts.network.others", lambda names: ["node2"] if "node2" in names else [])
    names = ["node1", "node1", "node2", "node2"]
    engine = MpirunFacts(mpi=OpenMpi(version="5.0.1"), ranks=4)
    placed = Placement(ranks=[(n, n % 2) for n in range(4)], world=4, engine=engine, hosts=names)
    resumed = found("here", world=4, hosts=names)

    def check(**given):
        return resuming.check_hosts(request(engine="mpirun", **given), placed, resumed)

    return check, tmp_path / "there"


def test_other_hosts_have_the_newest(hosts):
    check, _ = hosts
    assert check().label.epoch == 2


def test_the_newest_that_other_hosts_have_too(hosts):
    check, there = hosts
    cut_off(there / "rank_3" / "lenet5-2_5.ckpt")
    assert check().label.epoch == 1


def test_a_host_that_has_none_is_named(hosts):
    check, there = hosts
    for epoch in (1, 2):
        (there / "rank_2" / f"lenet5-{epoch}_5.json").unlink()
    with pytest.raises(Refusal, match=r"node2: .*/here has no complete lenet5-1_5.ckpt of rank 2; copy it there"):
        check()
    assert check(no_check="1").label.epoch == 2
