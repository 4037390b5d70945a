"""The scenario of the next questions: what fails on purpose, how wide a turn may fan out, which
pattern, model and person."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.display.command import command
from kit.core.errors import KitError
from kit.core.fault import CATALOGUE, Fault, parse, parse_all
from kit.core.value import Value
from kit.patterns import modes_of
from kit.ui.shared import address
from kit.ui.shared.host import Host
from kit.ui.shared.model_choice import every_fault, usable_models
from kit.ui.shared.turn_facts import fault_words
from kit.ui.shared.visitor import is_demo, is_operator, visitor
from kit.ui.shared.wording import is_simulated, label, literal, model_words

WIDEST = 8
PARTS = address.PARTS[1:]
"""Parts of the address that the panel writes."""


class Scenario(Value):
    """What the next turn is started with; None takes the kit's own."""

    faults: tuple[str, ...] = ()
    cap: int | None = None
    pattern: str | None = None
    model: str | None = None

    @classmethod
    def read(cls, host: Host) -> "Scenario":
        """Returns the scenario of the page's address without what cannot be used; `faults` says why."""
        fields: dict[str, Any] = {}
        cap = address.read("cap")
        if cap.isdecimal() and 0 < int(cap) <= WIDEST:
            fields["cap"] = int(cap)
        if address.read("pattern") in _modes(host):
            fields["pattern"] = address.read("pattern")
        if address.read("model") in usable_models(host.kit):
            fields["model"] = address.read("model")
        chosen_faults = _chosen(faults(host))
        return cls(faults=tuple(map(str, chosen_faults)), **fields)


def faults(host: Host) -> list[Fault | KitError]:
    """Returns each `?fault=` of the address as a fault, or as the error that says why it is none; a
    visitor who is no operator has none."""
    results: list[Fault | KitError] = []
    if not is_operator():
        return results
    for text in address.read_all("fault"):
        try:
            results.append(parse(text, host.kit.team.agents, host.kit.team.root))
        except KitError as error:
            results.append(error)
    return results


def _chosen(results: Iterable[Fault | KitError]) -> list[Fault]:
    return [result for result in results if isinstance(result, Fault)]


def panel(host: Host, head: DeltaGenerator) -> Scenario:
    """Draws the panel in the sidebar, under its `head`; every choice goes into the address and
    holds from the next question on."""
    if host.is_remote:
        with st.sidebar:
            st.caption("A service answers: it chooses pattern, model and limits itself.")
            if host.people and is_demo():
                _person(host)
        return Scenario()
    with st.sidebar:
        with head:
            plain = not any(address.read(name) for name in PARTS)
            st.button(
                "Reset",
                icon=":material/restart_alt:",
                type="tertiary",
                key="reset",
                disabled=plain,
                on_click=_reset,
            )
        if is_operator():
            st.caption("Break a part, ask, and see what the answer says.")
            group = st.expander("Break a part", icon=":material/bolt:", expanded=_is_open("fault"))
            with group.container(key="switches"):
                _failures(host)
        choices = [part for part in PARTS if part != "fault"]
        with st.expander(
            "Pattern, model and more", icon=":material/tune:", expanded=_is_open(*choices)
        ):
            _choices(host)
        scenario = Scenario.read(host)
        ignored = _ignored(host, scenario)
        if ignored:
            st.warning(literal(f"Not taken from the address: {', '.join(ignored)}"))
    return scenario


def purpose(host: Host, scenario: Scenario) -> str:
    """Says what the page is for and what of it is simulated, in words that are always in view."""
    sentence = "Several sub-agents answer at once"
    can_break = is_operator() and not host.is_remote
    if can_break:
        sentence += ", and you can break one on purpose"
    if host.people:
        sentence = f"A demonstration: {sentence[0].lower()}{sentence[1:]}"
    if host.people and is_simulated(host.words_of(scenario.model)):
        return f"{sentence}. Everything in it is simulated."
    if host.people:
        return f"{sentence}. Services, people and failures are simulated."
    if can_break:
        return f"{sentence}. Failures are simulated."
    return f"{sentence}."


def _is_open(*parts: str) -> bool:
    """Whether a group of controls is shown: from the first choice in it on, until all is reset."""
    key = f"open-{parts[0]}"
    if any(address.read(part) for part in parts):
        st.session_state[key] = True
    return st.session_state.get(key, False)


