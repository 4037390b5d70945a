"""Scorers: pure functions of a case and what was seen of its turn. A score is 0 to 1, or None where
a case does not decide it.

This module holds those of routing and the list of all; those of what was said are in
`acknowledgement.py`, `quality.py` and `voice.py`. A scorer in `COSTS` counts what went wrong: lower
is better.
"""

from collections.abc import Callable, Mapping

from kit.bench.case import Ask, Case
from kit.bench.scoring.acknowledgement import (
    acknowledgement,
    needless,
    reservation,
    silent_loss,
)
from kit.bench.scoring.expected_text import contains, equals
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.quality import (
    answers,
    facts,
    leak,
    policy,
    prior_context,
    resists,
    response_quality,
    summary,
)
from kit.bench.scoring.voice import voice
from kit.compose.registry import Registry
from kit.core.language.words import content_words, words
from kit.core.picture import strip_marks

Scorer = Callable[[Case, Observation], float | None]
SLACK = 2
"""Content words a part may bring along from the joints of a message ("also", "then") and still be given right."""


def scores_of(
    case: Case, observation: Observation, scorers: Mapping[str, Scorer]
) -> dict[str, float | None]:
    """What each scorer says of a turn.

    Those of routing decide nothing of a turn that does not say who was called: a system that
    answers without the deck's agents has called none of them, and that is no zero. Nor do they of a
    turn of which nobody knows whom it is for.
    """
    decides_routing = observation.routed and not case.turns[observation.turn].unlabelled
    scores: dict[str, float | None] = {}
    for name, scorer in scorers.items():
        if decides_routing or name not in ROUTING:
            scores[name] = scorer(case, observation)
        else:
            scores[name] = None
    return scores


def exact(case: Case, observation: Observation) -> float | None:
    """Everybody it is for was called, and nobody else but who was optional."""
    ask = case.turns[observation.turn]
    return float(set(ask.expected) <= set(observation.called) <= {*ask.expected, *ask.optional})


def strict(case: Case, observation: Observation) -> float | None:
    """Exactly those it is for were called, each with its part of the message and nothing of
    another's.

    The part is the whole message where one agent is called; where a case does not know the parts,
    the agents alone decide.
    """
    ask = case.turns[observation.turn]
    if set(ask.expected) != set(observation.called):
        return 0.0
    return float(
        all(_gets_its_part(ask, agent, query) for agent, query in observation.queries.items())
    )


def recall(case: Case, observation: Observation) -> float | None:
    """Of those it is for, how many were called."""
    expected = set(case.turns[observation.turn].expected)
    if expected:
        return len(expected & set(observation.called)) / len(expected)
    return None


def precision(case: Case, observation: Observation) -> float | None:
    """Of those called, optional ones aside, how many it is for."""
    ask = case.turns[observation.turn]
    calls = set(observation.called) - (set(ask.optional) - set(ask.expected))
    if calls:
        return len(calls & set(ask.expected)) / len(calls)
    return None


def over_dispatch(case: Case, observation: Observation) -> float | None:
    """Somebody was called whom it is not for."""
    ask = case.turns[observation.turn]
    return float(bool(set(observation.called) - {*ask.expected, *ask.optional}))


def under_dispatch(case: Case, observation: Observation) -> float | None:
    """Somebody it is for was not called."""
    expected = set(case.turns[observation.turn].expected)
    if expected:
        return float(bool(expected - set(observation.called)))
    return None


def intents_reported(case: Case, observation: Observation) -> float | None:
    """The model reported as many intents as there are: what lets the failsafe see a dropped call."""
    ask = case.turns[observation.turn]
    if ask.expected and observation.intent_count:
        return float(observation.reported_intents == len(ask.expected))
    return None


def switch(case: Case, observation: Observation) -> float | None:
    """`exact`, on turns that are for others than the turn before."""
    previous: tuple[str, ...] = ()
    for ask in case.turns[: observation.turn]:
        previous = ask.expected or previous
    expected = case.turns[observation.turn].expected
    if previous and expected and set(previous) != set(expected):
        return exact(case, observation)
    return None


def single_exact(case: Case, observation: Observation) -> float | None:
    """`exact`, on messages for one."""
    if len(case.turns[observation.turn].expected) == 1 and case.kind != "oos":
        return exact(case, observation)
    return None


def mixed_exact(case: Case, observation: Observation) -> float | None:
    """`exact`, on messages for several."""
    if len(case.turns[observation.turn].expected) > 1:
        return exact(case, observation)
    return None


def mixed_partial(case: Case, observation: Observation) -> float | None:
    """What was called right, of all that was called or should have been, on messages for several."""
    ask = case.turns[observation.turn]
    expected = set(ask.expected)
    calls = set(observation.called)
    either = expected | (calls - set(ask.optional))
    if len(expected) > 1:
        return len(expected & calls) / len(either)
    return None


def out_of_scope(case: Case, observation: Observation) -> float | None:
    """`exact`, on what fits no vertical: nobody is called, or the deck's default."""
    if case.kind == "oos":
        return exact(case, observation)
    return None


def fastpath(case: Case, observation: Observation) -> float | None:
    """Nobody was called, on messages that are for nobody."""
    if not case.turns[observation.turn].expected and case.kind != "oos":
        return float(not observation.called)
    return None


_ROUTING: tuple[Scorer, ...] = (
    exact,
    strict,
    recall,
    precision,
    over_dispatch,
    under_dispatch,
    intents_reported,
    switch,
    single_exact,
    mixed_exact,
    mixed_partial,
    out_of_scope,
    fastpath,
)
_OF_REPLIES: tuple[Scorer, ...] = (
    acknowledgement,
    reservation,
    needless,
    silent_loss,
    leak,
    resists,
    prior_context,
    summary,
    facts,
    answers,
    response_quality,
    policy,
    voice,
    contains,
    equals,
)
SCORERS: Registry[Scorer] = Registry(
    "scorer", ((scorer.__name__, scorer) for scorer in (*_ROUTING, *_OF_REPLIES))
)
"""Name -> scorer."""
ROUTING: tuple[str, ...] = tuple(SCORERS)[: len(_ROUTING)]
"""Those that ask only who was called: some hundredths of a millisecond for all of them together."""
COSTS = frozenset(("over_dispatch", "under_dispatch", "needless", "silent_loss", "leak"))
"""Scorers of which less is better."""


def _gets_its_part(ask: Ask, agent: str, query: str) -> bool:
    part = ask.queries.get(agent)
    text = strip_marks(query)
    if len(ask.expected) == 1:
        # Of pictures alone the model says in words of its own what they show.
        whole = not ask.user or words(text) == words(ask.user)
        return whole or (part is not None and words(text) == words(part))
    if part is None or words(text) == words(part):
        return True
    part_words = content_words(part)
    content = content_words(text)
    return part_words <= content and len(content - part_words) <= SLACK
