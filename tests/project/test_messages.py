"""The Chinese messages: none is missing, and each has the values of the English one."""

import functools
import pathlib
import re
import string

import documents
import polib
import pytest

from hccl_tools.common import language, script_help
from tools.command import language as typed_language
from tools.pages import messages

CHINESE = re.compile("[\u4e00-\u9fff]")
HINT = "type: python -m tools.pages.messages"
SHELL = ["host_check.py"]  # where "; " joins commands


@functools.cache
def catalogue():
    """Read when a test needs it: each worker imports this file."""
    return polib.pofile(messages.CATALOGUE)


@functools.cache
def collected():
    return messages.collected()


@pytest.mark.slow
def test_the_catalogue_has_the_messages_of_the_code():
    assert {entry.msgid for entry in catalogue()} == set(collected()), HINT


def test_every_message_is_translated():
    assert [entry.msgid for entry in catalogue() if not entry.msgstr] == [], f"no translation in {messages.CATALOGUE}"


@pytest.mark.slow
def test_the_compiled_catalogue_is_that_of_the_text():
    compiled = polib.mofile(messages.compiled(messages.CATALOGUE))
    assert {entry.msgid: entry.msgstr for entry in compiled} == {e.msgid: e.msgstr for e in catalogue()}, HINT


def test_the_compiled_catalogue_is_next_to_the_text_whatever_the_folder_is_called():
    assert messages.compiled("/home/x.port/zh/launch.po") == "/home/x.port/zh/launch.mo"


