"""The module that ranks of chaos import once: CHAOS_IMPORT has what its import does, and CHAOS_OUT gets "importing".

CHAOS_IMPORT is "sleep 0.3" and then maybe ", " and: fail, exit N, thread, process, socket, file, or a line to print.
"""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

KEPT: list[object] = []  # open while the process lives


def main(actions: str) -> None:
    """Does what the round has drawn."""
    with open(os.path.join(os.environ["CHAOS_OUT"], "importing"), "w"):
        pass
    for action in actions.split(","):
        verb, *words = action.split() or [""]
        if verb == "sleep":
            time.sleep(float(words[0]))
        elif verb == "exit":
            sys.exit(int(words[0]))
        elif verb:
            KEPT.append(DO[verb]())


def fail() -> None:
    raise ValueError("drawn")


def thread() -> object:
    one = threading.Thread(target=threading.Event().wait, daemon=True)
    one.start()
    return one


DO = {
    "fail": fail,
    "thread": thread,
    "process": lambda: subprocess.Popen(["sleep", "0.5"]),
    "socket": socket.socket,
    "file": tempfile.TemporaryFile,
    "print": lambda: print("imported once", flush=True),
}

if "CHAOS_IMPORT" in os.environ:
    main(os.environ["CHAOS_IMPORT"])
