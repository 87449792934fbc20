"""Makes the pages that list every known failure from configs/diagnoses.yaml and configs/faults/.

python -m tools.pages.known_failures_page    > docs/when_it_fails.md
python -m tools.pages.known_failures_page zh > docs/zh/when_it_fails.md
"""

from __future__ import annotations

import os
import sys

from hccl_tools.common import project
from tools.logs import known_failures, remedies

_WORDS = {
    "en": (
        "Known failures",
        "seen as",
        "exit status",
        "cause",
        "remedy",
        ", and the kernel killed for memory",
        ": ",
        "holds on",
    ),
    "zh": ("已知失败", "表现", "退出码", "原因", "处理", "，且内核因内存杀死了进程", "：", "适用于"),
}


_FAULTS = {
    "en": (
        "Known faults of clusters, CANN, MindSpore and hosts",
        "Codes in capitals are those of MindCluster's ascend-faultdiag, whose documents can be searched for them.\n"
        "A code of lower-case letters is ours, or covers several. A message is shown with … where it varies. Each\n"
        "table has the order of its file.",
        "| code | message | cause | remedy |",
        {
            "cluster": "Slurm, Open MPI, Kubernetes, containers, torchrun",
            "hccl": "HCCL, which carries collectives",
            "runtime": "CANN's runtime, graph engine and operators",
            "driver": "The driver, and DVPP",
            "mindspore": "MindSpore and Python",
            "host": "The host",
        },
    ),
    "zh": (
        "集群、CANN、MindSpore 和主机的已知故障",
        "大写的故障码与 MindCluster 的 ascend-faultdiag 相同，可据此查阅其文档；"
        "小写字母的码是本项目的，或涵盖其中多个。消息中变化的部分写作 …；各表按文件中的顺序排列。",
        "| 码 | 消息 | 原因 | 处理 |",
        {
            "cluster": "Slurm、Open MPI、Kubernetes、容器、torchrun",
            "hccl": "HCCL（集合通信）",
            "runtime": "CANN 的运行时、图引擎与算子",
            "driver": "驱动与 DVPP",
            "mindspore": "MindSpore 与 Python",
            "host": "主机",
        },
    ),
}
_HEADS = {"en": "when_it_fails.md", "zh": "when_it_fails_zh.md"}  # the text above the failures
_MOST_MESSAGES = 2


def page(language: str = "en") -> str:
    """The whole of docs/when_it_fails.md, or with "zh" of docs/zh/when_it_fails.md."""
    with open(project.path("tools", "pages", "heads", _HEADS[language]), encoding="utf-8") as file:
        head = file.read()
    sections = [_section(entry, language) for entry in _entries(known_failures.FILE)]
    return "\n".join([head, f"## {_WORDS[language][0]}\n", *sections, *_tables(language)])


def _entries(path: str) -> list[known_failures.KnownFailure]:
    entries, complaints = known_failures.load_file(path)
    if complaints:
        raise SystemExit("\n".join(complaints))
    return entries


def _tables(language: str) -> list[str]:
    title, text, heading, names = _FAULTS[language]
    lines = [f"## {title}", "", text, ""]
    for path in known_failures.FAULTS:
        name = os.path.splitext(os.path.basename(path))[0]
        lines += [f"### {names[name]}", "", heading, "|---|---|---|---|"]
        lines += [_row(entry, language) for entry in _entries(path)]
        lines.append("")
    return lines


def _row(entry: known_failures.KnownFailure, language: str) -> str:
    why, what = entry.zh if entry.zh and language == "zh" else (entry.cause, entry.remedy)
    messages = [_code(" … ".join(words)) for words in entry.words[:_MOST_MESSAGES]] or [_code(entry.sources[0])]
    if len(entry.words) > _MOST_MESSAGES:
        messages.append("…")
    cells = [_code(entry.code), "<br>".join(messages), why, what]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _section(entry: known_failures.KnownFailure, language: str) -> str:
    _, seen, status, cause, remedy, oom, colon, holds = _WORDS[language]
    why, what = entry.zh if entry.zh and language == "zh" else (entry.cause, entry.remedy)
    signs = [_code(sample) for sample in entry.samples]
    if entry.status:
        signs.append(f"{status} {', '.join(map(str, sorted(entry.status)))}{oom if entry.oom_kill else ''}")
    items = [(cause, [why]), (remedy, remedies.steps(what)), (seen, signs)]
    if entry.targets != known_failures.TARGETS:
        items.append((holds, [", ".join(entry.targets)]))
    return "\n".join([f"### `{entry.code}`", "", *(_item(f"{word}{colon}", texts) for word, texts in items)]) + "\n"


def _item(head: str, texts: list[str]) -> str:
    """An item of a list, with a list in it where there are several texts."""
    if len(texts) == 1:
        return f"- {head}{texts[0]}"
    return "\n  - ".join([f"- {head}".rstrip(), *texts])


def _code(text: str) -> str:
    """`text` as Markdown code, whatever it holds."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["zh"]):
        sys.exit(__doc__)
    sys.stdout.buffer.write(page(*sys.argv[1:]).encode())
