"""Whether the parts of a deck fit together: every fault with its place and its fix."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from kit.compose.contract_check import contract_faults
from kit.compose.page import page_faults
from kit.compose.parts import PLATFORM, Parts
from kit.compose.prompts import prompt_size
from kit.compose.topology_check import topology_faults
from kit.compose.yaml_source import Faults
from kit.core.card import AgentCard
from kit.core.errors import nearest

Where = Callable[[str, str, tuple[str | int, ...]], str]
"""The place of a value: (card, block, settings or environment; its id; path inside it) -> words for a report."""

PROMPT_MOST = 0.50
"""Largest share of a model's context window that a prompt may take (PC1-NFR-4)."""
ASK_ARGUMENTS = frozenset({"query", "intent_count", "prior_context"})
"""What every ask_<id> takes already (SAT-16)."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass
class Check:
    """Runs over the parts of one deck; `lost` names what could not be read, so that it is not called unknown."""

    parts: Parts
    where: Where
    tools: Collection[str] | None = None
    """Known tool ids; None: tools are not checked here."""
    lost: Collection[tuple[str, str]] = ()
    faults: Faults = field(default_factory=Faults)

    def run(self) -> "Check":
        """Every check, each fault once."""
        for card in self.parts.cards.values():
            self._names(card)
            self._references(card)
            self._tools(card)
            for path, sentence in contract_faults(card, self.parts.models):
                self._fault("card", card.id, path, sentence)
        self._folders()
        self._descriptions()
        self._cycles()
        if not self._is_lost("settings", "deck"):
            self._settings()
            self._root()
            for path, sentence in topology_faults(self.parts):
                self._fault("settings", "deck", path, sentence)
            for path, sentence in page_faults(self.parts.settings.page, self.parts.cards, self.parts.settings.orchestrator):
                self._fault("settings", "deck", path, sentence)
            self._required()
            self._prompts()
        return self

    def _fault(self, noun: str, name: str, path: tuple[str | int, ...], sentence: str) -> None:
        self.faults.add(self.where(noun, name, path), sentence)

    def _is_lost(self, noun: str, name: str) -> bool:
        return (noun, name) in self.lost or (noun, "*") in self.lost

    def _missing(self, noun: str, name: str, known: Collection[str]) -> bool:
        return name not in known and not self._is_lost(noun, name)

    def _names(self, card: AgentCard) -> None:
        if not _TOOL_NAME.fullmatch(card.tool_name):
            sentence = f"card id {card.id!r} makes no tool name; use letters, digits, _ and -, at most 60 of them"
            self._fault("card", card.id, ("id",), sentence)
        if self.tools and card.tool_name in self.tools:
            sentence = f"tool {card.tool_name!r} has the name under which card {card.id!r} is called; rename one"
            self._fault("card", card.id, ("id",), sentence)
        for name in sorted(ASK_ARGUMENTS & card.handoff.fields.keys()):
            sentence = f"every ask_<id> has an argument {name!r} already; give the field another name"
            self._fault("card", card.id, ("handoff", "fields", name), sentence)

    def _references(self, card: AgentCard) -> None:
        cards, blocks, models = self.parts.cards, self.parts.blocks, self.parts.models
        for key, name in (("model", card.model), ("fallback_model", card.fallback_model)):
            if name is not None and self._missing("model", name, models):
                self._fault("card", card.id, (key,), f"unknown model {name!r}: {nearest(name, models)}")
        required = () if card.id in self.parts.settings.exempt else self.parts.settings.required_blocks
        for path, name in self._once(card, "prompt_blocks", card.prompt_blocks):
            if self._missing("block", name, blocks):
                self._fault("card", card.id, path, f"unknown block {name!r}: {nearest(name, blocks)}")
            elif name in required:
                sentence = f"required block {name!r} is put at the head of every prompt already; take it out"
                self._fault("card", card.id, path, sentence)
        for path, name in self._once(card, "sub_agents", card.sub_agents):
            if self._missing("card", name, cards):
                self._fault("card", card.id, path, f"unknown sub-agent {name!r}: {nearest(name, cards)}")

    def _once(self, card: AgentCard, key: str, names: Iterable[str]) -> Iterator[tuple[tuple[str, int], str]]:
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name in seen:
                self._fault("card", card.id, (key, index), f"{name!r} is listed twice in {key}; keep one")
            else:
                seen.add(name)
                yield (key, index), name

    def _tools(self, card: AgentCard) -> None:
        asked = {other.tool_name: other.id for other in self.parts.cards.values()}
        below = {tool: sub.id for sub in self._subs(card) for tool in sub.tools}
        for path, tool in self._once(card, "tools", card.tools):
            if tool in asked:
                sentence = f"tool {tool!r} has the name under which card {asked[tool]!r} is called; rename one"
            elif not _TOOL_NAME.fullmatch(tool):
                sentence = f"{tool!r} is no tool name; use letters, digits, _ and -, at most 64 of them"
            elif tool in below:
                sentence = f"tool {tool!r} is held by the sub-agent {below[tool]!r} too; a parent asks, so take it out here"
            elif self.tools is not None and self._missing("tool", tool, self.tools):
                sentence = f"unknown tool {tool!r}: {nearest(tool, self.tools)}"
            else:
                continue
            self._fault("card", card.id, path, sentence)
        for tool in card.tool_config:
            if tool not in card.tools:
                sentence = f"tool_config for {tool!r}, which the card does not list: {nearest(tool, card.tools)}"
                self._fault("card", card.id, ("tool_config", tool), sentence)

    def _subs(self, card: AgentCard) -> list[AgentCard]:
        return [self.parts.cards[name] for name in card.sub_agents if name in self.parts.cards]

    def _folders(self) -> None:
        """A missing blocks folder or models.yaml is one fault, not one for every card that counts on it."""
        named = bool(self.parts.settings.required_blocks) or any(card.prompt_blocks for card in self.parts.cards.values())
        for noun, place in self.lost:
            if noun == "blocks" and named:
                self.faults.add(f"{place}:1", "no such folder; make it and put the prompt blocks there")
            if noun == "models" and any(card.model not in self.parts.models for card in self.parts.cards.values()):
                self.faults.add(f"{place}:1", "no such file; make it, or let every card name the model 'offline'")

    def _descriptions(self) -> None:
        said: dict[str, str] = {}
        for card in self.parts.cards.values():
            words = " ".join(card.description.casefold().split())
            if not words:
                self._fault("card", card.id, ("description",), "empty description; say what the agent answers")
            elif words in said:
                sentence = f"same description as card {said[words]!r}; say what sets this agent apart"
                self._fault("card", card.id, ("description",), sentence)
            said.setdefault(words, card.id)

    def _cycles(self) -> None:
        told: set[frozenset[str]] = set()

        def walk(card: AgentCard, trail: tuple[str, ...]) -> None:
            for index, name in enumerate(card.sub_agents):
                if name in trail:
                    loop = trail[trail.index(name) :]
                    if frozenset(loop) not in told:
                        told.add(frozenset(loop))
                        sentence = f"cycle over sub_agents: {' -> '.join((*loop, name))}; take one of them out"
                        self._fault("card", card.id, ("sub_agents", index), sentence)
                elif name in self.parts.cards and name not in done:
                    walk(self.parts.cards[name], (*trail, name))
            done.add(card.id)

        done: set[str] = set()
        for card in self.parts.cards.values():
            if card.id not in done:
                walk(card, (card.id,))

    def _settings(self) -> None:
        settings, cards = self.parts.settings, self.parts.cards
        root = cards.get(settings.orchestrator)
        if self._missing("card", settings.orchestrator, cards):
            sentence = f"unknown orchestrator {settings.orchestrator!r}: {nearest(settings.orchestrator, cards)}"
            self._fault("settings", "deck", ("orchestrator",), sentence)
        self._named_sub_agent("default", "default_sub_agent", settings.default_sub_agent, root)
        self._named_sub_agent("support agent", "support_agent", settings.support_agent, root)
        for index, name in enumerate(settings.exempt):
            if self._missing("card", name, cards):
                self._fault("settings", "deck", ("exempt", index), f"unknown card {name!r}: {nearest(name, cards)}")
        for setting, model in (("helper_model", settings.helper_model), ("compose_model", settings.compose_model)):
            if model is not None and model not in self.parts.models:
                self._fault("settings", "deck", (setting,), f"unknown model {model!r}: {nearest(model, self.parts.models)}")
        self._statuses()

    def _statuses(self) -> None:
        settings = self.parts.settings
        uses: list[tuple[tuple[str, ...], str]] = [(("status_phrases", status), status) for status in settings.status_phrases]
        uses += [(("statuses", name, "instead"), term.instead) for name, term in settings.statuses.items() if term.instead]
        for name, rule in settings.status_policy.rules.items():
            uses.append((("status_policy", "rules", name), name))
            if rule.act == "transform" or rule.into is not None:
                uses.append((("status_policy", "rules", name, "into"), rule.into or ""))
        for path, status in uses:
            if status not in settings.vocabulary:
                self._fault("settings", "deck", path, f"unknown status {status!r}: {nearest(status, settings.vocabulary)}")

    def _named_sub_agent(self, noun: str, setting: str, name: str | None, root: AgentCard | None) -> None:
        if name is None:
            return
        if self._missing("card", name, self.parts.cards):
            self._fault("settings", "deck", (setting,), f"unknown {noun} {name!r}: {nearest(name, self.parts.cards)}")
        elif root and name not in root.sub_agents:
            sentence = f"{noun} {name!r} is no sub-agent of {root.id!r}: {nearest(name, root.sub_agents)}"
            self._fault("settings", "deck", (setting,), sentence)

    def _root(self) -> None:
        root = self.parts.settings.orchestrator
        for card in self.parts.cards.values():
            if card.sub_agents and card.id != root:
                sentence = f"card {card.id!r} declares sub_agents; only the orchestrator {root!r} may, so take them out"
                self._fault("card", card.id, ("sub_agents",), sentence)

    def _required(self) -> None:
        for index, name in enumerate(self.parts.settings.required_blocks):
            block = self.parts.blocks.get(name)
            if self._missing("block", name, self.parts.blocks):
                platform = [block.id for block in self.parts.blocks.values() if block.owner == PLATFORM]
                sentence = f"required block {name!r} is not in the registry: {nearest(name, platform)}"
            elif block and block.owner != PLATFORM:
                sentence = f"required block {name!r} is owned by {block.owner!r}; a required block belongs to the platform"
            else:
                continue
            self._fault("settings", "deck", ("required_blocks", index), sentence)

    def _prompts(self) -> None:
        for card in self.parts.cards.values():
            spec, size = self.parts.models.get(card.model), prompt_size(card, self.parts)
            if spec and size and size > PROMPT_MOST * spec.context_window:
                taken = f"prompt of about {size} tokens takes {size / spec.context_window:.0%} of the window of {spec.key!r}"
                self._fault("card", card.id, ("prompt_blocks",), f"{taken}; shorten it below {PROMPT_MOST:.0%}")
