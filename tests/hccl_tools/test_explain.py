import re
import subprocess
import sys

from suite.cases import for_each

from hccl_tools.check import explain, schema_words


def test_the_page_of_the_checks_is_what_the_code_says(root):
    page = (root / "docs" / "rank_table_checks.md").read_text(encoding="utf-8")
    assert page == explain.page(), "run: python -m hccl_tools.check.explain > docs/rank_table_checks.md"


def test_the_chinese_page_has_the_same_codes_and_severities(root):
    page = (root / "docs" / "zh" / "rank_table_checks.md").read_text(encoding="utf-8")
    words = {"错误": {"error"}, "警告": {"warning"}, "错误或警告": {"error", "warning"}}
    said = [(code, words[word]) for code, word in re.findall(r"^\| `([a-z-]+)` \| (\S+) \|", page, re.MULTILINE)]
    assert said == [(code, {entry[0] for entry in found}) for code, found in explain.entries().items()]


def test_the_command_prints_the_page(root):
    command = [sys.executable, "-m", "hccl_tools.check.explain"]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=True)
    assert ended.stdout == explain.page()


@for_each("code", list(explain.entries()))
def test_every_code_is_explained(code):
    text = explain.text(code)
    assert text.startswith(code + "\n")
    assert "Why: " in text and "Remedy: " in text


def test_a_code_that_is_none_has_no_explanation():
    assert explain.text("no-such-code") is None


def test_the_codes_of_the_schema_are_explained(root):
    source = (root / "hccl_tools" / "check" / "schema_words.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'Problem\(\s*"([a-z-]+)"', source)) - {"unknown-key"}  # no rank table forbids keys
    assert schema_words and codes <= set(explain.entries())
