"""Makes the table of the scripts: what each is for, and what starts its ranks.

python -m tools.pages.scripts_page PAGE...

puts the table between the lines <!-- scripts --> and <!-- end of scripts --> of each page. Pages in docs/zh, and those
with names in _CN.md, get it in Chinese. It is made from the first line and the engines of every file in scripts/.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.pages.commands import ENGINES, SCRIPTS, ask
from tools.pages.options_page import table as markdown_table

_WORDS = {
    "en": {
        "head": "script | what it is for | what starts the ranks",
        "local": "the launcher itself",
        "mpirun": "Open MPI",
        "msrun": "MindSpore's msrun",
        "srun": "Slurm",
        "none": "starts no ranks",
        "or": " or ",
    },
    "zh": {
        "head": "脚本 | 用途 | 由谁启动 rank",
        "local": "启动器自身",
        "mpirun": "Open MPI",
        "msrun": "MindSpore 的 msrun",
        "srun": "Slurm",
        "none": "不启动 rank",
        "or": "或 ",
    },
}
_PLACE = re.compile(r"(?<=<!-- scripts -->\n)(.*?)(?=<!-- end of scripts -->)", re.DOTALL)


def table(language: str = "en") -> str:
    """The table in Markdown, "en" or "zh"."""
    words = _WORDS[language]
    rows = []
    for name in SCRIPTS:
        purpose = ask(f"scripts/{name}", language).purpose
        engines = ENGINES[name] or ["none"]
        rows.append((f"`{name}`", purpose, words["or"].join(words.get(engine, engine) for engine in engines)))
    return markdown_table(words["head"].split(" | "), rows)


def placed(page: str, text: str) -> str:
    """`text`, the content of `page`, with the table between its two lines."""
    language = "zh" if "docs/zh/" in page or page.endswith("_CN.md") else "en"
    return _PLACE.sub(lambda _: table(language), text)


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    for page in sys.argv[1:]:
        text = Path(page).read_text(encoding="utf-8")
        if not _PLACE.search(text):
            sys.exit(f"{page}: has no lines <!-- scripts --> and <!-- end of scripts -->")
        Path(page).write_text(placed(page, text), encoding="utf-8")
