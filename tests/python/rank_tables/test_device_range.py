import pytest

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
    ],
)
def test_a_range_or_a_list_names_its_devices_in_order(text, devices):
    assert device_range.parse(text) == devices


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("[0-4)", "'-' is not allowed in it"),
        ("(0,4]", "'(' is not allowed in it"),
        ("[0,4]", "']' is not allowed in it"),
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
        ("-1", "'-' is not allowed in it"),
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
        device_range.parse("[0-8)")


def test_a_number_of_many_digits_is_cut_in_the_message():
    with pytest.raises(device_range.RangeError) as refusal:
        device_range.parse("[0," + "9" * 5000 + ")")
    assert ": " + "9" * 20 + " is too large" in str(refusal.value)
