"""Turns a fork of the parent into a rank: its log, its cores, its environment, its arguments, and its random state.

Like sitecustomize.py, this file imports only what Python has already loaded.
"""

import os
import sys

CANNOT_START = 78
END_OF_LOG = 1 << 16  # bytes of what the imports have printed that a rank's log gets
LIBRARIES = ("mindspore", "numpy")  # they know what they set
TAKER = ("mindspore.communication.management", "_set_rank_from_mpi")  # reads the numbers of Open MPI at the import


def write(descriptor: int, text: bytes) -> None:
    """Writes all of it, unless the disk is full."""
    try:
        while text:
            text = text[os.write(descriptor, text) :]
    except OSError:
        return


class Memory:
    """The memory where the kernel shows others the command and the environment of this process.

    The variables of the parent alone are the last ones.  They leave room for those of a rank.
    """

    def __init__(self, first: bytes) -> None:
        """first: the first of those variables."""
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        self.words, self.words_end, self.environment, self.end = map(int, fields[45:49])
        with open("/proc/self/environ", "rb") as file:
            self.environment += file.read().index(b"\0" + first + b"=") + 1

    def show(self, words: bytes, variables: bytes) -> None:
        """Shows the rank's command; without the right, or without room, others see the parent's."""
        try:
            with open("/proc/self/mem", "r+b", buffering=0) as memory:
                texts = [(self.environment, self.end, variables)]
                texts += [(self.words, self.words_end, words)] if words else []
                for begin, end, text in texts:
                    if 0 < begin < end and len(text) <= end - begin:
                        memory.seek(begin)
                        memory.write(text.ljust(end - begin, b"\0"))
        except OSError:
            return


def take_streams(log: bytes) -> None:
    """Makes the log stdout and stderr of this process; the output of the imports comes first."""
    sys.stdout.flush()
    with open("/proc/self/fd/1", "rb") as file:
        printed = file.read(END_OF_LOG)
    own = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(own, 1)
    os.dup2(own, 2)
    os.close(own)
    write(1, printed)


def take_words(words: list[str]) -> None:
    """Sets the arguments of the command, if they differ from rank to rank."""
    own = len(sys.argv) - 1
    sys.argv[1:] = words[len(words) - own :]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = words


def take_seeds() -> None:
    """Renews what an import made random or bound to the process; Python's `random` reseeds itself in each fork."""
    if "threading" in sys.modules:
        sys.modules["threading"].current_thread()._set_native_id()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(32)


def by_taker(frame: object) -> bool:
    """Whether that function reads a variable, below os and the classes of mappings."""
    while frame and frame.f_globals.get("__name__") in ("os", "_collections_abc", "collections.abc"):  # type: ignore[attr-defined]
        frame = frame.f_back  # type: ignore[attr-defined]
    return bool(frame) and (frame.f_globals.get("__name__"), frame.f_code.co_name) == TAKER  # type: ignore[attr-defined]


def take_numbers() -> None:
    """Makes MindSpore read Open MPI's rank numbers again: the parent did not have them when it imported MindSpore."""
    module, name = TAKER
    if module in sys.modules:
        getattr(sys.modules[module], name, lambda: None)()


def take_device(fault: str) -> None:
    """Gives MindSpore the rank's DEVICE_ID now, because MindSpore reads it at its import.

    fault: what to say if it does not take it; empty: that is not asked, because the program may change it only before.
    """
    number, mindspore = os.environ.get("DEVICE_ID", ""), sys.modules.get("mindspore")
    if mindspore is None or not hasattr(mindspore, "context") or not (number.isascii() and number.isdigit()):
        return
    mindspore.context._context().set_device_id(int(number))
    if fault and mindspore.get_context("device_id") != int(number):
        write(2, os.fsencode(fault + "\n"))
        os._exit(CANNOT_START)


def tell_late(line: str, beginnings: tuple[bytes, ...]) -> None:
    """From now on, states this when the program sets a variable that a module has read at its import, once of each.

    beginnings: of the names of such variables; a whole name ends with "=".
    """
    told: set[bytes] = set()

    def heard(event: str, values: tuple) -> None:  # type: ignore[type-arg]
        if event == "os.putenv" and (values[0] + b"=").startswith(beginnings):
            name, value = values
            libraries = {sys._getframe(depth).f_globals.get("__name__", "").partition(".")[0] for depth in (1, 2)}
            if name not in told and os.environb.get(name) != value and not libraries & set(LIBRARIES):
                told.add(name)
                write(2, os.fsencode(line.replace("NAME", os.fsdecode(name)) + "\n"))

    sys.addaudithook(heard)


def become(rank: dict, orders: dict, memory: Memory, gate: int) -> None:  # type: ignore[type-arg]
    """Makes this fork the rank, as soon as the launcher knows it."""
    take_streams(rank["log"])
    if rank["cores"]:
        os.sched_setaffinity(0, rank["cores"])
    for name, value in rank["own"].items():
        os.environb[name] = value
    if rank["words"]:
        take_words([os.fsdecode(word) for word in rank["words"]])
    memory.show(
        b"".join(word + b"\0" for word in rank["words"] or ()),
        b"".join(b"%s=%s\0" % (n, os.environb[n]) for n in (b"PYTHONPATH", *rank["own"]) if n in os.environb),
    )
    take_seeds()
    take_numbers()
    take_device(orders["no_device"])
    if orders["frozen"]:
        tell_late(orders["late"], tuple(orders["frozen"]))
    if os.read(gate, 1) != b"g":  # the launcher is gone, or has ended the job
        os._exit(CANNOT_START)
    os.close(gate)
