import re
import subprocess
import sys

import pytest

from tools.pages import options_page


@pytest.mark.parametrize(("language", "page"), [("en", "docs/options.md"), ("zh", "docs/zh/options.md")])
def test_the_pages_are_what_help_prints(root, language, page):
    told = "" if language == "en" else " zh"
    assert (root / page).read_text(encoding="utf-8") == options_page.page(language), (
        f"run: python -m tools.pages.options_page{told} > {page}"
    )


def test_every_text_has_a_translation_and_no_other_is_kept():
    known = options_page.translations()
    texts = set(options_page.texts())
    assert texts - set(known) == set(), "add them to docs/zh/options.yaml"
    assert set(known) - texts == set(), "no --help prints these any more; take them out of docs/zh/options.yaml"
    assert all(re.search("[\u4e00-\u9fff]", text) for text in known.values())


def test_no_command_for_users_is_left_out(root):
    internal = {"doctor.py", "check_network.py", "place_table.py", "launch_plan.py", "stacks.py", "scheduler.py"}
    started = {
        f"{folder}/{path.name}"
        for folder in ("hccl_tools", "tools")
        for path in (root / folder).glob("*.py")
        if path.read_text(encoding="utf-8").startswith("#!") and path.name not in internal
    }
    assert started == set(options_page.COMMANDS)
    assert set(options_page.ALONE) < set(options_page.SCRIPTS)


@pytest.mark.parametrize("command", options_page.COMMANDS)
def test_hyphens_and_underscores_are_the_same_in_python_commands_too(root, command):
    text = subprocess.run(
        [sys.executable, command, "--help"], cwd=root, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    typed = set(re.findall(r"^  -.*?(?=   |$)", text, re.MULTILINE))
    names = {name for line in typed for name in re.findall(r"--[a-z]+[-_][a-z_-]+", line)}
    for name in names:
        other = "--" + (name[2:].replace("_", "-") if "_" in name else name[2:].replace("-", "_"))
        assert other in names, f"{command} takes {name} and not {other}"


def test_old_and_new_argparse_are_read_alike():
    head = "usage: x.py [-h] FILE\n\nDoes it.\n\n"
    old = head + "optional arguments:\n  -h, --help  show\n  --config FILE, -c FILE  the config\n"
    new = head + "options:\n  -h, --help          show\n  --config, -c FILE   the\n      config\n"
    assert options_page.read(old) == options_page.read(new)
    assert options_page.read(new).options == [options_page.Option(("--config", "-c"), "FILE", "the config")]
    assert (options_page.read(new).purpose, options_page.read(new).usage) == ("Does it.", ["x.py FILE"])


def test_what_markdown_would_take_for_its_own_is_shown_as_it_is():
    assert options_page._shown(options_page.Option(("--console",), "0|all", "x")) == "`--console 0\\|all`"
    assert options_page._translator("en")("a|b <c>") == "a\\|b &lt;c>"
