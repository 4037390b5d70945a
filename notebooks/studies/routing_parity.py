"""The routing parity set: short scenarios with the calls they must end in, run on any model (SAT-13)."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kit.core.context import Principal, Session
from kit.core.errors import DataError, nearest
from kit.core.event import AgentStarted
from kit.core.picture import Picture, told
from kit.core.record import Message
from kit.core.value import Value
from kit.core.words import words
from kit.runtime.host import Host
from kit.runtime.turn import Reply, run_turn
from studies.scenario_pictures import Kind, drawn

Category = Literal[
    "support", "greeting", "image", "echo", "mixed", "no_carry_forward", "no_reformulation", "follow_up", "out_of_range"
]


class Asked(Value):
    """A call to a sub-agent."""

    agent: str
    query: str | None = None
    """None: the user's exact text."""


class Before(Value):
    """An earlier turn of the same conversation."""

    user: str
    assistant: str
    called: tuple[str, ...] = ()


class Emission(Value):
    """One routing reply of a model that errs as models do; what the guards are given to work on."""

    text: str = ""
    intents: int
    calls: tuple[Asked, ...] = ()


class Scenario(Value):
    """A message, what came before it, and the calls it must end in."""

    id: str
    category: Category
    before: tuple[Before, ...] = ()
    user: str
    """What is typed; empty where a picture comes alone."""
    image: Kind | None = None
    """What the picture sent with it shows (notebooks/studies/scenario_pictures.py)."""
    expect: tuple[Asked, ...]
    """Empty: the orchestrator answers itself."""
    model: tuple[Emission, ...] = ()
    """Replies for a scripted model, the retry's included; empty: it calls whom it should, single requests in words of its own."""

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """What is sent with the words."""
        return (drawn(self.image),) if self.image else ()

    @property
    def calls(self) -> tuple[tuple[str, str], ...]:
        """Agents and queries expected, in order of agent."""
        return tuple(sorted((asked.agent, asked.query or told(self.user, self.pictures)) for asked in self.expect))


class Verdict(Value):
    """What a scenario came to."""

    scenario: Scenario
    calls: tuple[tuple[str, str], ...]
    """Agents asked and with which words, in order of agent."""

    @property
    def agents_right(self) -> bool:
        return [agent for agent, _ in self.calls] == [agent for agent, _ in self.scenario.calls]

    @property
    def right(self) -> bool:
        """Agents and their words; the punctuation a message is cut at may stay on either side."""
        asked, expected = ([(agent, words(query)) for agent, query in calls] for calls in (self.calls, self.scenario.calls))
        return asked == expected


def read_scenarios(path: Path, agents: Collection[str]) -> tuple[Scenario, ...]:
    """Scenarios of a JSONL file, one a line; `agents` are the sub-agents there are.

    Raises DataError with every fault, each with file and line: a line that is no scenario, an id used twice, an unknown agent.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    found: dict[str, Scenario] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            scenario = Scenario.model_validate_json(line)
        except ValidationError as error:
            faults += [f"{path}:{number}: {'.'.join(map(str, e['loc'])) or 'line'}: {e['msg']}" for e in error.errors()]
            continue
        faults += [f"{path}:{number}: {sentence}" for sentence in _faults(scenario, found, agents)]
        found[scenario.id] = scenario
    if faults:
        raise DataError("\n".join(faults))
    return tuple(found.values())


async def run_scenario(scenario: Scenario, kit: Host) -> tuple[Verdict, Reply]:
    """One real turn, with the conversation the scenario tells of in place of the store's."""
    session = Session(id=scenario.id, principal=Principal(tenant_id="bench", user_id="bench"))
    history: list[Message] = []
    for number, before in enumerate(scenario.before):
        turn_id = f"{scenario.id}-{number}"
        history.append(Message(turn_id=turn_id, role="user", text=before.user))
        history.append(Message(turn_id=turn_id, role="assistant", text=before.assistant))
    in_play = scenario.before[-1].called if scenario.before else ()
    reply = await run_turn(scenario.user, session, kit, history=history, in_play=in_play, images=scenario.pictures)
    bodies = [event.body for event in reply.events]
    calls = tuple(sorted((body.agent, body.query) for body in bodies if isinstance(body, AgentStarted)))
    return Verdict(scenario=scenario, calls=calls), reply


def report(verdicts: Sequence[Verdict], title: str) -> str:
    """A line per category, agents right and agents with words right, then every miss."""
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
    named = [asked.agent for asked in scenario.expect] + [agent for before in scenario.before for agent in before.called]
    return faults + [f"unknown agent {name!r}: {nearest(name, agents)}" for name in named if name not in agents]
