"""Makes the table of TAB's options for the commands that do not launch, from the output of their --help.

python -m tools.pages.tab_options >tools/front/tab/options.tsv
"""

from __future__ import annotations

import sys

from tools.pages.commands import OTHERS, PYTHON_COMMANDS, Option, ask


def page() -> str:
    """Each line: file of the command, TAB, names of an option (none: an argument), TAB, what it takes."""
    commands = [*(f"scripts/{name}" for name in OTHERS), *PYTHON_COMMANDS]
    return "".join(f"{command}\t{_row(option)}\n" for command in commands for option in ask(command).options)


def _row(option: Option) -> str:
    if not option.names[0].startswith("-"):
        return f"\t{option.names[0]}"
    return f"{' '.join(option.names)}\t{option.value}"


if __name__ == "__main__":
    sys.stdout.write(page())
