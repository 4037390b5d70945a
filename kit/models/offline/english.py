"""Word lists and patterns of English for the offline stand-in: openers, joiners, references. They name nothing of any deck."""

import re

from kit.core.words import word_set

FAINT = word_set(
    """today tomorrow yesterday tonight morning afternoon evening day days week weeks weekend month months year years now soon
    later recently monday tuesday wednesday thursday friday saturday sunday last next current currently many much new really
    still ever always two three four five six seven eight nine ten"""
)
"""Words that say when or how many more often than what."""

NEGATED = re.compile(r"^\W*(?:not (?:for|used|meant|intended)|do not|don't|never|does not|doesn't|no )|\buse \w+ instead\b", re.I)
"""A sentence of a description that says what a tool is not for."""

OPENERS = word_set(
    """i i'd i'm i'll i've we what what's whats which who who's how how's when when's where where's why is are am was were
    do does did can could would will should shall may have has had please find show search look looking list get give tell
    check book reserve order buy play add remove put set turn cancel change update track rate remind make let let's need
    want help call send text share schedule explain compare open close start stop create delete move copy write read see
    watch suggest recommend any there's there it's my you if also then transfer pay use redeem scan upload convert
    calculate post sort"""
)
"""Words a new clause tends to begin with."""

VERBS = word_set(
    """expire expires end ends start starts work works close closes open opens cost costs qualify qualifies mean means happen
    happens happened buy bought spend spent earn earned play played win won lost lose scan scanned use used redeem redeemed
    count counts arrive arrived get got come came go went pay paid eat drink wrote compare link connect"""
)
"""Words that say what is done to a thing, not which thing."""

JOINER = re.compile(
    r"""\s*(?:(?:^|(?<=\s))(?:\d{1,2}[.)]|[a-h]\)|[-*•])\s+|\s+/\s+|\n+
        |[.?!;]+(?=\s|$)(?:\s*(?:and|also|then|plus|but|oh)\b)*
        |,?\s+(?:and\s+also|and\s+then|and\s+after\s+that|as\s+well\s+as|also|plus|then|but\s+also)\s+
        |,\s*(?:and|but|then)\s+|\s+[-–—]\s+)\s*""",
    re.I | re.X,
)
"""Ends a clause whatever follows: the end of a sentence, a joining word, the mark of a list's next item."""
TIE = re.compile(r"[,;/\n–—-]|\d[.)]|\b[a-h]\)|\b(?:and|also|plus|then|but|well)\b", re.I)
"""A joiner that says there is more to come."""
SOFT_JOINER = re.compile(r"\s*,\s+|\s+(?:and|but)\s+", re.I)
"""Ends a clause only when the next word is an opener, or a list of several items is being told."""
PREPOSITIONS = word_set(
    "about after at before between by during for from in into near of on since through till to until with within"
)
"""Words that go on with a matter: what begins with one is no item of a list."""

FRESH = re.compile(
    r"""\b(?:i\ (?:also\ )?(?:want|need|would\ like|wish)|i'd\ (?:also\ )?like
        |(?:i'm|i\ am|i\ was)\ (?:also\ )?(?:looking|searching|wondering)
        |(?:can|could|would|will)\ you\ (?:please\ |also\ )?(?:find|search|look|help|get|show|book|check|tell|recommend|suggest)
        |^\W*(?:find|search|look|book|show|how\ many|where\ can))\b""",
    re.I | re.X,
)
"""Words that open a matter rather than go on with one."""

REFERENCE = re.compile(
    r"""\b(?:it|that\ one|this\ one|the\ (?:first|second|third|fourth|last|other|same|cheaper|cheapest|next)(?:\ one)?|those
        |these|them|that|instead|there|another(?:\ one)?|more|others?|the\ former|the\ latter|same|else|both|either|neither
        |one)\b""",
    re.I | re.X,
)
"""Words that point back at something already said."""

_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {word: n for n, word in enumerate(_NUMBER_WORDS.split())} | {
    "dozen": 12,
    "fifteen": 15,
    "twenty": 20,
    "fifty": 50,
    "hundred": 100,
}

LEAD_IN = re.compile(
    r"""^\W*(?:(?:please|can|could|would|will|you|i|we|i'd|i'm|like|want|need|to|just|also|then|and|help|me|us|let|let's|know
        |tell|give|show|find|get|look|looking|search|searching|check|see|for|up|into|out|about|some|any|the|a|an|my|our|is
        |are|there|do|does|did|have|has|what|what's|which|how|how's|many|much|when|where|who|why|of|on|near|explain|list
        |recommend|suggest|book|order|buy|track|it|at|in|from|compare|two)\b\W*)+""",
    re.I | re.X,
)
"""What stands before the noun phrase of a request."""
