"""All Python commands have one set of options: the same thing has the same name, and the same name the same meaning."""

import argparse
import importlib

import pytest
from suite import needs
from suite.cases import for_each

from hccl_tools.check import rules
from hccl_tools.common import language, option_table
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from tools.command import table as launch_table
from tools.pages.commands import PYTHON_COMMANDS

_ROOMS = {"diagnose": "diagnosis", "preflight": "preflight"}
_OF_TABLES = {"hccl_tools": "build"}  # the others: merge_hccl is merge
COMMANDS = [*PYTHON_COMMANDS, "hccl_tools/check_network.py", "tools/preflight/main.py"]
NEED_NOTHING = {"hccl_tools", "watch", "report", "runs", "diagnose", "plot_log", "preflight"}
LAUNCH = {**launch_table.NAMED, **launch_table.SHARED}


def name_of(command):
    """The name of a command, whose file is that or `main` in its room."""
    return command.removesuffix("/main.py").rpartition("/")[2].partition(".")[0]


def main_of(command):
    """The function of a command; its module is imported, so its packages must be there."""
    needs.need_packages_of(command)
    folder, name = command.partition("/")[0], name_of(command)
    if name in _ROOMS:
        return importlib.import_module(f"tools.{_ROOMS[name]}.main").main
    of_tables = f"hccl_tools.commands.{_OF_TABLES.get(name, name.removesuffix('_hccl'))}"
    return importlib.import_module(of_tables if folder == "hccl_tools" else f"tools.{name}").main


@pytest.fixture
def parser_of(monkeypatch):
    """parser_of(command, "zh"): its parser, in this language."""

    class Found(Exception):
        pass

    def found(self, _args=None, _namespace=None):
        raise Found(self)

    def parser(command, name="en"):
        monkeypatch.setenv("LAUNCH_LANG", name)
        language.use(name)
        monkeypatch.setattr(Parser, "parse_args", found)
        with pytest.raises(Found) as caught:
            main_of(command)([])
        monkeypatch.undo()
        return caught.value.args[0]

    yield parser
    language._catalogue.cache_clear()


def shown(parser):
    """The options that --help shows, but for itself."""
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return [action for action in actions if action.option_strings and action.dest != "help"]


@for_each("name", language.NAMES)
@for_each("command", COMMANDS)
def test_every_option_is_in_the_table_and_means_there_what_it_means_here(parser_of, command, name):
    parser = parser_of(command, name)
    language.use(name)
    for action in shown(parser):
        known = option_table.TABLE[action.dest]
        assert action.option_strings == (known.shown or f"--{action.dest}").split()
        takes = "-" if action.nargs == 0 else "|".join(action.choices) if action.choices else action.metavar
        assert takes == known.takes, action.dest
        meaning = tr(known.meaning)
        assert action.help.startswith(meaning)
        note = action.help[len(meaning) :]
        assert not note or note.startswith((" (", "; ", ", ", ": ") if name == "en" else ("（", "；", "，", "：")), note
        assert name == "en" or meaning != known.meaning, f"not translated: {meaning}"


@for_each("command", COMMANDS)
def test_old_names_are_taken_and_not_shown(parser_of, command):
    parser = parser_of(command)
    text = parser.format_help()
    for action in shown(parser):
        for old in option_table.TABLE[action.dest].old.split():
            assert parser._option_string_actions[old] is action
            assert f" {old} " not in text.replace(",", " ").replace("]", " ")
        spelt = action.option_strings[0].replace("_", "-")
        assert parser._spelt(f"{spelt}=a-b") == f"{action.option_strings[0]}=a-b"
    assert "--format" not in text


def test_no_two_names_are_one_thing_and_no_name_is_two_things():
    names = [word for name, option in option_table.TABLE.items() for word in (f"--{name}", *option.old.split())]
    assert len(set(names)) == len(names)
    meanings = [option.meaning for option in option_table.TABLE.values()]
    assert len(set(meanings)) == len(meanings)
    assert not [name for name in option_table.TABLE if "-" in name]


def test_every_option_of_the_table_belongs_to_a_command(parser_of):
    found = {action.dest for command in COMMANDS for action in shown(parser_of(command))}
    assert found == set(option_table.TABLE)


