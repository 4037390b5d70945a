"""The language of a message that is not in English, told by its script and by its little words."""

from collections.abc import Mapping

from kit.core.language.words import word_set, words

ENGLISH = word_set(
    """the a an of for to in on at and or is are was were my me you your i i'm it its this that these what which
    how when where who why do does did can could would should have has had with any all from there be not
    get find show tell please much many"""
)
"""Little words of English."""
LEADING: Mapping[str, frozenset[str]] = {
    "es": word_set(
        """qué cuántos cuántas cuánto cuánta cuántas cuál cuáles cómo cuándo dónde quién cuantos cuantas cuanto tengo
        tiene tienen hay quiero necesito puedo puedes mis tus está están dime muéstrame muestrame busca encuentra
        ofertas puntos recibos"""
    ),
    "fr": word_set(
        """combien quelles quels quel quelle sont mes mon ma j'ai ai où je vous avez peux puis veux cherche est
        montrez montre trouve"""
    ),
    "de": word_set(
        """wie viele wieviel welche welcher welches ich habe meine meinen mein gibt kann wo wann möchte suche zeig
        zeige bitte"""
    ),
    "pt": word_set(
        "quantos quantas quais qual tenho meus minhas onde quando preciso quero mostre encontre há estão"
    ),
    "it": word_set(
        "quanti quante quali ho miei mie dove quando posso voglio cerca sono mostra trova"
    ),
}
"""Words that a question or a wish of a language holds: names of shops and dishes hold its articles alone."""
LITTLE: Mapping[str, frozenset[str]] = {
    "es": word_set("de la el los las un una y en del con por para al o mi que es"),
    "fr": word_set("le la les des du de et un une dans pour sur avec au aux que ce"),
    "de": word_set("der die das und ein eine einen für mit auf von zu es den im am"),
    "pt": word_set("o os as da do de e em um uma com para por que no na"),
    "it": word_set("il lo la gli le di e un una per con che del della nei"),
}
"""Its other little words."""
FEWEST_LETTERS = 4
FEWEST_WORDS = 2
LAST_LATIN = "\u024f"
"""Letters after it are of another script."""


def tongue_of(text: str, usual: str = "en") -> str | None:
    """Returns the language of a message that is for certain not in English: its code, or "other" for another script.

    It holds more little words of that language than of English, one of a question or a wish among them; one little
    word is enough in the language that its user's session is in (`usual`).
    """
    letters = [sign for sign in text if sign.isalpha()]
    if len(letters) < FEWEST_LETTERS:
        return None
    if 2 * sum(letter > LAST_LATIN for letter in letters) > len(letters):
        return "other"
    text_words = words(text)
    most = sum(word in ENGLISH for word in text_words)
    tongue: str | None = None
    for language, leading in LEADING.items():
        leads = sum(word in leading for word in text_words)
        hits = leads + sum(word in LITTLE[language] for word in text_words)
        is_sure = (leads and hits >= FEWEST_WORDS) or (hits and language == usual)
        if is_sure and hits > most:
            most = hits
            tongue = language
    return tongue