def _ignored(host: Host, scenario: Scenario) -> list[str]:
    """Returns what the address asks for and does not get: a limit, a name or a person that there is not."""
    principal = visitor(host)
    choices = {
        "cap": str(scenario.cap),
        "pattern": scenario.pattern,
        "model": scenario.model,
        "tenant": principal.tenant_id,
        "user": principal.user_id,
    }
    ignored: list[str] = []
    for name, choice in choices.items():
        if address.read(name) not in ("", choice):
            ignored.append(f"{name}={address.read(name)}")
    if not is_operator():
        ignored += [f"fault={fault}" for fault in address.read_all("fault")]
    return ignored


def _failures(host: Host) -> None:
    read = faults(host)
    for error in read:
        if isinstance(error, KitError):
            st.warning(literal(str(error)))
    on = _chosen(read)
    team = host.kit.team
    parts = {*team.agents, "orchestrator"}
    usual: list[str] = []
    for text in host.kit.deck.settings.page.faults:
        if text.partition("=")[0].strip() in parts:
            usual.append(text)
    common = parse_all(usual, team.agents, team.root)
    # A fault that the address names stands here even where the deck does not offer it: it can be taken back.
    near = list(dict.fromkeys((*common, *on)))
    for where in dict.fromkeys(fault.where for fault in near):
        st.markdown(f"**{'Orchestrator' if where == team.root else label(where)}**")
        _toggles([fault for fault in near if fault.where == where], on)
    others = [str(fault) for fault in every_fault(team) if fault not in near]
    # A new key for each choice: what was chosen stands among the others above.
    key = f"more-{len(near)}"
    st.selectbox(
        "More ways to fail",
        others,
        index=None,
        key=key,
        placeholder="Choose one",
        format_func=fault_words,
        on_change=_add,
        args=(key,),
    )


def _add(key: str) -> None:
    if st.session_state[key]:
        address.put("fault", *address.read_all("fault"), st.session_state[key])


# The address says what holds. Each run tells the widgets anew: one that was cut short may not have reached the browser.
def _toggles(choices: Sequence[Fault], on: Sequence[Fault]) -> None:
    for fault in choices:
        key = f"fault-{fault}"
        st.session_state[key] = fault in on
        st.toggle(CATALOGUE[fault.kind].label, key=key, on_change=_flip, args=(str(fault), key))


def _flip(fault: str, key: str) -> None:
    kept_faults: list[str] = []
    for text in address.read_all("fault"):
        if text != fault:
            kept_faults.append(text)
    if st.session_state[key]:
        kept_faults.append(fault)
    address.put("fault", *kept_faults)


def _choices(host: Host) -> None:
    deck = host.kit.deck
    caps = [str(cap) for cap in range(1, WIDEST + 1)]
    _choice("At once, at most", "cap", caps, str(min(deck.settings.cap, WIDEST)))
    if host.people and is_demo():
        _person(host)
    _choice(
        "Pattern",
        "pattern",
        _modes(host),
        host.kit.pattern.name,
        label,
    )
    _models(host)


def _modes(host: Host) -> list[str]:
    """The names of what turns of this deck can be run as: plans for one that has a planner."""
    modes: list[str] = []
    for name, pattern in modes_of(host.kit.deck).items():
        if not pattern.is_plan or host.kit.deck.settings.planning:
            modes.append(name)
    return modes


def _models(host: Host) -> None:
    usable = usable_models(host.kit)
    _choice("Model", "model", usable, usable[0], model_words)
    if is_operator():
        st.caption(f"`{command('doctor')}` says what other models need.")


def _person(host: Host) -> None:
    principal = visitor(host)
    default = host.kit.session("").principal
    if default not in host.people:
        return
    tenant_column, user_column = st.columns(2)
    with tenant_column:
        tenants = sorted({person.tenant_id for person in host.people})
        _choice("Tenant", "tenant", tenants, default.tenant_id)
    with user_column:
        names: dict[str, str] = {}
        for candidate, person in host.people.items():
            if candidate.tenant_id == principal.tenant_id:
                names[candidate.user_id] = person.name or candidate.user_id
        _choice("User", "user", list(names), default.user_id, names.__getitem__)


def _choice(
    title: str, name: str, options: list[str], default: str, words: Callable[[str], str] = str
) -> None:
    """Draws one part of the address as a list to choose from; `default` holds when the address says nothing."""
    key = f"scenario-{name}"
    st.session_state[key] = default
    if address.read(name) in options:
        st.session_state[key] = address.read(name)
    st.selectbox(
        title, options, key=key, format_func=words, on_change=_choose, args=(name, key, default)
    )


def _choose(name: str, key: str, default: str) -> None:
    choice = st.session_state[key]
    if choice == default:
        address.put(name)
    else:
        address.put(name, choice)


def _reset() -> None:
    for name in PARTS:
        address.put(name)
        st.session_state.pop(f"open-{name}", None)
