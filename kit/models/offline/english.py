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

FRESH = re.compile(
    r"""\b(?:i\ (?:also\ )?(?:want|need|would\ like|wish)|i'd\ (?:also\ )?like
        |(?:i'm|i\ am|i\ was)\ (?:also\ )?(?:looking|searching|wondering)
        |(?:can|could|would|will)\ you\ (?:please\ |also\ )?(?:find|search|look|help|get|show|book|check|tell
        |recommend|suggest)
        |^\W*(?:find|search|look|book|show|how\ many|where\ can))\b""",
    re.I | re.X,
)
"""Words that open a matter rather than go on with one."""

REFERENCE = re.compile(
    r"""\b(?:it|that\ one|this\ one|the\ (?:first|second|third|fourth|last|other|same|cheaper|cheapest
    |next)(?:\ one)?|those
        |these|them|that|instead|there|another(?:\ one)?|more|others?|the\ former|the\ latter|same|else|both
        |either|neither
        |one)\b""",
    re.I | re.X,
)
"""Words that point back at something already said."""

_POLITE = (
    r"^\W*(?:(?:please|can\ you|could\ you|would\ you|will\ you|help\ me|i\ need\ you\ to)\W+)*"
)
TASK = re.compile(
    rf"""{_POLITE}(?:(?:write|draft|compose|translate|solve|convert|summari[sz]e|paint|sing)\b(?!.*\bmy\b)
          |call\ (?:me|my)\b|set\ an?\b|turn\ (?:on|off)\b
          |(?:tell|sing|give)\ me\ an?\ (?:\w+\ )?(?:joke|story|poem|song|recipe|plan)\b|play\ some\b)
      | \bnames?\ (?:for\ )?(?:my|an?)\b""",
    re.I | re.X,
)
"""A task that no lookup is."""
GENERAL = re.compile(
    rf"""{_POLITE}(?:(?:why|who|whose|whom|explain|teach|what\ happened)\b | can\ (?:dogs|cats|people|you|we)\b
          | how\ (?:tall|old|high|deep|far\ is|do\ (?:i|you|we)|does|did|to|many\ (?:people|sides|calories
          |countries))\b)""",
    re.I | re.X,
)
"""The way general knowledge is asked for; it counts for what fits no tool, since how to do a thing
here is asked so as well."""
WORDLESS = re.compile(r"\A[\W\d_]+\Z")
"""Figures and signs: at the beginning of a conversation they ask nothing of anybody here."""
OPEN = re.compile(
    r"^\W*(?:can you |please |help me )?(?:what(?! can i\b)|when|which|is it|will it|should i|"
    r"does|help|book|recommend|suggest"
    r"|how many|my)\b(?!.*\b(?:for me|i have|have i|do i|finish my)\b)",
    re.I,
)
"""A request that may be about anything: it counts where it fits no tool and nothing of it was found either."""
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
