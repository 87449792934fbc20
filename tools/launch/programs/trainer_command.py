"""The command of every rank: the trainer and its arguments."""

from __future__ import annotations

import os
import sys

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import one_line
from hccl_tools.machine.programs import path_word
from tools.launch.request import Request, split_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.config.config_file import Config

OWN = project.path("tools", "train.py")
OVERRIDES = ("-o", "--opt")  # the trainers' option that takes key=value words


def python() -> str:
    return os.environ.get("PYTHON") or sys.executable


def trainer(request: Request) -> str:
    """The trainer's path: --train_script, else tools/train.py of this folder, else of the project.  Raises Refusal."""
    named = request.train_script
    if named is None:
        here = os.path.join("tools", "train.py")
        return here if os.path.isfile(here) else OWN
    if is_hidden(named):
        raise refused("--train_script {path} cannot be read; check its permissions", path=one_line(named))
    if not os.path.isfile(named):
        from hccl_tools.common import nearly

        what = tr("is a folder") if os.path.isdir(named) else tr("no such file")
        raise Refusal(
            REFUSED,
            tr("--train_script {path}: {what}; name the Python file that trains", path=one_line(named), what=what)
            + nearly.question(named),
        )
    if named.endswith((".yaml", ".yml")):
        raise refused(
            "--train_script {path}: is a config; name the Python file that trains, then the config",
            path=one_line(named),
        )
    if not os.access(named, os.R_OK):
        raise refused("--train_script {path} cannot be read; check its permissions", path=one_line(named))
    return named


def is_hidden(path: str) -> bool:
    """Whether a folder above it may not be entered, so that it is unknown whether it exists."""
    try:
        os.stat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def is_own(path: str) -> bool:
    """Whether it is this project's trainer, whose configs we know."""
    return os.path.realpath(path) == OWN


def is_on_each_host(path: str) -> bool:
    """Whether every host of a job has it, in whichever folder: a module of tools/, which is of one version on all.

    finder.py names files of this project as they are there.
    """
    from hccl_tools.hosts import finder  # only launches over several hosts ask

    return os.path.realpath(path) in finder.modules(project.path("tools"))


def config_path(request: Request) -> str | None:
    """The user's config, else the script's, which is for our trainer; None: another one gets its own words only."""
    if request.config is not None or request.train_script is not None and not is_own(request.train_script):
        return request.config and _of_project(request.config)
    return request.default_config


def _of_project(path: str) -> str:
    """The path; where only this project has such a config, that one: pages name configs as if it were the folder."""
    is_ours = os.path.normpath(path).startswith("configs" + os.sep) and not os.path.lexists(path)
    return project.path(path) if is_ours and os.path.isfile(project.path(path)) else path


def arguments(request: Request) -> list[str]:
    """The user's arguments for the trainer; they state that a single rank is not distributed."""
    own = list(request.trainer_arguments)
    return with_setting(own, "system.distribute=False") if request.alone else own


def restart_words(request: Request) -> list[str]:
    """The words of --restart_args.  Raises Refusal."""
    return [] if request.restart_args is None else split_words(request.restart_args, "--restart_args")


def settings(arguments: list[str]) -> list[str]:
    """The key=value words after -o or --opt."""
    found, inside = [], False
    for word in arguments:
        if word.startswith("-"):
            inside = word in OVERRIDES
        elif inside:
            found.append(word)
    return found


def named_config(words: list[str]) -> str | None:
    """The config that a command of our trainer names, with whichever of its options."""
    for word, following in zip(words, [*words[1:], None]):
        if word in ("--config", "-c"):
            return following
        if word.startswith("--config="):
            return word.partition("=")[2]
    return None


def with_setting(arguments: list[str], setting: str) -> list[str]:
    """The arguments and one key=value; it joins the last -o there is: some trainers take one -o only."""
    places = [index for index, word in enumerate(arguments) if word in OVERRIDES]
    if not places:
        return [*arguments, "-o", setting]
    end = places[-1] + 1
    while end < len(arguments) and not arguments[end].startswith("-"):
        end += 1
    return [*arguments[:end], setting, *arguments[end:]]


def with_words(arguments: list[str], words: list[str]) -> list[str]:
    """The arguments and more words, whose key=value after -o join the last -o there is."""
    inside = False
    for word in words:
        if word.startswith("-"):
            inside = word in OVERRIDES
        if not inside:
            arguments = [*arguments, word]
        elif word not in OVERRIDES:
            arguments = with_setting(arguments, word)
    return arguments


def command(path: str, request: Request, config: Config | None, named: str, arguments: list[str]) -> list[str]:
    """The command with the config `named`; it sets `system.device_target` when the config has another one."""
    setting = target_setting(request, config, is_own(path))
    arguments = with_setting(arguments, setting) if setting else arguments
    return [python(), "-u", path_word(path), "--config", path_word(named), *arguments]


def target_setting(request: Request, config: Config | None, own: bool) -> str:
    """``system.device_target=CPU`` where the config has another target than the launch; own: it is our trainer's."""
    target = config.get("system.device_target", "Ascend" if own else None) if config else None
    return "" if target in (None, request.device_target) else f"system.device_target={request.device_target}"
