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
    rf"""{_POLITE}(?:(?:why|who|whose|whom|explain|teach|what\ happened|should\ i
          |do\ you\ (?:believe|think|like|love))\b | can\ (?:dogs|cats|people|you|we)\b
          | how\ (?:tall|old|high|deep|far\ is|do|does|did|to|many\ (?:people|sides|calories
          |countries))\b)""",
    re.I | re.X,
)
"""The way general knowledge is asked for; it counts for what fits no tool, since how to do a thing
here is asked so as well."""
WORLD = re.compile(
    rf"""{_POLITE}(?:what|what's|whats|when|where|which|who|why|how|is|are|was|were|does|did|do|will|has|have
          |should)\b""",
    re.I | re.X,
)
"""How a question begins."""
OWN = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|we|us|our|you|your|here|nearby)\b",
    re.I,
)
"""Words of a question about the user, about who answers, or about something at hand."""
FEELING = re.compile(
    r"""^\W*(?:i\ feel|i'm\ feeling|i\ am\ feeling|i'm\ (?:so\ )?(?:bored|lonely|sad|tired|happy|angry|depressed
        |in\ love|scared|stressed))\b""",
    re.I | re.X,
)
"""How somebody speaks of a mood."""
SELF = re.compile(
    r"""\b(?:who|what|how\ old|where)\ are\ you\b(?!\ (?:able|offering|selling))|\byour\ name\b
        |\bare\ you\ (?:a\ |an\ )?(?:human|real|robot|bot|alive|person|happy|sad|married|single|there)\b""",
    re.I | re.X,
)
"""A question about who answers."""
DEGREES = word_set("far long old high tall deep fast big many much often")
"""Words that say how much of something is asked for, not of what."""
SUM = re.compile(r"\d\s*[-+*/^=x×÷]\s*\d")
"""A sum to be worked out."""
WORDLESS = re.compile(r"\A[\W\d_]+\Z")
"""Figures and signs: at the beginning of a conversation they ask nothing of anybody here."""
SEEKS = re.compile(
    r"""\b(?:find|looking\ for|look\ for|search|show|recommend\w*|suggest\w*|need|want|wants|buy|bought|purchase\w*
        |spend|spent|offers?|deals?|coupons?|discounts?|sale|cheap\w*|price\w*|costs?|compare|stock\w*|swap|brands?
        |any\ good|out\ of|instead\ of|gift|order\w*|shop\w*|save|savings?|list|budget|under\ \$?\d+)\b""",
    re.I | re.X,
)
"""A wish to find, to buy or to compare something: what nobody knows a thing by name for may still be sought."""
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
