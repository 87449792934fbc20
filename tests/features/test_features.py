"""Features whose child cannot be started, or fails: the job goes on as it would without them, and says so."""

import os
from types import SimpleNamespace

import pytest

from tools.features.base import Feature
from tools.features.beside import say_all
from tools.features.elastic_restarts import ElasticRestarts
from tools.features.explanation import Explanation
from tools.features.screen import Screen
from tools.launch import launcher
from tools.launch.hosts import elastic
from tools.supervise.members import Member
from tools.supervise.world import World


class NoMore(World):
    def fork(self, *_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")


def test_where_no_more_processes_may_be_started_nothing_is_told():
    told = []
    say_all(SimpleNamespace(world=NoMore(), say=told.append), "mindspore-launch-stacks", lambda *_: None, 5.0)
    assert told == []


@pytest.mark.parametrize(
    ("shows", "ranks", "clears"),
    [("0", 2, True), ("1", 2, True), ("all", 1, True), ("0,1", 2, False), ("all", 2, False)],
)
def test_a_message_takes_the_place_of_a_bar_where_one_log_is_on_the_terminal(
    monkeypatch, tmp_path, shows, ranks, clears
):
    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setenv("TERM", "xterm")
    run = SimpleNamespace(
        settings=SimpleNamespace(console=shows),
        plan=SimpleNamespace(ranks=[(rank, rank) for rank in range(ranks)]),
        world=SimpleNamespace(own=lambda _: None, fork=lambda _: 1),
        voice=SimpleNamespace(before=""),
        logs=str(tmp_path),
    )
    screen = Screen(run)
    screen.begins()
    os.close(screen._control)
    assert bool(run.voice.before) == clears


@pytest.mark.parametrize("fails", [True, False])
def test_a_restart_whose_plan_cannot_be_made_is_given_up_in_words(monkeypatch, tmp_path, capfd, fails):
    def begin(*_):
        if fails:
            raise OSError(28, "No space left on device")
        return [], None

    monkeypatch.setattr(elastic, "begin", begin)
    told, world = [], World()
    stopping = SimpleNamespace(running=True, again=lambda: None, soon=lambda: None)
    limits = SimpleNamespace(again=lambda: None)

    def wait_until(reached):
        while not reached():
            world.sleep(0.01)
        return True

    supervisor = SimpleNamespace(
        judge=SimpleNamespace(first=None),
        members=[],
        stopping=stopping,
        limits=limits,
        guardian=None,
        wait_until=wait_until,
    )
    request = SimpleNamespace(replace=lambda **_: SimpleNamespace(script="run_mpirun.sh"))
    run = SimpleNamespace(
        supervisor=supervisor,
        world=world,
        say=told.append,
        plan=SimpleNamespace(run_dir=str(tmp_path), request=request),
        hooks=SimpleNamespace(look_for_lost_host=lambda: "node1"),
        engine=SimpleNamespace(knows_hosts=False),
    )
    assert ElasticRestarts(run).may_restart(1) is not fails
    assert told == (["no restart 1: the process that plans it failed or was killed"] if fails else [])
    assert ("OSError: [Errno 28]" in capfd.readouterr().err) == fails


@pytest.mark.parametrize(
    ("engine", "began", "page"), [("", 1.0, True), ("", None, False), ("mpirun", 1.0, True), ("mpirun", None, True)]
)
def test_there_is_a_page_unless_a_rank_could_not_be_started(tmp_path, engine, began, page):
    (tmp_path / "launch.json").write_text("{}")
    first = Member("0", "rank_0.log", 0, 0)
    first.began = began
    supervisor = SimpleNamespace(
        judge=SimpleNamespace(first=first), stopping=SimpleNamespace(signal=""), members=[first]
    )
    run = SimpleNamespace(
        supervisor=supervisor,
        engine=SimpleNamespace(name=engine),
        settings=SimpleNamespace(report=True),
        plan=SimpleNamespace(run_dir=str(tmp_path)),
    )
    assert bool(Explanation(run)._page()) == page


def test_a_signal_between_the_plan_and_the_first_rank_of_a_pod_is_no_traceback(monkeypatch, capfd):
    def launch(*_):
        raise launcher.Stopped(15)

    monkeypatch.setattr(launcher, "launch", launch)
    monkeypatch.setattr(os, "environ", dict(os.environ, LAUNCH_LANG="en"))
    words = ["script=scripts/run_pod.sh", "caller=/", "ignored=0", "local", "CONFIG", "placement=pod", "grace=25"]
    assert launcher.main([*words, "device_target=CPU", "--", "config.yaml"]) == 143
    assert capfd.readouterr().err == "run_pod.sh: SIGTERM: no rank has started yet\n"


@pytest.mark.parametrize("step", ["how_far", "in_vain", "why_not_ready", "others_status", "others_host", "what_failed"])
def test_a_feature_that_has_no_answer_leaves_it_to_the_next_one(step):
    """Hooks takes the first answer that is not false, so the default must be false, whatever the order of the table."""
    assert not getattr(Feature(SimpleNamespace()), step)()
