"""What the words of a script become."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import request, words

from hccl_tools.common import project
from hccl_tools.common.refusal import USAGE, Refusal
from tools.launch import instead
from tools.launch.engines import placement
from tools.launch.programs import config_checks, trainer_command
from tools.launch.request import Request


def test_words_become_numbers_flags_and_texts():
    asked = request("-o", "a=1", n="4", quiet="1", devices="0,1", lock_fd="", script_devices="")
    assert (asked.n, asked.quiet, asked.devices, asked.lock_fd) == (4, True, "0,1", None)
    assert (asked.worker_num, asked.dry_run, asked.log_dir) == (None, False, None)
    assert asked.trainer_arguments == ("-o", "a=1")


def test_of_a_word_that_is_there_twice_the_last_counts_as_the_users_comes_after_the_scripts():
    assert Request.from_words(["config=own.yaml", *words(config="users.yaml")]).config == "users.yaml"


def test_a_value_may_hold_anything():
    assert request(data_path="a=b\n--").data_path == "a=b\n--"
    assert request(config="").config == ""


def test_a_request_does_not_change():
    with pytest.raises(AttributeError):
        request().run_dir = "logs"


@pytest.mark.parametrize("given", [{"no_such_key": "1"}, {"config_": "x"}])
def test_a_word_that_nobody_declared_is_a_mistake_of_the_script(given):
    with pytest.raises(KeyError):
        request(**given)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"n": "0"}, "-n 0 is not a number from 1 to 65536"),
        (
            {"worker_num": "2--local_worker_num=2"},
            "--worker_num 2--local_worker_num=2 is not a number; a blank is missing before --local_worker_num=2",
        ),
        ({"worker_num": "x"}, "--worker_num x is not a number from 1 to 65536"),
        ({"worker_num": "९"}, "--worker_num ९ is not a number from 1 to 65536"),
        ({"node_rank": "-1"}, "--node_rank -1 is not a number from 0 to 65536"),
        ({"master_port": "65536"}, "--master_port 65536 is not a number from 1024 to 65535"),
        ({"rank_start": "1\n", "placement": "server"}, "RANK_START 1\\n is not a number from 0 to 65536"),
        ({"rank_size": "x", "placement": "server"}, "RANK_SIZE x is not a number from 1 to 65536"),
        ({"rank_size": "x"}, "RANK_SIZE x: write 1, 2, 4 or 8"),
        ({"rank_size": "3"}, "RANK_SIZE 3: write 1, 2, 4 or 8"),
        ({"device_target": "TPU"}, "--device_target TPU: run.sh takes Ascend and CPU"),
        ({"device_target": "TPU", "target_is_argument": "1"}, "DEVICE_TARGET TPU: run.sh takes Ascend and CPU"),
        ({"device_target": "gpu"}, "--device_target gpu: run.sh takes Ascend and CPU; for GPUs: scripts/run_gpu.sh"),
        ({"device_target": "x", "engine": "msrun"}, "--device_target x: run.sh takes Ascend, GPU and CPU"),
    ],
)
def test_what_is_wrong_is_said_as_it_was_typed(given, line):
    with pytest.raises(Refusal) as refusal:
        request(**given)
    assert (refusal.value.status, refusal.value.lines) == (USAGE, (line,))


def test_the_target_is_found_however_it_was_written():
    assert request(device_target="cpu").device_target == "CPU"


@pytest.mark.parametrize("card", ["0xd802", None])
@pytest.mark.parametrize(("typed", "found"), [("910A", "910A"), ("A3", "A3"), ("any", None), (None, "this host's")])
def test_the_rules_of_a_chip_hold_where_it_is_named_or_this_hosts(chip, card, typed, found):
    if card:
        chip(card)
    asked = request(**{"generation": typed} if typed else {})
    assert asked.chip == ({"0xd802": "A2", None: None}[card] if found == "this host's" else found)


@pytest.mark.parametrize("typed", ["910a", "", "A4", "910A|A2"])
def test_a_generation_that_is_none_is_refused(typed):
    with pytest.raises(Refusal) as refusal:
        request(generation=typed)
    assert refusal.value.lines == (f"--generation {typed}: write 910A, A2, A3, 950 or any",)


_TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["9" * 5000, "²", "٣", "[0,99999999999)", "0," * 9999, "-1", "", "\udcff", "[" * 9999, "1e999"]),
)
_WORDS = st.sampled_from(["-o", "--opt", "--", "a=1", "scheduler.num_epochs=0x_", "system=&a [*a]", "-o=1", "=", "."])


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from([name for name in Request._fields if name not in ("config", "engine")]), _TEXTS),
    st.lists(_WORDS | _TEXTS, max_size=6),
)
def test_no_words_make_planning_raise_anything_else(given_words, arguments):
    for name in ("trainer_arguments", "script"):
        given_words.pop(name, None)
    config = project.path("configs", "mnist", "lenet5_digits.yaml")
    try:
        asked = request(*arguments, **{"device_target": "CPU", **given_words, "config": config})
        placement.local(asked)
        config_checks.config(asked, config, True, trainer_command.arguments(asked))
    except Refusal as refusal:
        for line in refusal.lines:
            assert "\n" not in line


@pytest.mark.parametrize(
    ("words", "typed"), [("rank_table=-", "--rank_table"), ("rank_table_file=-", "RANK_TABLE_FILE")]
)
def test_a_launch_does_not_take_its_rank_table_from_standard_input(words, typed):
    with pytest.raises(Refusal, match=f"^{typed} -: every rank reads the table, .*cat >hccl.json$") as refused:
        Request.from_words(["script=x.sh", "engine=local", "device_target=CPU", words, "--"])
    assert refused.value.status == 2


def test_the_config_for_cpu_is_next_to_the_default_one_whatever_the_folder_is_called():
    assert instead.for_processors("/home/x.yaml_files/net.yaml") == "/home/x.yaml_files/net_cpu.yaml"
