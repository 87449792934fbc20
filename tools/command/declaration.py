"""The declarations of a script about itself: its engine, its arguments, its options."""

from __future__ import annotations

import os
from collections.abc import Iterable

from hccl_tools.common import project, typed
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Record

# What every script with this engine has, unless it says where its ranks are placed: options that not every script has,
# options that make no sense there, the file with the options of another launcher.
OF_ENGINES: dict[str, tuple[str, str, str]] = {
    "mpirun": (
        "n npernode output_filename ssh network spare min_ranks preflight",
        "rank_table hccn_conf generation",
        "mpirun_words",
    ),
    "srun": ("ntasks_per_node spare min_ranks preflight", "rank_table hccn_conf generation", ""),
    "msrun": (
        "worker_num local_worker_num master_addr master_port node_rank sim_level sim_rank_id worker_log_name preflight",
        "rank_table hccn_conf generation",
        "",
    ),
}


class Declaration(Record):
    """The words of a script in scripts/, such as ``local CONFIG device_target=Ascend devices='[0,2)'``."""

    script: str  # as the user typed it, $0
    name: str  # its name, for messages and the run folder
    engine: str  # what starts the ranks; empty: the script launches nothing
    arguments: tuple[str, ...] = ()  # names of the positional arguments
    options: tuple[str, ...] = ()  # options that not every script has, see table.NAMED
    without: tuple[str, ...] = ()  # options that make no sense for this script
    others: str = ""  # mpirun_words: the options of mpirun are taken, too
    quoted: bool = False  # the program is one quoted argument, see quoted.py
    grace: str = "10"  # the default of --grace
    exit_codes: str = ""  # what --help prints about them, in English; empty: those of a launch
    note: str = ""  # what to tell the user before the launch, already in their language
    extra: dict[str, str]  # what else tools.launch.request.Request takes from the script

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Declaration:
        """The declaration of ``script=$0 ENGINE ARGUMENT... KEY=VALUE...``."""
        keys: dict[str, str] = {}
        names: list[str] = []
        for word in words:
            key, equals, value = word.partition("=")
            if equals:
                keys[key] = value
            else:
                names.append(word)
        script, name = keys.pop("script"), keys.pop("name", "")
        if name and os.path.basename(script) != name:  # sbatch runs a copy, which it removes
            script = project.path("scripts", name)
        arguments = tuple(names[1:])
        engine = names[0] if names else ""
        options, without, others = OF_ENGINES.get("" if "placement" in keys else engine, ("", "", ""))
        return cls(
            script=script,
            name=os.path.basename(script),
            engine=engine,
            arguments=arguments,
            options=(
                *keys.pop("options", "").split(),
                *options.split(),
                *(("config",) if arguments == ("CONFIG",) else ()),
            ),
            without=(*keys.pop("without", "").split(), *without.split()),
            others=others,
            quoted=bool(keys.pop("quoted", "")),
            grace=keys.pop("grace", "10"),
            note=keys.pop("note", ""),
            extra=keys,
        )

    def is_front(self) -> bool:
        """Whether mslaunch itself was typed, and not a script of this project."""
        return self.name == typed.FRONT

    def command(self) -> list[str]:
        """The words before those that the user typed."""
        if self.is_front():
            return list(typed.front())
        return typed.words(f"scripts/{self.name}") if typed.is_front() else ["bash", self.script]

    def command_line(self) -> str:
        """The same as a line for a shell."""
        return " ".join(map(quote, self.command()))
