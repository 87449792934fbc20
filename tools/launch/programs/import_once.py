"""--import_once: decides whether the ranks of a launch can be forks of one process, and what that process imports.

A launch whose ranks cannot be forks starts them in the usual way, and reports the reason.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import misused, refused
from hccl_tools.common.words import one_line, short_path
from hccl_tools.machine import programs
from tools.launch.programs import command_words, rank_words, sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.devices.binding import Binding
    from tools.launch.job import Job
    from tools.launch.request import Request

AUTO, FORCE = "auto", "force"  # instead of a module
FORKING = ("local", "mpirun", "srun")  # engines with a process of ours on each host
SAFE = ("numpy", "mindspore")  # known to be safe, in the order of their import
HOOK = project.path("tools", "forking", "hook")  # first in the parent's PYTHONPATH
_HIDES = "EIS"  # options with which Python does not look there for sitecustomize
_IMPORT = re.compile(
    rb"^(?:from[ \t]+(?P<base>(?:%(safe)s)[.\w]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n]*)"
    rb"|import[ \t]+(?P<plain>[^\n]*))" % {b"safe": "|".join(SAFE).encode()},
    re.MULTILINE,
)
_THREADS = ("OMP_", "GOMP_", "GOTO", "OPENBLAS_")  # of the libraries that compute
# From these, mindspore.communication.management sets RANK_ID, DEVICE_ID, RANK_SIZE and its own device, in one
# function.  No native code reads them at the import.
OF_MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE")
# Variables that a module reads when it is imported, so that ranks which import once share one value of each:
# module -> the beginnings of names; one that is whole ends with "=".
# Traced in MindSpore 2.10 and NumPy 1.26: calls of getenv(3), and reads of os.environ.  MindSpore does not read
# MS_ROLE, MS_NODE_ID, MS_SCHED_*, RANK_TABLE_FILE, PMIX_* and SLURM_* at that time, and RANK_ID only for its log.
TABLE: dict[str, tuple[str, ...]] = {
    "mindspore": (
        *("DEVICE_ID=", "GLOG_", "GOOGLE_", "VLOG_v=", "logger_", "MS_SUBMODULE_LOG_v=", "MS_SIMULATION_LEVEL="),
        *("MS_DEV_LAUNCH_BLOCKING=", "MS_DEV_DISABLE_AUTO_H2D=", "MS_CACHE_", "MS_AUTO_DYNAMIC_SHAPE_ENABLE="),
        *("ACC_", "CUDA_HOME=", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=", *_THREADS),
        *(f"{name}=" for name in OF_MPI),
    ),
    "numpy": (*_THREADS, "NPY_", "GFORTRAN_", "NUMPY_"),
}
OF_PYTHON = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG")  # read at the start of every process
TAKEN_ANEW = ("DEVICE_ID", *OF_MPI)  # each fork tells MindSpore its own: see hook/forked_rank.py
_SET = re.compile(rb"(?:environb?\s*\[\s*|putenv\s*\(\s*|setdefault\s*\(\s*)b?[\"'](\w+)[\"']\s*(?:\]\s*=(?!=)|,)")


class Imports(Record):
    """The modules that the parent of the ranks imports.

    modules: (name, whether it must be there); program: the path of the ranks' file; empty: their command has -m.
    forced: also on NPUs and GPUs, where each rank then asks MindSpore for its device.
    """

    modules: list[tuple[str, bool]]
    program: str
    forced: bool

    def names(self) -> list[str]:
        """The names of the modules."""
        return [name for name, _ in self.modules]

    def word(self) -> str:
        """The text for agents, see `read`."""
        names = (name if needed else f"?{name}" for name, needed in self.modules)
        return "\n".join([FORCE if self.forced else AUTO, " ".join(names), self.program])


def read(word: str) -> Imports:
    """Parses the text that `Imports.word` has written."""
    forced, names, program = word.split("\n", 2)
    modules = [(name.lstrip("?"), not name.startswith("?")) for name in names.split()]
    return Imports(modules=modules, program=program, forced=forced == FORCE)


def check(request: Request) -> None:
    """Raises Refusal for what this command line cannot mean."""
    named, words = _named(request)
    wrong = [name for name in named if not all(part.isidentifier() for part in name.split("."))]
    if wrong:
        raise misused(
            "--import_once={name}: is not the name of a module; write names with commas between them, such as"
            " --import_once=numpy,mindspore",
            name=one_line(wrong[0]),
        )
    if request.engine not in FORKING:
        raise misused(
            "--import_once: {engine} starts the ranks, and each imports for itself; leave the option out",
            engine=request.engine,
        )
    if request.device_target != "CPU" and FORCE not in words:
        raise refused(
            "--import_once: nobody has tried it with {target}, whose libraries may keep the device of the first"
            " process; leave it out, or try it with --import_once=force",
            target="NPUs" if request.device_target == "Ascend" else "GPUs",
        )


def _named(request: Request) -> tuple[list[str], list[str]]:
    """(the modules that the user names, all words of the option)."""
    words = (request.import_once or "").split(",")
    return [word for word in words if word not in (AUTO, FORCE)], words


def choose(request: Request, job: Job, binding: Binding | None) -> tuple[Imports | None, list[str]]:
    """(what is imported once, remarks)."""
    named, words = _named(request)
    if why := _why_not(request, job, binding):
        return None, [without(why)]
    kind, path, _ = command_words.python_parts(job.words[1:])
    source = path if kind == "file" else str(job.source)
    texts = list(sources.contents(source))
    modules = [(name, True) for name in named]
    if not named or AUTO in words:
        modules += [pair for pair in _of_program(job, texts) if pair[0] not in named]
    if not modules:
        why = tr(
            "{program} imports neither MindSpore nor NumPy in its own lines; name modules: --import_once=NAME,NAME",
            program=one_line(short_path(source)),
        )
    why = why or _sets_variables(texts, [name for name, _ in modules])
    if why:
        return None, [without(why)]
    return Imports(modules=modules, program=path if kind == "file" else "", forced=FORCE in words), []


def without(why: str) -> str:
    """The line for the user when each rank imports for itself."""
    return tr("note: --import_once: {why}; each rank imports for itself", why=why)


def _why_not(request: Request, job: Job, binding: Binding | None) -> str:
    """Why the ranks cannot be forks, whatever is imported; empty: they can."""
    words = job.words
    if not words or not _is_our_python(words[0]):
        return tr("{program} is not this launcher's Python", program=one_line(words[0] if words else "-"))
    kind, path, before = command_words.python_parts(words[1:])
    if not kind or (kind == "module" and not job.source):
        return tr("the ranks do not run a file or a module of Python")
    if any(set(word) & set(_HIDES) for word in words[1:before] if re.fullmatch("-[A-Za-z]+", word) and word != "-m"):
        return tr("the options {options} of Python hide sitecustomize", options=one_line(" ".join(words[1:before])))
    if request.rank_folder or request.rank_files is not None:
        return tr("with --rank_folder each rank runs another copy of the program")
    if request.per_rank_words and rank_words.has_any(path):
        return tr("--per_rank_words gives each rank another program")
    if ":" in HOOK:
        return tr("the path of this project has a colon, which PYTHONPATH cannot have")
    if binding and len({len(list(cores)) for cores in binding.cores.values()}) > 1:
        return other_cores()
    if binding and len({tuple(nodes) for nodes in binding.memory.values()}) > 1:
        return other_memory()
    return ""


def other_cores() -> str:
    """The reason: the ranks have different numbers of cores."""
    return tr("the ranks are bound to different numbers of cores, and libraries size their threads at the import")


def other_memory() -> str:
    """The reason: the memory of the ranks is on different nodes."""
    return tr("the memory of the ranks is on different NUMA nodes")


def _is_our_python(program: str) -> bool:
    """Whether the program is the interpreter that runs this: the same file, of the same environment."""
    found = program if "/" in program else programs.find(program) or program
    same = os.path.realpath(found) == os.path.realpath(sys.executable)
    return same and os.path.dirname(os.path.abspath(found)) == os.path.dirname(os.path.abspath(sys.executable))


def _of_program(job: Job, texts: Sequence[tuple[str, bytes]]) -> list[tuple[str, bool]]:
    """(module, whether it must be there) of what the program and its own files import of `SAFE` in whole lines."""
    found = {"numpy": False, "mindspore": True} if job.needs_mindspore else {}
    for _, text in texts:
        for match in _IMPORT.finditer(text):
            base = (match["base"] or b"").decode("ascii", "replace")
            names = sources.names_in(match)
            for name in [base, *(f"{base}.{name}" for name in names)] if base else names:
                if name.partition(".")[0] in SAFE and all(part.isidentifier() for part in name.split(".")):
                    found[name.partition(".")[0]] = True
                    found.setdefault(name, False)
    return sorted(found.items(), key=lambda pair: (SAFE.index(pair[0].partition(".")[0]), pair[0]))


def _sets_variables(texts: Sequence[tuple[str, bytes]], modules: Sequence[str]) -> str:
    """Why not: the program sets a variable by itself that one of the modules reads at its import."""
    begins = beginnings(modules)
    for path, text in texts if begins else ():
        if name := set_in(text, begins):
            return tr(
                "{path} sets {name}, which is read at the import", path=one_line(short_path(path)), name=one_line(name)
            )
    return ""


def beginnings(modules: Iterable[str]) -> tuple[str, ...]:
    """The beginnings of the names that these modules read; MindSpore imports NumPy."""
    roots = {module.partition(".")[0] for module in modules}
    if "mindspore" in roots:
        roots.add("numpy")
    return tuple(dict.fromkeys(begin for root in sorted(roots) for begin in TABLE.get(root, ())))


def is_read(name: str, begins: tuple[str, ...]) -> bool:
    """Whether a variable of this name is one of those."""
    return f"{name}=".startswith(begins)


def set_in(text: bytes, begins: tuple[str, ...]) -> str:
    """The first such variable that this source sets by itself; empty: none."""
    names = (match[1].decode() for match in _SET.finditer(text))
    return next((name for name in names if is_read(name, begins)), "")


def differing(owns: Sequence[Mapping[bytes, bytes]], begins: tuple[str, ...]) -> str:
    """The first such variable that differs between ranks, and that a fork cannot set again; empty: none.

    owns: what each rank has besides the job's part.
    """
    for name in sorted({name for own in owns for name in own}):
        text = name.decode("utf-8", "replace")
        if is_read(text, (*begins, *OF_PYTHON)) and text not in TAKEN_ANEW and len({own.get(name) for own in owns}) > 1:
            return text
    return ""


def names_log(environment: Mapping[bytes, bytes], modules: Iterable[str]) -> str:
    """The variable with which MindSpore makes a file for its log at the import, named by the rank; empty: none is set.

    Then its native code reads RANK_ID, which the hook cannot see.
    """
    wanted = any(module.partition(".")[0] == "mindspore" for module in modules)
    return "GLOG_logtostderr=0" if wanted and environment.get(b"GLOG_logtostderr") == b"0" else ""
