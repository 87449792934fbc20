"""One launch, planned: from what the user typed to one line a rank, or to what is wrong.

Runs once before every launch, so it starts quickly: what only a message needs is imported where the
message is made.  Messages go to stderr; the plan goes to stdout as pairs of NUL-terminated words
(scripts/lib/plan.sh reads them) and, unless --dry_run, to launch.json in the run's folder.
"""

import contextlib
import itertools
import json
import os
import sys
import time

from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.machine import host
from hccl_tools.table import rank_table
from tools.config import config_file as configs
from tools.config import modes
from tools.launch import device_check, device_locks, host_check, launch_table, placement
from tools.trainer import checkpoints, datasets

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
OWN_TRAINER = os.path.join(PROJECT, "tools", "train.py")


class FolderTaken(Exception):
    """A launch on another host, or in another container, made the run's folder first: its second and its process id
    are ours, and so is the folder for logs."""


class Plan:
    """What will be started; `remarks` are lines for the user once it is sure to start."""

    def __init__(self):
        self.run_dir = ""
        self.exports = {}
        self.ranks = []  # (rank, device), in rank order
        self.placement = None  # placement.Placement
        self.trainer = []
        self.scheduler = []
        self.table = None  # table_choice.Choice, or None: no rank table in this launch
        self.remarks = []


def main(arguments):
    """Prints the plan, or what is wrong; returns the exit code."""
    split = arguments.index("--")
    asked = dict(word.partition("=")[::2] for word in arguments[:split])
    script = asked["script"]
    asked["generation"] = host.generation() or asked.get("generation")  # the hardware knows better than the tutorials
    try:
        check_folder()
        check_limits()
        plan = begin(asked, arguments[split + 1 :])
    except Refusal as refusal:
        for line in refusal.lines:
            say(script, line)
        return refusal.status
    for remark in () if "quiet" in asked else plan.remarks:
        say(script, remark)
    sys.stdout.buffer.write(words(plan, asked))
    return 0


def say(script, line):
    """One line of the conversation, on stderr."""
    if sys.stderr is None:  # closed by the caller: nobody wants to know
        return
    with contextlib.suppress(OSError):
        sys.stderr.buffer.write(os.fsencode(f"{script}: {line}\n"))
        sys.stderr.buffer.flush()  # now: we may wait for devices next, and at the end nobody flushes (launch_plan.py)


def begin(asked, trainer_arguments):
    """The Plan; unless it is only to be printed, its devices are taken and its folder is made.  Raises Refusal."""
    while True:
        plan = make_plan(asked, trainer_arguments)
        if "dry_run" in asked:
            return plan
        take_devices(plan, asked)
        try:
            write_run(plan, asked)
            return plan
        except FolderTaken:
            pass  # the next plan is for another one


def make_plan(asked, trainer_arguments):
    """The Plan for the words that plan.sh passed on.  Raises Refusal."""
    plan = Plan()
    target = chosen_target(asked)
    asked["device_target"] = target
    if asked.get("placement") == "servers":
        asked["run_dir"] = run_folder(asked)  # where their table will be
    plan.placement = placement.place(asked)
    trainer = chosen_trainer(asked)
    check_data_path(asked)
    if "alone" in asked:
        trainer_arguments = with_setting(trainer_arguments, "system.distribute=False")
    config = read_config(
        asked["config"], trainer, trainer_arguments, asked.get("data_path") or os.environ.get("DATA_PATH")
    )
    alone = check_distribute(config, plan.placement.world)
    if is_own(trainer):
        check_parallel(config, plan.placement.world, target)
        if asked["engine"] == "local" and "dry_run" not in asked:  # elsewhere the data may be on other hosts
            refuse_problems(config, checkpoints.problems(configs.fill_defaults(config.data)))
            check_data(config, plan.placement.world)
    check_mindspore(trainer, target)
    plan.ranks = plan.placement.ranks
    devices = [device for _, device in plan.ranks]
    if "no_check" not in asked:
        check_devices(asked, target, plan.placement)
    plan.run_dir = asked.get("run_dir") or run_folder(asked)
    if plan.placement.table:
        plan.table = plan.placement.table
        plan.remarks.extend(plan.table.remarks)
    elif not alone and asked["engine"] == "local":
        plan.table = choose_table(asked, target, devices, plan)
        plan.ranks = plan.table.ranks
    plan.trainer = [
        os.environ.get("PYTHON") or sys.executable,
        "-u",
        trainer,
        "--config",
        asked["config"],
        *with_target(trainer_arguments, config, trainer, target),
    ]
    plan.exports = exports(asked, plan, target, alone)
    elsewhere = asked["engine"] == "local" and "scheduler_node" in plan.placement.engine
    if "MS_SCHED_PORT" in plan.exports and asked["engine"] != "msrun" and not elsewhere:
        plan.scheduler = [plan.trainer[0], "-u", os.path.join(PROJECT, "tools", "launch", "mindspore_scheduler.py")]
    return plan


