"""No secret goes into a bundle, whatever hides it; and what explains a failure stays readable."""

import json
import time
from collections import Counter

import pytest

from tools.diagnosis.bundle import masking, names, structured

NOTHING = masking.Masker({})


def masked(text, **values):
    counts = Counter()
    masker = masking.Masker({value: name for name, value in values.items()})
    return masker.text(text, counts), counts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http_proxy=http://user:p@ss@proxy:8080/x", "http_proxy=http://<masked>@proxy:8080/x"),
        ("https://oauth2tokenlong1234@git.example/x", "https://<masked>@git.example/x"),
        ('"url": "http:\\/\\/user:pass@proxy:80"', '"url": "http:\\/\\/<masked>@proxy:80"'),
        ("Authorization: Bearer abc.def", "Authorization: <masked>"),
        ("'Authorization': 'Basic dXNlcjpwYXNz', 'x': 1", "'Authorization': '<masked>', 'x': 1"),
        ("('Authorization', 'Basic dXNlcjpwYXNz')", "('Authorization', '<masked>')"),
        ("sent Bearer abcdefgh to 10.0.0.1", "sent Bearer <masked> to 10.0.0.1"),
        ("Set-Cookie: a=b; c=d\nnext", "Set-Cookie: <masked>\nnext"),
        ("X-Auth-Token: abcdefghijk", "X-Auth-Token: <masked>"),
        ("train.py --password=hunter2 --lr 1", "train.py --password=<masked> --lr 1"),
        ("train.py --hub_token hunter2 --lr 1", "train.py --hub_token <masked> --lr 1"),
        ("['--password', 'hunter2', '--lr', '1']", "['--password', '<masked>', '--lr', '1']"),
        ("password: two words", "password: <masked> words"),
        ("password: 'two words'", "password: '<masked>'"),
        ('{"api_key": "a\\"b", "b": 1}', '{"api_key": "<masked>", "b": 1}'),
        ('say \\"password\\": \\"abc\\", \\"x\\"', 'say \\"password\\": \\"<masked>\\", \\"x\\"'),
        ("AccessKeyId=AKIDabcd SecretAccessKey=wJal", "AccessKeyId=<masked> SecretAccessKey=<masked>"),
        ("<SecretAccessKey>abcd</SecretAccessKey>", "<SecretAccessKey><masked></SecretAccessKey>"),
        ("ak=ABCDEFGHIJKLMN, sk: 'zzzzzzzzzzzz'", "ak=<masked>, sk: '<masked>'"),
        ("login hf_abcdefghijklmnopqrst done", "login <masked> done"),
        ("export MY_TOKEN=x1", "export MY_TOKEN=<masked>"),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb", "a\n<masked>\nb"),
    ],
)
def test_a_secret_is_masked_by_its_name_or_form(text, expected):
    assert masked(text)[0] == expected


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'conv1.weight'",
        "Unexpected key in state_dict: 'a'",
        "[ERROR] HCCL(1,python3): tag[key=1] exchanger key: 12345678",
        "SyntaxError: invalid token",
        "--max_tokens 4096 --num_key_value_heads=8 --tokenizer llama",
        "TOKENIZERS_PARALLELISM=false",
        "git clone git://git@github.com/x and http://10.0.0.1:8080/a?mail=me@here",
        "password: None, token: null, HF_TOKEN=",
        "node1 192.168.1.2 /home/me/train.py",
    ],
)
def test_what_explains_a_failure_stays(text):
    assert masked(text) == (text, {})


@pytest.mark.parametrize(
    "shown",
    [
        "s3cr3tvalue/1",
        "s3cr3t\nvalue/1",
        "s3cr3t\r\n    value/1",
        "s3cr\x00\x00\x003tvalue/1",
        "s3cr\x1b[1;31m3tvalu\x1b[0me/1",
        "s3c\x1b]0;a title\x07r3tvalue/1",
        "s3cr3tvalue%2F1",
        "czNjcjN0dmFsdWUvMQ==",
        "\0".join("s3cr3tvalue/1"),
    ],
)
def test_a_value_of_the_jobs_secrets_is_masked_wherever_it_is(shown):
    text, counts = masked(f"begin {shown} end", HF_TOKEN="s3cr3tvalue/1")
    assert text.rstrip("=").replace("=", "") == "begin <masked> end"
    assert counts == {"HF_TOKEN": 1}


def test_a_short_value_is_not_looked_for():
    assert (
        masked("seven 1234567 eight 12345678", A_KEY="1234567", B_KEY="12345678")[0] == "seven 1234567 eight <masked>"
    )


