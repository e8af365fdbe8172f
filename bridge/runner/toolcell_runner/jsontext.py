"""JSON, by the C functions beneath the json module.

To import json itself takes longer than most runs, since it imports re.
"""
from __future__ import annotations

import _json

from .values import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

SPACE = " \t\n\r"


def encode(message: Any, colon: str = ": ", comma: str = ", ") -> bytes:
    """Returns the message as JSON. ASCII only: a lone surrogate travels as an escape instead of failing here."""
    quoted = _json.encode_basestring_ascii
    encoder = _json.make_encoder({}, refuse_object, quoted, None, colon, comma, False, False, False)
    return "".join(encoder(message, 0)).encode("ascii")


def refuse_object(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is not JSON")


def decode(body: bytes | bytearray) -> Any:
    """Returns the JSON in body, every mapping in it a Record. Servers may write bytes that are no UTF-8."""
    return parse_json(str(body, "utf-8", "replace"), Reading)


def parse_json(text: str, how: Any) -> Any:
    """json.loads, except that some texts that are not JSON have other messages in their ValueError."""
    try:
        value, end = _json.make_scanner(how)(text, len(text) - len(text.lstrip(SPACE)))
    except (StopIteration, SystemError):  # the latter where Python 3.11 has not imported json.decoder
        raise ValueError("this is not JSON") from None
    except ValueError as error:
        if how.parse_int is not int or "digits" not in str(error):
            raise
        # Slower for every number, so only where one is longer than sys.get_int_max_str_digits() allows.
        return parse_json(text, type("Long", (how,), {"parse_int": staticmethod(long_int)}))
    for at in range(end, len(text), 4096):  # the rest of a long text is not to be copied
        if text[at:at + 4096].strip(SPACE):
            raise ValueError("more follows the JSON")
    return value


MAX_DIGITS = 100_000  # of one number: more would take seconds
SHORT = 600  # digits, which int() always takes


def long_int(digits: str) -> int:
    """int() for more digits than sys.get_int_max_str_digits(), which is the code's to set."""
    if digits.startswith("-"):
        return -long_int(digits[1:])
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"it has a number of {len(digits)} digits; the most is {MAX_DIGITS}")
    if len(digits) <= SHORT:
        return int(digits)
    half = len(digits) // 2
    power: int = 10**half
    return long_int(digits[:-half]) * power + long_int(digits[-half:])


class Reading:
    """What the scanner of JSON is to do."""

    strict, object_hook, object_pairs_hook = True, Record, None
    parse_float: Any = float
    parse_int: Any = int
    parse_constant: Any = float


class Strict(Reading):
    """The same for what servers call text: NaN and Infinity are not JSON."""

    @staticmethod
    def parse_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")
