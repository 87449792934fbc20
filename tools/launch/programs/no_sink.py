"""--no_sink: runs operators one by one.

The tutorials set GRAPH_OP_RUN, which MindSpore 2.10 no longer reads; it has jit_level instead.  HCCL reads the other
variable.
"""

from __future__ import annotations

from hccl_tools.common.language import tr
from tools.config.config_file import Config
from tools.launch.programs import trainer_command

_SETTING = "system.jit_level=O0"


def arguments(config: Config | None, words: list[str]) -> list[str]:
    """The arguments for our trainer, with the jit_level for --no_sink; PyNative mode compiles nothing."""
    if config is None or config.filled["system"]["mode"] != 0:
        return words
    return trainer_command.with_setting(words, _SETTING)


def remarks(is_own: bool, words: list[str]) -> list[str]:
    """Notes about the effect of --no_sink on the job with this command."""
    names = "GRAPH_OP_RUN"
    if not is_own:
        setting = 'set_context(jit_config={"jit_level": "O0"})'
        return [
            tr(
                "note: --no_sink sets {names}, which MindSpore 2.10 does not read; your program needs {setting}",
                names=names,
                setting=setting,
            )
        ]
    if _SETTING in words:
        return [
            tr(
                "note: --no_sink means {setting}; it also sets {names}, which MindSpore 2.10 does not read",
                setting=_SETTING,
                names=names,
            )
        ]
    return [
        tr(
            "note: --no_sink only sets {names}, which MindSpore 2.10 does not read; PyNative mode "
            "runs operators one by one anyway",
            names=names,
        )
    ]
