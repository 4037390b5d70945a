"""Whether the parts of a deck fit together: every fault with its place and its fix."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.compose.contract_check import Fault, contract_faults, topology_faults
from kit.compose.page import page_faults
from kit.compose.parts import PLATFORM, DeckSettings, Parts, PlanSettings
from kit.compose.prompts import window_fault
from kit.compose.yaml_source import Faults
from kit.core.card import AgentCard
from kit.core.errors import BindError, ShapeError, nearest
from kit.core.language.danger import danger_faults
from kit.core.language.request_template import request_faults, task_faults
from kit.core.schema.shape import schema_of
from kit.tools.mcp.server import McpServer
from kit.tools.tool import (
    NO_LIMITS,
    ConfiguredTool,
    LimitedTool,
    ToolLimits,
    confirm_fault,
    parameters,
    tool_name,
    without_limits,
)
from kit.tools.tool_factory import ToolFactory

Where = Callable[[str, str, tuple[str | int, ...]], str]
"""The place of a value: (card, block, settings or environment; its id; path inside it) -> words for a report."""

ASK_ARGUMENTS = frozenset({"query", "intent_count", "prior_context"})
"""What every ask_<id> takes already."""
PLAN_TOOLS = "; the tools of plans come with `tools: [kit.planning.tools:TOOLS]` in deck.yaml"
_OF_OWN_AGENTS = (
    "model",
    "fallback_model",
    "tuning",
    "tools",
    "tool_grants",
    "tool_config",
    "prompt_blocks",
    "sub_agents",
    "preamble",
)
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass
class Check:
    """Runs over the parts of one deck; `unreadable` names what could not be read, so that it is not called unknown."""

    parts: Parts
    where: Where
    tools: Collection[str] | None = None
    """Known tool ids; None: tools are not checked here."""
    unreadable: Collection[tuple[str, str]] = ()
    faults: Faults = field(default_factory=Faults)

    def run(self) -> "Check":
        """Makes every check; `faults` holds each fault once."""
        settings = self.parts.settings
        for card in self.parts.cards.values():
            self._check_names(card)
            self._check_references(card)
            self._check_tools(card)
            self._report("card", card.id, contract_faults(card, self.parts.models))
        for danger in self.parts.dangers.values():
            self._report("danger", danger.id, danger_faults(danger))
        self._check_texts()
        # Where deck.yaml cannot be read, everything that depends on it would be a second fault.
        if not self._is_unreadable("settings", "deck"):
            self._check_settings()
            self._check_root()
            self._check_required_blocks()
            self._check_tool_limits()
            self._check_prompts()
            self._report("settings", "deck", topology_faults(self.parts))
            page = page_faults(settings.page, self.parts.cards, settings.orchestrator)
            self._report("settings", "deck", page)
            self._report("settings", "deck", _status_faults(settings))
            self._report("settings", "deck", _file_faults(self.parts))
        return self

    def _report(self, noun: str, name: str, faults: Iterable[Fault]) -> None:
        for path, sentence in faults:
            self.faults.add(self.where(noun, name, path), sentence)

    def _card_fault(self, card: AgentCard, sentence: str | None, *path: str | int) -> None:
        if sentence is not None:
            self.faults.add(self.where("card", card.id, path), sentence)

    def _deck_fault(self, sentence: str | None, *path: str | int) -> None:
        if sentence is not None:
            self.faults.add(self.where("settings", "deck", path), sentence)

    def _is_unreadable(self, noun: str, name: str) -> bool:
        return (noun, name) in self.unreadable or (noun, "*") in self.unreadable

    def _unknown(
        self, noun: str, name: str | None, candidates: Collection[str], label: str = ""
    ) -> str | None:
        """The sentence about a name that stands for nothing; None where it does, or where its part
        could not be read."""
        if name is None or name in candidates or self._is_unreadable(noun, name):
            return None
        return f"unknown {label or noun} {name!r}: {nearest(name, candidates)}"

    def _check_names(self, card: AgentCard) -> None:
        # Endpoints take no other letters, and say so only once a request is made.
        if not _TOOL_NAME.fullmatch(card.tool_name):
            rule = "use the letters a to z, digits, _ and -, at most 60 of them"
            self._card_fault(card, f"card id {card.id!r} makes no tool name; {rule}", "id")
        if self.tools and card.tool_name in self.tools:
            sentence = f"tool {card.tool_name!r} has the name under which card {card.id!r} is called; rename one"
            self._card_fault(card, sentence, "id")
        for name in sorted(ASK_ARGUMENTS & card.handoff.fields.keys()):
            sentence = (
                f"every ask_<id> has an argument {name!r} already; give the field another name"
            )
            self._card_fault(card, sentence, "handoff", "fields", name)

    def _check_references(self, card: AgentCard) -> None:
        models = self.parts.models
        if card.run is not None:
            self._check_run(card)
        elif not card.model:
            fix = "name a key of models.yaml, or an agent of your own by `run:`"
            self._card_fault(card, f"no model: {fix}", "model")
        else:
            self._card_fault(card, self._unknown("model", card.model, models), "model")
        fallback = self._unknown("model", card.fallback_model, models)
        self._card_fault(card, fallback, "fallback_model")
        # What `rule` judges by comes with the kit.
        if card.eval is not None and card.eval.judge != "rule":
            judge = self._unknown("card", card.eval.judge, self.parts.cards, "judge")
            self._card_fault(card, judge, "eval", "judge")
            # The rubrics of a judge that is not there are nobody's.
            if judge is None:
                rubric = self._unknown("rubric", card.eval.rubric, self.parts.rubrics)
                self._card_fault(card, rubric, "eval", "rubric")
        required = self.parts.settings.required_blocks
        for index, name in self._listed(card, "prompt_blocks", card.prompt_blocks):
            sentence = self._unknown("block", name, self.parts.blocks)
            if sentence is None and name in required and card.id not in self.parts.settings.exempt:
                sentence = f"required block {name!r} is put at the head of every prompt already; take it out"
            self._card_fault(card, sentence, "prompt_blocks", index)
        for index, name in self._listed(card, "sub_agents", card.sub_agents):
            sentence = self._unknown("card", name, self.parts.cards, "sub-agent")
            # No longer cycle can arise: only the orchestrator has sub-agents.
            if name == card.id:
                sentence = f"{name!r} would ask itself; take it out"
            self._card_fault(card, sentence, "sub_agents", index)

    def _check_run(self, card: AgentCard) -> None:
        """What an agent that runs something else cannot have, because only the kit's own agents use it."""
        for name in _OF_OWN_AGENTS:
            if name in card.model_fields_set and getattr(card, name):
                fix = "take it out, or `run`"
                sentence = f"an agent with `run` answers by itself and takes no {name}; {fix}"
                self._card_fault(card, sentence, name)
        settings = self.parts.settings
        if card.id == settings.orchestrator:
            fix = "run it as a sub-agent, or bench it as a whole system"
            self._card_fault(card, f"the orchestrator routes with a model; {fix}", "run")

    def _listed(self, card: AgentCard, key: str, names: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Each name with its number; a name that is listed again is a fault instead."""
        for index, name in enumerate(names):
            if name in names[:index]:
                self._card_fault(card, f"{name!r} is listed twice in {key}; keep one", key, index)
            else:
                yield index, name

    def _check_tools(self, card: AgentCard) -> None:
        # A parent that has its sub-agent's tool answers itself, and the sub-agent is never asked.
        holders: dict[str, str] = {}
        for sub_agent in self._sub_agents(card):
            holders |= dict.fromkeys(sub_agent.tools, sub_agent.id)
        for index, tool in self._listed(card, "tools", card.tools):
            self._card_fault(card, self._tool_fault(card, tool, holders), "tools", index)
        for tool in card.tool_config:
            if tool in card.tools:
                self._check_tool_config(card, tool)
            else:
                sentence = f"tool_config for {tool!r}, which the card does not list: {nearest(tool, card.tools)}"
                self._card_fault(card, sentence, "tool_config", tool)

    def _tool_fault(self, card: AgentCard, tool: str, holders: Mapping[str, str]) -> str | None:
        """What is wrong with a tool that a card lists; `holders`: tool -> the sub-agent that has it."""
        for other in self.parts.cards.values():
            if tool == other.tool_name:
                return f"tool {tool!r} has the name under which card {other.id!r} is called; rename one"
        if not _TOOL_NAME.fullmatch(tool_name(tool)):
            return f"{tool!r} is no tool name; use letters, digits, _ and -, at most 64 of them"
        if tool in holders:
            return f"tool {tool!r} is held by the sub-agent {holders[tool]!r} too; a parent asks, so take it out here"
        if self.tools is None:
            return None
        sentence = self._unknown("tool", tool, self.tools)
        plan = self.parts.settings.planning
        if sentence and plan and card.id in (plan.planner, plan.executor):
            return sentence + PLAN_TOOLS
        return sentence

    def _check_tool_config(self, card: AgentCard, tool: str) -> None:
        entry = self.parts.tools.tools.get(tool)
        # What a factory makes brings limits that nobody knows before it is opened.
        is_known = entry is not None and not isinstance(entry, ToolFactory)
        if is_known:
            tool_limits = getattr(entry, "limits", NO_LIMITS)
        else:
            tool_limits = ToolLimits(idempotent=True)
        try:
            limits = self.parts.tool_limits(card, tool, tool_limits)
        except BindError as error:
            self._card_fault(card, str(error), "tool_config", tool)
        else:
            if "confirm" in card.tool_config[tool]:
                sentence = self._confirm_fault(tool, limits)
                self._card_fault(card, sentence, "tool_config", tool, "confirm")
        if not is_known or isinstance(entry, ConfiguredTool):
            return
        # The first alone: each further one would say the same list again.
        for name in [*without_limits(card.tool_config[tool])][:1]:
            fix = f"of a tool that is no ConfiguredTool these can be set: {', '.join(ToolLimits.model_fields)}"
            sentence = f"tool {tool!r} takes no setting {name!r}; {fix}"
            self._card_fault(card, sentence, "tool_config", tool, name)

    def _check_tool_limits(self) -> None:
        if self.tools is None:
            return
        for tool, limits in self.parts.settings.tool_limits.items():
            if sentence := self._unknown("tool", tool, self.tools):
                self._deck_fault(sentence, "tool_limits", tool)
            else:
                self._deck_fault(self._confirm_fault(tool, limits), "tool_limits", tool, "confirm")

    def _confirm_fault(self, name: str, limits: ToolLimits) -> str | None:
        """What is wrong with the question that a tool asks; None where its arguments are not known yet."""
        tool: Any = self.parts.tools.tools.get(name)
        if isinstance(tool, LimitedTool):
            tool = tool.tool
        if isinstance(tool, ToolFactory):
            arguments = tool.arguments.get(name)
            return None if arguments is None else confirm_fault(limits, arguments)
        # What a configuration makes has no arguments yet.
        if hasattr(tool, "args_schema"):
            return confirm_fault(limits, parameters(tool))
        return None

    def _sub_agents(self, card: AgentCard) -> list[AgentCard]:
        cards = self.parts.cards
        return [cards[name] for name in card.sub_agents if name in cards]

    def _check_texts(self) -> None:
        """Each description and each request says something, and no two cards say the same."""
        descriptions: dict[str, str] = {}
        requests: dict[str, str] = {}
        for card in self.parts.cards.values():
            sentence = _text_fault(card, card.description, descriptions, "description")
            self._card_fault(card, sentence, "description")
            for number, request in enumerate(card.requests):
                sentence = _text_fault(card, request, requests, "request")
                self._card_fault(card, sentence, "requests", number)

    def _check_settings(self) -> None:
        settings = self.parts.settings
        cards = self.parts.cards
        root = cards.get(settings.orchestrator)
        orchestrator = self._unknown("card", settings.orchestrator, cards, "orchestrator")
        self._deck_fault(orchestrator, "orchestrator")
        for label, setting, agent in (
            ("default", "default_sub_agent", settings.default_sub_agent),
            ("support agent", "support_agent", settings.support_agent),
        ):
            sentence = self._unknown("card", agent, cards, label)
            if sentence is None and agent is not None and root and agent not in root.sub_agents:
                sentence = f"{label} {agent!r} is no sub-agent of {root.id!r}: {nearest(agent, root.sub_agents)}"
            self._deck_fault(sentence, setting)
        for index, name in enumerate(settings.exempt):
            sentence = self._unknown("card", name, cards)
            if sentence is None and root and name in (root.id, *root.sub_agents):
                sentence = f"{name!r} speaks in conversations; only helper cards go without the required blocks"
            self._deck_fault(sentence, "exempt", index)
        for setting in ("helper_model", "compose_model"):
            sentence = self._unknown("model", getattr(settings, setting), self.parts.models)
            self._deck_fault(sentence, setting)
        for index, locale in enumerate(settings.danger):
            sentence = self._unknown("danger", locale, self.parts.dangers, "locale of danger")
            self._deck_fault(sentence, "danger", index)
        if settings.planning:
            self._check_plan_card("planner", settings.planning.planner)
            self._check_plan_card("executor", settings.planning.executor)
            self._report("settings", "deck", _example_faults(settings.planning))

    def _check_plan_card(self, role: str, agent: str) -> None:
        sentence = self._unknown("card", agent, self.parts.cards, role)
        card = self.parts.cards.get(agent)
        if card is not None and card.sub_agents:
            sentence = f"{agent!r} has sub_agents; who plans or executes asks nobody"
        if card is not None and card.run is not None and role == "planner":
            fix = "give it a model; the executor may have `run`"
            sentence = (
                f"{agent!r} has `run`; a planner hands in its steps by a tool of the kit's, which verifies "
                f"them: {fix}"
            )
        self._deck_fault(sentence, "planning", role)

    def _check_root(self) -> None:
        root = self.parts.settings.orchestrator
        for card in self.parts.cards.values():
            # Where the root is misspelt, that is the fault.
            if card.sub_agents and card.id != root and root in self.parts.cards:
                sentence = f"card {card.id!r} declares sub_agents; only the orchestrator {root!r} may, so take them out"
                self._card_fault(card, sentence, "sub_agents")

    def _check_required_blocks(self) -> None:
        blocks = self.parts.blocks
        settings = self.parts.settings
        platform = [block.id for block in blocks.values() if block.owner == PLATFORM]
        # An empty list is a decision; a missing one is mostly a slip (decisions 29).
        if "required_blocks" not in settings.model_fields_set:
            fix = "name the blocks every prompt begins with, or say `required_blocks: []`"
            self._deck_fault(f"no required_blocks: {fix}")
        for index, name in enumerate(settings.required_blocks):
            block = blocks.get(name)
            sentence = None
            if block is None and not self._is_unreadable("block", name):
                hint = nearest(name, platform)
                sentence = f"required block {name!r} is not in the registry: {hint}"
            elif block and block.owner != PLATFORM:
                rule = "a required block belongs to the platform"
                sentence = f"required block {name!r} is owned by {block.owner!r}; {rule}"
            self._deck_fault(sentence, "required_blocks", index)

    def _check_prompts(self) -> None:
        for card in self.parts.cards.values():
            spec = self.parts.models.get(card.model)
            if spec:
                self._card_fault(card, window_fault(card, self.parts, spec), "prompt_blocks")


_TEXT_FIXES = {
    "description": ("say what the agent answers", "say what sets this agent apart"),
    "request": ("take it out", "leave it where it belongs"),
}
"""What is checked -> the fix where it is empty, and where another card says the same."""


def _text_fault(card: AgentCard, text: str, owners: dict[str, str], noun: str) -> str | None:
    empty_fix, repeated_fix = _TEXT_FIXES[noun]
    # A copied card often differs in its line breaks alone.
    words = " ".join(text.casefold().split())
    owner = owners.setdefault(words, card.id)
    if not words:
        return f"empty {noun}; {empty_fix}"
    if owner != card.id:
        return f"same {noun} as on card {owner!r}; {repeated_fix}"
    return None


def _example_faults(planning: PlanSettings) -> Iterator[Fault]:
    for index, example in enumerate(planning.examples):
        path = ("planning", "examples", index)
        for sentence in request_faults(example.request):
            yield (*path, "request"), sentence
        for number, step in enumerate(example.steps):
            step_path = (*path, "steps", number)
            for sentence in task_faults(step.task, example.request):
                yield (*step_path, "task"), sentence
            for source in step.inputs:
                if not 1 <= source <= number:
                    fix = "name steps before it, which are numbered from 1, or leave it out"
                    yield (
                        step_path,
                        f"step {number + 1} works on step {source}, which is none before it; {fix}",
                    )
            try:
                schema_of(step.shape)
            except ShapeError as error:
                yield (*step_path, "shape"), str(error)


def _file_faults(parts: Parts) -> Iterator[Fault]:
    servers: list[tuple[tuple[str, ...], McpServer]] = []
    for name, server in parts.settings.mcp.items():
        servers.append((("mcp", name), server))
    if parts.settings.skill_service is not None:
        servers.append((("skill_service",), parts.settings.skill_service))
    for path, server in servers:
        if file := server.missing_file(parts.tools.folder):
            fix = "correct `command`, or put the file beside deck.yaml"
            yield (
                (*path, "command"),
                f"there is no file {file} to run in {parts.tools.folder}; {fix}",
            )


def _status_faults(settings: DeckSettings) -> Iterator[Fault]:
    uses: list[tuple[tuple[str, ...], str]] = []
    for status in settings.status_phrases:
        uses.append((("status_phrases", status), status))
    for name, term in settings.statuses.items():
        if term.instead:
            uses.append((("statuses", name, "instead"), term.instead))
    for name, rule in settings.status_policy.rules.items():
        uses.append((("status_policy", "rules", name), name))
        if rule.act == "transform" or rule.into is not None:
            uses.append((("status_policy", "rules", name, "into"), rule.into or ""))
    for path, status in uses:
        if status not in settings.vocabulary:
            yield path, f"unknown status {status!r}: {nearest(status, settings.vocabulary)}"
