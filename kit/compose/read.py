"""A deck's folder as parts; whatever cannot be read is a fault with its line, and the rest is read on."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from kit.bridges.http import is_address
from kit.compose.deck_code import DeckCode, load_deck_code
from kit.compose.models import read_models
from kit.compose.page import PageSettings, suggestions_of
from kit.compose.parts import PLATFORM, Block, DeckSettings, Parts
from kit.compose.registry import Registry
from kit.compose.topology import Rubric
from kit.compose.yaml_source import Faults, M, Source, build, parse, parse_file, read_text
from kit.core.card import AgentCard
from kit.core.errors import nearest
from kit.core.language.danger import Danger
from kit.core.model import OFFLINE, ModelSpec
from kit.core.value import Value
from kit.tools.deck_tools import DeckTools, load_deck_tools
from kit.tools.loading import is_reference

P = TypeVar("P", Rubric, Danger)
NEXT = ".next.yaml"
"""How the file of a card's new version ends."""
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)


class Environment(Value):
    """settings/<environment>.yaml: flags, and the second and third layer of tool configuration."""

    flags: dict[str, bool] = {}
    tools: dict[str, dict[str, Any]] = {}
    flag_tools: dict[str, dict[str, dict[str, Any]]] = {}
    """Flag -> tool id -> values that hold while the flag is on."""
    tool_flags: dict[str, str] = {}
    """Tool id -> the flag that must be on for the tool to be there at all."""
    surface: str | None = None
    """Which of a deck's topologies hold here; None leaves that to the deck."""


@dataclass
class Draft:
    """What reading leaves behind beside the parts: where each came from, what is unreadable, and the faults so far."""

    faults: Faults = field(default_factory=Faults)
    sources: dict[tuple[str, str], Source] = field(default_factory=dict[tuple[str, str], Source])
    unreadable: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """(noun, id) of parts that are there but unreadable, so that nobody calls them unknown; id `*` stands for all."""

    def where(self, noun: str, name: str, path: tuple[str | int, ...] = ()) -> str:
        """Words the place of a value; a value of an environment is in the last file that gives it."""
        if noun == "environment":
            for (kind, _), source in reversed(self.sources.items()):
                if kind == noun and source.holds(*path):
                    return source.at(*path)
            return f"{path[0]} {path[-1]!r}"
        source = self.sources.get((noun, name))
        if source:
            return source.at(*path)
        return f"{noun} {name!r}"


def read_deck(folder: Path, environment: str, flags: Mapping[str, bool]) -> tuple[Parts, Draft]:
    """Reads every file of a deck: cards and deck.yaml in `folder`, blocks, models.yaml and settings beside it."""
    draft = Draft()
    # The parent of `.` is `.`; any other path stays as it was written, for the faults that name it.
    root = folder.resolve().parent if folder.name in ("", "..") else folder.parent
    settings = _settings(folder / "deck.yaml", draft)
    cards = _cards("card", _card_files(folder), draft)
    next_cards = _cards("next card", _next_files(folder), draft)
    blocks = _blocks(root / "blocks", draft)
    models = _models(root / "models.yaml", draft)
    _check_places(root, settings, cards.values(), draft)
    values = _environment(root / "settings", environment, draft)
    parts = Parts(
        name=folder.resolve().name,
        settings=settings,
        cards=Registry("card", cards),
        next_cards=next_cards,
        blocks=Registry("block", blocks),
        models=Registry("model", models),
        flags={**values.flags, **flags},
        tool_settings=values.tools,
        flag_settings=values.flag_tools,
        tool_flags=values.tool_flags,
        rubrics=_parts_of_files(Rubric, "rubric", root / "rubrics", draft),
        dangers=Registry("danger", _parts_of_files(Danger, "danger", root / "danger", draft)),
        environment_surface=values.surface,
        tools=_tools(folder, settings, draft),
        code=_code(folder, settings, runs_of(cards, next_cards), draft),
    )
    return parts, draft


def read_cards(folder: Path) -> tuple[Mapping[str, AgentCard], Mapping[str, bool], Faults]:
    """Reads the cards of a folder by id, and the flags beside it; nothing of its code is imported."""
    draft = Draft()
    cards = _cards("card", _card_files(folder), draft)
    flags = _environment(folder.parent / "settings", "default", draft).flags
    return cards, flags, draft.faults


