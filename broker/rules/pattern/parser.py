r"""PCRE's syntax to a tree, as far as it describes regular languages; reasons and places in PCRE's words.

Read: literals, `.`, classes with ranges and POSIX names, `\d \D \w \W \s \S \h \H \v \V \N \R`, escapes of control
characters, octal and hexadecimal numbers, `\Q...\E`, `^ $ \A \z \Z \b \B`, groups of all kinds, alternatives,
repeats greedy and lazy (which is all the same to a yes or no), look-ahead and look-behind of any length, comments, the
flags i, m, s and x.

Refused: back references, recursion, conditions, possessive repeats and atomic groups, `\K`, `\G`, `\p`, verbs. Depth is
bounded, so that no pattern exhausts the stack. Owns the position in one text; called by `compile_pattern`.

Longer than most modules because it is one grammar, read at one position.

Source: pcrepattern(3), pcresyntax(3), the error texts of pcre_compile.
"""

from __future__ import annotations

import string
from typing import Final, NoReturn

from burrowmq.broker.rules.pattern.tree import (
    MAX_CODE_POINT,
    Characters,
    Choice,
    Look,
    Node,
    Position,
    Repeat,
    Sequence,
    inverted,
    joined,
)

DEPTH_MAX = 50
REPEAT_MAX = 65535  # PCRE's


class BadPattern(ValueError):
    """The text is no usable regular expression; `place` counts its characters."""

    def __init__(self, reason: str, place: int = 0) -> None:
        super().__init__(reason)
        self.place = place


def _of(text: str) -> Characters:
    return joined([(ord(each), ord(each)) for each in text])