# ---- what the user typed ---------------------------------------------------------------------------


def chosen_target(asked):
    """Ascend, GPU or CPU; our own shell starts no ranks on GPUs."""
    known = ("Ascend", "CPU") if asked["engine"] == "local" else ("Ascend", "GPU", "CPU")
    for target in known:
        if asked["device_target"].lower() == target.lower():
            return target
    script, names = asked["script"], " and ".join((", ".join(known[:-1]), known[-1]))
    other = "; for GPUs: scripts/run_gpu.sh" if asked["device_target"].lower() == "gpu" else ""
    raise Refusal(USAGE, f"--device_target {one_line(asked['device_target'])}: {script} knows {names}{other}")


def chosen_trainer(asked):
    """The trainer's path: as named, else tools/train.py here, else the project's."""
    named = asked.get("train_script")
    if named is None:
        return os.path.join("tools", "train.py") if os.path.isfile(os.path.join("tools", "train.py")) else OWN_TRAINER
    if not os.path.isfile(named):
        what = "is a folder" if os.path.isdir(named) else "no such file"
        raise Refusal(REFUSED, f"--train_script {one_line(named)}: {what}; name the Python file that trains")
    if not os.access(named, os.R_OK):
        raise Refusal(REFUSED, f"--train_script {one_line(named)} cannot be read; check its permissions")
    return named


def is_own(trainer):
    """Whether it is this project's trainer, whose configs we know."""
    return os.path.realpath(trainer) == OWN_TRAINER


def read_config(path, trainer, trainer_arguments, data_path):
    """The config with the overrides of the trainer's arguments; all of its mistakes are one Refusal.

    Another trainer's config is only parsed: its keys are not ours to judge.
    """
    try:
        config = configs.load(path)
        if data_path:
            config.take_data_from(data_path)
        config.override(assignments(trainer_arguments))
        problems = config.problems() if is_own(trainer) else []
    except configs.ConfigError as error:
        problems = error.lines
    if problems:
        raise Refusal(REFUSED, *problems)
    return config


def assignments(trainer_arguments):
    """The key=value words after -o or --opt."""
    found, inside = [], False
    for word in trainer_arguments:
        if word.startswith("-"):
            inside = word in ("-o", "--opt")
        elif inside:
            found.append(word)
    return found


def with_target(trainer_arguments, config, trainer, target):
    """The trainer's arguments, with `system.device_target` set when the config says another one."""
    known = config.get("system.device_target", "Ascend" if is_own(trainer) else None)
    if known in (None, target):
        return list(trainer_arguments)
    return with_setting(trainer_arguments, f"system.device_target={target}")


def with_setting(arguments, setting):
    """The trainer's arguments and one key=value; it joins the last -o there is: some trainers take one -o only."""
    places = [index for index, word in enumerate(arguments) if word in ("-o", "--opt")]
    if not places:
        return [*arguments, "-o", setting]
    end = places[-1] + 1
    while end < len(arguments) and not arguments[end].startswith("-"):
        end += 1
    return [*arguments[:end], setting, *arguments[end:]]


