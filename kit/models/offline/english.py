"""Word lists and patterns of English for the offline stand-in: verbs, references. They name nothing of any deck."""

import re

from kit.core.language.words import word_set

FAINT = word_set(
    """today tomorrow yesterday tonight morning afternoon evening day days week weeks weekend month months year years now soon
    later recently monday tuesday wednesday thursday friday saturday sunday last next current currently many much new really
    still ever always two three four five six seven eight nine ten"""
)
"""Words that say when or how many more often than what."""

NEGATED = re.compile(r"^\W*(?:not (?:for|used|meant|intended)|do not|don't|never|does not|doesn't|no )|\buse \w+ instead\b", re.I)
"""A sentence of a description that says what a tool is not for."""

VERBS = word_set(
    """expire expires end ends start starts work works close closes open opens cost costs qualify qualifies mean means happen
    happens happened buy bought spend spent earn earned play played win won lost lose scan scanned use used redeem redeemed
    count counts arrive arrived get got come came go went pay paid eat drink wrote compare link connect"""
)
"""Words that say what is done to a thing, not which thing."""

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
