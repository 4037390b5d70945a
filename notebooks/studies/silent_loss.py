"""Parts that were lost without a word, by pattern: `python notebooks/studies/silent_loss.py [every] [set ...]`.

The offline stand-in plays every n-th case of these sets of data/cases, `mixed` and `pairs` unless others are named. A
labelled part is lost unsaid when its sub-agent neither answered nor is owned up to in the reply; "elsewhere" counts
those whose words another sub-agent was sent. A false alarm is a turn in which everybody answered and the reply still
says that a part was left out.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kit.bench.case import Case, read_cases
from kit.bench.scoring.acknowledgement import answering_agents, parts_lost_in_silence
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.run_case import run_case
from kit.compose.deck import load_deck
from kit.core.language.words import content_words
from kit.experiment_kits import ExperimentKits
from kit.models.offline import OfflineModel
from kit.patterns import PATTERNS
from kit.runtime.clock import run_virtual
from kit.runtime.handle import Reply
from kit.settings import HOME


@dataclass
class Losses:
    """What came of the cases under one pattern."""

    turns: int = 0
    parts: int = 0
    lost: int = 0
    elsewhere: int = 0
    complete: int = 0
    false_alarms: int = 0

    def line(self, pattern: str) -> str:
        lost = f"{self.lost} of {self.parts} ({self.lost / max(1, self.parts):.1%})"
        alarms = f"{self.false_alarms} of {self.complete}"
        return f"{pattern:20}{self.turns:6}{lost:>22}{self.elsewhere:>12}{alarms:>16}"


def add(losses: Losses, case: Case, observation: Observation, reply: Reply) -> None:
    ask = case.turns[-1]
    # An agent of a swarm that only hands the conversation on has answered nothing.
    answers = {agent: text for agent, text in observation.answers.items() if text}
    observation = observation.replace(answers=answers)
    queries = [event.body.query for event in reply.events if event.body.kind == "agent_started"]
    losses.turns += 1
    losses.parts += len(ask.expected)
    for agent in parts_lost_in_silence(case, observation):
        losses.lost += 1
        about = content_words(ask.queries.get(agent, ask.user))
        sent = [query for query in queries if 2 * len(about & content_words(query)) >= len(about)]
        losses.elsewhere += bool(sent)
    if answering_agents(observation) >= set(ask.expected):
        losses.complete += 1
        losses.false_alarms += reply.routing.left_out.count > 0


async def play(pattern: str, every: int, names: Sequence[str]) -> Losses:
    cases = [c for name in names for c in read_cases(HOME / "data" / "cases" / f"{name}.jsonl")]
    losses = Losses()
    deck = load_deck(HOME / "cards" / "consumer")
    kits = ExperimentKits.of(virtual=True)
    async with kits(models=OfflineModel().paced(0), deck=deck, faults=False) as kit:
        host = replace(kit, team=kit.stages.team(PATTERNS[pattern]))
        for case in cases[::every]:
            [(observation, reply)] = await run_case(case, host, PATTERNS[pattern])
            add(losses, case, observation, reply)
    return losses


def main(every: int, names: Sequence[str]) -> None:
    print(f"{'pattern':20}{'turns':>6}{'lost unsaid':>22}{'elsewhere':>12}{'false alarms':>16}")
    for pattern in PATTERNS:
        print(run_virtual(play(pattern, every, names)).line(pattern), flush=True)


if __name__ == "__main__":
    every = sys.argv[1] if len(sys.argv) > 1 else "1"
    main(int(every), sys.argv[2:] or ("mixed", "pairs"))