def check_distribute(config, ranks):
    """Whether the one rank of a one-rank launch runs alone; several ranks must be distributed."""
    distribute = config.get("system.distribute")
    if ranks > 1 and distribute is not True:
        raise Refusal(REFUSED, configs.not_distributed(config))
    return ranks == 1 and distribute is not True


def check_parallel(config, ranks, target):
    """What the parallel mode asks for is there, on this target with this many ranks."""
    refuse_problems(config, modes.problems(configs.fill_defaults(config.data), ranks, target))


def refuse_problems(config, problems):
    """Raises Refusal with a line for each of the problems, each with its place in the config."""
    if problems:
        raise Refusal(REFUSED, *[problem.line(config.place(problem.pointer)) for problem in problems])


def check_data(config, ranks):
    """The data is there and enough for each rank, before any of them starts."""
    filled = configs.fill_defaults(config.data)
    try:
        datasets.check(filled, modes.data_part(filled, 0, ranks).shards)
    except datasets.DataError as error:
        raise Refusal(REFUSED, str(error)) from error


# ---- this host -------------------------------------------------------------------------------------


def check_folder():
    """The current folder is there: relative paths count from it, and the ranks run in it."""
    try:
        os.getcwd()
    except OSError as error:
        raise Refusal(REFUSED, f"the current folder cannot be used: {error.strerror}; change to another one") from error


def check_mindspore(trainer, target):
    """The interpreter has MindSpore, if the trainer or the scheduler will import it."""
    from importlib.util import find_spec

    if (is_own(trainer) or target == "CPU") and find_spec("mindspore") is None:
        text = f"{sys.executable} has no MindSpore, which the ranks need; "
        venv = os.path.join(PROJECT, ".venv", "bin", "activate")
        hint = (
            f"activate this project's environment: source {venv}"
            if os.path.exists(venv)
            else ("install it with: pip install mindspore, or name another Python in PYTHON")
        )
        raise Refusal(REFUSED, text + hint)


def check_devices(asked, target, place):
    """The devices of the ranks that start on this host are there, and other hosts are ready."""
    if place.hosts and asked["engine"] == "mpirun":
        lines = host_check.problems(asked, place)
        if lines:
            raise Refusal(REFUSED, *lines)
    devices = sorted({device for _, device in place.ranks})
    if place.hosts:
        own = {name for name in set(place.hosts) if host.owns(name.rpartition("@")[2])}
        devices = sorted({device for (_, device), name in zip(place.ranks, place.hosts) if name in own})
    problem = None
    if target == "Ascend" and devices:
        problem = device_check.missing(asked["script"], devices)
    elif target == "GPU" and not place.hosts:
        problem = device_check.missing_gpus(asked["script"], devices)
    if problem:
        raise Refusal(REFUSED, problem)


def check_limits():
    """The launcher and its console keep a few files open, a MindSpore rank hundreds."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not 0 <= soft < 256:
        return
    few = f"ulimit -n is {soft}, too few open files for MindSpore"
    if 0 <= hard < 256:
        raise Refusal(
            REFUSED,
            f"{few}, and more are not allowed: raise nofile in /etc/security/limits.conf, or the "
            "container's (docker run --ulimit nofile=65536)",
        )
    raise Refusal(REFUSED, f"{few}; type: ulimit -n {'unlimited' if hard < 0 else hard}")


def check_data_path(asked):
    """The data set's folder is there, where a script takes one."""
    if "data_path" in asked and not os.path.isdir(asked["data_path"]):
        path = asked["data_path"]
        what = "is no folder" if os.path.exists(path) else "no such folder"
        raise Refusal(REFUSED, f"DATA_PATH {one_line(path)}: {what}; name the folder that holds the data set")