@dataclass(frozen=True)
class Outline:
    """What a deck's folder says before any of its code is imported."""

    folder: Path
    settings: DeckSettings

    @cached_property
    def cards(self) -> tuple[AgentCard, ...]:
        """Those in place, then the new versions of cards. A page that asks for none does not wait for them: every
        run of it reads the outline."""
        draft = Draft()
        cards = _cards("card", _card_files(self.folder), draft)
        next_cards = _cards("next card", _next_files(self.folder), draft)
        return (*cards.values(), *next_cards.values())

    @property
    def references(self) -> tuple[str, ...]:
        """The references to code: what loading and showing the deck would import."""
        settings = self.settings
        texts = [*settings.tools, *settings.patterns, *settings.own_guards, *settings.pages]
        for value in (settings.page.people, settings.page.renderers):
            if isinstance(value, str):
                texts.append(value)
        return tuple(filter(is_reference, [*texts, *self._runs]))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The services that the cards ask over HTTP."""
        return tuple(filter(is_address, self._runs))

    @property
    def _runs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(card.run for card in self.cards if card.run is not None))

    @property
    def pages(self) -> Mapping[str, str]:
        """The name of each page that the deck brings -> the reference to the function that draws it."""
        return {text.rpartition(":")[2]: text for text in self.settings.pages if is_reference(text)}

    @property
    def page(self) -> PageSettings:
        """The chat page; where the deck names no suggestions, those that its cards make."""
        page = self.settings.page
        if page.suggestions is None:
            page = page.model_copy(update={"suggestions": suggestions_of(self.cards)})
        return page


def read_outline(folder: Path) -> Outline:
    """Reads deck.yaml and the cards of a folder. What cannot be read is left out, and is a fault once the deck is
    loaded: `load_deck` would import nothing of it either."""
    return Outline(folder, _settings(folder / "deck.yaml", Draft()))


def _check_places(
    root: Path, settings: DeckSettings, cards: Iterable[AgentCard], draft: Draft
) -> None:
    """A missing blocks folder or models.yaml is one fault, not one for every card that counts on it."""
    blocks = root / "blocks"
    models = root / "models.yaml"
    uses_blocks = bool(settings.required_blocks)
    uses_models = False
    for card in cards:
        uses_blocks = uses_blocks or bool(card.prompt_blocks)
        uses_models = uses_models or (card.run is None and card.model != OFFLINE.key)
    if uses_blocks and not blocks.is_dir():
        draft.faults.add(f"{blocks}:1", "no such folder; make it and put the prompt blocks there")
    if uses_models and not models.exists():
        fix = "make it, or let every card name the model 'offline'"
        draft.faults.add(f"{models}:1", f"no such file; {fix}")


def _settings(path: Path, draft: Draft) -> DeckSettings:
    source, settings = _build(DeckSettings, path, draft)
    if source:
        draft.sources["settings", "deck"] = source
    if settings is None:
        draft.unreadable |= {("settings", "deck"), ("tool", "*")}
    return settings or DeckSettings(orchestrator="")


def _tools(folder: Path, settings: DeckSettings, draft: Draft) -> DeckTools:
    def report(key: int | str, sentence: str) -> None:
        section = "mcp" if isinstance(key, str) else "tools"
        draft.faults.add(draft.where("settings", "deck", (section, key)), sentence)
        # Which tools the code would have brought is not known: no other one is called unknown.
        draft.unreadable.add(("tool", "*"))

    return load_deck_tools(settings.tools, folder, report, settings.mcp)


def _code(
    folder: Path, settings: DeckSettings, runs: Mapping[str, tuple[str, str]], draft: Draft
) -> DeckCode:
    """Loads the deck's code; `runs`: reference -> noun and id of the card that runs it."""
    references = list(runs)

    def where(section: str, number: int) -> str:
        if section == "agents":
            return draft.where(*runs[references[number]], ("run",))
        source = draft.sources["settings", "deck"]
        # `guards:` may be the list itself, or switches with the list under `own:`.
        if section == "guards" and source.holds("guards", "own"):
            return source.at("guards", "own", number)
        return source.at(section, number)

    code = {**settings.code, "agents": references}
    return load_deck_code(code, folder, where, draft.faults.add)


