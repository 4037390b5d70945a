"""What the offline stand-in knows of English: stop words, openers, joiners, small talk. Nothing of any deck."""

import re


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


def _either(*listed: str) -> str:
    """One alternative a line; `{}` marks stay as they are."""
    return "(?:" + "|".join(line.strip() for text in listed for line in text.strip().splitlines()) + ")"


STOP = _set(
    """a an the of for to in on at and or is are be been was were am i me my mine myself we us our you your yours it its
    this that these those with by from as can could would should will shall may might do does did doing done have has had
    having please just so if some any there here them they he she his her him what which who whom whose how when where why
    not no yes let lets let's i'd i'm i'll i've it's that's what's there's like want wants need needs know tell get give
    make go also too then up out about into etc e.g eg s t handle handles handled request requests question questions
    related hi hello hey thanks thank okay ok well one ones"""
)
"""Words that say nothing about what a request is for."""

FAINT = _set(
    """today tomorrow yesterday tonight morning afternoon evening day days week weeks weekend month months year years now soon
    later recently monday tuesday wednesday thursday friday saturday sunday last next current currently many much new really
    still ever always two three four five six seven eight nine ten"""
)
"""Words that say when or how many more often than what."""

NEGATED = re.compile(r"^\W*(?:not (?:for|used|meant|intended)|do not|don't|never|does not|doesn't|no )|\buse \w+ instead\b", re.I)
"""A sentence of a description that says what a tool is not for."""

OPENERS = _set(
    """i i'd i'm i'll i've we what what's whats which who who's how how's when when's where where's why is are am was were
    do does did can could would will should shall may have has had please find show search look looking list get give tell
    check book reserve order buy play add remove put set turn cancel change update track rate remind make let let's need
    want help call send text share schedule explain compare open close start stop create delete move copy write read see
    watch suggest recommend any there's there it's my you if also then transfer pay use redeem scan upload convert
    calculate post sort"""
)
"""Words a new clause tends to begin with."""

VERBS = _set(
    """expire expires end ends start starts work works close closes open opens cost costs qualify qualifies mean means happen
    happens happened buy bought spend spent earn earned play played win won lost lose scan scanned use used redeem redeemed
    count counts arrive arrived get got come came go went pay paid eat drink wrote compare link connect"""
)
"""Words that say what is done to a thing, not which thing."""

JOINER = re.compile(
    r"""\s*(?:[.?!;]+(?=\s|$)(?:\s*(?:and|also|then|plus|but|oh)\b)*
        |,?\s+(?:and\s+also|and\s+then|and\s+after\s+that|as\s+well\s+as|also|plus|then|but\s+also)\s+
        |,\s*(?:and|but|then)\s+|\s+[-–—]\s+)\s*""",
    re.I | re.X,
)
"""Ends a clause whatever follows."""
TIE = re.compile(r"[,;–—-]|\b(?:and|also|plus|then|but|well)\b", re.I)
"""A joiner that says there is more to come."""
SOFT_JOINER = re.compile(r"\s*,\s+|\s+(?:and|but)\s+", re.I)
"""Ends a clause only when the next word is an opener."""

_FILLER = _either(
    r"""so much
    very much
    a lot
    a bunch
    (?:right |for )?now
    (?:to|for) me
    very|really|again|today|tonight|then|there|all|everyone|everything|indeed|please|too"""
)
_GREETING = _either(
    r"""(?:hi|hello|hey)(?: there)?
    howdy|hiya|yo|greetings
    good (?:morning|afternoon|evening|day)
    nice to meet you"""
)
_WELL = _either(
    r"""how are you(?: doing)?
    how(?:'s| is) it going
    how do you do
    how are things
    what's up
    hope you(?:'re| are) well"""
)
_HELP = _either(
    r"""your (?:kind )?(?:help|time|assistance|service|support|information|info)
    the (?:help|info|information|update|assistance)
    all (?:of )?(?:your|the) help
    helping(?: me)?(?: out)?
    being so helpful
    that|this|everything"""
)
_THANKS = (
    _either(
        r"""(?:many |much )?thanks
    thank (?:you|u)
    thankyou|thanx|thx|ty|cheers
    much appreciated""",
        rf"(?:i |we )?(?:really |truly |do |so )*appreciate (?:it|{_HELP})",
        r"""you(?:'ve| have) been (?:very |so |really |a great )?(?:helpful|help)
    you(?:'re| are) (?:very |so |really )?(?:helpful|great|awesome|amazing|the best|welcome)""",
    )
    + rf"(?: for {_HELP})?"
)
_BYE = _either(
    r"""bye(?: bye)?
    good ?bye
    see (?:you|ya)(?: later| soon)?
    later|laters|farewell|adios
    take care
    good night
    have a (?:good|great|nice|wonderful|lovely) (?:one|day|night|evening|weekend|time)
    (?:you too|same to you)"""
)
_DONE = _either(
    r"""(?:no|nope|nah)(?: thanks| thank you)?
    not (?:now|today|at this time|at the moment|right now|really|yet)
    (?:that|this|it)(?:'s|s| is|'ll be| will be| would be)(?: about)? (?:all|it|everything|enough)
    for (?:now|today)|i (?:needed|need|wanted|want)
    that does it
    nothing(?: else| more)?
    (?:no |nope )?(?:i'm|i am|we're|we are) (?:all )?(?:good|done|set|fine|okay|ok)
    i (?:don't|do not|dont) need (?:anything|any|any more|any other|any further|nothing)(?: else| more| help| assistance| other)*
    i have (?:all|everything) i need(?:ed)?"""
)
_PLEASING = _either(
    r"""good|great|perfect|nice|cool|awesome|fine|right|correct|wonderful|excellent|amazing|helpful|okay|ok|interesting
    lovely|fantastic"""
)
_AFFIRM = _either(
    r"""yes|yeah|yep|yup|yea|yeap|sure|correct|right|exactly|ok|okay|k|alright|definitely|absolutely|certainly|understood
    sure thing|of course|all right|please do|go ahead|do it|why not|i see|got it|makes sense|good to know
    no problem|no worries""",
    rf"(?:that )?sounds (?:like a plan|{_PLEASING})",
    rf"(?:that|this|it)(?:'s|'ll be|'d be| is| was| would be| will be| works| looks| seems)(?: {_PLEASING}| so)*",
)
_PRAISE = _either(
    r"""great|good|perfect|awesome|excellent|cool|nice|wonderful|fantastic|lovely|amazing|brilliant|super|neat|sweet|fine
    (?:good|great|nice) (?:job|work)
    well done
    (?:i )?love it
    i like (?:it|that)
    wow|haha|lol|oh|ah|hmm|well"""
)


