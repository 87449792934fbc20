"""Runs the life of a job: its attempts, the report when the last one has ended, and the exit code."""

from __future__ import annotations

import errno
import os
import sys

from hccl_tools.common import colours
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import clauses
from tools import features
from tools.launch import record, train_log
from tools.launch.run import CANNOT_START, Run
from tools.output import report
from tools.supervise import proc
from tools.supervise.children import NO_CTYPES
from tools.supervise.guardian import Guardian
from tools.supervise.leftovers import Leftovers
from tools.supervise.limits import Limits
from tools.supervise.loop import Supervisor
from tools.supervise.members import Member
from tools.supervise.proc import signals
from tools.supervise.stopping import Stopping

FORKED_WITHIN = 5.0  # seconds
LONGEST_PAUSE = 60  # seconds between two attempts


def lead(run: Run) -> int:
    """Runs the job to its end; returns the exit code."""
    run.hooks = features.Hooks(run)
    run.supervisor = Supervisor(run.world, run.engine, run.hooks, run.say)
    try:
        return _lead(run)
    except Exception as error:  # no rank may outlive us, and the user learns whose mistake it is
        return give_up(run, error)


def _lead(run: Run) -> int:
    run.tell_overridden()
    _tell_start(run)
    supervisor, settings = run.supervisor, run.settings
    supervisor.stopping = Stopping(supervisor, settings.grace, settings.keep_going)
    run.world.heed_signals()
    supervisor.guardian = Guardian(run.mark, settings.grace, lambda: _settle_log(run))
    run.world.adopt(supervisor.guardian.pid)
    run.world.own(supervisor.guardian.lifeline)
    supervisor.limits = Limits(settings.timeout, settings.hang_timeout, run.world.now, run.say, run.logs_problem)
    supervisor.stopping.patience = run.patience()
    if settings.stop_before:
        from tools.launch import time_limit  # few launches have it

        time_limit.heed(run)
    if not run.engine.name:
        _adopt_what_ranks_leave(run)
    run.hooks.opened()
    if run.hooks.is_ready():
        _attempt(run)
    _restart(run)
    return _end(run)


def _adopt_what_ranks_leave(run: Run) -> None:
    """Where the ranks are our children, what they leave becomes ours, too."""
    problem = run.world.children.adopt()
    if problem:
        reason = tr("this Python has no ctypes") if problem == NO_CTYPES else tr("the kernel refused prctl(2)")
        effect = tr("the job does not wait for processes that a rank leaves behind; it ends them")
        run.say(clauses(reason, effect))
    waiting = run.supervisor.waiting
    waiting.leftovers = Leftovers(
        run.world,
        os.fsencode(run.mark),
        lambda: run.trainer,
        waiting.take,
        waiting.over,
        waits=run.settings.leftovers == "wait",
    )


def _tell_start(run: Run) -> None:
    """What is about to run, and where its logs are."""
    devices = [device for _, device in run.plan.ranks]
    line = report.started(devices, len(set(run.plan.hosts)), report.path(run.plan.run_dir))
    (run.note if devices else run.say)(line)


# ---- attempts --------------------------------------------------------------------------------------------------------


def _attempt(run: Run) -> None:
    """Runs all ranks once, from their start to their end."""
    run.hooks.begins()
    run.engine.start()
    if run.settings.hang_timeout:
        run.supervisor.limits.watch([member.log for member in run.supervisor.members.ranks()])
    run.supervisor.run()
    proc.sweep(os.fsencode(run.mark), run.world.sleep)
    run.engine.forget()
    run.hooks.attempt_ended()
    run.status = run.exit_status()


def _restart(run: Run) -> None:
    """Runs all ranks again, while that is allowed and they fail."""
    while run.settings.max_restarts and _has_failed(run):
        number = run.attempt + 1
        if not (run.hooks.wants_restart(number) and _make_logs(run, number) and run.hooks.may_restart(number)):
            break
        _note_outcome(run)
        nth, most = run.hooks.in_vain() + 1, run.settings.max_restarts
        pause = min(LONGEST_PAUSE, 1 << min(nth - 1, 6))
        run.say(tr("restart {number} of {most} in {seconds} s", number=nth, most=most, seconds=pause))
        run.supervisor.again()
        run.hooks.again(number)
        if not _pause(run, pause) or not run.hooks.is_ready():
            break
        _take_attempt(run, number)
        _attempt(run)


def _has_failed(run: Run) -> bool:
    """Whether the attempt has failed, here or on another host, and nothing has ended the job."""
    stopping = run.supervisor.stopping
    if stopping.signal or stopping.cancelled or run.hooks.others_end():
        return False
    return run.supervisor.judge.first is not None or run.hooks.others_again()


def _pause(run: Run, seconds: float) -> bool:
    """Waits; False if something ends the job meanwhile."""
    end = run.world.now() + seconds
    return run.supervisor.wait_until(lambda: run.world.now() >= end)