def take_devices(plan, asked):
    """The devices are ours from here on; CPU ranks use none."""
    if chosen_target(asked) == "CPU":
        return
    devices = [device for _, device in plan.ranks]
    descriptor, pid = int(asked["lock_fd"] or -1), int(asked["job_pid"])
    try:
        while holders := device_locks.take(descriptor, plan.run_dir, pid, devices):
            lines = [device_locks.words(holder, devices) for holder in holders]
            if "wait_for_devices" not in asked:
                remedy = "wait for it with --wait_for_devices, or choose others with --devices"
                raise Refusal(REFUSED, *(f"{line}; {remedy}" for line in lines))
            say(asked["script"], f"waiting: {lines[0]}")
            device_locks.wait_for(holders[0])
    except OSError as error:
        folder = one_line(device_locks.folder())
        plan.remarks.append(f"other jobs cannot see which devices this one uses: {folder}: {error.strerror}")


def run_folder(asked):
    """The absolute path, not taken yet, of the folder that this run will get; its parent can be written."""
    name = asked["script"].rpartition(".sh")[0] or asked["script"]
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    logs = os.path.abspath(asked.get("log_dir", "logs"))
    existing = logs
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        raise Refusal(REFUSED, f"--log_dir {one_line(logs)}: {one_line(existing)} is not a folder; name another one")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise Refusal(REFUSED, f"--log_dir {one_line(logs)} cannot be written; name another one with --log_dir")
    path = os.path.join(logs, f"{name}-{stamp}-{asked['job_pid']}")
    names = itertools.chain([path], (f"{path}-{number}" for number in itertools.count(2)))
    return next(name for name in names if not os.path.lexists(name))


def choose_table(asked, target, devices, plan):
    """The rank table of this launch; what is remarkable about it goes to plan.remarks."""
    try:
        choice = launch_table.choose(asked, target, devices, plan.run_dir)
    except launch_table.NoTable as error:
        raise Refusal(REFUSED, *error.lines) from error
    plan.remarks.extend(choice.remarks)
    return choice


