"""Word lists and patterns of English for the offline stand-in: verbs, references. They name nothing of any deck."""

import re

from kit.core.language.words import word_set

FAINT = word_set(
    """today tomorrow yesterday tonight morning afternoon evening day days week weeks weekend month
    months year years now soon later recently monday tuesday wednesday thursday friday saturday
    sunday january february march april may june july august september october november december christmas xmas eve
    easter thanksgiving holiday holidays last next current currently many much new really still ever
    always two three four five six seven eight nine ten"""
)
"""Words that say when or how many more often than what."""

ATTRIBUTES = word_set(
    """address phone telephone number postcode postal zip code reference price fee entrance cost area location
    rating star stars type id name email contact parking wifi internet hours time departure arrival travel info
    information details"""
)
"""What is asked of a thing that was shown: a question of nothing else names no thing of its own."""

POLITE = word_set(
    "great fine excellent perfect alright course work works provide wish love charge lovely wonderful"
)
"""Words around such a question that name nothing."""

TIMES = word_set("expire expires expired expiring end ends ending start starts valid last")
"""Words that ask for a date."""

SAY_LITTLE = word_set(
    """something anything nothing everything somewhere anywhere thing what hmm since pls finish finishing address
    best most good great extra reason family kids"""
)
"""Words of a follow-up that an answer need not take up, or takes up in words that are not near to them."""

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
        |the\ former|the\ latter|the\ (?:two|three|four|five)(?=\W*$|\ of\b)|(?<!no\ )one|same
        |cheaper|cheapest|closer|nearer)\b""",
    re.I | re.X,
)
"""Words that stand for something already said."""

ONE_THING = re.compile(r"\b(?:it|its|it's|that one|this one)\b", re.I)
"""Words that stand for one thing already said."""

SEVERAL_THINGS = re.compile(
    r"\b(?:they|them|their|those|these|the (?:two|three|four|five)(?=\W*$))\b", re.I
)
"""Words that stand for several things already said."""

ORDINAL = re.compile(
    r"""\bthe\ (?:first|second|third|fourth|last|other|next)\b
        |\b(?:number|option)\ (?:one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2})\b""",
    re.I | re.X,
)
"""Words that point at one of several things; they also say which of all: "the first person on the moon"."""

REFERENCE = re.compile(f"{PRONOUN.pattern}|{ORDINAL.pattern}", re.I | re.X)
"""Either."""

POINTLESS = re.compile(
    r"""\b(?:what\ (?:time|day|date|month|year)\ is\ it
        |(?:is|was|will|isn't|does|did)\ it\ (?:be\ |going\ to\ )?(?:rain|snow|raining|snowing|normal|safe|healthy
        |legal|true|cold|warm|hot|sunny|possible|bad|hurt|take(?=\W*$|\ (?:long|to|for|until)\b))\b
        |it(?:'s|\ is|\ was)\ (?:rain|snow)ing|how\ far\ is\ it\ from
        |(?:is|are|was|were|isn't|aren't)\ there|there(?:'s|\ is|\ are|\ was|\ were)
        |(?:a|an|the)\ \w+\ that\ (?!one|is\ not)\w+
        |this\ (?:morning|afternoon|evening|week|weekend|month|year|summer|winter)
        |(?:the|any|some)one|more\ than)\b""",
    re.I | re.X,
)
"""Uses of such words that stand for nothing: "will it rain", "how many are there", "a function that reverses"."""

OPEN_QUESTION = re.compile(r"^\W*(?:how|what|what's|whats|which|who|where|when|why)\b", re.I)
"""The beginning of a question that no yes and no choice answers."""

LINK = re.compile(
    r"""^\W*(?:(?:and|or|but|what\ about|how\ about|same|also|only|just|without)\b|why(?:\s+(?:not|so))?\W*$)
        |^\W*\w{2,20}(?:\ \w{2,20})?,\ not\b|^\W*sorry\W+(?:i\ )?meant\b
        |\b(?:tho|though|btw)(?=\W*$|,)|\b(?:too|then|either|as\ well)\W*$""",
    re.I | re.X,
)
"""What a message begins or ends with that goes on with the one before it."""

REFINEMENT = re.compile(
    r"""\A\W*(?:(?:hm+|no|nope|nah|ok|okay|well|actually|maybe|and|but|or)\b\W*){0,3}
        (?:(?:(?:is\ there\ |do\ you\ have\ |got\ )?(?:any|some)(?:thing|where)?\ )?
            (?:(?:a\ bit|a\ little|even|much)\ )?
            (?:cheaper|closer|nearer|faster|slower|quicker|shorter|longer|bigger|smaller|larger|lower|higher|newer|older
            |earlier|later|sooner|easier|harder|simpler|quieter|calmer|livelier|healthier|lighter|fresher|milder
            |spicier|sweeter|fancier|nicer|better|softer|thicker|thinner|stronger)
            (?=\W*\Z|\W+(?:to|if|by|for|please|in|on|at|with|around)\b)
        |(?:any|some)(?:thing|where)\ (?:more|less)\ \w{3,20}\W*\Z
        |(?:(?:only|just|not)\ )?the\ (?:\w{2,20}\ ){1,2}ones\W*\Z)""",
    re.I | re.X,
)
"""What only says how the answer before it should have been: "something faster", "only the organic ones". It names no
thing that anybody else could be asked for."""

NARROWS = re.compile(
    r"^\W*(?:(?:and|but|or)\s+)?(?:only|just|without|with|in|at|near|from|under|over|for|by|not)\b",
    re.I,
)
"""What a message begins with that says more about what was asked before: "only at Harvest Market"."""

CONDITION = re.compile(
    r"""\b(?:with|without|(?:that|(?:which|what)\ \w{1,30})\ (?:have|has|offers?|serves?))
        \ (?:(?:an?|the|any|some|free)\ )?([a-zà-ÿ]{4,40})\b""",
    re.X,
)
"""What is asked of the things that somebody looks for: "outlets with a terrace", "which ones have parking". In a
name it begins with a capital: "Words With Friends"."""

AMOUNT = re.compile(
    r"""\b(?:under|below|over|above|(?:less|more|fewer|cheaper)\ than|at\ (?:most|least)|up\ to)
        \ \$?(\d[\d,]*)(?:\ (?:points|dollars|miles))?""",
    re.I | re.X,
)
"""How much something may cost, count or be away: "under 100 points"."""

MEASURE = re.compile(
    r"""\b(?:pack(?:et|age)?s?|box(?:es)?|bottles?|cans?|bags?|jars?|cartons?|pieces?|pounds?|ounces?|cups?|kinds?
        |sorts?)\ of\b""",
    re.I | re.X,
)
"""What something is counted in: "packs of tea" are of tea."""

OF_THEM = re.compile(
    r"\bof\ (?:them|these|those)\b.{0,30}?\b((?:the\ )?(?:\w+est|best|worst|(?:most|least)\ \w+)(?:\ rated)?)\b",
    re.I | re.X,
)
"""Which of the things that were shown is meant: "which of them is the cheapest"."""

PAST = re.compile(
    r"""\b(?:yesterday|last\ (?:week|month|year)|\w{1,10}\ (?:days|weeks|months|years)\ ago
        |(?:after|before|since|until)\ 20\d\d
        |in\ (?:january|february|march|april|may|june|july|august|september|october|november|december|20\d\d))\b""",
    re.I | re.X,
)
"""A time that is over, which only some of what is listed is from."""

LEAST = re.compile(r"\bthe (?:least|fewest|worst)\b|\basc(?:ending)?\b", re.I)
"""An order from the lowest on, as somebody or a tool says it."""

CORRECTION = re.compile(
    r"""^\W*(?:no+|nope|not\ that|sorry|wait)\b[^.!?\n]{0,30}?
        \bi\ (?:meant|mean|asked\ (?:for|about)|was\ asking\ (?:for|about))\s+(?=\w)""",
    re.I | re.X,
)
"""What stands before what somebody meant: "no, sorry, I meant my points"."""

OF_ANOTHER = re.compile(
    r"""\b(?:does|did|has|of|for)\ (
        (?:my\ (?:wife|husband|partner|son|daughter|mother|mom|father|dad|brother|sister|friend)
        |user\ \S*\d)\b|[A-Z][a-z]+(?=\ (?:have|earn|own|redeem|spend)\b))""",
    re.X,
)
"""Somebody else, whose things a message asks for: "how many points does Bob have"."""

ACT = re.compile(
    r"""^\W*(?:(?:and|then|also|ok(?:ay)?|yes|yeah|sure|so)\b\W+)?
        (?:(?:please|can\ you|could\ you|would\ you|i\ want\ (?:you\ )?to|i'd\ like\ to)\s+)*
        (?:(?:donate|redeem|cancel|delete|transfer|refund|pause|reopen|activate|deactivate|rename)\b(?=\s)
        |(?:book|reserve|order|call|phone|text|email|e-mail|pay|subscribe|unsubscribe|cash\ (?:in|out)|sign\ up)
         \s+(?:me|us|my|our|the|an?|all|this|that|it|them|for|from|\d|ou-)
        |(?:leave|add|write|make|put)\s+(?:me\s+)?an?\s+(?:note|message|review|tip|reminder|entry))""",
    re.I | re.X,
)
"""The beginning of a request that something be done in the world."""

INQUIRY = re.compile(
    r"""^\W*(?:(?:and|also|so|but)\s+)?
        (?:(?:do|does|did|is|are|was|were|has|have|what|which|when|where|who|why|how)\b
        |(?:should|shall|must)\ (?:i|we)\b
        |(?:can|could|may)\ (?:i|we)\s
            (?!book|cancel|delete|donate|order|pay|redeem|refund|reserve|sign|subscribe|transfer)
        |(?:please\s+)?(?:do\ not|don't|dont|never)\b(?!\ forget\b))""",
    re.I | re.X,
)
"""The beginning of what is answered, and by which nobody wants anything done: a question, or "don't order it"."""

COURTESY = re.compile(
    r"""\bif\ (?:possible|you\ (?:can|could|would|please|do\ not\ mind|don['’]?t\ mind)|it['’]s\ possible)\b
        |\b(?:do\ not|don['’]?t|never)\ forget\ to\b""",
    re.I | re.X,
)
"""An "if" or a "not" that is polite, and changes nothing of what is wished for."""

CONDITIONAL = re.compile(
    r"""\b(?:if|unless|provided|in\ case|as\ soon\ as|as\ long\ as|whenever)\b
        |(?<=\w)\ when\ (?:my|the|it|i|he|she)\b""",
    re.I | re.X,
)
"""What ties a wish to something that may or may not be so."""

DOING = word_set(
    """send give pay transfer wire move put make get do order buy book reserve redeem turn exchange cash open ring call
    add set leave start place donate register sign"""
)
"""Verbs of an act, which a deck need not list."""

BESIDE_ACT = word_set(
    """please kindly can could would will you we i i'd i'll like want need to me my us our the a an some one for of at
    in into out up on from by with and also then now today hi hello hey thanks thank much so too"""
)
"""Words beside an act that change nothing about it."""

TURNS = word_set(
    """not no nor never or if unless when whenever until till before after instead except but only without half twice
    double every again both between either back off"""
)
"""Words that turn an act into another one, or into none, wherever a description uses them."""

LOOKS_UP = re.compile(
    r"^\W*+(?:check|count|find|get|list|look|name|read|say|search|show|tell)(?:s|es)?\b", re.I
)
"""The beginning of the name or the description of a lookup."""

_TO_NINETEEN = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMERALS = {"dozen": 12.0, "hundred": 100.0, "thousand": 1000.0, "grand": 1000.0}
"""Words for numbers."""
NUMERALS.update((word, float(value)) for value, word in enumerate(_TO_NINETEEN.split()))
NUMERALS.update((word, 10.0 * value) for value, word in enumerate(_TENS.split(), 2))
# "One" mostly stands for a thing.
del NUMERALS["one"]