def _make_logs(run: Run, number: int) -> bool:
    """Makes the folder for the logs of the restart; False, and why, if it cannot be made."""
    folder = run.folder_of(number)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        run.say(
            tr(
                "no restart {number}: the folder {folder} for its logs cannot be made: {reason}",
                number=number,
                folder=folder,
                reason=strerror(error),
            )
        )
        return False
    return True


def _take_attempt(run: Run, number: int) -> None:
    """The plan, the logs and the ranks' command are those of the restart from now on."""
    old = run.logs
    run.hooks.next_plan()
    run.begin_attempt(number)
    run.hooks.logs_moved(old)


# ---- the end ---------------------------------------------------------------------------------------------------------


def _end(run: Run) -> int:
    """Reports; returns the exit code."""
    run.hooks.finishing()
    run.status = run.exit_status()
    run.hooks.settle(run.status)
    run.hooks.fell_silent()
    _note_outcome(run)
    trouble = record.save_outcome(run.plan.run_dir, run.attempts)
    _report(run)
    run.hooks.reported(trouble)
    proc.sweep(os.fsencode(run.mark), run.world.sleep)
    if run.supervisor.guardian:
        run.supervisor.guardian.end()
    # What was killed needs a moment on a busy machine; the guardian holds the lock on the devices, too.
    run.world.await_end(None, FORKED_WITHIN)
    if not run.status:
        _tell_silence(run)
    line = tr("exit {status}{where}", status=run.status, where=report.where(run.plan.run_dir))
    (run.say if run.status else run.note)(line)
    return run.status


def _note_outcome(run: Run) -> None:
    """Adds the outcome of the attempt that has ended to those for launch.json.

    If the job ends before the next attempt has begun, the last one has that end, too.
    """
    if run.attempts and not len(run.supervisor.members):
        stopped_by = run.supervisor.stopped_by(run.hooks.others_host()) or None
        run.attempts[-1].update(exit=run.status, stopped_by=stopped_by)
        return
    found = record.outcome_of_attempt(
        run.supervisor.members,
        run.supervisor.judge.first,
        status=run.status,
        stopped_by=run.supervisor.stopped_by(run.hooks.others_host()),
        logs="." + run.logs[len(run.plan.run_dir) :],
    )
    run.hooks.outcome(found)
    run.attempts.append(found)


def _report(run: Run) -> None:
    """The table of ranks, then the end of the log of the member that failed first."""
    first, ranks = run.supervisor.judge.first, run.supervisor.members.ranks()
    if not len(run.supervisor.members):
        return
    if first or not run.voice.quiet:
        stopping = not run.supervisor.stopping.running
        run.voice.lines(report.table(ranks, first, run.hooks.lost_ranks(), stopping=stopping))
    if first:
        failed = report.failed_ranks(ranks) if run.settings.keep_going else None
        if failed:
            run.say(failed)
        sentence, *lines = report.tail(first.log) or [""]
        if sentence:
            run.say(sentence)
            run.voice.lines(lines)
    for line in report.left(ranks):
        run.say(line)
    problem = run.logs_problem()
    if problem:
        run.say(problem)


def _tell_silence(run: Run) -> None:
    """Python also "succeeds" with a file of functions that are not called."""
    ranks = run.supervisor.members.ranks()
    if run.command.program and ranks and all(map(_is_empty, ranks)):
        run.note(tr(report.SILENT))


def _is_empty(member: Member) -> bool:
    try:
        return os.path.getsize(member.log) == 0
    except OSError:
        return False


def _settle_log(run: Run) -> None:
    """In the guardian, when the launcher was killed: train.log leads into the run no longer."""
    name = f"rank_{run.plan.ranks[0][0]}.log" if run.plan.ranks else "scheduler.log"
    number = 0
    while os.path.isdir(folder := run.folder_of(number)):
        train_log.settle(os.curdir, os.path.join(folder, name))
        number += 1


def give_up(run: Run, error: Exception) -> int:
    """Ends the job when the launcher itself has failed: the guardian ends what runs; returns the exit code."""
    if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.ENOMEM):
        reason = tr("the launcher cannot start more processes (see ulimit -u, and the container's limit of pids)")
    else:
        sys.excepthook(type(error), error, error.__traceback__)
        reason = tr(
            "the launcher has an internal error ({error}): please report it, with the lines above and the output of "
            "scripts/doctor.sh",
            error=type(error).__name__,
        )
    guardian = run.supervisor.guardian
    if guardian is None:
        run.say(colours.styled(reason, colours.FAILURE))
        return CANNOT_START
    run.say(colours.styled(tr("{reason}; stopping all that still runs", reason=reason), colours.FAILURE))
    run.world.disown(guardian.lifeline)
    while not run.world.await_end(guardian.pid, 1):
        run.world.kill(guardian.pid, signals.SIGCONT)  # it may have been stopped
    return CANNOT_START


def leave(run: Run) -> None:
    """Ends this process by the signal that stopped it, so that the shell which waits for it sees this."""
    supervisor = run.supervisor
    if supervisor.judge.first is None and not supervisor.limits.reached and supervisor.stopping.signal:
        number = getattr(signals, f"SIG{supervisor.stopping.signal}")
        signals.signal(number, signals.SIG_DFL)
        os.kill(os.getpid(), number)
