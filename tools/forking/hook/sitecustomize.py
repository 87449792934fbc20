"""Runs in the parent of ranks that import once: Python's `site` imports it at the start of the ranks' command.

The parent is started with the command of a rank and with this folder first in PYTHONPATH.  After the imports and the
fork, Python continues in each fork as in any start, and the program cannot see a difference.  For the same reason this
file imports only what Python has already loaded, and leaves nothing behind. tools/forking/importing.py is its other
end, and defines the form of the orders and of the lines that it receives.
"""

import marshal
import os
import sys

HAD_COLLECTOR = "gc" in sys.modules
import gc

import forked_rank  # next to this file; nothing else may find it

CANNOT_START, INTERRUPTED = 78, 130
HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
LONGEST = 300  # characters of the reason why the ranks cannot be forks


class Reads(dict):  # type: ignore[type-arg]
    """The environment while modules are imported: it notes who asks for a variable that each rank has for itself."""

    def __init__(self, found: "dict[bytes, bytes]", own: "frozenset[bytes]", anew: "frozenset[bytes]") -> None:
        """own: the names of those variables; anew: those of which forked_rank.py tells MindSpore the rank's own."""
        super().__init__(found)
        self.own, self.anew = own, anew
        self.read: list[bytes] = []

    def __getitem__(self, name: bytes) -> bytes:
        self.note(name)
        found: bytes = super().__getitem__(name)
        return found

    def __contains__(self, name: object) -> bool:
        self.note(name)
        return super().__contains__(name)

    def get(self, name: bytes, default: object = None) -> object:
        self.note(name)
        return super().get(name, default)

    def note(self, name: object) -> None:
        if name in self.own and not (name in self.anew and forked_rank.by_taker(sys._getframe(2))):
            self.read.append(name)


def set_environment(found: dict) -> None:  # type: ignore[type-arg]
    """Makes this dict the one behind os.environ."""
    for environment in (os.environ, os.environb):
        environment.__dict__["_data"] = found


def step_aside(before: "bytes | None") -> None:
    """Hides this folder and this file; before: the PYTHONPATH of the ranks, None: it is not set."""
    folder = os.path.dirname(__file__)
    sys.path[:] = [path for path in sys.path if path != folder]
    sys.path_importer_cache.pop(folder, None)
    if before is None:
        os.environb.pop(b"PYTHONPATH", None)
    else:
        os.environb[b"PYTHONPATH"] = before
    del sys.modules[__name__], sys.modules[forked_rank.__name__]
    if not HAD_COLLECTOR:
        del sys.modules["gc"]
    try:
        import sitecustomize  # noqa: F401 - the user's, or the system's
    except ImportError as error:
        if error.name != __name__:
            raise
        # The import that has begun takes the module of this name out of sys.modules and puts it back.
        __spec__.name = "site"


# ---- imports ---------------------------------------------------------------------------------------------------------


def threads() -> int:
    """The number of threads; those that end at a fork, and begin again in the fork, do not count."""
    found = len(os.listdir("/proc/self/task"))
    if found > 1:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        found = len(os.listdir("/proc/self/task"))
    return found


def children() -> "list[bytes]":
    """The processes that this one has started."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return file.read().split()
    except OSError:
        return []  # this kernel does not list them


def descriptors() -> "dict[tuple[str, int, int], str]":
    """{(descriptor, device, inode): what is open there}, of those that forks must not share."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{name}")
            with open(f"/proc/self/fdinfo/{name}", "rb") as file:
                flags = next(int(line.split()[1], 8) for line in file if line.startswith(b"flags:"))
            about = os.fstat(int(name))
        except OSError:
            continue  # that of the folder itself
        is_file = path.startswith("/") and not path.startswith("/dev/")
        if path not in HARMLESS and not (is_file and flags & os.O_ACCMODE == os.O_RDONLY):
            found[name, about.st_dev, about.st_ino] = path
    return found


def first_path(program: str) -> str:
    """Python's first entry in sys.path for this file, or for -m if it is empty; empty: none, as with its -P."""
    if getattr(sys.flags, "safe_path", False):
        return ""
    return os.path.dirname(os.path.realpath(program)) if program else os.getcwd()


def imported(module: str, needed: bool) -> str:
    """Imports the module; returns why it cannot be, or ""."""
    try:
        __import__(module)
    except ModuleNotFoundError as error:
        if needed or error.name != module:
            return f"error {module} {type(error).__name__}: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, too: the program is to meet it
        return f"error {module} {type(error).__name__}: {error}"
    return ""