def runs_of(
    cards: Mapping[str, AgentCard], next_cards: Mapping[str, AgentCard]
) -> dict[str, tuple[str, str]]:
    """What the cards of a deck run, each reference once -> noun and id of the first card that runs it."""
    runs: dict[str, tuple[str, str]] = {}
    for noun, mapping in (("card", cards), ("next card", next_cards)):
        for card in mapping.values():
            if card.run is not None:
                runs.setdefault(card.run, (noun, card.id))
    return runs


def _cards(noun: str, paths: Iterable[Path], draft: Draft) -> dict[str, AgentCard]:
    cards: dict[str, AgentCard] = {}
    for path in paths:
        source, card = _build(AgentCard, path, draft)
        if source is None or card is None:
            # Another card may name it by its id, or by its file where that cannot be read.
            card_id = source.value.get("id") if source else path.stem
            draft.unreadable |= {(noun, path.stem), (noun, str(card_id))}
        elif card.id in cards:
            owner = draft.where(noun, card.id)
            draft.faults.add(
                source.at("id"), f"{noun} id {card.id!r} is taken by {owner}; choose another"
            )
        else:
            cards[card.id] = card
            draft.sources[noun, card.id] = source
    return cards


def _card_files(folder: Path) -> list[Path]:
    """The files of cards in place, those of new versions and deck.yaml aside."""
    files: list[Path] = []
    for path in sorted(folder.glob("*.yaml")):
        if path.name != "deck.yaml" and not path.name.endswith(NEXT):
            files.append(path)
    return files


def _next_files(folder: Path) -> list[Path]:
    """The files of new versions of cards."""
    return sorted(folder.glob(f"*{NEXT}"))


def file_with_id(paths: Iterable[Path], part_id: str) -> Path | None:
    """Returns the first of these files of cards or blocks that says this id; None where none does.

    The rest of a file need not be readable: it may be the one that is to be mended.
    """
    line = re.compile(rf"^id:[ \t]*['\"]?{re.escape(part_id)}['\"]?[ \t]*$", re.M)
    for path in paths:
        if line.search(path.read_text(encoding="utf-8", errors="replace")):
            return path
    return None


def card_file(folder: Path, card_id: str) -> Path | None:
    """Returns the file of a card in place; None where there is none."""
    return file_with_id(_card_files(folder), card_id)


def next_file(folder: Path, card_id: str) -> Path | None:
    """Returns the file of a card's new version; None where there is none."""
    return file_with_id(_next_files(folder), card_id)


def _parts_of_files(model: type[P], noun: str, folder: Path, draft: Draft) -> dict[str, P]:
    """The rubrics or dangers of a folder: one file each, named after its id."""
    parts: dict[str, P] = {}
    for path in sorted(folder.glob("*.yaml")):
        source, part = _build(model, path, draft)
        if source is None or part is None:
            draft.unreadable.add((noun, path.stem))
        elif part.id != path.stem:
            sentence = f"{noun} {part.id!r} stands in {path.name}; give both one name"
            draft.faults.add(source.at("id"), sentence)
        else:
            parts[part.id] = part
            draft.sources[noun, part.id] = source
    return parts


def _blocks(folder: Path, draft: Draft) -> dict[str, Block]:
    blocks: dict[str, Block] = {}
    if not folder.is_dir():
        draft.unreadable.add(("block", "*"))
    # The platform's come first, so that a vertical's namesake is the one at fault.
    platform = sorted(folder.glob(f"{PLATFORM}/**/*.md"))
    verticals = sorted(set(folder.glob("**/*.md")) - {*platform})
    for path in (*platform, *verticals):
        source, block = _block(path, draft)
        if source is None or block is None:
            draft.unreadable.add(("block", path.stem))
            if source:
                draft.unreadable.add(("block", str(source.value.get("id"))))
            continue
        fault = _owner_fault(path.relative_to(folder), block)
        if fault:
            draft.faults.add(source.at("owner"), fault)
        elif block.id in blocks:
            draft.faults.add(source.at("id"), _namesake_fault(block, blocks[block.id], draft))
        else:
            blocks[block.id] = block
            draft.sources["block", block.id] = source
            continue
        draft.unreadable.add(("block", block.id))
    return blocks


