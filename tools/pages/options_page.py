"""Makes the pages that list every option of every command from what `--help` of each prints.

python -m tools.pages.options_page    > docs/options.md
python -m tools.pages.options_page zh > docs/zh/options.md

What the Chinese page says of an option stands in docs/zh/options.yaml, under the English words.
"""

import functools
import os
import re
import subprocess
import sys
from collections import namedtuple

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TRANSLATIONS = os.path.join(ROOT, "docs", "zh", "options.yaml")
SCRIPTS = sorted(name for name in os.listdir(os.path.join(ROOT, "scripts")) if name.endswith(".sh"))
ALONE = ["doctor.sh", "check_network.sh"]  # scripts that launch nothing, with options of their own
LAUNCHING = [name for name in SCRIPTS if name not in ALONE]
COMMANDS = [
    "hccl_tools/hccl_tools.py",
    "hccl_tools/merge_hccl.py",
    "hccl_tools/validate_hccl.py",
    "hccl_tools/show_hccl.py",
    "tools/train.py",
    "tools/eval.py",
    "tools/convert_ckpt.py",
    "tools/plot_log.py",
    "tools/diagnose.py",
    "tools/prepare_digits.py",
    "tools/prepare_cifar10.py",
    "tools/prepare_text.py",
]

Help = namedtuple("Help", "purpose usage options")
Help.__doc__ = "purpose: the first line of a command's --help; usage: its usage lines; options: list of Option."
Option = namedtuple("Option", "names value meaning")
Option.__doc__ = 'names: ("--log_dir",); an argument has one name without hyphens; value: "DIR" or ""; meaning: a line.'

_HEAD = """\
# Every option

Made by `python -m tools.pages.options_page` from what `--help` of each command prints. In [Chinese](zh/options.md).

Hyphens and underscores in the names of options are the same, and `--name VALUE` is the same as `--name=VALUE`. Every
command has `--help`. What the exit codes mean: [exit_codes.md](exit_codes.md); what can be set in the environment:
[environment.md](environment.md).

In bash, TAB completes options and their values, for scripts and Python commands, after

<!-- run -->
```bash
source scripts/completion.bash
```

which can stand in `~/.bashrc` with the file's full path.
"""

_HEAD_ZH = """\
# 全部选项

由 `python -m tools.pages.options_page zh` 根据各命令 `--help` 的输出和 [options.yaml](options.yaml) 中的译文生成。
[英文版](../options.md)。

选项名中的连字符与下划线等价，`--name VALUE` 与 `--name=VALUE` 等价。每个命令都有 `--help`。
退出码的含义见 [exit_codes.md](exit_codes.md)，可用的环境变量见 [environment.md](environment.md)。

在 bash 中执行以下命令之后，TAB 键可以补全脚本和 Python 命令的选项及其取值：

<!-- run -->
```bash
source scripts/completion.bash
```

也可以把它写入 `~/.bashrc`，此时用该文件的完整路径。
"""

_WORDS = {
    "en": {
        "launching": "The scripts that launch",
        "shared": "Options of all of them, except as noted",
        "own": "Options of some of them",
        "columns": ("option", "meaning"),
        "not": " (not {})",
        "only": " ({} only)",
        "type": "what to type",
        "others": "Other scripts",
        "python": "Python commands",
        "argument": "argument or option",
        "trainer": "What stands after `--` goes to the trainer as it is.",
    },
    "zh": {
        "launching": "启动脚本",
        "shared": "各启动脚本共有的选项（例外另行注明）",
        "own": "部分启动脚本的选项",
        "columns": ("选项", "含义"),
        "not": "（{} 没有）",
        "only": "（仅 {}）",
        "type": "用法",
        "others": "其他脚本",
        "python": "Python 命令",
        "argument": "参数或选项",
        "trainer": "`--` 之后的内容原样交给训练程序。",
    },
}


