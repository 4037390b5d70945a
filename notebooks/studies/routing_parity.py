"""The routing parity set: short scenarios with the calls they must end in, run on any model."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kit.core.errors import DataError, nearest
from kit.core.event import AgentStarted
from kit.core.language.words import words
from kit.core.picture import Picture, mark_pictures
from kit.core.record import Message
from kit.core.value import Value
from kit.runtime.host import Host
from kit.runtime.turn import Reply, run_turn
from studies.scenario_pictures import Kind, draw_picture
from studies.study_deck import study_session

Category = Literal[
    "support", "greeting", "image", "echo", "mixed", "no_carry_forward", "no_reformulation", "follow_up", "out_of_range"
]


class ExpectedCall(Value):
    """A call of a sub-agent, with its words."""

    agent: str
    query: str | None = None
    """None: the user's exact text."""


class EarlierTurn(Value):
    """An earlier turn of the same conversation."""

    user: str
    assistant: str
    called: tuple[str, ...] = ()


class ScriptedReply(Value):
    """One routing reply of a model that errs as models do; the guards are given it to work on."""

    text: str = ""
    intents: int
    calls: tuple[ExpectedCall, ...] = ()


class Scenario(Value):
    """A message, what came before it, and the calls it must end in."""

    id: str
    category: Category
    before: tuple[EarlierTurn, ...] = ()
    user: str
    """What is typed; empty where a picture comes alone."""
    image: Kind | None = None
    """What the picture sent with it shows (notebooks/studies/scenario_pictures.py)."""
    expect: tuple[ExpectedCall, ...]
    """Empty: the orchestrator answers itself."""
    model: tuple[ScriptedReply, ...] = ()
    """Replies for a scripted model, the retry's included; empty: it calls whom it should, single requests in words of its own."""

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The picture sent with the words, if any."""
        return (draw_picture(self.image),) if self.image else ()

    @property
    def calls(self) -> tuple[tuple[str, str], ...]:
        """The sub-agents and queries expected, in order of sub-agent."""
        return tuple(sorted((call.agent, call.query or mark_pictures(self.user, self.pictures)) for call in self.expect))


class Verdict(Value):
    """The calls a scenario came to."""

    scenario: Scenario
    calls: tuple[tuple[str, str], ...]
    """The sub-agents that were asked and with which words, in order of sub-agent."""

    @property
    def agents_right(self) -> bool:
        return [agent for agent, _ in self.calls] == [agent for agent, _ in self.scenario.calls]

    @property
    def right(self) -> bool:
        """The right sub-agents in the right words; the punctuation a message is cut at may stay on either side."""
        actual, expected = ([(agent, words(query)) for agent, query in calls] for calls in (self.calls, self.scenario.calls))
        return actual == expected


def read_scenarios(path: Path, agents: Collection[str]) -> tuple[Scenario, ...]:
    """Reads the scenarios of a JSONL file, one a line; `agents` are the sub-agents there are.

    Raises DataError with every fault, each with file and line: a line that is no scenario, an id used twice, an unknown agent.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    scenarios: dict[str, Scenario] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            scenario = Scenario.model_validate_json(line)
        except ValidationError as error:
            faults += [f"{path}:{number}: {'.'.join(map(str, e['loc'])) or 'line'}: {e['msg']}" for e in error.errors()]
            continue
        faults += [f"{path}:{number}: {sentence}" for sentence in _faults(scenario, scenarios, agents)]
        scenarios[scenario.id] = scenario
    if faults:
        raise DataError("\n".join(faults))
    return tuple(scenarios.values())


async def run_scenario(scenario: Scenario, kit: Host) -> tuple[Verdict, Reply]:
    """Plays one real turn, with the scenario's earlier turns in place of the store's."""
    history: list[Message] = []
    for number, before in enumerate(scenario.before):
        turn_id = f"{scenario.id}-{number}"
        history.append(Message(turn_id=turn_id, role="user", text=before.user))
        history.append(Message(turn_id=turn_id, role="assistant", text=before.assistant))
    in_play = scenario.before[-1].called if scenario.before else ()
    session = study_session(scenario.id)
    reply = await run_turn(scenario.user, session, kit, history=history, in_play=in_play, images=scenario.pictures)
    bodies = [event.body for event in reply.events]
    calls = tuple(sorted((body.agent, body.query) for body in bodies if isinstance(body, AgentStarted)))
    return Verdict(scenario=scenario, calls=calls), reply


def report(verdicts: Sequence[Verdict], title: str) -> str:
    """Returns a line for each category, agents right and agents with words right, then every miss."""
    total = Counter(verdict.scenario.category for verdict in verdicts)
    agents = Counter(verdict.scenario.category for verdict in verdicts if verdict.agents_right)
    whole = Counter(verdict.scenario.category for verdict in verdicts if verdict.right)
    rows = [f"{name:18} {agents[name]:3} of {n:3} agents {whole[name]:3} with words" for name, n in total.items()]
    rows.append(f"{'all':18} {agents.total():3} of {total.total():3} agents {whole.total():3} with words")
    return "\n".join([title, *rows, *_misses(verdicts)])


def _misses(verdicts: Iterable[Verdict]) -> list[str]:
    return [
        f"  {verdict.scenario.id}: {verdict.scenario.user!r} expected {list(verdict.scenario.calls)} called {list(verdict.calls)}"
        for verdict in verdicts
        if not verdict.right
    ]


def _faults(scenario: Scenario, earlier: Collection[str], agents: Collection[str]) -> list[str]:
    faults = [f"id {scenario.id!r} is given twice; choose another"] if scenario.id in earlier else []
    names = [call.agent for call in scenario.expect] + [agent for before in scenario.before for agent in before.called]
    return faults + [f"unknown agent {name!r}: {nearest(name, agents)}" for name in names if name not in agents]