@pytest.mark.parametrize("name", language.NAMES)
def test_an_option_that_scripts_have_too_means_the_same_there(monkeypatch, name):
    monkeypatch.setenv("LAUNCH_LANG", name)
    language.use(name)
    both = []
    for key, meaning in LAUNCH.items():
        option, _, takes = key.partition(" ")
        if option in option_table.TABLE:
            known = option_table.TABLE[option]
            assert (takes, tr(meaning)[: len(tr(known.meaning))]) == (known.takes, tr(known.meaning)), option
            both.append(option)
    assert {
        "devices",
        "log_dir",
        "pod_wait",
        "hostfile",
        "generation",
        "json",
        "lang",
        "hccn_conf",
        "ssh",
        "config",
        "version",
        "train_script",
    } == set(both)
    language._catalogue.cache_clear()


def test_no_name_of_a_script_is_an_old_name_of_another_thing():
    names = {f"--{key.partition(' ')[0]}" for key in LAUNCH}
    old = {word: name for name, option in option_table.TABLE.items() for word in option.old.split()}
    assert not names & set(old)


def test_the_table_knows_the_generations():
    assert option_table.TABLE["generation"].takes == "|".join([*rules.GENERATIONS, "any"])


@for_each("command", COMMANDS)
def test_a_command_that_needs_arguments_says_so_without_any(command, capsys, monkeypatch, tmp_path):
    main = main_of(command)
    if name_of(command) in NEED_NOTHING:
        return
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("usage: ")
    assert "the following arguments are required: " in said.err or "name at least one FILE" in said.err


@pytest.mark.parametrize("name", sorted(NEED_NOTHING - {"hccl_tools", "preflight"}))
def test_a_command_that_needs_none_looks_for_the_newest_run(name, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        status = main_of(f"tools/{name}.py")([])
    except SystemExit as ended:
        status = ended.code
    assert (status, "usage: " in capsys.readouterr().err) == (2, False)


# ---- the parser ------------------------------------------------------------------------------------------------------


@pytest.fixture
def parser():
    made = Parser("x.py")
    made.option("log_dir", default="logs")
    made.option("output")
    made.option("svg")
    made.json("table")
    made.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    return made


@pytest.mark.parametrize("typed", ["--log_dir x", "--log-dir x", "--log-dir=x", "--logs x", "--logs=x"])
def test_an_option_has_its_value_however_it_is_typed(parser, typed):
    assert parser.parse_args(typed.split()).log_dir == "x"


@pytest.mark.parametrize(
    ("typed", "json", "svg"),
    [
        ("", False, False),
        ("--json", True, False),
        ("--format json", True, False),
        ("--format=svg", False, True),
        ("--json --format table", False, False),
    ],
)
def test_the_forms_of_earlier_versions_are_taken(parser, typed, json, svg):
    found = parser.parse_args(typed.split())
    assert (found.json, found.svg) == (json, svg)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--log-dirs x", "--log_dir"),
        ("--logz x", "--log_dir"),
        ("--jsn", "--json"),
        ("-json", "--json"),
        ("--formt json", "--json"),
        ("--ot x", "--output"),
        ("--outp x", "--output"),
    ],
)
def test_a_mistake_names_the_option_that_help_shows(parser, typed, meant, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(typed.split())
    assert capsys.readouterr().err.endswith(f"unrecognized arguments: {typed}; did you mean {meant}?\n")


@pytest.mark.parametrize("typed", ["--answr", "--xyz", "word"])
def test_a_word_that_is_like_nothing_gets_no_proposal(parser, typed, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args([typed])
    assert capsys.readouterr().err.endswith(f"unrecognized arguments: {typed}\n")


def test_words_after_two_hyphens_stay_as_they_are():
    made = Parser("x.py")
    made.option("log_dir")
    made.add_argument("file")
    assert made.parse_args(["--", "--log-dir"]).file == "--log-dir"


def test_what_was_an_argument_may_still_be_one(capsys):
    made = Parser("x.py")
    made.option("config")
    made.option("ranks")
    made.option("output")
    made.former_arguments("config", "output")
    for typed in ("c -n 8 o", "c o -n8", "--config c o --ranks 8", "--output o c --ranks=8", "-c c --out o -n 8"):
        found = made.parse_args(typed.split())
        assert (found.config, found.ranks, found.output) == ("c", "8", "o"), typed
    for typed, said in (("c", "required: --output"), ("", "required: --config, --output"), ("a b c", "arguments: c")):
        with pytest.raises(SystemExit):
            made.parse_args(typed.split())
        told = capsys.readouterr().err
        assert told.endswith(f"{said}\n")
        assert told.startswith(
            "usage: x.py [-h] [--lang {zh,en}] [--version] --config FILE [--ranks N]\n            --output FILE\n"
        )
