"""Word lists and patterns of English for the offline stand-in: verbs, references. They name nothing of any deck."""

import re

from kit.core.language.words import word_set

FAINT = word_set(
    """today tomorrow yesterday tonight morning afternoon evening day days week weeks weekend month
    months year years now soon later recently monday tuesday wednesday thursday friday saturday
    sunday last next current currently many much new really still ever always two three four
    five six seven eight nine ten"""
)
"""Words that say when or how many more often than what."""

NEGATED = re.compile(
    r"^\W*(?:not (?:for|used|meant|intended)|do not|don't|never|does not|doesn't|no )|\buse \w+ instead\b",
    re.I,
)
"""A sentence of a description that says what a tool is not for."""

VERBS = word_set(
    """expire expires end ends start starts work works close closes open opens cost costs qualify
    qualifies mean means happen happens happened buy bought spend spent earn earned play played
    win won lost lose scan scanned use used redeem redeemed count counts arrive arrived get got
    come came go went pay paid eat drink wrote compare link connect"""
)
"""Words that say what is done to a thing, not which thing."""

PRONOUN = re.compile(
    r"""\b(?:it|its|they|them|their|those|these|this|that|instead|there|another|more|others?|else|both|either|neither
        |the\ former|the\ latter|(?<!no\ )one|same|cheaper|cheapest|closer|nearer)\b""",
    re.I | re.X,
)
"""Words that stand for something already said."""

ORDINAL = re.compile(r"\bthe\ (?:first|second|third|fourth|last|other|next)\b", re.I | re.X)
"""Words that point at one of several things; they also say which of all: "the first person on the moon"."""

REFERENCE = re.compile(f"{PRONOUN.pattern}|{ORDINAL.pattern}", re.I | re.X)
"""Either."""

POINTLESS = re.compile(
    r"""\b(?:what\ (?:time|day|date|month|year)\ is\ it
        |(?:is|was|will|isn't|does|did)\ it\ (?:be\ |going\ to\ )?(?:rain|snow|raining|snowing|normal|safe|healthy
        |legal|true|cold|warm|hot|sunny|possible|take|bad|hurt)\b
        |it(?:'s|\ is|\ was)\ (?:rain|snow)ing|how\ far\ is\ it\ from
        |(?:is|are|was|were|isn't|aren't)\ there|there(?:'s|\ is|\ are|\ was|\ were)
        |(?:a|an|the)\ \w+\ that\ (?!one|is\ not)\w+
        |this\ (?:morning|afternoon|evening|week|weekend|month|year|summer|winter)
        |(?:the|any|some)one|more\ than)\b""",
    re.I | re.X,
)
"""Uses of such words that stand for nothing: "will it rain", "how many are there", "a function that reverses"."""

LINK = re.compile(r"^\W*(?:and|or|but|what about|how about|same|also|only|just|without)\b", re.I)
"""What a message begins with that goes on with the one before it."""

_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {word: n for n, word in enumerate(_NUMBER_WORDS.split())} | {
    "dozen": 12,
    "fifteen": 15,
    "twenty": 20,
    "fifty": 50,
    "hundred": 100,
}

LEAD_IN = re.compile(
    r"""^\W*(?:(?:please|can|could|would|will|you|i|we|i'd|i'm|like|want|need|to|just|also|then|and|help|me|us
    |let|let's|know
        |tell|give|show|find|get|look|looking|search|searching|check|see|for|up|into|out|about|some|any|the|a
        |an|my|our|is
        |are|there|do|does|did|have|has|what|what's|which|how|how's|many|much|when|where|who|why|of|on|near|explain|list
        |recommend|suggest|book|order|buy|track|it|at|in|from|compare|two)\b\W*)+""",
    re.I | re.X,
)
"""What stands before the noun phrase of a request."""
