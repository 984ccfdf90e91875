"""A room's code: three words that can be read aloud across a room, and typed as they were heard."""

from __future__ import annotations

import hmac
import re
import secrets

# Short, known to everybody, and hardly two that sound alike: 128³ codes, which are 21 bits.
WORDS = tuple(
    """acorn amber anchor apple arrow aspen autumn badger banjo basil basket beacon beaver birch bishop bridge
    bronze buffalo butter bamboo cactus camel candle canoe canyon carpet castle cedar cherry circus clover cobalt
    comet copper coral cotton cricket crater dancer desert dolphin dragon eagle ember engine falcon feather fennel
    fiddle flint forest galaxy garden ginger glacier granite guitar hammer harbor hazel helmet hermit hotel igloo
    indigo island ivory jacket jaguar jasmine jungle kettle kitten ladder lagoon lantern lemon lilac linen lizard
    magnet mango maple marble meadow melon mirror monkey mosaic nectar needle nickel nutmeg oasis olive opal orbit
    orchid otter oyster parsley panda parrot peanut piano pepper pigeon planet poplar pollen prairie puppet pumpkin
    quartz rabbit raven ribbon river robin rocket salmon sandal
    spider tiger tulip velvet walnut window""".split()
)


def new() -> str:
    return "-".join(secrets.choice(WORDS) for _ in range(3))


def plain(said: str) -> str:
    """A code however it was typed: 'Amber falcon  RIVER' as 'amber-falcon-river'."""
    return re.sub(r"[^a-z]+", "-", said[:200].lower()).strip("-")


def same(said: str, code: str) -> bool:
    """Whether a code is the right one, in a time that does not tell how much of it is right."""
    return hmac.compare_digest(plain(said).encode(), code.encode())
