"""Coordinates the attempts of a job whose hosts have a launcher each, which agree on them with --max_restarts.

tools/attempts runs next to each launcher, and the host of rank 0 decides.  An attempt begins when all hosts are ready
for it.  The first failure on any host ends the attempt on all of them.  Each host then reports how far the attempt
came, and rank 0's host decides whether another one begins.  The decisions arrive as lines: "begin NUMBER", "again
NUMBER STATUS HOST TEXT", "restart NUMBER VAIN", "over NUMBER VAIN TEXT", "end NUMBER STATUS HOST TEXT", "say TEXT";
"moved STATUS TEXT" from a pod's rank table (pod_table.py).
"""

from __future__ import annotations

import os

from hccl_tools.common import colours
from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses
from tools.attempts import main as attempts_main
from tools.features.base import Feature
from tools.features.beside import Beside
from tools.supervise.events import Heard
from tools.supervise.proc import QUIET, ignore, signals

LEAVE_WITHIN = 3.0  # seconds in which what is left to say must be sent
KILLED = 255
ASKING = (124, 129, 130, 131, 138, 143)  # exit codes of limits and signals: the ranks of the other hosts may save, too
AGAIN, END = "again", "end"


class HostsAttempts(Feature):
    """This host's part."""

    name = "hosts"
    _beside: Beside | None = None
    _number = 0  # the attempt that runs, or that we are ready for
    _begun = -1  # the attempt that all hosts may begin
    _told = False  # the other hosts know how this attempt has ended here
    _stop_told = False  # they know that a signal or a limit ends the job here
    _verdict = ""  # how it has ended on all hosts: AGAIN or END
    _status = 0  # the exit code that the verdict gives this host
    _host = ""  # the host whose failure, signal or limit has ended the attempt here, too
    _vain: int | None = None  # how many restarts in a row were, with this one; None: the attempt is not judged yet
    _why = ""  # why there is no other attempt
    _early: tuple[int, int, str, str] | None = None  # the end of the job, heard before our own pause for the restart

    def opened(self) -> None:
        agreement = self.run.plan.agreement
        assert agreement is not None  # or the launch has no such feature
        self._beside = Beside(self.run.world, "mindspore-launch-hosts", self._child)
        self._beside.hear(self.name)
        self._beside.order(agreement.line())

    @staticmethod
    def _child(orders: int, tells: int) -> None:
        ignore(signals.SIGTERM, *QUIET)
        os.dup2(orders, 0)
        os.dup2(tells, 1)
        for descriptor in (orders, tells):
            os.close(descriptor)
        attempts_main.main()

    # ---- steps -----------------------------------------------------------------------------------------------------

    def again(self, number: int) -> None:
        self._number, self._told, self._verdict, self._status, self._host = number, False, "", 0, ""
        self._vain = None
        if self._early:
            self._judged(END, *self._early)

    def is_ready(self) -> bool:
        self._say(f"ready {self._number}")
        return self.run.supervisor.wait_until(lambda: self._begun == self._number)

    def stops(self) -> None:
        self._tell()

    def attempt_ended(self) -> None:
        """If all ranks of this host have ended with 0, waits until all hosts are done, or one has failed.

        After a failure, tells how far the attempt came here, and waits for what the host of rank 0 makes of it.
        """
        self._tell()
        if self._is_open():
            self._say(f"done {self._number}")
            self.run.supervisor.wait_after(lambda: bool(self._verdict))
            self._tell()
        if self.run.settings.max_restarts and self._has_failed():
            self._say(f"came {self._number} {' '.join(map(str, self.run.hooks.how_far() or (0, 0, 0, '')))}")
            self.run.supervisor.wait_after(lambda: self._vain is not None or bool(self._early) or self._verdict == END)
            if self._stopped_by():
                self._stop(self.run.exit_status(), self._stopped_by())
            elif self._early:
                _, _, host, text = self._early
                self._early, self._verdict = None, END
                self.run.say(colours.styled(f"{host}: {text}", colours.FAILURE))

    def _has_failed(self) -> bool:
        """Whether the attempt has failed, here or on another host, and the job has not ended."""
        failed = self._verdict == AGAIN or (self._told and self.run.supervisor.judge.first is not None)
        return failed and self._beside is not None and not self._early and not self._stopped_by()

    def finishing(self) -> None:
        """Leaves the agreement: the job has ended on this host."""
        self._tell()
        why = self.run.hooks.why_not_ready() if self._is_open() else ""
        if self._verdict == AGAIN and not self._stop_told:  # it came while another host's failure ended the attempt
            why = self._stopped_by()
        if why:
            self._stop(self.run.exit_status(), why)
        if self._beside is None:
            return
        self._say("leave")
        beside, self._beside = self._beside, None
        beside.end_orders()
        beside.wake()
        if not self.run.world.await_end(beside.pid, LEAVE_WITHIN):
            beside.kill()

    def others_status(self) -> int:
        return self._status

    def others_host(self) -> str:
        return self._host

    def others_end(self) -> bool:
        return self._verdict == END

    def others_again(self) -> bool:
        return bool(self._verdict)

    def in_vain(self) -> int:
        return self._vain or 0

    def why_not_ready(self) -> str:
        return self._why

    # ---- what this host tells --------------------------------------------------------------------------------------

    def _is_open(self) -> bool:
        """Whether other hosts have launchers that do not know yet how this attempt ends."""
        return self._beside is not None and not self._told and not self._verdict

    def _say(self, line: str) -> None:
        if self._beside:
            self._beside.order(line)

    def _tell(self) -> None:
        """Tells the other hosts, once, what ends the attempt or the job on this one."""
        if not self._is_open():
            return
        supervisor = self.run.supervisor
        status = self.run.exit_status()
        if supervisor.judge.first is not None:
            self._told = True
            self._say(f"failed {self._number} {status} {self.run.hooks.what_failed()}")
        elif text := self._stopped_by():
            self._stop(status, text)

    def _stopped_by(self) -> str:
        """What ends the job on this host, for the others: a limit or a signal; "": neither."""
        supervisor = self.run.supervisor
        if supervisor.limits.reached:
            option = supervisor.limits.reached.replace("hang", "hang_timeout")
            return tr("its --{option} is reached", option=option)
        if supervisor.stopping.signal:
            return tr("SIG{signal} has stopped its launcher", signal=supervisor.stopping.signal)
        return ""

    def _stop(self, status: int, text: str) -> None:
        """A signal or a limit ends the job on this host, so it ends on all."""
        self._told = self._stop_told = True
        self._say(f"stop {status} {text}")

    # ---- what it hears ---------------------------------------------------------------------------------------------

    def heard(self, event: Heard) -> None:
        word, _, rest = event.line.partition(" ")
        number, _, more = rest.partition(" ")
        if word == "say" and event.feature == self.name:
            self.run.say(rest)
        elif word == "moved":
            self._moved(int(number), more)
        elif word == "begin":
            self._begun = int(number)
        elif word == "restart":
            self._vain = int(more)
        elif word == "over":
            self._over(*more.split(" ", 1))
        elif word in (AGAIN, END):
            status, _, more = more.partition(" ")
            host, _, text = more.partition(" ")
            self._judged(word, int(number), int(status), host, text)

    def _judged(self, verdict: str, number: int, status: int, host: str, text: str) -> None:
        """The attempt, or the job, has ended on all hosts, because of `host`.

        If this host failed by itself it has its own message, and its own exit code.
        """
        if self._verdict == END or (verdict != END and number != self._number):
            return
        if verdict == END and self._verdict == AGAIN and self._told:
            self._early = number, status, host, text  # our failure does not end the job: this does
            return
        self._verdict = verdict
        if self._told:
            return
        self._status = status
        if not status:
            return
        self._host = host
        supervisor = self.run.supervisor
        if supervisor.members.ranks_left:
            said = tr("{host}: {text}; stopping the ranks of this host", host=host, text=text)
        else:
            said = f"{host}: {text}"
        self.run.say(colours.styled(said, colours.FAILURE))
        if supervisor.stopping.running:
            supervisor.stopping.begin(asks=status in ASKING)

    def _over(self, vain: str, why: str) -> None:
        """The host of rank 0 has found that another restart would not help."""
        if self._verdict == END:
            return
        self._verdict, self._vain, self._why = END, int(vain), why
        self.run.say(colours.styled(clauses(why, tr("the job ends")), colours.FAILURE))

    def _moved(self, status: int, text: str) -> None:
        """An operator moves the job, so it ends on all hosts."""
        if self._verdict == END:
            return
        if self._is_open():
            self._stop(status, text)
        self._told = False  # the verdict is none of another host, but holds in the same way
        self._judged(END, self._number, status, tr("rank table"), text)
        self._told = True

    def check(self) -> None:
        """Ends the job on this host if the process next to us was killed; wakes it if it was stopped."""
        if self._beside is None or self._verdict == END:
            return
        if self._beside.lives():
            self._beside.wake()
        else:
            text = tr("the process that speaks with the other hosts was killed")
            self._judged(END, self._number, KILLED, self.run.voice.name, text)
