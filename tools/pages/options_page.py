"""Makes the pages that list every option of every command, from the output of `--help`.

python -m tools.pages.options_page    > docs/options.md python -m tools.pages.options_page zh > docs/zh/options.md

The Chinese page has the Chinese output of `--help`: see messages.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from hccl_tools.common.grouping import grouped
from tools.pages.commands import LAUNCHING, OTHERS, PYTHON_COMMANDS, Help, Option, ask

_HEAD = """\
# Every option

Made by `python -m tools.pages.options_page` from what `--help` of each command prints. In [Chinese](zh/options.md).

Hyphens and underscores in the names of options are the same, and `--name VALUE` is the same as `--name=VALUE`. SECONDS
may be `90s`, `10m`, `1h30m` or `1d`. `MSLAUNCH_OPTIONS` has options for every launch. Every command has `--help`. What
the exit codes mean: [exit_codes.md](exit_codes.md). What can be set in the environment:
[environment.md](environment.md).

TAB completes commands, options, their values, programs, configs and runs, and nothing after the program. An installed
`mslaunch` has it after one line:

| shell | line | where |
|---|---|---|
| bash | `source <(mslaunch --completion bash)` | `~/.bashrc` |
| zsh | `source <(mslaunch --completion zsh)` | `~/.zshrc` |

In a checkout, this line does it in bash for scripts and Python commands. In `~/.bashrc` it needs the file's full path.

<!-- run -->
```bash
source scripts/completion.bash
```
"""

_HEAD_ZH = """\
# 全部选项

由 `python -m tools.pages.options_page zh` 根据各命令 `--help` 的中文输出生成。[英文版](../options.md)。

选项名中的连字符与下划线等价，`--name VALUE` 与 `--name=VALUE` 等价。SECONDS 可以写成 `90s`、`10m`、`1h30m`
或 `1d`。`MSLAUNCH_OPTIONS` 中的选项用于每次启动。每个命令都有 `--help`。退出码的含义见
[exit_codes.md](exit_codes.md)，可以设置的环境变量见 [environment.md](environment.md)。

TAB 键补全命令、选项及其取值、程序、配置和运行文件夹；程序之后的词属于程序，不作补全。安装后的 `mslaunch` 只需一行：

| shell | 命令 | 写入 |
|---|---|---|
| bash | `source <(mslaunch --completion bash)` | `~/.bashrc` |
| zsh | `source <(mslaunch --completion zsh)` | `~/.zshrc` |

在代码仓中，bash 执行以下命令之后，脚本和 Python 命令即可补全。写入 `~/.bashrc` 时需要该文件的完整路径。

<!-- run -->
```bash
source scripts/completion.bash
```
"""

_WORDS = {
    "en": {
        "launching": "The scripts that launch",
        "shared": "Options of all of them, except as noted",
        "own": "Options of some of them",
        "option": "option",
        "meaning": "meaning",
        "not": " (not {})",
        "only": " ({} only)",
        "type": "what to type",
        "others": "Other scripts",
        "python": "Python commands",
        "argument": "argument or option",
        "trainer": "Everything after `--` goes unchanged to the trainer.",
    },
    "zh": {
        "launching": "启动脚本",
        "shared": "各启动脚本共有的选项（例外已注明）",
        "own": "部分启动脚本的选项",
        "option": "选项",
        "meaning": "含义",
        "not": "（{} 没有）",
        "only": "（仅 {}）",
        "type": "用法",
        "others": "其他脚本",
        "python": "Python 命令",
        "argument": "参数或选项",
        "trainer": "`--` 之后的内容原样交给训练程序。",
    },
}


def page(language: str = "en") -> str:
    """The whole of docs/options.md, or with "zh" of docs/zh/options.md."""
    words = _WORDS[language]
    parts = [_HEAD_ZH if language == "zh" else _HEAD, *_launching(language)]
    for title, commands in ((words["others"], _paths(OTHERS)), (words["python"], PYTHON_COMMANDS)):
        parts.append(f"## {title}\n")
        for command in commands:
            parts.extend(_section(command, language))
    return "\n".join(parts)


def _launching(language: str) -> Iterator[str]:
    """The section about the launching scripts: what to type, then every option once."""
    words = _WORDS[language]
    helps = {name: ask(f"scripts/{name}", language) for name in LAUNCHING}
    yield f"## {words['launching']}\n"
    yield table((words["type"], words["meaning"]), [(_typed(told), _safe(told.purpose)) for told in helps.values()])
    yield words["trainer"] + "\n"
    takers = grouped((option, name) for name, told in helps.items() for option in told.options)
    for title, is_shared in (("shared", True), ("own", False)):
        rows = []
        for option, scripts in takers.items():
            if (2 * len(scripts) > len(helps)) == is_shared:
                others = [name for name in helps if name not in scripts]
                note = words["not" if is_shared else "only"].format(_listed(others if is_shared else scripts))
                rows.append((_shown(option), _safe(option.meaning) + (note if others else "")))
        yield f"### {words[title]}\n"
        yield table((words["option"], words["meaning"]), rows)


def _listed(scripts: Iterable[str]) -> str:
    """The names in one line; the four of one kind have one name."""
    named = ", ".join(scripts)
    return named.replace("ascend1p.sh, ascend2p.sh, ascend4p.sh, ascend8p.sh", "ascend*p.sh")


def _section(command: str, language: str) -> Iterator[str]:
    words, told = _WORDS[language], ask(command, language)
    yield f"### {os.path.basename(command)}\n"
    yield f"{_safe(told.purpose)}\n"
    yield _typed(told) + "\n"
    if told.options:
        rows = [(_shown(option), _safe(option.meaning)) for option in told.options]
        yield table((words["argument"], words["meaning"]), rows)


def _typed(told: Help) -> str:
    """The usage as Markdown code."""
    return "<br>".join(f"`{line}`" for line in told.usage).replace("|", "\\|")


def _shown(option: Option) -> str:
    """An option as Markdown code."""
    return ", ".join(f"`{f'{name} {option.value}'.strip()}`" for name in option.names).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, with an empty line at its end."""
    lines = [" | ".join(cells) for cells in (head, *rows)]
    return "\n".join([f"| {lines[0]} |", "|---" * len(head) + "|", *(f"| {line} |" for line in lines[1:]), ""])


def _safe(text: str) -> str:
    """The text, fit for a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def _paths(scripts: Iterable[str]) -> list[str]:
    return [f"scripts/{name}" for name in scripts]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["zh"]):
        sys.exit(__doc__)
    sys.stdout.buffer.write(page(*arguments).encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