def exports(asked, plan, target, alone):
    """The job-wide part of a rank's environment, and on CPU defaults that the user has not set."""
    world = plan.placement.world
    found = {"RANK_SIZE": str(world), "DEVICE_NUM": asked["device_num"], "LOG_DIR": plan.run_dir}
    if plan.table:
        found["RANK_TABLE_FILE"] = plan.table.path
    if "data_path" in asked:
        found["DATA_PATH"] = os.path.abspath(asked["data_path"])
    if "PYTHONFAULTHANDLER" not in os.environ:
        found["PYTHONFAULTHANDLER"] = "1"  # a rank that crashes, or is aborted, says where it was
    if "no_sink" in asked:
        found.update(GRAPH_OP_RUN="1", HCCL_WHITELIST_DISABLE="1")
    if not alone and (target == "CPU" or asked["engine"] in ("msrun", "srun")):
        found["MS_WORKER_NUM"] = str(world)
        found["MS_SCHED_HOST"] = plan.placement.engine.get("scheduler_host", "127.0.0.1")
        found["MS_SCHED_PORT"] = plan.placement.engine.get("scheduler_port") or scheduler_port(int(asked["job_pid"]))
    if target != "CPU":
        return found
    # More threads than cores make ranks on one machine slower, and MindSpore 2.10 crash at exit.
    threads = max(1, len(os.sched_getaffinity(0)) // plan.placement.most_on_a_host())
    # ONEDNN: see tools/train.py; here it is for other trainers too.
    for name, value in (("OMP_NUM_THREADS", str(threads)), ("GLOG_v", "3"), ("ONEDNN_MAX_CPU_ISA", "AVX2")):
        if name not in os.environ:
            found[name] = value
    return found


def scheduler_port(seed):
    """A port that is free now: the user's MS_SCHED_PORT, else one below those of outgoing connections."""
    asked = os.environ.get("MS_SCHED_PORT")
    if asked is not None:
        if not (asked.isascii() and asked.isdigit() and 1024 <= int(asked[:6]) <= 65535):
            raise Refusal(REFUSED, f"MS_SCHED_PORT={one_line(asked)} is no port; unset it, or set one of 1024 to 65535")
        if not is_free(int(asked)):
            raise Refusal(REFUSED, f"MS_SCHED_PORT={asked} is in use; unset it to have a free one chosen")
        return asked
    for offset in range(1000):  # started at a place of the job's own, so that two jobs do not meet
        port = 10000 + (seed * 7 + offset) % 20000
        if is_free(port):
            return str(port)
    raise Refusal(REFUSED, "no free port for MindSpore's scheduler between 10000 and 30000")


def is_free(port):
    """Whether a server could listen on the port of 127.0.0.1 now."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the scheduler does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# ---- what comes out --------------------------------------------------------------------------------


def write_run(plan, asked):
    """Makes the run's folder with launch.json and a built rank table, and moves the links to it.

    Raises Refusal and FolderTaken.
    """
    try:
        make_folder(plan.run_dir)
        if plan.table and plan.table.text is not None:
            rank_table.write(plan.table.text, plan.table.path)
        if plan.placement.table and plan.placement.hosts:
            from tools.launch import table_servers

            table_servers.distribute(asked, plan.table)
        rank_table.write(
            json.dumps(document(plan, asked), indent=2, ensure_ascii=False) + "\n",
            os.path.join(plan.run_dir, "launch.json"),
        )
    except OSError as error:
        raise Refusal(
            REFUSED, f"{one_line(plan.run_dir)} cannot be written: {error.strerror}; name another folder with --log_dir"
        ) from error
    logs = os.path.dirname(plan.run_dir)
    first = os.path.join(plan.run_dir, f"rank_{plan.ranks[0][0]}.log")
    move_link(os.path.join(logs, "latest"), os.path.basename(plan.run_dir), plan)
    move_link("train.log", os.path.relpath(first) if first.startswith(os.getcwd() + os.sep) else first, plan)


def make_folder(path):
    """Makes the folder and those above it.  Raises OSError, and FolderTaken if it is there."""
    try:
        os.makedirs(path)
    except FileExistsError as error:
        if os.path.lexists(path):
            raise FolderTaken from error
        raise


def move_link(link, target, plan):
    """Lets `link` lead to `target`; what is there and is no link of ours stays, with a remark."""
    ours = os.path.islink(link) and os.path.basename(os.readlink(link)).startswith(("rank_", "ascend", "run"))
    if os.path.lexists(link) and not ours:
        plan.remarks.append(f"{one_line(link)} is there and is not a link of ours; it stays as it is")
        return
    draft = f"{link}.{os.getpid()}.part"
    try:
        os.symlink(target, draft)
        os.replace(draft, link)
    except OSError as error:
        plan.remarks.append(f"no link {one_line(link)}: {error.strerror}")


def document(plan, asked):
    """launch.json as it is at the start; record.finish adds the outcome."""
    import socket

    return {
        "script": asked["script"],
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": socket.gethostname(),
        "folder": os.getcwd(),
        "device_target": asked["device_target"],
        "run_dir": plan.run_dir,
        "exports": plan.exports,
        "trainer": plan.trainer,
        "scheduler": plan.scheduler,
        **({"rank_table": {"file": plan.table.path, "sha256": plan.table.digest}} if plan.placement.table else {}),
        "ranks": [
            {"rank": rank, "device": device, "log": f"rank_{rank}.log", **({"host": host} if host else {})}
            for (rank, device), host in itertools.zip_longest(plan.ranks, plan.placement.hosts)
        ],
    }


def words(plan, asked):
    """The plan as bytes for scripts/lib/plan.sh."""
    pairs = [("run_dir", plan.run_dir)]
    pairs += [("export", f"{name}={value}") for name, value in plan.exports.items()]
    pairs += [("rank", f"{rank} {device}") for rank, device in plan.ranks]
    pairs += [("host", name) for name in plan.placement.hosts]
    pairs += [("engine", f"{name} {value}") for name, value in plan.placement.engine.items()]
    pairs += [("trainer", word) for word in plan.trainer]
    pairs += [("scheduler", word) for word in plan.scheduler]
    if "dry_run" in asked and plan.table:
        pairs += [("setup", word) for word in plan.table.setup]
    return b"".join(os.fsencode(word) + b"\0" for pair in pairs for word in pair)
