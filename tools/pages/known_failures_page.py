"""Makes the pages that list every known failure from configs/diagnoses.yaml.

python -m tools.pages.known_failures_page    > docs/when_it_fails.md
python -m tools.pages.known_failures_page zh > docs/zh/when_it_fails.md
"""

from __future__ import annotations

import re
import sys

from tools.diagnosis import known_failures

_HEAD = """\
# When it fails

Made by `python -m tools.pages.known_failures_page` from [configs/diagnoses.yaml](../configs/diagnoses.yaml). In
[Chinese](zh/when_it_fails.md).

After a failure the launcher names the rank that failed first and shows the end of its log. It also shows the Python
exception and where it was raised. If the failure is one of those below, the launcher prints its cause and remedy. The
run's `launch.json` has the same under `outcome.diagnosis`. To explain an earlier run again:

<!-- not run: needs a run that failed -->
```bash
python tools/diagnose.py logs/latest
```

The log of the rank that failed first counts most. A cause from another rank's log is named with that rank.

## Failures of your own

Write them into a file of the same form, and name it in `LAUNCH_DIAGNOSES`; its entries come before the ones below. If
an entry has a mistake, the report names its line and leaves the entry out.

<!-- file my_diagnoses.yaml -->
```yaml
diagnoses:
  - code: license-server
    patterns: ['license .* denied']    # Python's regular expressions, looked for in every line of a log
    status: [42]                       # or exit statuses; 128+N is signal N
    targets: [Ascend, GPU]             # of which --device_target; may be left out: all
    cause: no license is free
    remedy: wait, or ask the owner of the license server
    zh:                                # may be left out
      cause: 没有空闲的许可证
      remedy: 等待，或联系许可证服务器的负责人
```
"""

_HEAD_ZH = """\
# 启动失败时

由 `python -m tools.pages.known_failures_page zh` 根据 [configs/diagnoses.yaml](../../configs/diagnoses.yaml) 生成。
[英文版](../when_it_fails.md)。

失败后，启动脚本会指出最先失败的 rank，显示其日志末尾、Python 异常及抛出位置；
若属于下列已知失败，还会说明原因和处理方法。同样的内容写入 `launch.json` 的 `outcome.diagnosis`。
要再次查看某次运行的说明：

<!-- not run: needs a run that failed -->
```bash
python tools/diagnose.py logs/latest
```

以最先失败的 rank 的日志为主；若原因出现在其他 rank 的日志中，会注明该 rank。

## 添加自己的条目

写入同样格式的文件，并用环境变量 `LAUNCH_DIAGNOSES` 指定；其条目优先于下列条目。文件中的错误会连同行号给出，
该条目被跳过，报告照常进行。

<!-- file my_diagnoses.yaml -->
```yaml
diagnoses:
  - code: license-server
    patterns: ['license .* denied']    # Python 正则表达式，在日志的每一行中查找
    status: [42]                       # 或退出码；128+N 表示信号 N
    targets: [Ascend, GPU]             # 适用的 --device_target；可省略：全部
    cause: no license is free
    remedy: wait, or ask the owner of the license server
    zh:                                # 可省略
      cause: 没有空闲的许可证
      remedy: 等待，或联系许可证服务器的负责人
```
"""

_STEPS = re.compile(r"(?:; |；)(?![^(（]*[)）])")  # between the parts of a remedy, but not within brackets
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


def page(language: str = "en") -> str:
    """The whole of docs/when_it_fails.md, or with "zh" of docs/zh/when_it_fails.md."""
    entries, complaints = known_failures.load_file(known_failures.FILE)
    if complaints:
        raise SystemExit("\n".join(complaints))
    head = _HEAD_ZH if language == "zh" else _HEAD
    return "\n".join([head, f"## {_WORDS[language][0]}\n", *(_section(entry, language) for entry in entries)])


def _section(entry: known_failures.KnownFailure, language: str) -> str:
    _, seen, status, cause, remedy, oom, colon, holds = _WORDS[language]
    why, what = entry.zh if entry.zh and language == "zh" else (entry.cause, entry.remedy)
    signs = [_code(sample) for sample in entry.samples]
    if entry.status:
        signs.append(f"{status} {', '.join(map(str, sorted(entry.status)))}{oom if entry.oom_kill else ''}")
    items = [(cause, [why]), (remedy, _STEPS.split(what)), (seen, signs)]
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
