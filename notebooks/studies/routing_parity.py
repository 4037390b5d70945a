"""The routing parity set: short scenarios with the calls they must end in, run on any model."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from kit.bench.case import Case, read_cases
from kit.bench.json_lines import read_text
from kit.bench.scoring.run_case import run_case
from kit.core.language.words import words
from kit.core.limits import read_json
from kit.core.value import Value
from kit.runtime.handle import Host
from kit.runtime.turn import Reply


class ScriptedCall(Value):
    """A call of a sub-agent that a scripted model makes."""

    agent: str
    query: str | None = None
    """None: the user's exact text."""


class ScriptedReply(Value):
    """One routing reply of a model that errs as models do; the guards are given it to work on."""

    text: str = ""
    intents: int
    calls: tuple[ScriptedCall, ...] = ()


class Scenario(Value):
    """A case whose last turn counts, and how a model errs on it."""

    case: Case
    script: tuple[ScriptedReply, ...] = ()
    """Replies for a scripted model, the retry's included; empty: it calls whom it should, single
    requests in words of its own."""

    @property
    def id(self) -> str:
        return self.case.id

    @property
    def category(self) -> str:
        return self.case.domain

    @property
    def user(self) -> str:
        return self.case.turns[-1].user

    @property
    def calls(self) -> tuple[tuple[str, str], ...]:
        """The sub-agents and queries expected, in order of sub-agent; a line of a query for each call."""
        ask = self.case.turns[-1]
        return _calls({agent: ask.queries.get(agent, ask.message) for agent in ask.expected})


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
        actual, expected = (
            [(agent, words(query)) for agent, query in calls]
            for calls in (self.calls, self.scenario.calls)
        )
        return actual == expected


def read_scenarios(path: Path, agents: Collection[str]) -> tuple[Scenario, ...]:
    """Reads a case file whose lines may hold a script, among these sub-agents. Raises DataError, as
    `read_cases` does."""
    cases = tuple(read_cases(path, agents))
    rows = [read_json(line) for line in read_text(path).splitlines() if line.strip()]
    return tuple(
        Scenario.model_validate({"case": case, "script": row.get("script", ())})
        for case, row in zip(cases, rows, strict=True)
    )


async def run_scenario(scenario: Scenario, kit: Host) -> tuple[Verdict, Reply]:
    """Plays one real turn, with the scenario's earlier turns in place of the store's."""
    ((observation, reply),) = await run_case(scenario.case, kit)
    return Verdict(scenario=scenario, calls=_calls(observation.queries)), reply


def report(verdicts: Sequence[Verdict], title: str) -> str:
    """Returns a line for each category, agents right and agents with words right, then every miss."""
    total = Counter(verdict.scenario.category for verdict in verdicts)
    agents = Counter(verdict.scenario.category for verdict in verdicts if verdict.agents_right)
    whole = Counter(verdict.scenario.category for verdict in verdicts if verdict.right)
    rows = [
        f"{name:18} {agents[name]:3} of {n:3} agents {whole[name]:3} with words"
        for name, n in total.items()
    ]
    rows.append(
        f"{'all':18} {agents.total():3} of {total.total():3} agents {whole.total():3} with words"
    )
    return "\n".join([title, *rows, *_misses(verdicts)])


def _misses(verdicts: Iterable[Verdict]) -> list[str]:
    return [
        f"  {verdict.scenario.id}: {verdict.scenario.user!r} expected "
        f"{list(verdict.scenario.calls)} called {list(verdict.calls)}"
        for verdict in verdicts
        if not verdict.right
    ]


def _calls(queries: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted((agent, line) for agent, query in queries.items() for line in query.split("\n"))
    )