def _whole(*parts: str) -> re.Pattern[str]:
    return re.compile(rf"\W*(?:\b{_either(*parts, _FILLER)}\b\W*)+", re.I)


SMALL_TALK = _whole(_GREETING, _WELL, _THANKS, _BYE, _DONE, _AFFIRM, _PRAISE, "and|but|just|for|sir|friend")
"""Matches a whole message made of nothing but pleasantries."""
CLOSERS = _set(
    """that that's that'll thats this it it's is was will should would be been do does did all everything anything nothing i
    i'm i'll i've you you've you're your we for now today tonight so ever very much great good nice perfect awesome wonderful
    lovely excellent amazing day night evening weekend one a an the thanks thank bye goodbye help helped helps helping
    helpful need needed needs wanted know think guess to of my me have had enjoy again really appreciate information info
    service time times no nope not yes yeah yep ok okay alright sure just then and but here from take care welcome see later
    else other more wait soon kind if with going go looking it'll well oh too as at in there cheers hope like lot"""
)
"""Words a message may be made of that ends a conversation."""
ENDING = re.compile(
    rf"""\b(?:{_THANKS}|{_BYE}|(?:'ll|should) do it
        |(?:that|this|it)(?:'s|s|'ll be| is| was| will be| should be)? (?:about )?(?:all|it|everything))\b""".replace(
        "\n        ", ""
    ),
    re.I,
)
AFFIRMATIVE = _whole(_AFFIRM, _PRAISE)
"""A bare yes: small talk, unless it answers a question."""
GREETING = re.compile(rf"^\W*{_GREETING}\b", re.I)
WELL_BEING = re.compile(_WELL, re.I)
THANKS = re.compile(_THANKS, re.I)
GOODBYE = re.compile(rf"^\W*{_BYE}\W*$|\b(?:bye|goodbye)\b", re.I)
PLEASANTRY = re.compile(rf"^\W*(?:(?:{_GREETING}|{_THANKS}|{_AFFIRM}|{_PRAISE})\b(?:\W+{_FILLER}\b)*\W+)+", re.I)
"""Pleasantries a request opens with."""
_APART = re.compile(r"\s+(?=(?:n['’]t|['’](?:s|m|re|ve|ll|d))\b)", re.I)


def untokenised(text: str) -> str:
    """Joins endings that were written apart: `that 's`, `do n't`."""
    return _APART.sub("", text)


CLOSING_QUESTION = re.compile(
    r"""\b(?:(?:anything|something|any\ (?:other|more)|what)\ else|any\ other|help\ you\ (?:further|more|with\ anything)
        |more\ help)\b""",
    re.I | re.X,
)
"""A question that offers help in general and so leaves no agent in play."""

FRESH = re.compile(
    r"""\b(?:i\ (?:also\ )?(?:want|need|would\ like|wish)|i'd\ (?:also\ )?like
        |(?:i'm|i\ am|i\ was)\ (?:also\ )?(?:looking|searching|wondering)
        |(?:can|could|would|will)\ you\ (?:please\ |also\ )?(?:find|search|look|help|get|show|book|check|tell|recommend|suggest)
        |^\W*(?:find|search|look|book|show|how\ many|where\ can))\b""",
    re.I | re.X,
)
"""Words that open a matter rather than go on with one."""

CONFIRM = re.compile(
    r"\b(?:please confirm|confirm (?:that|the|this|your|if)|confirmation details|let me know (?:if|which|what|when))\b", re.I
)
"""A question without a question mark."""

REFERENCE = re.compile(
    r"""\b(?:it|that\ one|this\ one|the\ (?:first|second|third|fourth|last|other|same|cheaper|cheapest|next)(?:\ one)?|those
        |these|them|that|instead|there|another(?:\ one)?|more|others?|the\ former|the\ latter|same|else|both|either|neither
        |one)\b""",
    re.I | re.X,
)
"""Words that point back at something already said."""

_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {word: n for n, word in enumerate(_COUNTED.split())} | {
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