def _block(path: Path, draft: Draft) -> tuple[Source | None, Block | None]:
    text = read_text(path, draft.faults)
    if text is None:
        return None, None
    front = _FRONT.match(text)
    if front is None:
        fix = "begin with `---`, then id, category, owner, version, then `---`"
        draft.faults.add(f"{path}:1", f"no front matter; {fix}")
        return None, None
    source = parse(front[1], str(path), draft.faults, offset=1)
    if source is None:
        return None, None
    words = text[front.end() :].strip()
    return source, build(Block, source, draft.faults, extra={"text": words})


def _owner_fault(path: Path, block: Block) -> str | None:
    """A folder of blocks belongs to whoever it is named for, so that no vertical can speak for the platform."""
    folder = path.parts[0]
    if len(path.parts) == 1 or folder == block.owner:
        return None
    sentence = f"block {block.id!r} in the folder of {folder!r} says its owner is {block.owner!r}"
    if PLATFORM in (folder, block.owner):
        sentence += "; a vertical may not own a platform block"
    return f"{sentence}; move the file or change the owner"


def _namesake_fault(block: Block, namesake: Block, draft: Draft) -> str:
    if namesake.owner == PLATFORM != block.owner:
        return f"{block.owner!r} shadows the platform block {block.id!r}; give the block another id"
    return f"block id {block.id!r} is taken by {draft.where('block', block.id)}; choose another"


def _models(path: Path, draft: Draft) -> dict[str, ModelSpec]:
    offline = {OFFLINE.key: OFFLINE}
    if not path.exists():
        draft.unreadable.add(("model", "*"))
        return offline
    source = _parse(path, draft)
    if source is None:
        draft.unreadable.add(("model", "*"))
        return offline
    specs = read_models(source, draft.faults)
    draft.unreadable |= {("model", str(key)) for key in source.value if str(key) not in specs}
    return offline | specs


def _environment(folder: Path, name: str, draft: Draft) -> Environment:
    """default.yaml, with the values of <name>.yaml laid over it."""
    values = Environment()
    for layer in dict.fromkeys(("default", name)):
        path = folder / f"{layer}.yaml"
        if path.parent != folder or not path.exists():
            # The name may come from a command line, with a path in it.
            if layer != "default":
                hint = nearest(layer, [file.stem for file in folder.glob("*.yaml")])
                draft.faults.add(f"{path}:1", f"unknown environment {layer!r}: {hint}")
            continue
        source, above = _build(Environment, path, draft)
        if source and above:
            draft.sources["environment", layer] = source
            values = _overlay(values, above)
        else:
            draft.unreadable.add(("environment", "*"))
    return values


def _overlay(below: Environment, above: Environment) -> Environment:
    return Environment(
        flags=below.flags | above.flags,
        tools=_merge(below.tools, above.tools),
        flag_tools=_merge(below.flag_tools, above.flag_tools, levels=3),
        tool_flags=below.tool_flags | above.tool_flags,
        surface=above.surface or below.surface,
    )


def _merge(below: Mapping[str, Any], above: Mapping[str, Any], levels: int = 2) -> dict[str, Any]:
    """The values of both, those of `above` first; mappings are merged key by key down to so many levels."""
    if levels == 1:
        return {**below, **above}
    mapping: dict[str, Any] = {}
    for key in {**below, **above}:
        mapping[key] = _merge(below.get(key, {}), above.get(key, {}), levels - 1)
    return mapping


def _parse(path: Path, draft: Draft) -> Source | None:
    if not path.exists():
        draft.faults.add(f"{path}:1", "no such file; make it")
        return None
    return parse_file(path, draft.faults)


def _build(model: type[M], path: Path, draft: Draft) -> tuple[Source | None, M | None]:
    source = _parse(path, draft)
    return source, build(model, source, draft.faults) if source else None
