"""A rank that trains nothing, but does what the round has drawn: python rank.py, with CHAOS_DO and CHAOS_OUT set.

CHAOS_DO is "0: sleep 0.3, exit 3; 1: wait", the actions of each rank by its number; without actions it exits with 0.
  sleep S          wait               exit N             kill NAME          stop, by SIGSTOP
  ignore NAME...   signals            close              its stdout and stderr
  fork KIND S      a child for S seconds that ignores SIGTERM: in the group, with a session, or a daemon
  write KIND N     N bytes of lines, bar (a progress bar), binary, or line (one that does not end)
  litter           files and folders in the log folder
  once ACTION      only in the first attempt, not after a restart
CHAOS_OUT gets rank_N.PID when the rank runs, and ended_N when it is about to end.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = {
    "lines": b"step 17, loss is 0.25\n",
    "bar": b"\r 42%|####      | 42/100 [00:01<00:02, 30.1it/s]",
    "binary": bytes(range(256)),
    "line": b"0123456789",
}


def main() -> None:
    """Does the actions of this rank, one after the other."""
    rank = os.environ["RANK_ID"]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a traceback of ours is not one of the launcher
    touch(f"rank_{rank}.{os.getpid()}")
    for line in os.environ["CHAOS_DO"].split(";"):
        number, _, actions = line.partition(":")
        if number.strip() == rank:
            for action in actions.split(","):
                act(rank, *action.split())
    touch(f"ended_{rank}")


def act(rank: str, verb: str = "", *words: str) -> None:
    """One action of the list above."""
    if verb == "once":
        if "RESUME" not in os.environ:
            act(rank, *words)
    elif verb in ("exit", "kill"):
        touch(f"ended_{rank}")
        END[verb](*words)
    elif verb:
        DO[verb](*words)


def touch(name: str) -> None:
    """The test reads which files are there."""
    with open(os.path.join(os.environ["CHAOS_OUT"], name), "w"):
        pass


def wait() -> None:
    while True:
        signal.pause()


def ignore(*names: str) -> None:
    for name in names:
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_IGN)


def close() -> None:
    os.close(1)
    os.close(2)


def fork(kind: str, seconds: str) -> None:
    """The rank goes on when what it leaves has its session and ignores SIGTERM: the verdict depends on that."""
    told, tells = os.pipe()
    if os.fork():
        os.close(tells)
        os.read(told, 1)
        os.close(told)
        return
    if kind != "group":
        os.setsid()
    if kind == "daemon" and os.fork():
        os._exit(0)
    ignore("TERM", "HUP")
    os.close(tells)
    time.sleep(float(seconds))
    os._exit(0)


def write(kind: str, size: str) -> None:
    """A trainer that does not mind when its log cannot be written."""
    text = TEXT[kind] * (int(size) // len(TEXT[kind]) + 1)
    try:
        for start in range(0, len(text), 65536):
            os.write(1, text[start : start + 65536])
    except OSError:
        pass


def litter() -> None:
    """What a trainer may leave in the folder of its logs."""
    folder = os.environ["LOG_DIR"]
    try:
        os.makedirs(os.path.join(folder, "rank_99.log", "summary"), exist_ok=True)
        os.mkfifo(os.path.join(folder, f"fifo {os.getpid()}"))
    except OSError:
        pass


def kill(name: str) -> None:
    number = getattr(signal, "SIG" + name)
    if name != "KILL":
        signal.signal(number, signal.SIG_DFL)  # Python ignores SIGPIPE
    os.kill(os.getpid(), number)


DO: dict[str, Callable[..., None]] = {
    "sleep": lambda seconds: time.sleep(float(seconds)),
    "wait": wait,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "ignore": ignore,
    "close": close,
    "fork": fork,
    "write": write,
    "litter": litter,
}
END: dict[str, Callable[..., None]] = {"exit": lambda status: os._exit(int(status)), "kill": kill}

if __name__ == "__main__":
    main()
