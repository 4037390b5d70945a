"""What people say beside what they ask for: thanks, sighs, haste, and wishes for what no agent has."""

import re

THANKS = re.compile(
    r"""\A\W*(?:(?:many|much|muchas|mil)\s+)?(?:thanks|thank\s+you|thx|gracias)
        (?:\s+(?:so|very)\s+much|\s+a\s+lot)?\s+(?:for|por)\b[^,;:–—\n]*(?:[,;:–—]\s*)?""",
    re.IGNORECASE | re.VERBOSE,
)
"""Thanks for something, up to the next mark: whoever says them asks for nothing by them."""
ASIDE = re.compile(
    r"""(?:(?:(?:u+gh|argh|hm+|phew|sigh|lol|haha|omg|o[hk]|okay|well|so|listen)\b\W*+)++
        |while\ (?:you|we)(?:['’]re|\ are)\ (?:at\ it|there)
        |(?:[\w']{1,12}\ ){0,4}sorry(?:\ (?:for|about)\ (?:the|this|all|my)\ [\w\ ]{1,40})?
        |(?:(?:or|no|wait|actually|ok|oh)\ )?
            (?:(?:forget|scratch)\ (?:that|it)|never\ ?mind(?:\ that)?|olvídalo|no\ importa)
        |(?:ur|you(?:['’]re|\ are))\ (?:the\ best|great|awesome|a\ lifesaver)
        |(?:(?:kind|best|warm)\ )?regards(?:,?\ \w+)?|(?:un\ )?saludos?(?:,?\ \w+)?)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Sighs ("omg ok so"), "while you're at it", excuses, praise, or the end of a letter: a clause of nothing else asks
for nothing."""
HASTE = re.compile(
    r"""\A[^,;:?!\n]{0,100}\bso\ (?:please\ |pls\ |plz\ )?(?:be\ |make\ (?:it|this)\ )?
        (?:quick(?:ly)?|fast|brief|short)(?:\s*[:,;–—]\s*|\Z)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Why somebody is in a hurry, up to the next mark: "soccer practice in ten minutes so be quick"."""
TERMS = re.compile(
    r"""(?:\$?\d[\d,.]{0,9}|\w{1,20})\ (?:dollars|bucks|points|pts|euros|miles|minutes)
        \ (?:tops|max|at\ (?:most|least)|or\ (?:less|more|under))
        |(?:[^\W\d_]{1,20}\ ){1,3}(?:ok|okay|allowed|included)
        |[^\W\d_]{1,20}\ wise|(?:the|that)\ (?:[\w'’-]{1,20}\ ){1,3}one""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words that only say more of the request before them: "ten dollars tops", "the blue bottle one"."""
PROMPT = re.compile(
    r"""\b(?:your|system|hidden|secret|initial)\s+(?:(?:system|hidden|secret|initial|own|full|exact)\s+)*prompts?\b
        |\b(?:system|hidden|secret|initial|previous|prior|earlier)\s+(?:instructions?|messages?)\b
        |\bprompt\s+de(?:l\s+|\s+)sistema\b|\binstrucciones\s+(?:del\s+sistema|anteriores|ocultas|secretas)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""What an assistant was told before the conversation: no agent has it, so it is never promised for the next answer."""
