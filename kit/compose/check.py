"""Whether the parts of a deck fit together: every fault with its place and its fix."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from kit.compose.contract_check import Fault, contract_faults, topology_faults
from kit.compose.page import page_faults
from kit.compose.parts import PLATFORM, DeckSettings, Parts
from kit.compose.prompts import window_fault
from kit.compose.yaml_source import Faults
from kit.core.card import AgentCard
from kit.core.errors import BindError, nearest
from kit.core.language.danger import danger_faults
from kit.tools.limits import NO_LIMITS, ToolLimits, confirm_fault, without_limits
from kit.tools.tool import ConfiguredTool, LimitedTool, parameters, tool_name
from kit.tools.tool_factory import ToolFactory

Where = Callable[[str, str, tuple[str | int, ...]], str]
"""The place of a value: (card, block, settings or environment; its id; path inside it) -> words for a report."""

ASK_ARGUMENTS = frozenset({"query", "intent_count", "prior_context"})
"""What every ask_<id> takes already."""
PLAN_TOOLS = "; the tools of plans come with `tools: [kit.planning.tools:TOOLS]` in deck.yaml"
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
        """Every check, each fault once."""
        parts, settings = self.parts, self.parts.settings
        for card in parts.cards.values():
            of_card = (
                self._names(card),
                self._references(card),
                self._tools(card),
                contract_faults(card, parts.models),
            )
            self._report("card", card.id, chain(*of_card))
        for danger in parts.dangers.values():
            self._report("danger", danger.id, danger_faults(danger))
        self._folders()
        self._descriptions()
        self._cycles()
        if not self._is_unreadable("settings", "deck"):
            self._report("settings", "deck", chain(self._settings(), self._dangers()))
            self._root()
            page = page_faults(settings.page, parts.cards, settings.orchestrator)
            self._report(
                "settings",
                "deck",
                chain(topology_faults(parts), page, self._required(), self._limits()),
            )
            self._prompts()
        return self

    def _report(self, noun: str, name: str, faults: Iterable[Fault]) -> None:
        for path, sentence in faults:
            self.faults.add(self.where(noun, name, path), sentence)

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

    def _names(self, card: AgentCard) -> Iterator[Fault]:
        if not _TOOL_NAME.fullmatch(card.tool_name):
            yield (
                ("id",),
                f"card id {card.id!r} makes no tool name; use letters, digits, _ and -, at most 60 of them",
            )
        if self.tools and card.tool_name in self.tools:
            yield (
                ("id",),
                f"tool {card.tool_name!r} has the name under which card {card.id!r} is called; rename one",
            )
        for name in sorted(ASK_ARGUMENTS & card.handoff.fields.keys()):
            yield (
                ("handoff", "fields", name),
                f"every ask_<id> has an argument {name!r} already; give the field another name",
            )

    def _references(self, card: AgentCard) -> Iterator[Fault]:
        for key, model in (("model", card.model), ("fallback_model", card.fallback_model)):
            if sentence := self._unknown("model", model, self.parts.models):
                yield (key,), sentence
        if card.id in self.parts.settings.exempt:
            required = ()
        else:
            required = self.parts.settings.required_blocks
        for path, name in self._once(card, "prompt_blocks", card.prompt_blocks):
            if sentence := self._unknown("block", name, self.parts.blocks):
                yield path, sentence
            elif name in required:
                yield (
                    path,
                    f"required block {name!r} is put at the head of every prompt already; take it out",
                )
        for path, name in self._once(card, "sub_agents", card.sub_agents):
            if sentence := self._unknown("card", name, self.parts.cards, "sub-agent"):
                yield path, sentence

    def _once(
        self, card: AgentCard, key: str, names: Sequence[str]
    ) -> Iterator[tuple[tuple[str, int], str]]:
        """Each name with its place; a name that is listed again is a fault instead."""
        for index, name in enumerate(names):
            if name in names[:index]:
                self._report(
                    "card",
                    card.id,
                    [((key, index), f"{name!r} is listed twice in {key}; keep one")],
                )
            else:
                yield (key, index), name

    def _tools(self, card: AgentCard) -> Iterator[Fault]:
        ids = {other.tool_name: other.id for other in self.parts.cards.values()}
        below: dict[str, str] = {}
        for sub in self._subs(card):
            for tool in sub.tools:
                below[tool] = sub.id
        for path, tool in self._once(card, "tools", card.tools):
            if tool in ids:
                yield (
                    path,
                    f"tool {tool!r} has the name under which card {ids[tool]!r} is called; rename one",
                )
            elif not _TOOL_NAME.fullmatch(tool_name(tool)):
                yield (
                    path,
                    f"{tool!r} is no tool name; use letters, digits, _ and -, at most 64 of them",
                )
            elif tool in below:
                yield (
                    path,
                    f"tool {tool!r} is held by the sub-agent {below[tool]!r} too; a parent asks, so take it out here",
                )
            elif self.tools is not None and (sentence := self._unknown("tool", tool, self.tools)):
                plan = self.parts.settings.planning
                yield (
                    path,
                    sentence
                    + (PLAN_TOOLS if plan and card.id in (plan.planner, plan.executor) else ""),
                )
        for tool in card.tool_config:
            if tool in card.tools:
                yield from self._config(card, tool)
            else:
                sentence = f"tool_config for {tool!r}, which the card does not list: {nearest(tool, card.tools)}"
                yield ("tool_config", tool), sentence

    def _config(self, card: AgentCard, tool: str) -> Iterator[Fault]:
        entry = self.parts.tools.tools.get(tool)
        unknown = entry is None or isinstance(
            entry, ToolFactory
        )  # what a factory makes has its own limits
        if unknown:
            own = ToolLimits(idempotent=True)
        else:
            own = getattr(entry, "limits", NO_LIMITS)
        try:
            limits = self.parts.tool_limits(card, tool, own)
        except BindError as error:
            yield ("tool_config", tool), str(error)
        else:
            if "confirm" in card.tool_config[tool] and (sentence := self._confirm(tool, limits)):
                yield ("tool_config", tool, "confirm"), sentence
        settings = without_limits(card.tool_config[tool])
        if settings and not unknown and not isinstance(entry, ConfiguredTool):
            known = f"of a tool that is no ConfiguredTool these can be set: {', '.join(ToolLimits.model_fields)}"
            yield (
                ("tool_config", tool, next(iter(settings))),
                f"tool {tool!r} takes no setting {next(iter(settings))!r}; {known}",
            )

    def _limits(self) -> Iterator[Fault]:
        for tool in self.parts.settings.tool_limits if self.tools is not None else ():
            if sentence := self._unknown("tool", tool, self.tools or ()):
                yield ("tool_limits", tool), sentence
            elif sentence := self._confirm(tool, self.parts.settings.tool_limits[tool]):
                yield ("tool_limits", tool, "confirm"), sentence

    def _confirm(self, name: str, limits: ToolLimits) -> str | None:
        """What is wrong with the question that a tool asks; None where its arguments are not known yet."""
        entry = self.parts.tools.tools.get(name)
        tool: Any = entry.tool if isinstance(entry, LimitedTool) else entry
        if hasattr(tool, "args_schema"):
            return confirm_fault(limits, parameters(tool))
        return None

    def _subs(self, card: AgentCard) -> list[AgentCard]:
        subs: list[AgentCard] = []
        for name in card.sub_agents:
            if name in self.parts.cards:
                subs.append(self.parts.cards[name])
        return subs

    def _folders(self) -> None:
        """A missing blocks folder or models.yaml is one fault, not one for every card that counts on it."""
        cards = self.parts.cards.values()
        uses_blocks = bool(self.parts.settings.required_blocks) or any(
            card.prompt_blocks for card in cards
        )
        for noun, place in self.unreadable:
            if noun == "blocks" and uses_blocks:
                self.faults.add(
                    f"{place}:1", "no such folder; make it and put the prompt blocks there"
                )
            if noun == "models" and any(card.model not in self.parts.models for card in cards):
                self.faults.add(
                    f"{place}:1",
                    "no such file; make it, or let every card name the model 'offline'",
                )

    def _descriptions(self) -> None:
        owners: dict[str, str] = {}
        for card in self.parts.cards.values():
            words = " ".join(card.description.casefold().split())
            owner = owners.setdefault(words, card.id)
            if not words:
                self._report(
                    "card",
                    card.id,
                    [(("description",), "empty description; say what the agent answers")],
                )
            elif owner != card.id:
                sentence = f"same description as card {owner!r}; say what sets this agent apart"
                self._report("card", card.id, [(("description",), sentence)])

    def _cycles(self) -> None:
        loops: set[frozenset[str]] = set()
        visited: set[str] = set()

        def walk(card: AgentCard, trail: tuple[str, ...]) -> Iterator[tuple[AgentCard, int, str]]:
            for index, name in enumerate(card.sub_agents):
                if name in trail:
                    loop = trail[trail.index(name) :]
                    if frozenset(loop) not in loops:
                        loops.add(frozenset(loop))
                        yield (
                            card,
                            index,
                            f"cycle over sub_agents: {' -> '.join((*loop, name))}; take one of them out",
                        )
                elif name in self.parts.cards and name not in visited:
                    yield from walk(self.parts.cards[name], (*trail, name))
            visited.add(card.id)

        for root in self.parts.cards.values():
            if root.id not in visited:
                for card, index, sentence in walk(root, (root.id,)):
                    self._report("card", card.id, [(("sub_agents", index), sentence)])

    def _settings(self) -> Iterator[Fault]:
        settings = self.parts.settings
        cards = self.parts.cards
        models = self.parts.models
        root = cards.get(settings.orchestrator)
        if sentence := self._unknown("card", settings.orchestrator, cards, "orchestrator"):
            yield ("orchestrator",), sentence
        named_agents = (
            ("default", "default_sub_agent", settings.default_sub_agent),
            ("support agent", "support_agent", settings.support_agent),
        )
        for label, setting, agent in named_agents:
            if sentence := self._unknown("card", agent, cards, label):
                yield (setting,), sentence
            elif agent is not None and root and agent not in root.sub_agents:
                yield (
                    (setting,),
                    f"{label} {agent!r} is no sub-agent of {root.id!r}: {nearest(agent, root.sub_agents)}",
                )
        for index, name in enumerate(settings.exempt):
            if sentence := self._unknown("card", name, cards):
                yield ("exempt", index), sentence
            elif root and name in (root.id, *root.sub_agents):
                yield (
                    ("exempt", index),
                    f"{name!r} speaks in conversations; only helper cards go without the required blocks",
                )
        for setting, model in (
            ("helper_model", settings.helper_model),
            ("compose_model", settings.compose_model),
        ):
            if model is not None and model not in models:
                yield (setting,), f"unknown model {model!r}: {nearest(model, models)}"
        yield from self._planning()
        yield from _status_faults(settings)

    def _dangers(self) -> Iterator[Fault]:
        for index, locale in enumerate(self.parts.settings.danger):
            if sentence := self._unknown("danger", locale, self.parts.dangers, "locale of danger"):
                yield ("danger", index), sentence

    def _planning(self) -> Iterator[Fault]:
        plan = self.parts.settings.planning
        cards = self.parts.cards
        for setting, agent in (
            (("planner", plan.planner), ("executor", plan.executor)) if plan else ()
        ):
            if sentence := self._unknown("card", agent, cards, setting):
                yield ("planning", setting), sentence
            elif cards[agent].sub_agents:
                yield (
                    ("planning", setting),
                    f"{agent!r} has sub_agents; who plans or executes asks nobody",
                )

    def _root(self) -> None:
        root = self.parts.settings.orchestrator
        for card in self.parts.cards.values():
            if card.sub_agents and card.id != root:
                sentence = f"card {card.id!r} declares sub_agents; only the orchestrator {root!r} may, so take them out"
                self._report("card", card.id, [(("sub_agents",), sentence)])

    def _required(self) -> Iterator[Fault]:
        blocks = self.parts.blocks
        platform = [block.id for block in blocks.values() if block.owner == PLATFORM]
        if "required_blocks" not in self.parts.settings.model_fields_set:
            yield (
                (),
                "no required_blocks: name the blocks every prompt begins with, or say `required_blocks: []`",
            )
        for index, name in enumerate(self.parts.settings.required_blocks):
            path = ("required_blocks", index)
            block = blocks.get(name)
            if block is None and not self._is_unreadable("block", name):
                yield (
                    path,
                    f"required block {name!r} is not in the registry: {nearest(name, platform)}",
                )
            elif block and block.owner != PLATFORM:
                yield (
                    path,
                    f"required block {name!r} is owned by {block.owner!r}; a required block belongs to the platform",
                )

    def _prompts(self) -> None:
        for card in self.parts.cards.values():
            spec = self.parts.models.get(card.model)
            if spec and (fault := window_fault(card, self.parts, spec)):
                self._report("card", card.id, [(("prompt_blocks",), fault)])


def _status_faults(settings: DeckSettings) -> Iterator[Fault]:
    uses: list[tuple[tuple[str, ...], str]] = []
    for status in settings.status_phrases:
        uses.append((("status_phrases", status), status))
    uses += [
        (("statuses", name, "instead"), term.instead)
        for name, term in settings.statuses.items()
        if term.instead
    ]
    for name, rule in settings.status_policy.rules.items():
        uses.append((("status_policy", "rules", name), name))
        if rule.act == "transform" or rule.into is not None:
            uses.append((("status_policy", "rules", name, "into"), rule.into or ""))
    for path, status in uses:
        if status not in settings.vocabulary:
            yield path, f"unknown status {status!r}: {nearest(status, settings.vocabulary)}"
