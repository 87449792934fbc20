"""Requests to save and to end: what the ranks are told, when they are killed, and what the run's record says."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from supervise.fake_job import KILL, STUBBORN, TERM, USR1, Job

from tools.engines.agent_lines import AgentLines
from tools.features import saving
from tools.features.hosts_attempts import ASKING
from tools.launch import time_limit
from tools.supervise import events, proc
from tools.supervise.limits import STOP_BEFORE
from tools.supervise.members import SCHEDULER, Member
from tools.trainer import request_file

# ---- the file --------------------------------------------------------------------------------------------------------


def test_the_file_has_the_form_of_mindspores_callback_and_a_request_stays_one(tmp_path):
    file = request_file.path(str(tmp_path))
    assert request_file.read(file) is None
    assert (request_file.tell(str(tmp_path), False), request_file.read(file)) == ("", False)
    assert (request_file.tell(str(tmp_path), True), request_file.read(file)) == ("", True)
    assert json.loads((tmp_path / "request.json").read_text()) == {"GracefulExit": 1}
    assert (request_file.tell(str(tmp_path), False), request_file.read(file)) == ("", True)
    assert os.listdir(tmp_path) == ["request.json"]
    request_file.forget(str(tmp_path))
    request_file.forget(str(tmp_path))
    assert request_file.read(file) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"GracefulExit": "1"}', '{"GracefulExit": 2}', "\udcff", pytest.param("[" * 5000, id="deep")],
)
def test_a_file_of_another_form_says_nothing(tmp_path, text):
    (tmp_path / "request.json").write_text(text, errors="surrogateescape")
    assert request_file.read(str(tmp_path / "request.json")) is None


def test_a_file_that_cannot_be_written_is_a_reason(tmp_path):
    assert request_file.tell(str(tmp_path / "none"), True) == "No such file or directory"


# ---- the supervisor --------------------------------------------------------------------------------------------------


def told(job):
    """What the hooks heard about the ends, in order."""
    found = []
    job.hooks.ending = found.append
    return found


def test_a_signal_is_a_request_with_a_time_of_its_own_and_a_failure_is_none():
    job = Job(2, grace=5, behaves={"1": STUBBORN})
    job.supervisor.stopping.patience = 25
    endings = told(job)
    job.world.at(5, events.Signalled(TERM))
    assert (job.run(), endings) == (143, [True])
    assert 30 <= job.world.sent(KILL)[101] < 30.2
    job = Job(2, grace=5, behaves={"1": STUBBORN})
    job.supervisor.stopping.patience = 25
    endings = told(job)
    job.world.ends(5, "0", 3)
    assert (job.run(), endings) == (3, [False])
    assert 10 <= job.world.sent(KILL)[101] < 10.2


def test_engines_get_another_order_for_a_request():
    for event, word in ((events.Signalled(TERM), "ask"), (events.Ended([("0", 3)]), "stop")):
        job = Job(2, name="srun", way=3.0)
        job.world.at(5, event)
        job.run()
        assert {order for _, order in job.engine.orders} == {word}


def test_the_scheduler_ends_after_the_ranks_that_save():
    job = Job(2, scheduler=True, behaves={"0": STUBBORN, "1": STUBBORN})
    job.world.at(5, events.Signalled(TERM))
    job.world.ends(7, "0", 0)
    job.world.ends(8, "1", 0)
    assert (job.run(), job.ran()) == (143, 8.0)
    assert job.world.sent(TERM) == {100: 5.0, 101: 5.0, 98: 8.0}


def test_the_scheduler_that_other_hosts_need_is_left_to_itself_until_the_deadline():
    job = Job(1, scheduler=True, shares_scheduler=True, grace=7)
    job.world.at(5, events.Signalled(TERM))
    assert job.run() == 143
    assert 98 not in job.world.sent(TERM) and 12 <= job.world.sent(KILL)[98] < 12.2


def test_two_signals_end_the_ranks_that_save_at_once():
    job = Job(2, grace=60, scheduler=True, behaves={"0": STUBBORN, "1": STUBBORN})
    job.world.at(5, events.Signalled(signal.SIGINT))
    job.world.at(6, events.Signalled(signal.SIGINT))
    assert (job.run(), job.ran()) == (130, 6.0)


def test_usr1_is_a_request_without_a_deadline_and_a_job_that_goes_on_ends_as_it_does():
    job = Job(2)
    endings = told(job)
    job.world.at(5, events.Signalled(USR1))
    job.world.at(6, events.Signalled(USR1))
    job.world.ends(500, "0", 0)
    job.world.ends(501, "1", 0)
    assert (job.run(), endings[:1], job.supervisor.stopped_by()) == (0, [True], "")
    assert job.world.sent(TERM, "process") == job.world.sent(KILL) == {} and 100 not in job.world.sent(TERM)
    assert job.world.sent(USR1, "process") == {100: 5.0, 101: 5.0}


def test_a_rank_that_usr1_would_only_kill_gets_sigterm_and_its_end_is_no_failure():
    job = Job(2, behaves={"1": {USR1: None, TERM: 143, KILL: 137}})
    job.world.without_usr1 = {"0"}
    job.world.at(5, events.Signalled(USR1))
    assert (job.run(), job.hooks.told, job.supervisor.stopped_by()) == (138, [], "SIGUSR1")
    assert job.world.sent(TERM, "process") == {100: 5.0}


def test_after_usr1_the_end_of_a_rank_by_another_signal_is_a_failure_all_the_same():
    job = Job(2)
    job.world.at(5, events.Signalled(USR1))
    job.world.ends(50, "1", 143)
    assert (job.run(), job.hooks.told) == (143, [("1", False)])


def test_agents_tell_of_usr1_that_slurm_has_sent_and_of_ranks_that_got_sigterm(tmp_path):
    lines = AgentLines(b"secret", str(tmp_path), -1, None)
    said = b".secret warned\n.secret warned\n.secret asked 3\n"
    assert lines.take(said) == [events.Warned(), events.Warned("3")]
    job = Job(2)
    endings = told(job)
    job.world.at(5, events.Warned())
    job.world.at(6, events.Warned("0"))
    job.world.ends(7, "0", 143)
    assert (job.run(), endings, job.hooks.told) == (138, [True, True], [])


def test_a_process_that_handles_usr1_gets_it_and_another_one_sigterm():
    script = "import signal, sys, time\n{}\nprint('ready', flush=True)\ntime.sleep(600)"
    for line, gets in (
        ("", (False, -signal.SIGTERM)),
        ("signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))", (True, 7)),
    ):
        one = subprocess.Popen([sys.executable, "-c", script.format(line)], stdout=subprocess.PIPE)
        assert one.stdout.readline() == b"ready\n"
        assert (proc.pass_on(one.pid, USR1), one.wait()) == gets
        one.stdout.close()


# ---- time limits -----------------------------------------------------------------------------------------------------


def test_before_a_limit_the_ranks_have_all_the_time_to_it_but_that_of_the_report():
    job = Job(1, timeout=600, behaves={"0": STUBBORN})
    job.supervisor.limits.stop_before(100, 600)
    endings = told(job)
    assert (job.run(), endings, job.supervisor.stopped_by()) == (124, [True], STOP_BEFORE)
    assert 500 <= job.world.sent(TERM)[100] < 501.2
    assert 594 <= job.world.sent(KILL)[100] - 0 < 597
    assert "they have 95 s to save" in job.said[0]


def test_a_timeout_is_a_request_and_a_hang_is_none(tmp_path):
    job = Job(1, timeout=30)
    endings = told(job)
    assert (job.run(), endings) == (124, [True])
    (tmp_path / "rank_0.log").touch()
    job = Job(1, hang=30)
    endings = told(job)
    job.supervisor.limits.watch([str(tmp_path / "rank_0.log")])
    assert (job.run(), endings) == (124, [False])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("9:59", 599), ("0:07", 7), ("1:00:00", 3600), ("1-02:03:04", 93784), ("UNLIMITED", None), ("INVALID", None),
     ("", None), ("9:59\n1:00", None), ("-1:00", None), ("99999999999:00", None)],
)  # fmt: skip
def test_the_time_that_slurm_leaves(monkeypatch, text, seconds):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    asked = []
    answer = SimpleNamespace(stdout=f"{text}\n")
    monkeypatch.setattr(time_limit.programs, "ask", lambda words, _: (asked.append(words), answer)[1])
    assert time_limit.slurms() == seconds
    assert asked == [["squeue", "--noheader", "--jobs", "7", "--format", "%L"]]


@pytest.mark.parametrize("job", ["", "x", "$(touch ran)", "-1"])
def test_no_number_of_a_job_is_no_limit_of_slurm(monkeypatch, job):
    monkeypatch.setenv("SLURM_JOB_ID", job)
    monkeypatch.setattr(time_limit.programs, "ask", lambda *_: pytest.fail("it asks"))
    assert time_limit.slurms() is None


def test_slurms_own_variable_counts_and_the_first_limit_of_two(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 3000))
    told = []
    limits = SimpleNamespace(stop_before=lambda seconds, left: told.append((seconds, left)))
    run = SimpleNamespace(
        settings=SimpleNamespace(timeout=0, stop_before=60), supervisor=SimpleNamespace(limits=limits), say=told.append
    )
    time_limit.heed(run)
    run.settings.timeout = 600
    time_limit.heed(run)
    assert told[0][0] == 60 and 0 < told[0][1] <= 3000 and told[1] == (60, 600)
    monkeypatch.delenv("SLURM_JOB_ID")
    run.settings.timeout = 0
    time_limit.heed(run)
    assert told[2].startswith("--stop_before does nothing: the job has no time limit")


def test_the_end_of_the_job_on_another_host_is_a_request_where_a_limit_or_a_signal_ended_it():
    signals = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTERM]
    assert set(ASKING) == {124, *(128 + number for number in signals)}


# ---- the record and the report ---------------------------------------------------------------------------------------

LINE = "epoch: 3 step: 5, asked to end: the checkpoint is saved\n"


class Launch:
    """A launch whose ranks have these statuses and logs; `ends` is what the feature makes of it."""

    def __init__(self, tmp_path, statuses, logs=(), *, signalled="TERM", checkpoints=None, warned=""):
        self.ranks = []
        for rank, status in enumerate(statuses):
            member = Member(str(rank), str(tmp_path / f"rank_{rank}.log"), rank, rank)
            member.status, member.began, member.ended = status, 0.0, 12.34
            (tmp_path / f"rank_{rank}.log").write_text(logs[rank] if rank < len(logs) else "")
            self.ranks.append(member)
        self.said, self.now = [], 10.0
        members = SimpleNamespace(ranks=lambda: self.ranks, ranks_left=len(statuses))
        self.stopping = SimpleNamespace(signal=signalled, heeds_warning=self.heeds_warning)
        self.supervisor = SimpleNamespace(
            members=members,
            judge=SimpleNamespace(first=None),
            stopping=self.stopping,
            limits=SimpleNamespace(reached=""),
        )
        self.plan = SimpleNamespace(run_dir=str(tmp_path), checkpoints=checkpoints)
        self.world = SimpleNamespace(now=lambda: self.now)
        self.hooks = SimpleNamespace(others_host=lambda: "")
        self.say = self.note = self.said.append
        self.feature = saving.Saving(self)

    def heeds_warning(self):
        self.stopping.signal = self.stopping.signal or "USR1"

    def ends(self):
        found = {}
        self.feature.begins()
        self.feature.ending(True)
        self.feature.attempt_ended()
        self.feature.outcome(found)
        self.feature.reported("")
        return found.get("asked")


def test_the_record_says_after_which_step_all_have_saved(tmp_path):
    launch = Launch(tmp_path, [0, 0], [f"a\n{LINE}b\n", f"{LINE}"])
    expected = {"seconds": 2.3, "epoch": 3, "step": 5, "saved": [0, 1], "not_saved": []}
    assert launch.ends() == expected
    assert "2 ranks saved after step 5 of epoch 3, within 2.3 s" in launch.said[0] and "--resume=" in launch.said[0]
    assert request_file.read(str(tmp_path / "request.json")) is True


def test_who_did_not_save_is_named(tmp_path):
    launch = Launch(tmp_path, [0, 137, 143, 139], [LINE, "", "", LINE])
    asked = launch.ends()
    assert (asked["saved"], asked["not_saved"]) == ([0, 3], [1, 2])
    assert launch.said[0].startswith("asked to end: ranks 1,2 ended without saving")


def test_of_a_program_that_does_not_save_nothing_is_said_but_of_our_trainer_it_is(tmp_path):
    assert (Launch(tmp_path, [143, 143]).ends() or {})["not_saved"] == [0, 1]
    launch = Launch(tmp_path, [143, 143])
    launch.ends()
    assert launch.said == []
    launch = Launch(tmp_path, [143, 143], checkpoints={"folder": "x"})
    launch.ends()
    assert launch.said[0].startswith("asked to end: ranks 0,1 ended without saving")


def test_another_trainer_that_ends_with_0_has_heeded_the_request(tmp_path):
    launch = Launch(tmp_path, [0, 0])
    assert launch.ends()["step"] is None
    assert launch.said == ["asked to end: 2 ranks ended with 0 after 2.3 s"]


def test_after_usr1_a_program_that_does_not_save_was_not_asked(tmp_path):
    launch = Launch(tmp_path, [0, 0], signalled="")
    assert (launch.ends(), launch.said, launch.stopping.signal) == (None, [], "")
    launch = Launch(tmp_path, [0, 0], [LINE, LINE], signalled="")
    assert launch.ends()["step"] == 5 and launch.stopping.signal == "USR1"


def test_after_a_failure_the_file_says_that_it_is_no_request(tmp_path):
    launch = Launch(tmp_path, [143, 3])
    launch.feature.begins()
    launch.feature.ending(False)
    assert request_file.read(str(tmp_path / "request.json")) is False
    launch.feature.begins()  # the next attempt
    assert request_file.read(str(tmp_path / "request.json")) is None


def test_where_the_file_cannot_be_written_the_user_learns_what_that_means(tmp_path):
    launch = Launch(tmp_path, [143])
    launch.plan.run_dir = str(tmp_path / "gone")
    launch.ends()
    assert "request.json: cannot be written, so ranks may end without saving: No such file" in launch.said[0]


def test_a_job_without_a_scheduler_is_no_matter_for_the_stop():
    job = Job(1)
    assert job.supervisor.members.get(SCHEDULER) is None
    job.world.at(5, events.Signalled(TERM))
    assert job.run() == 143
