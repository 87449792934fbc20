"""The user's request: the checked values from tools/command/command.py, as one typed record."""

from __future__ import annotations

import re

from hccl_tools.check.rules import GENERATIONS
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import one_line
from hccl_tools.machine import host
from tools.launch.engines import ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Optional, TypeVar

    T = TypeVar("T")
    # Where a field comes from.  `from_words` reads the field's source and type from its annotation.
    Script = Annotated[T, "the script"]
    Host = Annotated[Optional[T], "the user, else this host"]
    Option = Annotated[Optional[T], "an option of the user"]
    Flag = Annotated[bool, "an option of the user, without a value"]
    Argument = Annotated[Optional[T], "an argument of the user"]
    TrainerWords = Annotated[tuple[str, ...], "the user's words after --"]

MAX_RANKS = 1 << 16
MAX_PROCESS_ID = 1 << 22
HOST_RANKS = (1, 2, 4, 8)  # groups of devices that one host has

# The numbers that a field can hold; without an entry: 1 to MAX_RANKS.
BOUNDS = {
    "job_pid": (1, MAX_PROCESS_ID),
    "lock_fd": (0, MAX_RANKS),
    "node_rank": (0, MAX_RANKS),
    "rank_start": (0, MAX_RANKS),
    "max_restarts": (0, 10**8),
    "restart_limit": (0, 10**8),
    "attempt": (1, 10**8),
    "master_port": (ports.LEAST, ports.MOST),
    "pod_wait": (0, 10**6),
    "sim_level": (0, 3),
    "sim_rank_id": (0, MAX_RANKS),
}


class Request(Record):
    """One launch as the user typed it.  Omitted values are None, False or empty."""

    script: Script[str]  # its name, for messages and the run folder
    console: Option[str] = None  # as Settings has it
    typed: Script[str] = ""  # the command line, as a shell reads it; empty: it is too long to be kept
    defaults: Script[str] = ""  # options of MSLAUNCH_OPTIONS that hold, as a shell reads them
    job_pid: Script[int]  # the launcher's process
    lock_fd: Script[int | None] = None  # the launcher's open file that holds the devices, see device_locks.py
    lock_file: Script[str] = ""  # its path
    engine: Script[str]  # the file of tools/engines that starts the ranks
    placement: Script[str | None] = None  # where the ranks are, if the engine does not tell: see plan.place
    default_config: Script[str | None] = None  # of scripts that can do without CONFIG
    script_devices: Script[str] = ""  # the devices that a script without RANK_SIZE is for
    device_num: Script[int | None] = None  # DEVICE_NUM of the script's tutorial; None: the ranks of a host
    max_restarts: Script[int] = 0  # how often in a row the launcher may start the ranks again without progress
    restart_limit: Script[int] = 0  # and how often in all
    attempt: Script[int | None] = None  # the number of the restart that the plan is for; None: the first attempt
    run_dir: Script[str] = ""  # of a restart: the folder of its run
    lost: Script[str] = ""  # of a restart: the hosts that are lost, with commas between them; see spares.py
    quoted: Script[bool] = False  # the program is one text, which is split as a shell splits words
    alone: Script[bool] = False  # one rank, which does not join a job
    ranks_file: Script[str] = ""  # --zoo: the shell file with what each rank runs, which goes into the run's folder
    ranks_source: Script[str] = ""  # the Python file that they run
    chip: Host[str] = None  # the generation whose rules hold for devices and rank tables; None: those of all

    # the script's, unless the user names another
    device_target: Script[str]  # "Ascend", "GPU" or "CPU"
    target_is_argument: Script[bool] = False  # and no option
    target_found: Script[bool] = False  # nobody named it: it is what this machine has
    config: Script[str | None] = None

    data_path: Argument[str] = None
    rank_size: Argument[int] = None
    rank_start: Argument[int] = None
    rank_table_file: Argument[str] = None
    hosts: Argument[str] = None
    program: Script[bool] = False  # trainer_arguments is a program with its words, instead of a trainer's
    trainer_arguments: TrainerWords = ()

    devices: Option[str] = None
    exclude: Option[str] = None  # see devices/excluded.py
    generation: Option[str] = None  # as typed; see chip
    rank_table: Option[str] = None
    hccn_conf: Option[str] = None
    restart_args: Option[str] = None
    keep_plogs: Option[str] = None  # failed, all or none
    resume: Option[str] = None  # the folder of a run or of checkpoints, or "newest"
    train_script: Option[str] = None
    pytest: Option[str] = None
    log_dir: Option[str] = None
    straggler: Option[str] = None  # see monitored.py, and metrics, too
    metrics: Option[str] = None
    quiet: Flag = False
    watch_plogs: Flag = False
    wait_for_devices: Flag = False
    no_check: Flag = False
    preflight: Flag = False
    no_sink: Flag = False
    dry_run: Flag = False
    bind_core: Option[str] = None  # "1", or a map: see devices/binding_maps.py
    bind_numa: Option[str] = None
    per_rank_words: Flag = False  # see programs/rank_words.py
    rank_folder: Flag = False  # see rank_folders.py
    rank_files: Option[str] = None
    import_once: Option[str] = None  # see programs/import_once.py

    # of engines
    hostfile: Option[str] = None  # run_mpirun_2.sh: an argument
    n: Option[int] = None
    npernode: Option[int] = None
    output_filename: Option[str] = None
    ssh: Option[str] = None
    network: Option[str] = None
    worker_num: Option[int] = None
    local_worker_num: Option[int] = None
    master_addr: Option[str] = None
    master_port: Option[int] = None
    node_rank: Option[int] = None
    ntasks_per_node: Option[int] = None
    sim_level: Option[int] = None  # see environment.py
    sim_rank_id: Option[int] = None
    worker_log_name: Option[str] = None  # see run_folder.py
    pod_wait: Option[int] = None  # seconds
    table_dir: Option[str] = None
    table_hosts: Option[str] = None  # of a rank table of version 2.0
    spare: Option[int] = None  # the last so many hosts stand by
    min_ranks: Option[int] = None  # with fewer a job that has lost a host ends

    @classmethod
    def from_words(cls, words: list[str]) -> Request:
        """The Request of ``KEY=VALUE ... -- WORD ...``; a later KEY replaces an earlier one.  Raises Refusal."""
        split = words.index("--")
        texts = {name: text for name, _, text in (word.partition("=") for word in words[:split])}
        values = {name: _value(name, text, texts) for name, text in texts.items() if (name, text) != ("lock_fd", "")}
        values["device_target"] = _device_target(texts)
        values["target_found"] = not texts["device_target"]
        values["chip"] = _chip(texts.get("generation"))
        own = words[split + 1 :]
        if "quoted" in texts and own:
            own = split_words(own[0], tr("the quoted command"))
        return cls(**values, trainer_arguments=tuple(own))


