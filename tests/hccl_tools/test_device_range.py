import pytest
from suite.cases import for_each

from hccl_tools.table import device_range


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("[0,8)", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("[0,16)", tuple(range(16))),
        ("[12,16)", (12, 13, 14, 15)),
        ("[0, 4)", (0, 1, 2, 3)),
        (" [ 4 , 6 ) ", (4, 5)),
        ("[64,65)", (64,)),
        ("[0,65)", tuple(range(65))),
        ("0", (0,)),
        ("64", (64,)),
        ("0,1,4,5", (0, 1, 4, 5)),
        ("5,4, 1 ,0", (5, 4, 1, 0)),
        ("0-7", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("0-3,8 - 9, 12", (0, 1, 2, 3, 8, 9, 12)),
        ("4-4", (4,)),
    ],
)
def test_a_range_or_a_list_names_its_devices_in_order(text, devices):
    assert device_range.parse(text) == devices


@for_each(
    "text, because",
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("[0,1-4)", "two numbers with a comma"),
        ("0-3-5", "0-3-5 has two dashes"),
        ("7-0", '7-0 runs backwards; write "0-7"'),
        ("0-", "a '-' must be between two numbers"),
        ("-0-3", "a '-' must be between two numbers"),
        ("0-65", "65 is too large"),
        ("0-3,2", "names device 2 twice"),
        ("(0,4]", "'(' is not allowed in it"),
        ("0,4]", "']' is not allowed in it"),
        ("[0,4", "the ')' that ends a range is missing"),
        ("0,4)", "the '[' that starts a range is missing"),
        ("[0)", "two numbers with a comma"),
        ("[0,1,2)", "two numbers with a comma"),
        ("[0,4)x", "'x' is not allowed in it"),
        ("[4,4)", "names no device"),
        ("[4,0)", "names no device"),
        ("0,,1", "single commas"),
        ("0,1,", "single commas"),
        ("0 1", "single commas"),
        ("00", "no leading zeros"),
        ("[00,4)", "no leading zeros"),
        ("-1", "a '-' must be between two numbers"),
        ("1.5", "'.' is not allowed in it"),
        ("[0，4)", "'，' is not an ASCII character"),
        ("０,１", "is not an ASCII character"),
        ("٣", "is not an ASCII character"),
        ("0,1,0", "names device 0 twice"),
        ("65", "65 is too large"),
        ("[0,66)", "66 is too large"),
        ("[0,100000000000)", "too large"),
        ("9" * 5000, "too large"),
    ],
)
def test_what_is_no_range_is_refused_with_the_reason(text, because):
    with pytest.raises(device_range.RangeError) as refusal:
        device_range.parse(text)
    assert because in str(refusal.value)


def test_a_refusal_shows_how_to_write_it():
    with pytest.raises(device_range.RangeError, match=r'write a range such as "\[0,8\)"'):
        device_range.parse("(0,8]")


@pytest.mark.parametrize(
    ("text", "devices", "right"),
    [
        ("[0,8]", range(8), "[0,8)"),
        ("[0, 16]", range(16), "[0,16)"),
        ("[4,8]", range(4, 8), "[4,8)"),
        ("[0,2]", range(2), "[0,2)"),
        ("[0-8)", range(8), "[0,8)"),
        ("[0-7)", range(7), "[0,7)"),
        ("[0-8]", range(8), "[0,8)"),
    ],
)
def test_a_range_as_other_tools_take_it_is_understood_with_a_remark(text, devices, right):
    assert device_range.parse(text) == tuple(devices)
    said = device_range.remark("--devices", text)
    assert said.startswith(f'note: --devices "{text}" is read as "{right}", which is devices ')


@pytest.mark.parametrize("text", [None, "[0,8)", "0,1", "0-7"])
def test_there_is_no_remark_on_what_is_in_the_grammar(text):
    assert device_range.remark("--devices", text) == ""


@pytest.mark.parametrize("text", ["[0,7]", "[0,3]", "[0,1]", "[4,7]", "[0-7]", "[0,5]"])
def test_a_range_that_can_mean_two_things_is_refused_with_both(text):
    with pytest.raises(device_range.RangeError) as refusal:
        device_range.parse(text)
    first, last = int(text[1]), int(text[3])
    assert f'can mean two things; write "[{first},{last})" for device' in str(refusal.value)
    assert f'or "[{first},{last + 1})" for devices {first}' in str(refusal.value)


def test_a_number_of_many_digits_is_cut_in_the_message():
    with pytest.raises(device_range.RangeError) as refusal:
        device_range.parse("[0," + "9" * 5000 + ")")
    assert ": " + "9" * 20 + " is too large" in str(refusal.value)
