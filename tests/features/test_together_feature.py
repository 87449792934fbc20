"""tools/features/together.py: when it looks at a job, and that nothing that happens to its child matters."""

import json
import os
import signal
from types import SimpleNamespace

import pytest
from supervise.small_launcher import until

from tools.features import together
from tools.features.together import Together
from tools.supervise.events import Heard
from tools.supervise.members import Member, Members
from tools.supervise.world import World
from tools.together import findings, look

LINE = "epoch: 1 step: {step}, loss is {loss}\n"


class Clock(World):
    """The kernel's processes, and a time that the test sets."""

    time = 0.0
    forked = 0

    def now(self):
        return self.time + World.now(self)

    def fork(self, *words, **named):
        self.forked += 1
        return super().fork(*words, **named)


@pytest.fixture
def run(tmp_path, signals):
    """A job of 2 ranks of this host; what the user reads is in `told`."""
    members, told = Members(), []
    members.add([Member(str(rank), str(tmp_path / f"rank_{rank}.log"), rank, rank) for rank in range(2)])
    return SimpleNamespace(
        told=told,
        say=told.append,
        world=Clock(),
        logs=str(tmp_path),
        mark="a job of nobody",
        trainer=["python", "train.py"],
        environment={},
        plan=SimpleNamespace(ranks=[(0, 0), (1, 1)], sizes=[2]),
        supervisor=SimpleNamespace(members=members, stopping=SimpleNamespace(running=True, signal="")),
    )


def write(run, steps, first="", bad=()):
    for rank in range(2):
        losses = ("nan" if (rank, step) in bad else rank + 1 / step for step in range(1, steps))
        text = first + "".join(LINE.format(step=step + 1, loss=loss) for step, loss in enumerate(losses))
        with open(os.path.join(run.logs, f"rank_{rank}.log"), "w") as log:
            log.write(text)


def grow(run, step):
    """One more line in each log."""
    for rank in range(2):
        with open(os.path.join(run.logs, f"rank_{rank}.log"), "a") as log:
            log.write(LINE.format(step=step, loss=rank + 1 / step))


def hear(run, feature):
    """Gives the feature what its child says, until that has ended."""
    while run.world.lives(feature._beside.pid) or run.world._sources:
        for event in run.world.events(0.2):
            feature.heard(event)


def begun(run):
    run.world.heed_signals()
    feature = Together(run)
    feature.begins()
    return feature


def ended(run, feature):
    """The rows for launch.json."""
    outcome = {}
    feature.attempt_ended()
    feature.outcome(outcome)
    feature.reported("")
    return outcome.get("findings", [])


@pytest.mark.slow
def test_it_looks_after_20_seconds_then_ever_more_rarely_and_only_where_logs_grow(run):
    feature = begun(run)
    looks = []
    for second in range(0, 20000, 10):
        run.world.time = float(second)
        before = run.world.forked
        if second < 15000:
            grow(run, 1 + second // 10)
        feature.check()
        if run.world.forked > before:
            looks.append(second)
            hear(run, feature)
    gaps = [after - before for before, after in zip(looks, looks[1:])]
    assert looks[:2] == [20, 40] and len(looks) < 20
    assert gaps == sorted(gaps) and gaps[-1] <= together.LATEST + 10 and looks[-1] < 17000
    assert run.told == []


def test_a_finding_is_told_once_while_the_job_runs_and_once_in_the_report(run):
    feature = begun(run)
    for seconds, steps in ((30, 20), (70, 40)):
        run.world.time = float(seconds)
        write(run, steps, bad=[(1, 12)])
        feature.check()
        hear(run, feature)
    text = "the loss of rank 1 was nan first, in epoch 1 step 12; the others' stayed finite"
    assert run.told == [text]
    (row,) = ended(run, feature)
    assert (row["kind"], run.told) == ("not-finite", [text] * 2)


@pytest.mark.slow
def test_what_later_looks_find_about_the_same_is_said_once_and_reported_as_last_seen(run):
    feature = begun(run)
    for seconds, steps, bad in ((30, 20, []), (70, 40, [(0, 30)]), (150, 60, [(0, 30)])):
        run.world.time = float(seconds)
        write(run, steps, bad=[(1, 12), *bad])
        feature.check()
        hear(run, feature)
    first = "the loss of rank 1 was nan first, in epoch 1 step 12; the others'"
    assert run.told == [f"{first} stayed finite"]
    (row,) = ended(run, feature)
    assert (row["later_step"], run.told[1:]) == (30, [f"{first} only from epoch 1 step 30 on"])
    feature.begins()  # the next attempt says it anew
    run.world.time += 30.0
    feature.check()
    hear(run, feature)
    assert len(run.told) == 3


def test_two_files_of_the_same_ranks_are_two_findings(run, monkeypatch):
    rows = [findings.row("one-file", [0, 1], path=path) for path in ("/a.ckpt", "/b.ckpt")]
    monkeypatch.setattr(look, "tell", lambda tells, _: os.write(tells, f"{json.dumps(rows[1])}\n".encode()))
    feature = begun(run)
    feature.heard(Heard("together", json.dumps(rows[0])))
    write(run, 9)
    assert ended(run, feature) == rows


def test_the_ranks_come_before_a_look_while_they_run_and_not_after_their_end(run, monkeypatch):
    own = os.nice(0)

    def tell(tells, _):
        os.write(tells, f"{json.dumps(findings.row('one-file', [0, 1], path=f'/{os.nice(0) - own}'))}\n".encode())

    monkeypatch.setattr(look, "tell", tell)
    feature = begun(run)
    write(run, 9)
    run.world.time = 30.0
    feature.check()
    hear(run, feature)
    assert [row["path"] for row in ended(run, feature)] == ["/5", "/0"]


def test_the_child_that_watches_saves_ends_with_the_launcher(run, monkeypatch):
    def tell(tells, job):
        os.write(tells, b"true\n")
        os.read(job.lifeline, 1)

    monkeypatch.setattr(look, "tell", tell)
    feature = begun(run)
    owned = set()
    for seconds in (30, 70):
        run.world.time = float(seconds)
        write(run, seconds)
        feature.check()
        assert not owned or len(run.world.owned) == owned  # those of the first child were closed
        owned = len(run.world.owned)
        while not run.world.events(0.2):
            continue
        child = feature._beside
        assert child.lives()
        child.end_orders()  # as the end of the launcher does
        until(lambda child=child: not child.lives())
        hear(run, feature)


def test_the_next_attempt_has_findings_of_its_own(run):
    feature = begun(run)
    write(run, 9, first="rank_size: 1\n")
    outcome = {}
    feature.outcome(outcome)
    assert [row["kind"] for row in outcome["findings"]] == ["world-size"]
    feature.begins()
    write(run, 9)
    assert ended(run, feature) == []
    assert len(run.told) == 1  # the report names those of all attempts


@pytest.mark.parametrize("text", ["", "trained\n", "Traceback ...\n"])
def test_a_job_that_prints_no_number_is_not_looked_at(run, text):
    feature = begun(run)
    write(run, 0, first=text)
    assert ended(run, feature) == [] and run.world.forked == 0


def test_who_ends_the_launcher_by_a_signal_does_not_wait(run):
    feature = begun(run)
    write(run, 9, first="rank_size: 1\n")
    run.supervisor.stopping.signal = "TERM"
    assert ended(run, feature) == [] and run.world.forked == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["raise", "kill", "half", "stop", "slow"])
