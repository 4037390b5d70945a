"""The words of a text, and which of them say what it is about."""

import re


def word_set(text: str) -> frozenset[str]:
    """A set written down as words with blanks between them."""
    return frozenset(text.split())


STOP = word_set(
    """a an the of for to in on at and or is are be been was were am i me my mine myself we us our
    you your yours it its this that these those with by from as can could would should will
    shall may might do does did doing done have has had having please just so if some any there
    here them they he she his her him what which who whom whose how when where why not no yes
    let lets let's i'd i'm i'll i've it's that's what's there's like want wants need needs know
    tell get give make go also too then up out about into etc e.g eg s t handle handles handled
    request requests question questions related hi hello hey thanks thank okay ok well one ones
    la el los las lo un una unos unas y e o de del al en con por para que qué cuál cuáles cuánto
    cuánta cuántos cuántas cuándo cuando dónde cómo quién mi mis tu tus su sus se le les nos es
    está están hay tengo tiene tienes quiero quisiera necesito puedo puede puedes podría dime
    dame favor también además luego pero si sí gracias hola cuanto cuantos cuanta cuantas"""
)
"""Words of English and Spanish that say nothing about what a request is for."""

SHORTHAND = {
    "gimme": "give",
    "lvl": "level",
    "pls": "please",
    "plz": "please",
    "pts": "points",
    "r": "are",
    "rn": "now",
    "thru": "through",
    "u": "you",
    "ur": "your",
    "wat": "what",
    "yday": "yesterday",
}
"""Words as people type them in a hurry, and what they stand for."""
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
"""Scripts written without blanks: each character counts as a word."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
"""What stands between two sentences."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+(?:'[^\W_{_UNSPACED}]+)?")

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def words(text: str) -> list[str]:
    """The words of a text in any alphabet, in lower case and in order; shorthand is written out."""
    found: list[str] = _WORD.findall(text.lower().replace("’", "'"))
    # Nearly every text has none, and each is read several times in a turn.
    if SHORTHAND.keys().isdisjoint(found):
        return found
    return [SHORTHAND.get(word, word) for word in found]


def content_words(text: str) -> frozenset[str]:
    """The words that say what a text is about, singular and plural taken as one; empty when none does."""
    texts: set[str] = set()
    for word in words(text):
        if word not in STOP:
            texts.add(_plain(word))
    return frozenset(texts)


def _plain(word: str) -> str:
    word = word.removesuffix("'s")
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def spoken(name: str) -> str:
    """An identifier in plain words: `find_nearBy` becomes `find near by`."""
    plain = _CAMEL.sub(" ", name).replace("_", " ").replace("-", " ")
    # A tool of a server has two marks behind the server's name.
    return " ".join(plain.lower().split())
