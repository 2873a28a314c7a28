"""Texts for regular expressions; Python's `re` is the foreign judge."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.errors import RequestError
from mockllm.generation.keyed import Draws, make_key
from mockllm.generation.pattern import MAX_TEXT_CHARS, Pattern, PatternError, generate

KEY = make_key(0, b"pattern")

PATTERNS = [
    "",
    "abc",
    r"^\d{5}(-\d{4})?$",
    r"[a-z]+@[a-z]+\.(com|org)",
    r"^[\w.-]{3,10}$",
    r"(?:yes|no|maybe) \S+\s?$",
    r"^(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])$",
    r"a{,3}b{2,}c{4}d*?e+?f??",
    r"^[^a-z]*$",
    r"[]^-]+[\]\\]",
    r"\bfoo\b|\Bbar",
    r"\x41\u0042\t\.\/\-",
    r"x{y}{",
    r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,4}|(?=[\d.]{1,7}0*$)\d{0,4}\.\d{0,2}0*$)",
    r"^(?=.*[A-Z])(?=.*\d)(?=.*[a-z])[A-Za-z\d]{8,}$",
    r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$",
    r"(?<=a)b|ab",
    r"[^\x00-\x7f]{2}",
    r"\D\W\S[\d\s]",
    r"(a|b|)*c$",
    r"\Ax\Z",
    r"a(?#a comment)b",
]

TEXTS = ["", "a", "abc", "12345", "12345-6789", "yes x\n", "2024-05", "foo bar", "é", "ABcd1234", "\n", "P1D", "ab"]


@pytest.mark.parametrize("source", PATTERNS)
def test_what_is_made_matches(source: str) -> None:
    pattern = Pattern(source)
    judge = re.compile(source)
    for number in range(40):
        draws = Draws(make_key(number, b"made"))
        assert judge.search(pattern.make(draws))
        assert judge.fullmatch(pattern.make(draws, whole=True))


@pytest.mark.parametrize("source", PATTERNS)
@pytest.mark.parametrize("text", TEXTS)
def test_the_matcher_agrees_with_re(source: str, text: str) -> None:
    assert Pattern(source).search(text) == (re.search(source, text) is not None)
    assert Pattern(source).fullmatch(text) == (re.fullmatch(source, text) is not None)


atoms = st.sampled_from(["a", "b", "[ab]", "[^a]", r"\d", ".", r"\w", "^", "$", r"\b", "1", r"\s", "-"])


def _larger(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeats = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}", "*?", "+?"])
    return (
        st.lists(part, min_size=1, max_size=3).map("".join)
        | st.lists(part, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})")
        | st.tuples(part, repeats).map(lambda two: f"(?:{two[0]}){two[1]}")
        | part.map(lambda one: f"(?={one})")
        | part.map(lambda one: f"(?!{one})")
    )


sources = st.recursive(atoms, _larger, max_leaves=8)


@given(sources, st.text("ab1 -\n", max_size=8))
def test_the_matcher_agrees_with_re_on_any_pattern(source: str, text: str) -> None:
    assert Pattern(source).search(text) == (re.search(source, text) is not None)


@given(sources, st.integers(0, 12), st.integers(0, 8))
def test_bounds_of_length_are_kept_or_refused(source: str, low: int, more: int) -> None:
    try:
        text = Pattern(source).make(Draws(KEY), low, low + more)
    except PatternError:
        return
    assert low <= len(text) <= low + more
    assert re.search(source, text)


@pytest.mark.parametrize(
    ("source", "low", "high"),
    [
        ("^sk-", 12, 12),
        ("@", 30, 40),
        (r"\.json$", 20, 20),
        ("^[a-z]+$", 500, 500),
        ("^(ab|c){2,}$", 9, 9),
        ("x|^y$", 5, 5),
    ],
)
def test_lengths_are_met(source: str, low: int, high: int) -> None:
    text = Pattern(source).make(Draws(KEY), low, high)
    assert low <= len(text) <= high
    assert re.search(source, text)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("(a", "missing )"),
        ("a)", "unbalanced )"),
        ("[a", "missing ]"),
        ("*a", "nothing to repeat"),
        ("a**", "multiple repeats"),
        ("a{3,1}", "wrong way round"),
        ("[z-a]", "wrong way round"),
        (r"(a)\1", "backreferences"),
        (r"(?P<n>a)(?P=n)", "backreferences"),
        (r"(?<n>a)\k<n>", "backreferences"),
        ("(?i)a", "inline flags"),
        ("(?>a)b", "atomic groups"),
        ("a++", "possessive"),
        (r"\p{Script=Greek}", "property"),
        ("a\\", "lone backslash"),
        (r"\xZZ", "hexadecimal"),
        ("a{99999999999}", "digits"),
        ("(?=b)a", "no text was found"),
        (r"[^\s\S]", "no characters"),
        ("(" * 60 + ")" * 60, "nested groups"),
        ("a" * 20_000, "longer than"),
        ("a{100000}", f"{MAX_TEXT_CHARS} are allowed"),
    ],
)
def test_what_is_refused_is_named(source: str, words: str) -> None:
    with pytest.raises(RequestError, match=re.escape(words)) as caught:
        generate(source, KEY, param="guided_regex")
    assert (caught.value.status, caught.value.param) == (400, "guided_regex")


@pytest.mark.parametrize(
    "source",
    [
        "((((|a){1000}){1000}){1000})",
        "((a|){0,9}){60000}x",
        "(?:(?:a?){1000}){1000}",
        "(((a*)*)*)*b{60000}",
        "^(?=(?=(?=.*a).*b).*c)[abc]{50000}$",
    ],
)
def test_hostile_patterns_end(source: str) -> None:
    """Each would take longer than anybody waits, if its work were not counted."""
    with suppress(RequestError):
        assert len(generate(source, KEY)) <= MAX_TEXT_CHARS


def test_matching_never_backtracks() -> None:
    """Python's `re` takes exponential time on these."""
    assert not Pattern("^(a+)+$").search("a" * 50_000 + "b")
    assert Pattern("^(a|a)*c|^(a|a)*b$").search("a" * 1000 + "b")
    assert not Pattern("(.*a.*){20}").search("a" * 19 + "b" * 300)


def test_the_key_decides() -> None:
    texts = {generate(r"[a-z]{8}\d{4}", make_key(number, b"")) for number in range(50)}
    assert len(texts) == 50
    assert generate(r"[a-z]{8}", KEY) == generate(r"[a-z]{8}", KEY)


def test_ecma_escapes_and_properties() -> None:
    """Not known to `re`, so judged by hand."""
    assert generate(r"\u{41}\cJ", KEY) == "A\n"
    assert generate(r"^\p{Lu}\p{L}{3}$", KEY).isalpha()
    emoji = Pattern(r"^(?=[\s\S]*[\p{Extended_Pictographic}])[\p{Extended_Pictographic}\p{Emoji_Component}]+$")
    assert ord(emoji.make(Draws(KEY))[0]) > 0x2000
    assert not emoji.search("abc")
