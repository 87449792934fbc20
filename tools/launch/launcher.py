"""The launcher: command line -> request -> plan -> run -> exit code.

One process does all of it.  Modules that only some launches need are imported where they are needed, but before the
ranks start.
"""

from __future__ import annotations

import os

from hccl_tools.common import language
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import REFUSED, NotHere, Refusal
from hccl_tools.common.typed import name_of
from hccl_tools.common.typed import use as use_front
from tools.command import defaults
from tools.command import language as typed_language
from tools.command.command import read
from tools.command.declaration import Declaration
from tools.command.help import HelpAsked
from tools.launch import plan as planning
from tools.launch.devices import lock_folders
from tools.launch.request import Request
from tools.output.voice import Voice
from tools.rank import environment
from tools.supervise.proc import signals
from tools.supervise.stopping import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from tools.command.command import Command
    from tools.launch.planned import Checked, Plan
    from tools.rank.environment import Environment

INTERRUPTED = 130


class Stopped(BaseException):
    """A signal came while the launch was planned; args[0]: its number."""


class Lock:
    """The file that holds the devices of this job: the kernel frees them when the last process with it open ends."""

    def __init__(self, wanted: bool) -> None:
        self.descriptor: int | None = None
        self.path = ""
        if wanted:
            self.descriptor, self.path = lock_folders.make()

    def words(self) -> list[str]:
        """The arguments of Request.from_words."""
        return [f"lock_fd={'' if self.descriptor is None else self.descriptor}", f"lock_file={self.path}"]

    def remove(self) -> None:
        """Removes the file, which has no effect any more."""
        if self.descriptor is not None:
            try:
                os.unlink(self.path)
            except OSError:
                return  # it was removed


def main(words: list[str]) -> int:
    """The exit code of the launch that these words are: a script's declaration, --, and what the user typed.

    The first three are scripts/lib/start.sh's: script=$0; caller=, what it has changed of the environment; ignored=,
    the mask of the signals that the caller ignores, as /proc has it.  front= and preset= after them are mslaunch's.
    """
    open_streams()
    split = words.index("--")
    script, changed, ignored = words[:3]
    told = words[3:split]
    if told[0].startswith("front="):  # mslaunch was typed, and had to start another Python
        use_front(told[0][len("front=") :], told[1][len("preset=") :].split())
        told = told[2:]
    declaration, typed = Declaration.from_words([script, *told]), words[split + 1 :]
    voice = Voice(name_of(declaration.name))
    caller = environment.of_caller(environment.of_this_process(), changed.partition("=")[2])
    speak(typed, caller)
    try:
        command = read(declaration, typed)
    except HelpAsked as asked:
        return show(asked.text, voice)
    except Refusal as refusal:
        return refuse(voice, refusal)
    voice.quiet = command.settings.quiet
    if command.zoo:
        from tools.start_script import launching

        heed_signals()
        try:
            command = launching.prepare(command, typed, caller, voice.note)
        except Refusal as refusal:
            return refuse(voice, refusal)
        except Stopped as stopped:
            return leave(voice, stopped.args[0])
    for name, value in command.environment.items():
        os.environ[name] = value
        caller[name.encode()] = os.fsencode(value)
    lock = Lock(command.needs_lock)
    try:
        return launch(command, lock, caller, voice, int(ignored.partition("=")[2] or "0", 16))
    except Stopped as stopped:  # no rank has started: World.heed_signals comes before the first
        return leave(voice, stopped.args[0])
    finally:
        lock.remove()
        if command.zoo:
            launching.forget(command)