@functools.cache
def text_of(command):
    """What `--help` of "scripts/x.sh" or "tools/x.py" prints."""
    program = ["bash"] if command.endswith(".sh") else [sys.executable]
    return subprocess.run(
        [*program, command, "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "500", "PYTHON": sys.executable, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def ask(command):
    """The Help of that command."""
    found = read(text_of(command))
    if command.endswith(".py"):
        return found._replace(usage=[f"python {os.path.dirname(command)}/{line}" for line in found.usage])
    return found


def read(text):
    """The Help that `text` is: that of our scripts, or that of argparse."""
    usage = re.search(r"(?im)^usage: .*(?:\n {7,}\S.*)*", text)
    lines = [line.strip().replace("[-h] ", "") for line in usage[0][len("usage: ") :].splitlines()]
    before, after = text[: usage.start()], text[usage.end() :]
    purpose = next(line for line in (before or after).splitlines() if line.strip())
    return Help(purpose, lines, list(_options(text)))


def _options(text):
    """Every argument and option of `text`, without --help."""
    found = None
    section = ""
    for line in [*text.splitlines(), "end"]:
        begins = re.match(r"  (\S.*?)(?:  +(\S.*))?$", line)
        if found and (begins or not line.startswith("   ")):
            if "--help" not in found.names:
                yield found
            found = None
        if line and not line.startswith(" "):
            section = line.lower()
        elif begins and (begins[1].startswith("-") or section.startswith("positional")):
            found = Option(*_names(begins[1]), begins[2] or "")
        elif found and line.strip():
            found = found._replace(meaning=f"{found.meaning} {line.strip()}".strip())


def _names(text):
    """("--config", "-c"), "FILE" of "--config FILE, -c FILE", which newer Pythons write "-c, --config FILE"."""
    names, value = [], ""
    for part in re.split(r", (?=-)", text):
        name, _, value_here = part.partition(" ")
        names.append(name)
        value = value_here or value
    one_spelling = {name.replace("-", "_"): name for name in sorted(names)}  # --a_b and --a-b are one
    return tuple(sorted(one_spelling.values(), key=lambda name: (-len(name), name))), value


def page(language="en"):
    """The whole of docs/options.md, or with "zh" of docs/zh/options.md."""
    words = _WORDS[language]
    say = _translator(language)
    parts = [_HEAD_ZH if language == "zh" else _HEAD, *_launching(words, say)]
    for title, commands in (("others", [f"scripts/{name}" for name in ALONE]), ("python", COMMANDS)):
        parts.append(f"## {words[title]}\n")
        for command in commands:
            parts.extend(_section(command, words, say))
    return "\n".join(parts)


def _launching(words, say):
    """The section about the launching scripts: what to type, then every option once."""
    helps = {name: ask(f"scripts/{name}") for name in LAUNCHING}
    yield f"## {words['launching']}\n"
    yield from _table(
        (words["type"], words["columns"][1]), [(_typed(helps[name]), say(helps[name].purpose)) for name in helps]
    )
    yield words["trainer"] + "\n"
    takers = {}
    for name in helps:
        for option in helps[name].options:
            takers.setdefault(option, []).append(name)
    for title, is_shared in (("shared", True), ("own", False)):
        rows = []
        for option, scripts in takers.items():
            if (2 * len(scripts) > len(helps)) == is_shared:
                others = [name for name in helps if name not in scripts]
                note = words["not" if is_shared else "only"].format(_listed(others if is_shared else scripts))
                rows.append((_shown(option), say(option.meaning) + (note if others else "")))
        yield f"### {words[title]}\n"
        yield from _table(words["columns"], rows)


def _listed(scripts):
    """The names in one line; the four of one kind have one name."""
    named = ", ".join(scripts)
    return named.replace("ascend1p.sh, ascend2p.sh, ascend4p.sh, ascend8p.sh", "ascend*p.sh")


def _section(command, words, say):
    """The section of one command."""
    found = ask(command)
    yield f"### {os.path.basename(command)}\n"
    yield f"{say(found.purpose)}\n"
    yield _typed(found) + "\n"
    rows = [(_shown(option), say(option.meaning)) for option in found.options]
    if rows:
        yield from _table((words["argument"], words["columns"][1]), rows)


def _typed(found):
    """The usage as Markdown code."""
    return "<br>".join(f"`{line}`" for line in found.usage).replace("|", "\\|")


def _shown(option):
    """An option as Markdown code."""
    return ", ".join(f"`{f'{name} {option.value}'.strip()}`" for name in option.names).replace("|", "\\|")


def _table(head, rows):
    yield "| " + " | ".join(head) + " |\n|---|---|"
    yield from (f"| {left} | {right} |" for left, right in rows)
    yield ""


def _translator(language):
    """A function that gives an English text in the page's language, fit for a table."""
    known = translations() if language == "zh" else {}

    def say(text):
        return known.get(text, text).replace("|", "\\|").replace("<", "&lt;")

    return say


def translations():
    """{English text: Chinese text}."""
    with open(TRANSLATIONS, encoding="utf-8") as file:
        return yaml.safe_load(file)


def texts():
    """Every text of the commands' help that the page has and that is to be translated."""
    found = {}
    for command in [*(f"scripts/{name}" for name in SCRIPTS), *COMMANDS]:
        told = ask(command)
        found.update(dict.fromkeys([told.purpose, *(option.meaning for option in told.options)]))
    return list(found)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["zh"]):
        sys.exit(__doc__)
    sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(page(*sys.argv[1:]))