_DIGIT = Characters(((48, 57),))
_WORD = joined([(48, 57), (65, 90), (95, 95), (97, 122)])
_SPACE = _of(" \t\n\v\f\r")
_NEWLINE = _of("\n")
_ANY = Characters(((0, MAX_CODE_POINT),))
_CLASSES: Final = {
    "d": _DIGIT, "w": _WORD, "s": _SPACE, "h": _of(" \t\xa0"), "v": _of("\n\v\f\r\x85"), "N": inverted(_NEWLINE),
}  # fmt: skip
_CLASSES.update({name.upper(): inverted(_CLASSES[name]) for name in "dwshv"})
_POSIX: Final = {
    "alpha": [(65, 90), (97, 122)], "digit": [(48, 57)], "alnum": [(48, 57), (65, 90), (97, 122)],
    "upper": [(65, 90)], "lower": [(97, 122)], "space": list(_SPACE.ranges), "blank": [(9, 9), (32, 32)],
    "punct": [(33, 47), (58, 64), (91, 96), (123, 126)], "xdigit": [(48, 57), (65, 70), (97, 102)],
    "word": list(_WORD.ranges), "cntrl": [(0, 31), (127, 127)], "graph": [(33, 126)], "print": [(32, 126)],
    "ascii": [(0, 127)],
}  # fmt: skip
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "a": "\a", "e": "\x1b"}
_POSITIONS: Final = {"A": "begin", "z": "end", "Z": "last", "b": "word", "B": "inside"}
_UNSUPPORTED: Final = {
    "K": r"\K is not supported", "G": r"\G is not supported", "p": r"\p is not supported", "P": r"\P is not supported",
    "X": r"\X is not supported", "C": r"\C is not supported", "k": "back references are not supported",
    "g": "back references are not supported",
}  # fmt: skip
_LINE_END = Choice((Sequence((_of("\r"), _of("\n"))), _CLASSES["v"]))


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises: BadPattern.
    """
    reader = _Reader(text)
    tree = reader.choice(0)
    if reader.at < len(text):
        reader.fail("unmatched parentheses", reader.at)
    return tree


class _Reader:
    """One reading of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags: frozenset[str] = frozenset()

    def fail(self, reason: str, place: int | None = None) -> NoReturn:
        """Give up."""
        raise BadPattern(reason, self.at if place is None else place)

    def _take(self, expected: str) -> bool:
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def _next(self, reason: str) -> str:
        if self.at >= len(self.text):
            self.fail(reason, len(self.text))
        self.at += 1
        return self.text[self.at - 1]

    # -- structure ----------------------------------------------------------------------------------------------

    def choice(self, depth: int) -> Node:
        """Alternatives up to the end or a closing parenthesis; flags set inside hold until there."""
        if depth > DEPTH_MAX:
            self.fail("parentheses are too deeply nested")
        before = self.flags
        options = [self._sequence(depth)]
        while self._take("|"):
            options.append(self._sequence(depth))
        self.flags = before
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self._item(depth)
            if part is not None:
                parts.append(part)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _item(self, depth: int) -> Node | None:
        """One thing with its repeats; None for a comment or a flag, which match nothing by themselves."""
        if "x" in self.flags and self._skip_blank():
            return None
        if self._quantifier() is not None:
            self.fail("nothing to repeat", self.at - 1)
        character = self.text[self.at]
        self.at += 1
        if character == "(":
            node = self._group(depth)
        elif character == "[":
            node = self._class()
        elif character == "\\":
            if self._take("Q"):
                return self._quoted()
            if self._take("E"):
                return None
            node = self._escape()
        elif character == ".":
            node = _ANY if "s" in self.flags else _CLASSES["N"]
        elif character == "^":
            node = Position("line_begin" if "m" in self.flags else "begin")
        elif character == "$":
            node = Position("line_end" if "m" in self.flags else "last")
        else:
            node = self._cased(_of(character))
        return None if node is None else self._repeated(node)

    def _skip_blank(self) -> bool:
        """With flag x: skip one blank or comment; whether one stood here."""
        if self.text[self.at] in string.whitespace:
            self.at += 1
            return True
        if self.text[self.at] == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end + 1
            return True
        return False

    def _quoted(self) -> Node:
        end = self.text.find("\\E", self.at)
        literal = self.text[self.at : end if end >= 0 else None]
        self.at = len(self.text) if end < 0 else end + 2
        parts: list[Node] = [self._cased(_of(each)) for each in literal]
        if parts:
            parts[-1] = self._repeated(parts[-1])
        return Sequence(tuple(parts))

    def _repeated(self, node: Node) -> Node:
        found = self._quantifier()
        if found is None:
            return node
        if self._take("+"):
            self.fail("possessive repeats are not supported", self.at - 1)
        self._take("?")  # lazy: the same to a yes or no
        if isinstance(node, Position | Look):
            # PCRE: repeating a place means that place, or nothing if it may be left out.
            return node if found[0] else Sequence(())
        return Repeat(node, *found)

    def _quantifier(self) -> tuple[int, int | None] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self.at < len(self.text) and self.text[self.at] in simple:
            self.at += 1
            return simple[self.text[self.at - 1]]
        end = self.text.find("}", self.at)
        if end < 0 or not self.text.startswith("{", self.at):
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            return None  # then the brace is a brace
        least = int(low)
        most = None if comma and not high else int(high or low)
        if max(least, most or 0) > REPEAT_MAX:
            self.fail("number too big in {} quantifier", end)
        if most is not None and most < least:
            self.fail("numbers out of order in {} quantifier", end)
        self.at = end + 1
        return least, most

    # -- groups -------------------------------------------------------------------------------------------------

    def _group(self, depth: int) -> Node | None:
        """What stands in parentheses; the opening one has been read."""
        if self._take("*"):
            self.fail("verbs are not supported")
        if not self._take("?"):
            return self._closed(depth)
        if self._take("#"):
            end = self.text.find(")", self.at)
            if end < 0:
                self.fail("missing ) after comment", len(self.text))
            self.at = end + 1
            return None
        for mark, is_ahead, is_negative in (
            ("=", True, False), ("!", True, True), ("<=", False, False), ("<!", False, True),
        ):  # fmt: skip
            if self._take(mark):
                return Look(self._closed(depth), is_ahead, is_negative)
        for mark in ("P<", "<", "'"):
            if self._take(mark):
                self._name("'" if mark == "'" else ">")
                return self._closed(depth)
        if self._take(":") or self._take("|"):
            return self._closed(depth)
        return self._flags(depth)

    def _closed(self, depth: int) -> Node:
        node = self.choice(depth + 1)
        if not self._take(")"):
            self.fail("missing )", len(self.text))
        return node

    def _name(self, end: str) -> None:
        began = self.at
        while self.at < len(self.text) and (
            self.text[self.at].isalnum() or self.text[self.at] == "_"
        ):
            self.at += 1
        if self.at == began:
            self.fail("subpattern name expected", began)
        if self.text[began].isdigit():
            self.fail("group name must start with a non-digit", began)
        if not self._take(end):
            self.fail("syntax error in subpattern name (missing terminator)")

    def _flags(self, depth: int) -> Node | None:
        r"""`(?i)` until the group's end, `(?i-s:...)` inside."""
        found, is_on = set(self.flags), True
        while True:
            character = self._next("unrecognized character after (? or (?-")
            if character == "-":
                is_on = False
            elif character in "imsx":
                (found.add if is_on else found.discard)(character)
            elif character in ":)":
                break
            elif character in ">(R&PC+0123456789":
                self.fail("atomic groups, conditions and recursion are not supported", self.at - 1)
            else:
                self.fail("unrecognized character after (? or (?-", self.at - 1)
        if character == ")":
            self.flags = frozenset(found)
            return None
        before, self.flags = self.flags, frozenset(found)
        node = self._closed(depth)
        self.flags = before
        return node

    # -- characters ---------------------------------------------------------------------------------------------

    def _cased(self, characters: Characters) -> Characters:
        """With the flag i: the other case too, of ASCII letters."""
        if "i" not in self.flags:
            return characters
        ranges = list(characters.ranges)
        for low, high in characters.ranges:
            for first, last, shift in ((65, 90, 32), (97, 122, -32)):
                if max(low, first) <= min(high, last):
                    ranges.append((max(low, first) + shift, min(high, last) + shift))
        return joined(ranges)

    def _escape(self) -> Node:
        r"""What a backslash outside of a class begins."""
        character = self._next("\\ at end of pattern")
        if character in _UNSUPPORTED:
            self.fail(_UNSUPPORTED[character], self.at - 1)
        if character in _POSITIONS:
            return Position(_POSITIONS[character])
        if character in _CLASSES:
            return _CLASSES[character]
        if character == "R":
            return _LINE_END
        if character in "123456789":
            self.fail("back references are not supported", self.at - 1)
        return self._cased(_of(self._literal(character)))

    def _literal(self, character: str) -> str:
        """The one character that an escape stands for."""
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "c":
            return chr(ord(self._next(r"\c at end of pattern").upper()) ^ 64)
        if character == "x":
            return self._hexadecimal()
        if character == "0":
            began = self.at
            while self.at < began + 2 and self.text[self.at : self.at + 1] in tuple("01234567"):
                self.at += 1
            return chr(int("0" + self.text[began : self.at], 8))
        return character

    def _hexadecimal(self) -> str:
        if self._take("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at : end] if end >= 0 else ""
            if (
                not digits
                or set(digits) - set(string.hexdigits)
                or int(digits, 16) > MAX_CODE_POINT
            ):
                self.fail(r"character value in \x{} or \o{} is too large")
            self.at = end + 1
            return chr(int(digits, 16))
        began = self.at
        while self.at < began + 2 and self.text[self.at : self.at + 1] in tuple(string.hexdigits):
            self.at += 1
        return chr(int(self.text[began : self.at] or "0", 16))

    def _class(self) -> Characters:
        """What stands in brackets; the opening one has been read."""
        is_negative = self._take("^")
        ranges: list[tuple[int, int]] = []
        is_first = True
        while True:
            if not is_first and self._take("]"):
                break
            is_first = False
            found = self._class_item()
            if isinstance(found, Characters):
                ranges += found.ranges
                continue
            high = self._range_end(found)
            if high < found:
                self.fail("range out of order in character class", self.at - 1)
            ranges.append((found, high))
        characters = self._cased(joined(ranges))
        return inverted(characters) if is_negative else characters

    def _range_end(self, low: int) -> int:
        """The upper end of a range that may begin with `low`, or `low`."""
        if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
            return low
        before = self.at
        self.at += 1
        high = self._class_item()
        if isinstance(high, Characters):
            self.at = before  # `[a-\d]`: the hyphen is read again, as itself
            return low
        return high

    def _class_item(self) -> int | Characters:
        r"""A code point or, for `\d` and `[:alpha:]`, several."""
        missing = "missing terminating ] for character class"
        if self.text.startswith("[:", self.at):
            end = self.text.find(":]", self.at)
            name = self.text[self.at + 2 : end] if end >= 0 else ""
            if end >= 0 and name.removeprefix("^").isalpha():
                if name.removeprefix("^") not in _POSIX:
                    self.fail("unknown POSIX class name", self.at + 2)
                self.at = end + 2
                found = joined(list(_POSIX[name.removeprefix("^")]))
                return inverted(found) if name.startswith("^") else found
        character = self._next(missing)
        if character != "\\":
            return ord(character)
        character = self._next("\\ at end of pattern")
        if character in _CLASSES and character != "N":
            return _CLASSES[character]
        if character == "b":
            return 8
        if character in "pPXRN":
            self.fail(f"\\{character} is not supported", self.at - 1)
        if character in "1234567":
            began = self.at - 1
            while self.at < began + 3 and self.text[self.at : self.at + 1] in tuple("01234567"):
                self.at += 1
            return int(self.text[began : self.at], 8)
        return ord(self._literal(character))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