def _value(name: str, text: str, texts: dict[str, str]) -> Any:
    """The value of one field, of the type that its annotation names."""
    source, _, kind = Request.__annotations__[name].partition("[")
    if source == "Flag" or kind == "bool]":
        return text != ""  # the user can take back a flag: --bind_core=False
    if not kind.startswith("int"):
        if text == "-" and name in ("rank_table", "rank_table_file"):
            _refuse_stdin("--rank_table" if source == "Option" else name.upper())
        return text
    least, most = BOUNDS.get(name, (1, MAX_RANKS))
    number = whole_number(text, least, most)
    if name == "rank_size" and texts.get("placement") != "server" and number not in HOST_RANKS:
        raise misused("RANK_SIZE {text}: write {choices}", text=one_line(text), choices=_any_of(HOST_RANKS))
    if number is None:
        typed = name.upper() if source == "Argument" else f"--{name}" if len(name) > 1 else f"-{name}"
        digits, joined, option = text.partition("--")
        if digits.isdigit() and joined:  # as some public command lines have it
            raise misused(
                "{typed} {text} is not a number; a blank is missing before {option}",
                typed=typed,
                text=one_line(text),
                option=one_line(joined + option),
            )
        raise misused(
            "{typed} {text} is not a number from {least} to {most}",
            typed=typed,
            text=one_line(text),
            least=least,
            most=most,
        )
    return number


def _refuse_stdin(typed: str) -> None:
    """A rank table of the tools may come by a pipe, that of a launch not."""
    raise misused(
        "{typed} -: every rank reads the table, so it cannot come from standard input; save it first and name the "
        "file: cat >hccl.json",
        typed=typed,
    )


def _device_target(texts: dict[str, str]) -> str:
    """Ascend, GPU or CPU, however it was written; scripts that name devices or take RANK_SIZE start none on GPUs."""
    fixed = texts["engine"] == "local" and ("rank_size" in texts or texts.get("script_devices"))
    known = ("Ascend", "CPU") if fixed else ("Ascend", "GPU", "CPU")
    typed = texts["device_target"]
    if not typed:
        return found_target()
    for target in known:
        if typed.lower() == target.lower():
            return target
    others = tr("{items} and {last}", items=", ".join(known[:-1]), last=known[-1])
    text = tr(
        "{name} {typed}: {script} takes {targets}",
        name="DEVICE_TARGET" if "target_is_argument" in texts else "--device_target",
        typed=one_line(typed),
        script=texts["script"],
        targets=others,
    )
    if typed.lower() == "gpu":
        text += tr("; for GPUs: scripts/run_gpu.sh")
    raise Refusal(USAGE, text)


def found_target() -> str:
    """What this machine has: NPUs, otherwise GPUs, otherwise only processors."""
    if host.devices():
        return "Ascend"
    from hccl_tools.machine import programs, visible

    if not programs.on_path("nvidia-smi") or visible.hides_all_gpus():
        return "CPU"
    return "CPU" if programs.ask(["nvidia-smi", "-L"], 30).status else "GPU"


def _chip(asked: str | None) -> str | None:
    """The generation whose rules hold: the one that is named, otherwise this host's, as for the rank-table tools."""
    if asked not in (None, "any", *GENERATIONS):
        raise misused(
            "--generation {text}: write {choices}", text=one_line(asked), choices=_any_of((*GENERATIONS, "any"))
        )
    return host.chosen_generation(asked)[0]


def _any_of(items: tuple[object, ...]) -> str:
    """``1, 2 or 4``."""
    return tr("{items} or {last}", items=", ".join(map(str, items[:-1])), last=items[-1])


def split_words(text: str, what: str) -> list[str]:
    """The words of the text, which is `what` for messages; at least one.  Raises Refusal."""
    import shlex  # few launches need it

    lines_joined = re.sub(r"\\(.)", lambda pair: "" if pair[1] == "\n" else pair[0], text, flags=re.DOTALL)
    try:
        words = shlex.split(lines_joined)
    except ValueError as error:
        reason = tr("a quote is not closed") if "quot" in str(error) else tr("nothing follows its last backslash")
        raise Refusal(USAGE, f"{what}: {reason}: {one_line(text)}") from error
    if not words:
        raise misused("{what} has no word in it", what=what)
    return words
