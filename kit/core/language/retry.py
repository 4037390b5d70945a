"""Messages that only ask to do the last thing once more, in English and Spanish."""

from kit.core.language.words import STOP, word_set, words

_RETRY = word_set(
    """try again retry go going continue carry keep once inténtalo inténtelo intenta intentarlo
    nuevo otra vez prueba sigue continúa adelante vuelve"""
)
"""Words that ask to do the last thing once more, or to go on with it."""
_BESIDE = _RETRY | STOP | {"more", "time", "now"}


def retries(text: str) -> bool:
    """Whether a text only asks to do the last thing once more, or to go on with it."""
    text_words = frozenset(words(text))
    return not _RETRY.isdisjoint(text_words) and text_words <= _BESIDE
