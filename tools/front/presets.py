"""Reads the declarations of a script in scripts/ without a shell; the script is a preset of mslaunch."""

from __future__ import annotations

import shlex

from hccl_tools.common import project

_CALL = '\\. "$LAUNCH_LIB/start.sh" '


def declared(script: str) -> list[list[str]]:
    """The declarations of a script, such as ``ascend4p.sh``, each as a list: ENGINE ARGUMENT... KEY=VALUE...

    run_cluster.sh has two; the last one counts where nothing chooses another.
    """
    with open(project.path("scripts", script), encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        before, called, rest = line.partition(_CALL)
        if called and not before.strip():
            words = shlex.split(rest)
            found.append(words[: words.index("--")] if "--" in words else words)
    return found


def chosen(script: str, words: list[str]) -> list[str]:
    """The declaration that the script would take for these words of the user."""
    found = declared(script)
    if len(found) == 1:
        return found[0]
    servers = next(each for each in found if "placement=servers" in each)
    return servers if _names_hostfile(words) else found[-1]


def _names_hostfile(words: list[str]) -> bool:
    """Whether --hostfile is an option of run_cluster.sh: it comes before a second argument.  See the loop there."""
    arguments, is_value = 0, False
    for word in words:
        if word == "--" or arguments == 2:
            return False
        if word == "--hostfile" or word.startswith("--hostfile="):
            return True
        if word.startswith("-"):
            is_value = "=" not in word
        elif is_value:
            is_value = False
        else:
            arguments += 1
    return False