def test_whatever_its_child_does_the_job_ends_as_it_would(run, monkeypatch, how):
    def tell(tells, job):
        if how == "raise":
            raise OSError
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(tells, json.dumps({"kind": "alone", "ranks": [0, 1], "number": 2}).encode() + b'\n{"kind": "al')
        if how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if how == "slow":
            signal.pause()

    monkeypatch.setattr(look, "tell", tell)
    monkeypatch.setattr(together, "WITHIN", 1.0)
    feature = begun(run)
    write(run, 9)
    found = [row["kind"] for row in ended(run, feature)]
    assert found == ([] if how in ("raise", "kill") else ["alone"])


def test_where_no_more_processes_may_be_started_nothing_is_found(run, monkeypatch):
    def fork(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(run.world, "fork", fork)
    feature = begun(run)
    run.world.time = 30.0
    write(run, 9, first="rank_size: 1\n")
    feature.check()
    assert ended(run, feature) == [] and run.told == []


def test_hosts_are_compared_when_all_have_answered_or_the_job_has_ended(run):
    run.plan.sizes = [1, 1]
    for rank, host in enumerate(("node0", "node1")):
        run.supervisor.members.get(str(rank)).host = host
    feature = begun(run)
    feature.heard(Heard("together", "has 0 train.py=digest 1\tPython=python3.11"))
    feature.heard(Heard("together", "has 7 train.py=digest 3"))
    feature.heard(Heard("another", "has 1 train.py=digest 2"))
    assert run.told == []
    feature.heard(Heard("together", "has 1 train.py=digest 2\tPython=python3.11\t\t=\t"))
    text = "train.py is not the same on all hosts: node1 (rank 1) has digest 2, others have digest 1"
    assert run.told == [text]
    (row,) = ended(run, feature)
    assert row["host"] == "node1" and run.told == [text] * 2


@pytest.mark.parametrize(
    ("log", "statuses", "found"),
    [
        ("rank 0 has loaded MindSpore\nrank 1 has loaded MindSpore", (0, 0), ["alone"]),
        ("rank 0 has loaded MindSpore\nrank 1 has loaded MindSpore", (0, 3), ["alone"]),
        ("rank 0 has loaded MindSpore\nrank 1 has loaded MindSpore", (1, 143), []),
        ("rank 0 has loaded MindSpore\nrank 1 has loaded MindSpore\nrank 0 is connected", (0, 0), ["not-joined"]),
        ("rank 0 has loaded MindSpore\nrank 0 is connected", (0, 0), []),
        ("rank 0 has loaded MindSpore\nanother process is connected", (0, 0), []),
        ("nothing", (0, 0), []),
    ],
)
def test_who_has_joined_is_taken_from_the_schedulers_log(run, log, statuses, found):
    with open(os.path.join(run.logs, "scheduler.log"), "w") as file:
        file.write("".join(f"mindspore_scheduler.py: {line}\n" for line in log.split("\n")))
    for rank, status in enumerate(statuses):
        run.supervisor.members.get(str(rank)).status = status
    assert [row["kind"] for row in ended(run, begun(run))] == found
    scheduler = Member("scheduler", "scheduler.log")
    scheduler.status = 0  # all ranks have joined, and left
    run.supervisor.members.add([scheduler])
    assert ended(run, begun(run)) == []


def test_a_simulated_cluster_has_no_connections(run):
    with open(os.path.join(run.logs, "scheduler.log"), "w") as file:
        file.write("mindspore_scheduler.py: rank 0 has loaded MindSpore\n")
    run.supervisor.members.get("0").status = 0
    run.environment[b"MS_SIMULATION_LEVEL"] = b"1"
    assert ended(run, begun(run)) == []