def test_a_value_with_blanks_is_found_too():
    assert masked("is a b c d e f here", MY_PASSWORD="a b c d e f")[0] == "is <masked> here"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass\x1b[1mword=abc", "pass\x1b[1mword=<masked>"),
        ("p\0a\0s\0s\0w\0d\0=\0x\0", "p\0a\0s\0s\0w\0d\0=\0<masked>\0"),
        ("Authorization:\n  Bearer eyJhbGciOi.xx\nZZZZZZZZZZZ\nnext line", "Authorization:\n  <masked>\nnext line"),
        ("MY_TOKEN=abcdefghij\\\nklmnopqrst\nnext line", "MY_TOKEN=<masked>\nnext line"),
        ("-----BEGIN PRIVATE KEY-----\nabcdefghijklm\nABCDEFGH", "<masked>"),
        ("abcdabcd\nABCDABCD\n-----END PRIVATE KEY-----", "<masked>-----END PRIVATE KEY-----"),
    ],
)
def test_a_secret_over_several_lines_or_with_escapes_in_it(text, expected):
    assert masked(text)[0] == expected


def test_secrets_that_overlap_are_one():
    text, counts = masked("curl http://me:hunter2hunter2@host", A_PASSWORD="hunter2hunter2")
    assert text == "curl http://<masked>@host" and sum(counts.values()) == 1


def test_masking_twice_changes_nothing():
    text, _ = masked("HF_TOKEN=abc http://a:b@c Authorization: Bearer x --password y ak=1234567890")
    assert masked(text) == (text, {})


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    [
        *("key", "key=", "KEY=", "password: x\n", "://", "://a:b", "a", "\0a", "\x1b[0ma", "eyJ", "hf_", "--key "),
        *("-----BEGIN PRIVATE KEY-----\n", "a\n-----END PRIVATE KEY", "abcdabcd\n", 'API_KEY="', "bearer ", "\\"),
    ],
)
def test_no_text_takes_long(piece):
    """Ten times the text takes about ten times as long, not a hundred times: the least of three counts."""

    def seconds(size):
        data = (piece * (size // len(piece))).encode()
        times = []
        for _ in range(3):
            begin = time.thread_time()
            NOTHING.spans(data)
            times.append(time.thread_time() - begin)
        return min(times)

    small, large = seconds(30_000), seconds(300_000)
    assert large < 40 * small + 0.1


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "MYSQL_PWD", "DB_PASS", "AWS_SECRET_ACCESS_KEY", "api_key", "MyPasswd", "SSH_AUTH_SOCK", "AK"),
        *("SESSION_COOKIE", "GOOGLE_APPLICATION_CREDENTIALS", "OBS_SK", "HTTP_AUTHORIZATION"),
    ],
)
def test_names_of_secrets(name):
    assert names.is_secret(name)


@pytest.mark.parametrize("name", ["PATH", "PWD", "OLDPWD", "RANK_ID", "TOKENIZATION_THREADS", "AUTHOR", "KEYBOARD"])
def test_names_of_others(name):
    assert not names.is_secret(name)


# --- environments and launch.json -------------------------------------------------------------------------------------

ENVIRONMENT = rb"""declare -x A="1"
declare -x HF_TOKEN="a\"b
second \$line"
declare -x MY_KEY=$'x\ny\346\261\211'
declare -x B_SECRET=two\ words
declare -x http_proxy="http://me:hunter2@proxy:80"
declare -x EMPTY_KEY=""
declare -x UNSET_KEY
declare -x Z="z"
"""


def test_an_environment_is_masked():
    counts = Counter()
    text = structured.environment(ENVIRONMENT, NOTHING, counts).decode()
    lines = text.splitlines()
    assert lines[0] == 'declare -x A="1"' and lines[-1] == 'declare -x Z="z"'
    assert 'HF_TOKEN="<masked>"' in text and "http://<masked>@proxy:80" in text and 'EMPTY_KEY=""' in text
    for secret in ("second", "hunter2", "words", "x\\n"):
        assert secret not in text
    assert set(counts) == {"HF_TOKEN", "MY_KEY", "B_SECRET", "user and password in a URL"}


def test_the_values_of_an_environment():
    found = structured.secrets_of_environment(ENVIRONMENT)
    assert found == {'a"b\nsecond $line': "HF_TOKEN", "x\ny汉": "MY_KEY", "two words": "B_SECRET"}


def test_an_environment_that_breaks_off_in_a_value():
    counts = Counter()
    assert structured.environment(b'declare -x A_KEY="abc\ndef', NOTHING, counts) == b'declare -x A_KEY="<masked>'


def test_launch_json_is_masked():
    counts = Counter()
    text = b'{"exports": {"MY_TOKEN": "x", "N": 1, "KEYS": {"a": ["b"]}}, "trainer": ["t.py", "--password", "p", "q"]}'
    found = json.loads(structured.document(text, NOTHING, counts))
    assert found["exports"] == {"MY_TOKEN": "<masked>", "N": 1, "KEYS": {"a": ["<masked>"]}}
    assert found["trainer"] == ["t.py", "--password", "<masked>", "q"]
    assert counts == {"MY_TOKEN": 1, "KEYS": 1, "password": 1}


@pytest.mark.parametrize("text", [b'{"password": "hunter2"', b"[" * 100_000 + b'"password": "hunter2"'])
def test_a_launch_json_that_is_none_is_masked_as_a_log(text):
    found = structured.document(text, NOTHING, Counter())
    assert b"hunter2" not in found and found.endswith(b'"password": "<masked>"')
