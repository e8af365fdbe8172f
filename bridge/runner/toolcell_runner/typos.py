"""Tells a typo in the name of a module from the name of another module."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def intended(wanted: str, names: Iterable[str]) -> str | None:
    """Returns the name of a module that the wanted one is a typo of, or None.

    Names of modules are short and close to each other: httpx is not a typo of http, nor polars of parso. So a name that
    is only similar does not count.
    """
    for name in names:
        if is_typo(wanted, name):
            return name
    return None


def is_typo(typed: str, meant: str) -> bool:
    """Reports whether a name differs from what was meant in its case, or by a typo."""
    folder, _, typed = typed.rpartition(".")
    meant_folder, _, meant = meant.rpartition(".")
    if folder != meant_folder or typed == meant or meant[:1] == "_" != typed[:1]:
        return False
    if typed.lower() == meant.lower():
        return True
    if min(len(typed), len(meant)) < 4 or len(typed) > 60:
        return False
    return one_typo(typed.lower(), meant.lower())


def one_typo(typed: str, meant: str) -> bool:
    """Reports whether one letter is missing, added, wrong, or has changed places with its neighbor."""
    at = 0
    while typed[at:at + 1] == meant[at:at + 1] != "":
        at += 1
    rest, wanted = typed[at:], meant[at:]
    if rest[1::-1] == wanted[:2] and len(wanted) > 1 and rest[2:] == wanted[2:]:
        return True
    if at == 0:
        return False  # the first letter is seldom wrong: ujson is not json, yml not xml
    if rest == wanted[1:]:  # one is missing; without its last letter, a short name may be another: toml, tomli
        return rest != "" or wanted == "s" or len(meant) > 5
    if rest[1:] == wanted:  # one is added: at the end, another name begins so, unless the key was hit twice
        return wanted != "" or rest == typed[at - 1] or rest == "s"
    return len(typed) > 5 and rest[1:] == wanted[1:]
