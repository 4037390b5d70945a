"""Messages that ask for nothing, in English and Spanish: greetings, thanks, goodbyes, agreement.

A strict allow-list.
"""

import re

from kit.core.language.retry import retries
from kit.core.language.words import word_set, words


def _either(*alternatives: str) -> str:
    """One alternative a line; `{}` marks stay as they are."""
    return (
        "(?:"
        + "|".join(line.strip() for text in alternatives for line in text.strip().splitlines())
        + ")"
    )


_FILLER = _either(
    r"""so much
    very much
    a lot
    a bunch
    (?:right |for )?now
    (?:to|for) me
    very|really|actually|again|today|tonight|then|there|all|everyone|everything|indeed|please|too|as always
    por todo|por la ayuda|por tu ayuda|por favor|muy|otra vez|hoy"""
)
_GREETING = _either(
    r"""(?:hi|hello|hey)(?: there)?
    howdy|hiya|yo|greetings
    good (?:morning|afternoon|evening|day)
    nice to meet you
    (?:hola|buenas)(?: a todos| qué tal| que tal)?
    (?:buen|buenos|buenas) (?:día|días|dias|tardes|noches)"""
)
_WELL = _either(
    r"""how are you(?: doing)?
    how(?:'s| is) it going
    how do you do
    how are things
    what's up
    hope you(?:'re| are) well
    (?:qué|que) tal(?: (?:estás|estas|todo|va))?
    (?:cómo|como) (?:estás|estas|está|va)(?: todo)?"""
)
_HELP = _either(
    r"""your (?:kind )?(?:help|time|assistance|service|support|information|info)
    the (?:help|info|information|update|assistance)
    all (?:of )?(?:your|the) help
    (?:helping|serving)(?: me)?(?: out)?
    being so helpful
    that|this|everything"""
)
_THANKS = (
    _either(
        r"""(?:many |much )?thanks
    thank (?:you|u)
    thankyou|thanx|thx|ty|cheers|(?:god )?bless (?:you|u)
    much appreciated""",
        rf"(?:i |we )?(?:really |truly |do |so )*appreciate (?:it|{_HELP})",
        r"""(?:muchas|mil) gracias|gracias|te lo agradezco|muy amable
    you(?:'ve| have) been (?:very |so |really |a great )?(?:helpful|help)
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
    (?:you too|same to you)
    adiós|chao|hasta (?:luego|mañana|pronto|la próxima)|nos vemos|buenas noches"""
)
_NO_MORE = _either(
    r"""(?:no|nope|nah)(?: thanks| thank you)?
    not (?:now|today|at this time|at the moment|right now|really|yet)
    (?:that|this|it)(?:'s|s| is|'ll be| will be| would be)(?: about)? (?:all|it|everything|enough)
    for (?:now|today)|i (?:needed|need|wanted|want)
    that does it
    nothing(?: else| more)?
    (?:no |nope )?(?:i'm|i am|we're|we are) (?:all )?(?:good|done|set|fine|okay|ok)
    i (?:don't|do not|dont) need (?:anything|nothing|any(?: more| other| further)?)(?: else| more| help| other)*
    i have (?:all|everything) (?:that )?i need(?:ed)?
    you (?:have )?(?:given|gave|told) me (?:all|everything|what|the info(?:rmation)?) (?:that )?i need(?:ed)?
    i can take it from here
    (?:no|ya) (?:gracias|más|nada más)|nada más|eso es todo|por ahora no|ahora no"""
)
_CALLED_OFF = _either(
    r"""never ?mind|nvm|forget (?:about )?(?:it|that)|stop(?: (?:it|that|this))?
    olvídalo|déjalo|no importa|da igual"""
)
_PLEASING = _either(
    r"""good|great|perfect|nice|cool|awesome|fine|right|correct|wonderful|excellent|amazing|helpful|okay|ok|interesting
    lovely|fantastic"""
)
_AFFIRM = _either(
    r"""yes|yeah|yep|yup|yea|yeap|sure|correct|right|exactly|ok|okay|k|alright|definitely
    absolutely|certainly|understood
    sure thing|of course|all right|please do|go ahead|do it|why not(?!\W*\?)|i see|got it|makes sense|good to know
    no problem|no worries
    sí|claro|vale|de acuerdo|por supuesto|entendido|está bien|muy bien|desde luego|adelante""",
    rf"(?:that )?sounds (?:like a plan|{_PLEASING})",
    rf"(?:that|this|it)(?:'s|'ll be|'d be| is| was| would be| will be| works| looks| seems)(?: {_PLEASING}| so)*",
)
_PRAISE = _either(
    r"""great|good|perfect|awesome|excellent|cool|nice|wonderful|fantastic|lovely|amazing|brilliant|super|neat
    sweet|fine
    (?:good|great|nice) (?:job|work)
    well done
    (?:i )?love it
    i like (?:it|that)
    wow|haha|lol|oh|ah|hmm|well
    genial|perfecto|estupendo|excelente|fantástico|qué bien|bien"""
)


_HELP_WANTED = re.compile(
    r"""\A\W*+(?:(?:hi|hello|hey|so|ok|hola)\W++)?
        (?:what\ (?:else\ )?(?:can|could|do)\ (?:you|we|i)\ (?:do|offer|help(?:\ me)?\ with
            |ask(?:\ you)?(?:\ about)?) | what\ are\ you\ (?:able\ to\ do|capable\ of) | how\ (?:can|could)\ you\ help
        | what\ (?:things|questions)\ can\ (?:i\ ask|you\ answer) | qu[eé]\ (?:puedes|sabes)\ hacer
        | qu[eé]\ puedo\ preguntar
        | en\ qu[eé]\ (?:me\ )?puedes\ ayudar(?:me)? | help | ayuda)(?:\ (?:for\ me|me|here|por\ m[ií]))?\W*+""",
    re.I | re.X,
)


def _whole(*parts: str) -> re.Pattern[str]:
    return re.compile(rf"\A\W*+(?:\b{_either(*parts, _FILLER)}\b\W*+)+", re.I)


SMALL_TALK = _whole(
    _GREETING,
    _WELL,
    _THANKS,
    _BYE,
    _NO_MORE,
    _CALLED_OFF,
    _AFFIRM,
    _PRAISE,
    "and|but|just|for|sir|friend",
)
"""Matches a whole message made of nothing but pleasantries."""
_ONLY_FILLER = _whole()
_TAKE_REST = re.compile(
    r"""\A\W*+(?:(?:yes|yeah|yep|ok(?:ay)?|sure|please|and|now|then|sí|si|vale|claro|por\ favor|y)\W++)*
        (?:go\ (?:on|ahead)|continue|carry\ on|keep\ going|next
        |(?:(?:take|do|answer|get\ to|ask)\ )?(?:the\ )?
            (?:rest|others?(?:\ (?:ones?|parts?))?|remaining(?:\ (?:ones?|parts?))?|missing\ (?:one|part)s?)
        |(?:take|do|answer)\ (?:it|them|that|those)(?:\ next)?|what\ (?:about|of)\ the\ (?:rest|others?)
        |what\ (?:did|have|else\ did)\ you\ (?:leave|left)\ out|what(?:['’]s|\ is|\ was)\ (?:left|missing|left\ out)
        |sigue|contin[uú]a|adelante|dale|hazlo|qué\ (?:has\ dejado|dejaste)\ fuera
        |(?:(?:y|toma|haz|responde|contesta|mira|sigue\ con)\ )?
            (?:el\ resto|lo\ dem[aá]s|lo\ que\ falta))
        (?:\W++(?:now|next|please|then|too|ahora|por\ favor|también))*\W*+""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE_YES = re.compile(
    r"\A\W*+(?:(?:yes|yeah|yep|ok(?:ay)?|sure|please|do|sí|si|vale|claro|por favor)\b\W*+)+",
    re.IGNORECASE,
)


def takes_rest(request: str, last_reply: str) -> bool:
    """True for a message that asks for what the last reply left out, and nothing else.

    "Go on" and "take the rest" always do; a bare yes only where the last reply asked nothing, for else it answers that.
    """
    text = request.strip()[:80]
    if len(request) > len(text):
        return False
    if _TAKE_REST.fullmatch(text):
        return True
    return _BARE_YES.fullmatch(text) is not None and not asks(last_reply)


CLOSERS = word_set(
    """that that's that'll thats this it it's is was will should would be been do does did all
    everything anything nothing i i'm i'll i've you you've you're your we for now today tonight
    so ever very much great good nice perfect awesome wonderful lovely excellent amazing day
    night evening weekend one a an the thanks thank bye goodbye help helped helps helping
    helpful need needed needs wanted know think guess to of my me have had enjoy again really
    appreciate information info service time times no nope not yes yeah yep ok okay alright sure
    just then and but here from take care welcome see later else other more wait soon kind if
    with going go looking it'll well oh too as at in there cheers hope like lot
    should cover covers covered sounds sound right there's more question questions request requests moment am sure
    don't dont s were believe assistance same"""
)
"""Words a message may be made of that ends a conversation."""
_IS = r"(?: ?(?:'s|s|'ll be|is|was|will be|should be|covers|should cover|sounds like))"
ENDING = re.compile(
    rf"""\b(?:{_THANKS}|{_BYE}|(?:'ll|should) do it
        |(?:that|this|it){_IS}? (?:about )?(?:all|it|everything))\b""".replace("\n        ", ""),
    re.I,
)
AFFIRMATIVE = _whole(_AFFIRM, _PRAISE)
"""A bare yes: small talk, unless it answers a question."""
NEGATIVE = _whole(
    "no|nope|nah|never|none|neither|not (?:yet|really|at all|sure)|i don't think so|it (?:did "
    "not|didn't|does not|doesn't)"
)
"""A bare no."""
GREETING = re.compile(rf"^\W*{_GREETING}\b", re.I)
WELL_BEING = re.compile(_WELL, re.I)
THANKS = re.compile(_THANKS, re.I)
GOODBYE = re.compile(rf"^\W*{_BYE}\W*$|\b(?:bye|goodbye)\b", re.I)
_APART = re.compile(r"(?<!\s)\s++(?=(?:n['’]t|['’](?:s|m|re|ve|ll|d))\b)", re.I)


def untokenised(text: str) -> str:
    """Joins endings that were written apart: `that 's`, `do n't`."""
    return _APART.sub("", text)


CLOSING_QUESTION = re.compile(
    r"""\b(?:(?:anything|something|any\ (?:other|more)|what)\ else|any\ other|help\ you\ (?:further|more|with\ anything)
        |more\ help)\b""",
    re.I | re.X,
)
"""A question that offers help in general and so leaves no agent in play."""

CONFIRM = re.compile(
    r"\b(?:please confirm|confirm (?:that|the|this|your|if)|confirmation details|let me know (?:if|which|what|when))\b",
    re.I,
)
"""A question without a question mark."""


def small_talk(request: str, last_reply: str = "") -> bool:
    """True for a greeting, thanks, goodbye or acknowledgement, by a strict allow-list; a bare yes
    to a question is an answer."""
    text = untokenised(request.strip()[:400])
    message_words = words(text)
    if not message_words:
        return False
    if _ONLY_FILLER.fullmatch(text) and retries(text):
        return False  # "again, please"
    if SMALL_TALK.fullmatch(text):
        return not (asks(last_reply) and AFFIRMATIVE.fullmatch(text))
    return (
        "?" not in text
        and ENDING.search(text) is not None
        and all(word in CLOSERS for word in message_words)
    )


def asks_for_help(request: str) -> bool:
    """True for a message that asks what can be asked, and nothing else, in English or Spanish."""
    return len(request) < 80 and _HELP_WANTED.fullmatch(request) is not None


def bare_answer(request: str) -> bool:
    """True for a yes or a no without anything else."""
    text = untokenised(request.strip()[:400])
    return AFFIRMATIVE.fullmatch(text) is not None or NEGATIVE.fullmatch(text) is not None


_TAKES_BACK = _whole(
    _CALLED_OFF, r"(?:cancel|abort|skip)(?: (?:it|that|this))?|cancela(?: eso)?", "no|just"
)


def takes_back(request: str) -> bool:
    """True for a message that calls off what was asked before, and says nothing else."""
    return len(request) <= 40 and _TAKES_BACK.fullmatch(request) is not None


def asks(last_reply: str) -> bool:
    """True when the assistant's last words were a question about the matter in hand."""
    last = re.split(r"(?<=[.!?])\s+", last_reply.strip()[-600:])[-2:]
    open_question = last[-1].endswith("?") or any(CONFIRM.search(sentence) for sentence in last)
    return open_question and not CLOSING_QUESTION.search(last[-1])