def shared(module: str, before: "dict[tuple[str, int, int], str]", environment: Reads) -> str:
    """Objects of the import that forks cannot share, or ""; before: the descriptors before it."""
    if environment.read:
        return f"variable {module} {os.fsdecode(environment.read[0])}"
    if (number := threads()) > 1:
        return f"threads {module} {number - 1}"
    if found := children():
        return f"children {module} {len(found)}"
    opened = [path for key, path in descriptors().items() if key not in before]
    return f"open {module} {opened[0]}" if opened else ""


def import_all(orders: dict, tells: int) -> str:  # type: ignore[type-arg]
    """Imports the modules, and tells each before; returns why the ranks cannot be forks, or ""."""
    environment = Reads(
        os.environ.__dict__["_data"],
        frozenset(name for rank in orders["ranks"] for name in rank["own"]),
        frozenset(orders["anew"]),
    )
    before = descriptors()
    set_environment(environment)
    path = first_path(orders["program"])
    if path:
        sys.path.insert(0, path)
    collects = gc.isenabled()
    gc.disable()  # what is imported stays
    why = ""
    for module, needed in orders["modules"]:
        forked_rank.write(tells, f"imports {module}\n".encode())
        why = imported(module, needed) or shared(module, before, environment)
        if why:
            break
    if collects:
        gc.enable()
    if path in sys.path[:1]:
        del sys.path[0]
    set_environment(dict(environment))
    return why


# ---- the parent ------------------------------------------------------------------------------------------------------


def lead_group(pid: int) -> None:
    """Gives this process, or a fork of it, its own process group; 0: this process."""
    try:
        os.setpgid(pid, pid)
    except OSError:
        return  # the fork has ended


def fork() -> "tuple[int, int]":
    """(the process id of a fork whose parent is the launcher, its exit status or 0); in the fork (0, 0).

    It is the child of a process between, which ends at once: the launcher is the nearest subreaper.
    Without a process id the status is that of the process between.  Raises OSError: there may be no more processes.
    """
    out, told = os.pipe()
    try:
        between = os.fork()
    except OSError:
        os.close(out)
        os.close(told)
        raise
    if between:
        os.close(told)
        number = os.read(out, 16)
        os.close(out)
        status = os.waitpid(between, 0)[1]
        return int(number or b"0"), 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    try:
        rank = os.fork()
    except OSError:
        os._exit(CANNOT_START)
    lead_group(rank)  # both do it, so that it is done when the rank is known
    if rank:
        forked_rank.write(told, b"%d" % rank)
        os._exit(0)
    os.close(out)
    os.close(told)
    return 0, 0


def run(text: str) -> None:
    """Imports, and forks the ranks; returns in each of them."""
    orders_at, tells, gate = map(int, text.split(",")[:3])
    with open(orders_at, "rb") as file:
        orders = marshal.loads(file.read())
    for descriptor in (tells, gate):
        os.set_inheritable(descriptor, False)
    memory = forked_rank.Memory(b"PYTHONPATH")
    step_aside(orders["python_path"])
    why = import_all(orders, tells)
    if why:
        forked_rank.write(tells, b"without " + why.encode("utf-8", "replace").replace(b"\n", b" ")[:LONGEST] + b"\n")
        os._exit(0)
    sys.stdout.flush()
    gc.freeze()  # the collector would write into each object, and so copy all pages that the ranks share
    for rank in orders["ranks"]:
        try:
            pid, status = fork()
        except OSError:
            pid, status = 0, CANNOT_START
        if not pid and not status:
            os.close(tells)
            forked_rank.become(rank, orders, memory, gate)
            return
        word, number = (b"began", pid) if pid else (b"unstarted", status)
        forked_rank.write(tells, b"%s %s %d\n" % (word, rank["name"], number))
    os._exit(0)


def main() -> None:
    """Runs when `site` imports this file."""
    text = os.environ.pop("LAUNCH_IMPORTS", "")
    if not text:  # this PYTHONPATH has come to a process that is not ours
        step_aside(os.environb.get(b"PYTHONPATH"))
        return
    try:
        run(text)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except BaseException:  # `site` would state this, and go on with the program
        sys.excepthook(*sys.exc_info())
        os._exit(CANNOT_START)


main()
