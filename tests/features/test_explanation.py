"""The forked child that explains a failure and writes the page: the job ends as it has ended, whatever it does."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from hccl_tools.common import colours
from tools.features import explanation, explanation_child
from tools.features.explanation import Explanation
from tools.supervise.members import Member
from tools.supervise.world import World


@pytest.fixture
def run(tmp_path):
    """A run whose rank 0 has failed; what the user reads is in `told`."""
    (tmp_path / "launch.json").write_text("{}")
    member = Member("0", str(tmp_path / "rank_0.log"), 0, 0)
    member.began, member.status, member.failed = 1.0, 3, True
    told = []
    return SimpleNamespace(
        told=told,
        say=told.append,
        note=told.append,
        world=World(),
        status=3,
        attempts=[],
        engine=SimpleNamespace(name=""),
        plan=SimpleNamespace(run_dir=str(tmp_path), plogs=None),
        settings=SimpleNamespace(max_restarts=0, report=False),
        supervisor=SimpleNamespace(
            judge=SimpleNamespace(first=member), members=[member], stopping=SimpleNamespace(signal="")
        ),
        member=member,
    )


def ended(run, monkeypatch, serve, early=True):
    """What the user reads about a job whose child does `serve`."""
    for name in ("serve", "serve_without_cause"):
        monkeypatch.setattr(explanation_child, name, serve)
    feature = Explanation(run)
    feature.begins()
    if early:
        feature.failed(run.member, False)
    feature.reported("")
    with pytest.raises(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    return run.told


def lines(*texts):
    """A child that writes these lines, when it has its orders."""

    def serve(orders, tells, run_dir, plogs=False):
        while os.read(orders, 1 << 16):
            pass
        os.write(tells, "".join(f"{text}\n" for text in texts).encode())

    return serve


@pytest.mark.parametrize("early", [True, False])
def test_the_user_reads_what_it_says(run, monkeypatch, early):
    serve = lines("say because", "done explained", "page written")
    assert ended(run, monkeypatch, serve, early) == ["because"]


def test_lines_keep_their_styles_on_the_way(run, monkeypatch):
    def serve(orders, tells, run_dir, plogs=False):
        lines()(orders, tells, run_dir, plogs)
        explanation_child.Told(tells).lines([colours.styled("red\n", colours.FAILURE), "    plain", "failure plain"])

    told = ended(run, monkeypatch, serve)[:3]
    assert told == ["red\\n", "    plain", "failure plain"]
    assert list(map(colours.style_of, told)) == [colours.FAILURE, "", ""]


def test_a_page_that_fails_is_a_note(run, monkeypatch):
    serve = lines("done explained", "page no way")
    (told,) = ended(run, monkeypatch, serve)
    assert told.startswith("no page of this run: no way; this command writes it: python ")
    assert told.endswith(f"tools/report.py {run.plan.run_dir}")


def test_a_run_that_was_moved_has_no_page(monkeypatch, tmp_path):
    monkeypatch.setattr(signal, "setitimer", lambda which, seconds: None)  # it would end the tests
    gone = str(tmp_path / "moved")
    assert explanation_child.page(gone, "small", 5.0) == f"{gone}: No such file or directory"


def test_logs_that_take_too_long_name_the_command_that_reads_them(run, monkeypatch):
    monkeypatch.setattr(explanation, "EXPLAIN_WITHIN", 0.2)
    monkeypatch.setattr(explanation, "SHORT_PAGE_WITHIN", 0.1)
    told = ended(run, monkeypatch, lambda orders, tells, run_dir, plogs: time.sleep(600))
    assert len(told) == 2
    assert told[0].startswith("there is no time now to read all logs; this command reads them: python ")
    assert told[0].endswith(run.plan.run_dir) and "/diagnose.py " in told[0]
    assert told[1].startswith("no page of this run: it was not ready after 0.10 s, or was killed; ")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGALRM, "exit", "raise", "stop"])
def test_a_child_that_ends_or_stands_still(run, monkeypatch, how):
    def serve(orders, tells, run_dir, plogs=False):
        if how == "exit":
            os._exit(1)
        if how == "raise":
            raise OSError
        if how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)  # the launcher wakes it
            lines("done explained", "page large")(orders, tells, run_dir, plogs)
            return
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.kill(os.getpid(), how)

    told = ended(run, monkeypatch, serve)
    assert [text.partition(":")[0] for text in told] == (
        []
        if how == "stop"
        else ["the process that explains the failure was killed; this command does the same", "no page of this run"]
    )


def test_a_rank_that_could_not_be_started_needs_no_cause(run, monkeypatch):
    run.member.began = None
    assert ended(run, monkeypatch, lines("say because")) == []


def test_plogs_are_settled_also_if_the_cause_took_too_long(run, monkeypatch, tmp_path):
    run.plan.plogs = SimpleNamespace(keep="failed")
    monkeypatch.setattr(explanation, "EXPLAIN_WITHIN", 0.2)
    monkeypatch.setattr(explanation, "SETTLE_WITHIN", 0.1)
    monkeypatch.setattr(explanation, "SHORT_PAGE_WITHIN", 0.1)
    marks = tmp_path / "calls"

    def serve(orders, tells, run_dir, plogs=False):
        with marks.open("a") as file:
            file.write("x")
        if marks.stat().st_size == 1:
            time.sleep(600)
        lines("say cut", "done explained")(orders, tells, run_dir, plogs)

    assert "cut" in ended(run, monkeypatch, serve)


def test_after_a_good_job_with_plogs_no_known_failures_are_read(run, monkeypatch):
    """To read them takes many times as long as to settle the plogs."""
    done = []
    monkeypatch.setattr(explanation_child, "get_ready", lambda plogs: done.append("read") or (None, ""))
    monkeypatch.setattr(explanation_child, "settle", lambda wanted, run_dir: [*done, "settled"])
    run.plan.plogs, run.supervisor.judge.first, run.status = SimpleNamespace(keep="failed"), None, 0
    Explanation(run).reported("")
    assert run.told == ["settled"]


def test_a_launcher_that_is_killed_leaves_no_child(tmp_path):
    """The child reads its orders to their end, and does nothing without them."""
    orders, ordering = os.pipe()
    told, tells = os.pipe()
    os.close(ordering)
    child = os.fork()
    if child == 0:
        explanation_child.serve(orders, tells, str(tmp_path), plogs=True)
        os._exit(0)
    os.close(tells)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(told, 100) == b""


@pytest.mark.slow
def test_without_plogs_nothing_is_prepared_that_only_they_need(root):
    """Each launch that fails takes this time of a processor, so it reads no modules that few launches need."""
    code = """
import sys
from tools.features import explanation_child
from tools.logs import scan

explanation_child.get_ready(plogs=False)
import tools.run_page.document

assert not scan._machine.cache_info().currsize
print(*{"logging", "concurrent.futures", "importlib.metadata", "zipfile"} & sys.modules.keys())
explanation_child.get_ready(plogs=True)
assert scan._machine.cache_info().currsize
"""
    assert subprocess.check_output([sys.executable, "-E", "-s", "-c", code], cwd=root) == b"\n"
