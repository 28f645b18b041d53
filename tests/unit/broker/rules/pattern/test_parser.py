"""The parser: PCRE's syntax, what is refused and where."""

from __future__ import annotations

import pytest

from burrowmq.broker.rules.pattern.automaton import Automaton
from burrowmq.broker.rules.pattern.parser import BadPattern, parse
from burrowmq.broker.rules.pattern.tree import Characters, Repeat


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\d\D\w\W\s\S$", "1a_- x", "aa_- x"),
        (r"^\h\v\N\H\V$", "\t\nxab", "xabc"),
        (r"^\x41\x{42}\103\cA\0\e\a\f\r\t$".replace(r"\103", "C"), "ABC\x01\0\x1b\a\f\r\t", "ABC"),
        (r"^\Qa.b|c\E+$", "a.b|ccc", "axb|c"),
        (r"^[]a]+$", "a]", "b"),
        (r"^[^]a]+$", "b", "]"),
        (r"^[a\-z]+$", "a-z", "b"),
        (r"^[a-]+$", "a-", "b"),
        (r"^[\d-z]+$", "1-z", "a"),
        (r"^[a-\d]+$", "a-1", "b"),
        (r"^[\101\b\x42]+$", "A\bB", "C"),
        (r"^[[:^digit:][:upper:]]+$", "aA", "1"),
        (r"^[[:nope]+$", "[:nope", "x"),
        (r"^a{2}b{1,}c{,3}$", "aabc{,3}", "aabccc"),
        (r"^a{x}$", "a{x}", "a"),
        ("^(?i:aB)c$", "Abc", "AbC"),
        ("^(?i)a(?-i)b$", "Ab", "AB"),
        ("^((?i)a)b$", "Ab", "AB"),
        ("(?i)^[b-c]$", "C", "D"),
        ("^(?x) a b # comment\n c $", "abc", "a b c"),
        ("(?s)^a.b$", "a\nb", "ab"),
        ("^a.b$", "axb", "a\nb"),
        ("(?m)^b$", "a\nb\nc", "ab"),
        ("(?m)^$", "\n", "a\n"),
        ("a$", "a\n", "a\n\n"),
        (r"a\Z", "a\n", "ab"),
        (r"a\z", "a", "a\n"),
        (r"\Aa\b", "a-", "ab"),
        (r"a\B", "ab", "a-"),
        (r"^a\Rb$", "a\r\nb", "a\r\rb"),
        ("^(?<year>a)(?P<x>b)(?'y'c)(?:d)(?|e|f)$", "abcde", "abcd"),
        ("a(?#comment)b", "ab", "a"),
        ("^a*?b+?c??$", "aab", "aa"),
        ("^a|b$", "ax", "xa"),
        ("^(a|)b$", "b", "cb"),
        ("^ä+$", "ää", "a"),
        (r"^\.\*\i$", ".*i", "xi"),
        (r"x^*y", "xy", "x"),
        (r"^\b{0}a", "a", "ba"),
    ],
)
def test_syntax(pattern: str, yes: str, no: str) -> None:
    automaton = Automaton(parse(pattern))
    assert automaton.is_in(yes)
    assert not automaton.is_in(no)


@pytest.mark.parametrize(
    ("pattern", "reason", "place"),
    [
        ("(", "missing )", 1),
        ("a(b", "missing )", 3),
        ("a)b", "unmatched parentheses", 1),
        ("[", "missing terminating ] for character class", 1),
        ("[a", "missing terminating ] for character class", 2),
        ("[]", "missing terminating ] for character class", 2),
        ("*", "nothing to repeat", 0),
        ("a|+", "nothing to repeat", 2),
        ("a**", "nothing to repeat", 2),
        ("a\\", "\\ at end of pattern", 2),
        ("a{3,2}", "numbers out of order in {} quantifier", 5),
        ("a{70000}", "number too big in {} quantifier", 7),
        ("[z-a]", "range out of order in character class", 3),
        ("[[:nope:]]", "unknown POSIX class name", 3),
        ("(?<n", "syntax error in subpattern name (missing terminator)", 4),
        ("(?<1>a)", "group name must start with a non-digit", 3),
        ("(?<>a)", "subpattern name expected", 3),
        ("a{2}{3}", "nothing to repeat", 6),
        ("(?#", "missing ) after comment", 3),
        ("(?y)", "unrecognized character after (? or (?-", 2),
        ("(?i", "unrecognized character after (? or (?-", 3),
        (r"(a)\1", "back references are not supported", 4),
        (r"\k<a>", "back references are not supported", 1),
        ("(?R)", "atomic groups, conditions and recursion are not supported", 2),
        ("(?>a)", "atomic groups, conditions and recursion are not supported", 2),
        ("(?(1)a)", "atomic groups, conditions and recursion are not supported", 2),
        ("a++", "possessive repeats are not supported", 2),
        ("(*UTF8)a", "verbs are not supported", 2),
        (r"\pL", r"\p is not supported", 1),
        (r"[\pL]", r"\p is not supported", 2),
        (r"\x{110000}", r"character value in \x{} or \o{} is too large", 3),
        ("(" * 60 + ")" * 60, "parentheses are too deeply nested", 51),
    ],
)
def test_what_is_refused(pattern: str, reason: str, place: int) -> None:
    with pytest.raises(BadPattern) as caught:
        parse(pattern)
    assert (str(caught.value), caught.value.place) == (reason, place)


def test_a_lazy_repeat_is_a_repeat() -> None:
    assert parse("a*?") == parse("a*") == Repeat(Characters(((97, 97),)), 0, None)