def launch(command: Command, lock: Lock, caller: Environment, voice: Voice, ignored: int) -> int:
    """Plans, and runs or prints the plan."""
    in_pod = command.declaration.extra.get("placement") == "pod"
    if in_pod:
        heed_signals()
    try:
        request = Request.from_words(with_lock(command.words, lock))
        plan = plan_of(command, request)
    except Refusal as refusal:
        return refuse(voice, defaults.blamed(refusal, command.defaults))
    except KeyboardInterrupt:
        return INTERRUPTED
    for remark in plan.remarks:
        voice.note(remark)
    if in_pod:
        command = in_log_of_first(command, plan, voice)
    if plan.request.sim_level is not None and not command.settings.console_given:  # rank 0 may be none of them
        command = command.replace(settings=command.settings.replace(console=str(plan.ranks[0][0])))
    for note in command.notes:
        voice.note(note)
    from tools.launch import life
    from tools.launch.run import Run
    from tools.supervise.world import World

    run = Run(plan, command, caller, voice, World(ignored=ignored))
    if lock.descriptor is not None:
        run.world.own(lock.descriptor)  # the ranks and the guardian hold it
    if request.dry_run:
        from tools.launch import dry_run

        run.tell_overridden()
        return show("".join(f"{line}\n" for line in dry_run.lines(run)), voice)
    status = life.lead(run)
    lock.remove()
    life.leave(run)
    return status


def plan_of(command: Command, request: Request) -> Plan:
    """The Plan.  Raises Refusal; if this machine lacks devices, the message names a command to type instead."""
    try:
        return planning.begin(request, before_launch(request))
    except NotHere as refusal:
        from tools.launch import instead

        *lines, last = refusal.lines
        raise Refusal(refusal.status, *lines, last + instead.remedy(command, request)) from refusal


def before_launch(request: Request) -> Callable[[Plan], Checked] | None:
    """The part of --preflight for the plan."""
    if not request.preflight:
        return None
    from tools.preflight import before_launch as preflight

    return preflight.look


def with_lock(words: list[str], lock: Lock) -> list[str]:
    split = words.index("--")
    return [*words[:split], *lock.words(), *words[split:]]


def open_streams() -> None:
    """Opens /dev/null for closed streams (stdin, stdout, stderr): otherwise a pipe of ours would get the number."""
    for stream, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(stream)
        except OSError:
            null = os.open(os.devnull, flags)
            if null != stream:
                os.dup2(null, stream)
                os.close(null)
            os.set_inheritable(stream, True)


def speak(typed: list[str], caller: Environment) -> None:
    """Chooses the language of the messages, for this process and for those that it starts."""
    name = typed_language.exported(typed, os.environ)
    if name:
        language.use(name)
        caller[b"LAUNCH_LANG"] = name.encode()


def show(text: str, voice: Voice) -> int:
    """Prints the result on stdout."""
    data = os.fsencode(text)
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        return 0  # the reader has enough
    except OSError as error:
        voice.say(tr("cannot write to stdout: {reason}", reason=strerror(error)))
        return REFUSED
    return 0


def refuse(voice: Voice, refusal: Refusal) -> int:
    """Reports why nothing is launched."""
    for line in refusal.lines:
        voice.refuse(line)
    return refusal.status


def in_log_of_first(command: Command, plan: Plan, voice: Voice) -> Command:
    """The output of a job in pods is in the log of the pod with rank 0; in the logs of the others is what failed."""
    if (plan.ranks and plan.ranks[0][0] == 0) or command.settings.console_given:
        return command
    voice.quiet = True
    return command.replace(settings=command.settings.replace(console="none"))


def heed_signals() -> None:
    """Sets handlers: process 1 of a container gets only signals for which it has one."""

    def stop(number: int, _frame: object) -> NoReturn:
        raise Stopped(number)

    for number in (signals.SIGINT, signals.SIGTERM, signals.SIGHUP, signals.SIGQUIT):
        if signals.getsignal(number) != signals.SIG_IGN:
            signals.signal(number, stop)


def leave(voice: Voice, number: int) -> int:
    """The exit code of a launcher that a signal stops before it has started anything."""
    voice.say(tr("SIG{signal}: no rank has started yet", signal=NAMES[number]))
    return 128 + number