def test_the_help_of_a_script_is_chinese_but_for_its_commands(monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    language._catalogue.cache_clear()
    try:
        for path in pathlib.Path(messages.ROOT, "scripts").glob("*.sh"):
            said = [line for line in script_help.page(str(path)) if line and not line.startswith(" ")]
            assert said and all(map(CHINESE.search, said)), path
    finally:
        language._catalogue.cache_clear()


def test_the_help_of_a_script_ends_with_its_comment(monkeypatch, tmp_path):
    """Of a script that the catalogue does not know, such as the user's own, it is what the script has."""
    (tmp_path / "own.sh").write_text(
        "#!/usr/bin/env bash\n# Trains mine.\n#\n# Usage: bash own.sh\ncase x in esac\n# no\n"
    )
    for name in ("zh", "en"):
        monkeypatch.setenv("LAUNCH_LANG", name)
        language._catalogue.cache_clear()
        usage = "用法：" if name == "zh" else "Usage:"
        assert script_help.page(str(tmp_path / "own.sh")) == ["Trains mine.", "", f"{usage} bash own.sh"]
    language._catalogue.cache_clear()


# An English text of a script, and the same in Chinese behind it or before it. Each is quoted, or one word.
TEXT = r"""(?:"[^"]*"|'[^']*'|[^\s"')]+)"""
SHOWN = re.compile(rf"LAUNCH_SHOWN=({TEXT}) ;;")
SAID = re.compile(rf"say ({TEXT}) ({TEXT})\)")
VALUE = re.compile(r"\$\w+")
SPEAKING = ("lib/start.sh", "doctor.sh")


def test_what_the_scripts_say_themselves_is_in_both_languages():
    """Where no Python can translate: bash has both texts, side by side."""
    texts = {name: (pathlib.Path(messages.ROOT) / "scripts" / name).read_text(encoding="utf-8") for name in SPEAKING}
    shown = SHOWN.findall(texts["lib/start.sh"])
    chinese, english = ([text for text in shown if bool(CHINESE.search(text)) is wanted] for wanted in (True, False))
    said = SAID.findall(texts["doctor.sh"])
    assert len(said) == texts["doctor.sh"].count("$(say ")
    pairs = [*zip(english, chinese), *said]
    assert len(english) == len(chinese) > 2 and len(said) > 8
    wrong = [pair for pair in pairs if CHINESE.search(pair[0]) or not CHINESE.search(pair[1])]
    wrong += [pair for pair in pairs if sorted(VALUE.findall(pair[0])) != sorted(VALUE.findall(pair[1]))]
    assert wrong == []


def values(text):
    return sorted((name, spec, conversion) for _, name, spec, conversion in string.Formatter().parse(text) if name)


# A mark of Latin text between Chinese ones, or before a value that follows Chinese; what is code stays as it is.
HALF = re.compile(r"[\u4e00-\u9fff）」”}][,;!?](?= |[\u4e00-\u9fff{]|$)|[\u4e00-\u9fff）]:(?= |[\u4e00-\u9fff{]|$)|; ")
CODE = re.compile(
    r"`[^`]*`|'[^'\u4e00-\u9fff]*'|"
    r'\[\{.*\.\.\.\]|"[^"]*"|\[[^\]]*\]|\([^()\u4e00-\u9fff]*\)|[A-Za-z0-9_.-]+:(?= )|eval:|^  .*$',
    re.MULTILINE,
)


def test_chinese_sentences_have_chinese_punctuation():
    found = [
        entry.msgstr
        for entry in catalogue()
        if CHINESE.search(entry.msgstr) and HALF.search(CODE.sub("", entry.msgstr))
    ]
    assert found == []


def test_the_chinese_pages_have_chinese_punctuation():
    found = []
    for path in [*documents.ROOT.glob("docs/zh/*.md"), documents.ROOT / "README_CN.md"]:
        prose = re.sub(
            r"^```.*?^```|<!--.*?-->|`[^`\n]*`|\]\([^)]*\)", "", path.read_text(encoding="utf-8"), flags=re.M | re.S
        )
        found += [
            f"{path.name}: {line}"
            for line in prose.split("\n")
            if re.search(r"[\u4e00-\u9fff][,;:!?](?=[\u4e00-\u9fff ]|$)", line)
        ]
    assert found == []


@pytest.mark.slow
def test_what_the_code_joins_has_the_punctuation_of_the_language():
    """Clauses that are parts of one sentence go through words.clauses; "; " in a shell command is another thing."""
    joined = re.compile(r'"; "\.join|f"(?!.*tr\(\'[^\']*\}; \{)[^"]*\}; ?\{')
    found = []
    for path in [*documents.ROOT.glob("tools/**/*.py"), *documents.ROOT.glob("hccl_tools/**/*.py")]:
        lines = path.read_text(encoding="utf-8").split("\n")
        found += [f"{path.name}:{row}" for row, line in enumerate(lines, 1) if joined.search(line)]
    assert [place.partition(":")[0] for place in found] == SHELL, found


def test_a_translation_has_the_values_of_the_message():
    of_headers = {message for message, paths in collected().items() if paths[0].endswith(".sh")}
    entries = [entry for entry in catalogue() if entry.msgid not in of_headers]
    assert [entry.msgid for entry in entries if values(entry.msgstr) != values(entry.msgid)] == []


@pytest.mark.parametrize(
    ("environment", "chinese"),
    [
        ({}, False),
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, True),
        ({"LANG": "C", "LANGUAGE": "zh"}, False),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "fr:zh_CN:en"}, True),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh"}, False),
        ({"LANG": "de_DE.UTF-8"}, False),
        ({"LANG": "C", "LAUNCH_LANG": "zh"}, True),
        ({"LANG": "zh_CN.UTF-8", "LAUNCH_LANG": "en"}, False),
        ({"LANG": "zh_CN.UTF-8", "LAUNCH_LANG": "x"}, True),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else None,
)
def test_the_language_is_that_of_the_locale_and_of_launch_lang(environment, chinese):
    assert language.is_chinese(environment) is chinese
    exported = typed_language.exported([], environment)
    assert (exported == "zh") is chinese and exported in ("", "zh", environment.get("LAUNCH_LANG"))


@pytest.mark.parametrize(
    ("words", "of_command", "of_script"),
    [
        (["--lang", "zh", "x.yaml"], "zh", "zh"),
        (["x.yaml", "--lang=en", "--lang", "zh"], "en", "en"),
        (["--lang", "fr"], "", ""),
        (["--", "--lang", "zh"], "", ""),
        (["x.py", "--lang", "zh"], "zh", ""),  # of a script: the program's own word
        (["-m", "x", "--lang", "zh"], "zh", ""),
        (["--train_script", "x.py", "--lang", "zh"], "zh", "zh"),
    ],
    ids=" ".join,
)
def test_the_first_lang_of_the_command_line_counts(words, of_command, of_script):
    assert (language.typed(words), typed_language.typed(words)) == (of_command, of_script)


def test_values_are_put_in_their_places_and_not_read_again(monkeypatch):
    monkeypatch.setattr(language, "_catalogue", lambda: None)
    assert language.tr("{path}: no such folder", path="{path} %s {0}") == "{path} %s {0}: no such folder"
    assert language.tr("a {brace") == "a {brace"
