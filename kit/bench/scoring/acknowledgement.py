"""Whether a reply owns up to what failed: judged by its words and by what was made to fail, not by
the kit's own checks."""

import re
from collections.abc import Iterable, Set

from kit.bench.case import FAILING, Case
from kit.bench.scoring.observation import Observation
from kit.core.display.agent_name import words_of_id
from kit.core.language.words import SENTENCE_END, content_words

# Bounded: a reply without a full stop would be searched in the square of its length.
_DENIES = re.compile(
    r"""\b(?:could|can|was|were|am|are|is|has|have|did|do)(?:\ not|n['’]t)\b[^.!?]{0,300}?
        \b(?:able|get|got|reach|find\ out|check|look|answer|load|retrieve|fetch|pull\ up|available|working|respond
            |come\ back|confirm)
      | \bnone\ of\ us\ can\b
      | \b(?:can\s?not|unable\ to|failed\ to|no\ answer|not\ available|unavailable|did\ not\ come\ back|went\ wrong)\b
      | \bleft\ (?:out|for\ (?:now|later))|\bleft\ [^.!?]{0,300}\bout\b|\bnot\ asked\b|\bdown\ (?:right\ now
      |at\ the\ moment)\b
      | \b(?:timed\ out|took\ too\ long)\b""",
    re.I | re.X,
)
_RESERVES = re.compile(
    r"incomplete|may be missing|might be missing|not everything|part of the data|some (?:sources|"
    r"data|of (?:the|this|it))"
    r"|one (?:source|reservation)|partial|may not be (?:complete|all)|at least",
    re.I,
)


def sentences_of(text: str) -> list[str]:
    """The sentences of a reply, without the blanks around them."""
    return list(filter(None, map(str.strip, SENTENCE_END.split(text))))


def denies(sentence: str) -> bool:
    """Whether a sentence says that something was not answered, not asked or left out."""
    return _DENIES.search(sentence) is not None


def agents_to_acknowledge(case: Case, observation: Observation) -> tuple[str, ...]:
    """Agents the reply owes words about: they ended in failure, were left out, or were made to fail
    and said nothing."""
    owing = dict.fromkeys(observation.failed)
    for agent in observation.dropped:
        if agent not in observation.answers:
            owing[agent] = None
    for fault in case.faults:
        agent, _, kind = fault.partition("=")
        is_silent = agent in observation.invoked and agent not in observation.answers
        if is_silent and kind.partition(":")[0] in FAILING:
            owing[agent] = None
    return tuple(owing)


def acknowledgement(case: Case, observation: Observation) -> float | None:
    """Of the parts that failed or were left out, how many the reply owns up to; None where nothing
    did.

    A part is owned up to by a sentence that denies and names it: by its id in plain words, by one
    of the case's topics, or, when all that was asked for failed, by the denial alone.
    """
    owing = agents_to_acknowledge(case, observation)
    if not owing:
        return None
    denials = list(filter(denies, sentences_of(observation.text)))
    whole = set(observation.called) <= set(owing)
    if whole and len(owing) == 1:
        return float(bool(denials))
    text = "\n".join(denials).casefold()
    count = sum(_names(text, agent, case, observation) for agent in owing)
    if whole and denials and not count:
        return 1.0
    return count / len(owing)


def reservation(case: Case, observation: Observation) -> float | None:
    """Whether the reply passes on that an answer holds with a reservation; None where none does."""
    if not observation.with_reservation:
        return None
    return float(bool(_RESERVES.search(observation.text)) or denies(observation.text))


def needless(case: Case, observation: Observation) -> float | None:
    """The reply apologises although nothing went wrong; None where something did, or where nobody was asked.

    A part that went to no agent it is for was lost: a reply that owns up to it apologises for something.
    """
    if (
        agents_to_acknowledge(case, observation)
        or _lost_agents(case, observation)
        or observation.with_reservation
        or not observation.answers
    ):
        return None
    findings = " ".join(observation.answers.values())
    for sentence in filter(denies, sentences_of(observation.text)):
        if sentence not in findings and _sorry(sentence, observation.called):
            return 1.0
    return 0.0


def silent_loss(case: Case, observation: Observation) -> float | None:
    """Of the parts of the message, how many were neither answered nor owned up to; None where the
    case expects nobody, and where the turn does not say whom it asked."""
    expected = case.turns[observation.turn].expected
    if not expected or not observation.routed:
        return None
    return len(parts_lost_in_silence(case, observation)) / len(expected)


def parts_lost_in_silence(case: Case, observation: Observation) -> list[str]:
    """The agents whose part of the message got no answer of theirs, while no sentence of the reply
    both denies and names it: by its agent, by a topic of the case, or by half of its words.

    Where a turn failed and nobody answered, the denial alone says so of all of them.
    """
    ask = case.turns[observation.turn]
    denials = list(filter(denies, sentences_of(observation.text)))
    answering = answering_agents(observation)
    if observation.status == "failed" and denials and not answering:
        return []
    parts: list[str] = []
    for agent in ask.expected:
        if agent in answering:
            continue
        part_words = content_words(ask.queries.get(agent, ask.user))
        if not any(
            _speaks_of(sentence, agent, part_words, case, observation) for sentence in denials
        ):
            parts.append(agent)
    return parts


def answering_agents(observation: Observation) -> Set[str]:
    """Returns the agents that answered.

    In a monolith nobody is asked: a tool call stands for the part of the agent whose tool it is.
    """
    return observation.answers.keys() | (observation.material.keys() - set(observation.failed))


def _speaks_of(
    sentence: str, agent: str, part_words: Set[str], case: Case, observation: Observation
) -> bool:
    if _names(sentence.casefold(), agent, case, observation):
        return True
    shared_words = part_words & content_words(sentence)
    return 2 * len(shared_words) >= len(part_words)


def _lost_agents(case: Case, observation: Observation) -> set[str]:
    """Agents that a part of the message is for, and that were not asked."""
    expected = case.turns[observation.turn].expected
    return set(expected) - set(observation.invoked)


def _names(sentence: str, agent: str, case: Case, observation: Observation) -> bool:
    label = observation.labels.get(agent, "")
    for word in (words_of_id(agent), label, *case.topics.get(agent, ())):
        if word and word.casefold() in sentence:
            return True
    return False


def _sorry(sentence: str, agents: Iterable[str]) -> bool:
    """An apology speaks of the assistant or of an agent, not of what a shopper could not do."""
    lower = sentence.casefold()
    if re.search(r"\bi\b|\bwe\b", lower):
        return True
    return any(agent.replace("_", " ") in lower for agent in agents)
