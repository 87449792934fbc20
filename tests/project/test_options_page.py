import json
import os
import re
import subprocess
import sys

import pytest
from suite import needs

from tools.pages import commands, options_page, scripts_page, tab_options
from tools.pages.commands import Help, Option

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(("language", "page"), [("en", "docs/options.md"), ("zh", "docs/zh/options.md")])
def test_the_pages_are_what_help_prints(root, language, page):
    needs.need_packages()
    told = "" if language == "en" else " zh"
    assert (root / page).read_text(encoding="utf-8") == options_page.page(language), (
        f"run: python -m tools.pages.options_page{told} > {page}"
    )


def test_tab_offers_the_options_that_help_prints(root):
    needs.need_packages()
    file = "tools/front/tab/options.tsv"
    assert (root / file).read_text(encoding="utf-8") == tab_options.page(), (
        f"run: python -m tools.pages.tab_options >{file}"
    )


def test_every_text_of_the_chinese_page_is_chinese():
    needs.need_packages()
    for command in (*(f"scripts/{name}" for name in commands.SCRIPTS), *commands.PYTHON_COMMANDS):
        told = commands.ask(command, "zh")
        for text in (told.purpose, *(option.meaning for option in told.options)):
            assert re.search("[\u4e00-\u9fff]", text), f"{command}: {text}"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_command_that_is_asked_with_others_prints_what_it_prints_alone(language):
    needs.need_packages()
    for words in (("bash", "scripts/run_slurm.sh"), (sys.executable, "tools/train.py")):
        assert commands.text_of(words[1], language) == commands.printed(words, language)


def test_a_command_that_fails_among_others_is_left_out(tmp_path):
    for name, text in (("good.py", "print('help')"), ("bad.py", "raise SystemExit('no')"), ("worse.py", "1 / 0")):
        (tmp_path / name).write_text(f"if __name__ == '__main__':\n    {text}\n")
    (tmp_path / "bad.sh").write_text("exit 78\n")
    done = subprocess.run(
        [sys.executable, "-m", "tools.pages.asked", "bad.sh", "bad.py", "good.py", "worse.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(commands.ROOT)}, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"good.py": "help\n"}


def test_what_there_is_to_type_is_read_from_the_folders():
    assert set(commands.OTHERS) == {"check_network.sh", "doctor.sh", "preflight.sh"}
    assert {"ascend1p.sh", "run_slurm.sh"} < set(commands.LAUNCHING)
    assert {"hccl_tools/hccl_tools.py", "tools/train.py"} < set(commands.PYTHON_COMMANDS)
    assert not {"hccl_tools/check_network.py", "tools/__init__.py"} & set(commands.PYTHON_COMMANDS)


@pytest.mark.parametrize(("language", "row"), [
    ("en", "| `run_gpu.sh` | Trains on the GPUs of this machine; Open MPI starts the ranks. | Open MPI |"),
    ("en", "| `run_cluster.sh` | Trains on the servers of a rank table: .* | the launcher itself or Open MPI |"),
    ("zh", "| `doctor.sh` | 打印一页本机情况，.*。 | 不启动 rank |"),
])  # fmt: skip
def test_the_table_of_scripts_says_what_starts_the_ranks(language, row):
    rows = scripts_page.table(language).splitlines()
    assert len(rows) == len(commands.SCRIPTS) + 2
    assert [line for line in rows if re.fullmatch(row.replace("|", "\\|"), line)]
    assert len({line.count(" | ") for line in rows if "---" not in line}) == 1


def test_pages_with_the_table_of_scripts_are_up_to_date(root):
    for page in ("docs/index.md", "docs/zh/index.md"):
        text = (root / page).read_text(encoding="utf-8")
        assert "\n<!-- scripts -->\n" in text
        assert scripts_page.placed(page, text) == text, f"run: python -m tools.pages.scripts_page {page}"
    assert scripts_page.placed("x_CN.md", "a\n<!-- scripts -->\nold\n<!-- end of scripts -->\nb") == (
        f"a\n<!-- scripts -->\n{scripts_page.table('zh')}<!-- end of scripts -->\nb"
    )


def test_old_and_new_argparse_are_read_alike():
    head = "usage: x.py [-h] FILE\n\nDoes it.\n\n"
    old = head + "optional arguments:\n  -h, --help  show\n  --config FILE, -c FILE  the config\n"
    new = head + "options:\n  -h, --help          show\n  --config, -c FILE   the\n      config\n"
    option = Option(names=("--config", "-c"), value="FILE", meaning="the config")
    expected = Help(purpose="Does it.", usage=("x.py FILE",), options=(option,))
    assert commands.read(old) == commands.read(new) == expected


def test_what_markdown_would_take_for_its_own_is_shown_as_it_is():
    assert options_page._shown(Option(names=("--console",), value="0|all", meaning="x")) == "`--console 0\\|all`"
