"""Whether a text is nothing but the error of a machine, which no person may read as an answer."""

import re

_STATUS = r"(?i:(?:http|status|error)[\s:=\#/]{0,3}(?:code\s)?[45]\d\d\b)"
_EXCEPTION = r"[A-Z]\w{1,60}(?:Error|Exception)\b"
_IS_EXPLAINED = r"\W{1,3}(?:means?|is|was|stands|says|tells|happens|occurs|comes|came|usually)\b"
_ERROR = re.compile(
    rf"""\A\W{{0,20}}+(?P<marker>(?i:error|exception|failure|failed|fatal)\s*+[:–-]\s*+)?+(?:
        {_STATUS}
      | (?i:[45]\d\d\s{{1,3}}(?:service\ unavailable|internal\ server\ error|bad\ (?:request|gateway)
        |gateway\ time-?out|not\ found|forbidden|unauthori[sz]ed|too\ many\ requests)\b)
      | {_EXCEPTION}
      | Traceback\ \(most(?:\ recent\ call\ last\))?
    )(?:
        \s*+\Z
      | \s*+[:(–-]\s*+(?:\S++\s*+){{0,3}}+\Z
      | (?s:.{{0,2000}}?)(?i:\d{{1,3}}(?:\.\d{{1,3}}){{3}}|[a-z]:\d{{2,5}}\b|\berrno\b|\b0x[0-9a-f]|\bFile\ ")
      | (?(marker)(?!{_IS_EXPLAINED})|(?!))
      | \s*+[:(–-]\s*+(?:{_STATUS}|{_EXCEPTION})(?!{_IS_EXPLAINED})
    )""",
    re.X,
)
"""A reply that is nothing but a machine's error: its name alone, with three words at most, with an address, a port or a
number of the system, or with a second such name before or behind it. A text that explains an error to a person does
without these."""


def is_machine_error(text: str) -> bool:
    """Whether a text is nothing but a machine's error."""
    return _ERROR.match(text) is not None
