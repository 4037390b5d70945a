"""`kit doctor`: whether models can be reached and do what a turn asks of them, and whether the store can be written."""

import asyncio
import io
import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kit.cli.options import open_stored, read_deck
from kit.core.display.command import command
from kit.core.display.count import many

if TYPE_CHECKING:
    from kit.compose.deck import Deck
    from kit.core.model import ModelSpec
    from kit.models.examination import Finding
    from kit.settings import Settings
    from kit.stores.documents.protocol import SoulStore

NO_LLM = ("offline", "simulated")
"""Providers of models that nobody has to reach."""


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    doctor = commands.add_parser(
        "doctor", help="call each model a few times: key, URL, streaming, tool calls, schema, usage"
    )
    doctor.add_argument(
        "model",
        nargs="?",
        help="one key of models.yaml (default: every model in use, and the store)",
    )
    doctor.add_argument(
        "--json",
        action="store_true",
        help="one finding a line: kind (ok, failed, skipped), where, name, words, needed; nothing else",
    )
    doctor.set_defaults(run=_doctor)


def _doctor(arguments: Namespace) -> int:
    if arguments.json:
        # What is said on the way is for people.
        with redirect_stdout(io.StringIO()):
            findings = _examine_all(arguments.model)
        for where, finding in findings:
            line = finding.model_dump(include={"name", "words", "needed"})
            print(json.dumps({"kind": finding.state, "where": where, **line}))
    else:
        findings = _examine_all(arguments.model)
    return int(any(finding.state == "failed" and finding.needed for _, finding in findings))


def _examine_all(model: str | None) -> "list[tuple[str, Finding]]":
    """Returns what was found of one model, or of all in use and this machine, with the part that it was found of."""
    from kit.team_binder import choose_models

    settings, _, deck = read_deck()
    choice = model or choose_models(settings, deck)
    deck_keys = sorted(set(_model_keys(deck)))
    keys = deck_keys if choice is None else [choice]
    findings: list[tuple[str, Finding]] = []
    for key in keys:
        for finding in asyncio.run(_examine_alone(deck.models[key], deck, settings)):
            findings.append((key, finding))
    if model is None:
        findings += [("store", _store(settings)), ("sandbox", _sandbox())]
        _print_reports(settings)
        unused = sorted(set(deck_keys) - set(keys))
        if unused:
            print(
                f"not in use: {', '.join(unused)}; set OPENAI_API_KEY, or KIT_MODEL to one of them"
            )
        other_models = 0
        for key, spec in deck.models.items():
            other_models += key not in (*deck_keys, *keys) and spec.provider not in NO_LLM
        if other_models:
            print(
                f"{many(other_models, 'more model')} of models.yaml, named by no card; to try "
                f"one: {command('doctor', 'MODEL')}"
            )
    return findings


def _model_keys(deck: "Deck") -> Iterator[str]:
    """The models that a deck names for its agents and their second models."""
    from kit.core.model import fallback_of

    for card in deck.active():
        if card.run is not None:
            continue
        yield card.model
        if fallback := fallback_of(card, deck.models):
            yield fallback
    yield from filter(None, (deck.settings.helper_model, deck.settings.compose_model))


async def _examine_alone(spec: "ModelSpec", deck: "Deck", settings: "Settings") -> "list[Finding]":
    from kit.models.direct_call import langsmith_hears

    # A test of the connection is told to nobody.
    with langsmith_hears(False):
        return await _examine(spec, deck, settings)


async def _examine(spec: "ModelSpec", deck: "Deck", settings: "Settings") -> "list[Finding]":
    from kit.compose.models import build_model
    from kit.core.errors import KitError
    from kit.models.examination import Finding, examine
    from kit.team_binder import access_of

    print(spec.key)
    if spec.provider in NO_LLM:
        kind = "simulated"
        if spec.provider == "offline":
            kind = "the offline stand-in, which is no LLM"
        words = f"nothing to reach: {kind}"
        return [_print(Finding(name="offline", state="skipped", words=words, needed=False))]
    try:
        model = build_model(spec, access_of(settings), folder=deck.tools.folder)
    except KitError as error:
        return [_print(Finding(name="setup", state="failed", words=str(error)))]
    findings = [_print(Finding(name="key", state="ok", words=_key(spec, settings)))]
    async for finding in examine(spec, model):
        findings.append(_print(finding))
    return findings


def _key(spec: "ModelSpec", settings: "Settings") -> str:
    if spec.provider == "python":
        return "its code sees to that"
    if spec.api_key_env:
        return f"found in {spec.api_key_env}"
    if spec.provider == "langchain" and not spec.base_url:
        return "its provider's"
    if settings.openai_api_key and not spec.base_url:
        return "found in OPENAI_API_KEY"
    return "none is sent"


def _store(settings: "Settings") -> "Finding":
    from kit.core.errors import KitError
    from kit.models.examination import Finding

    print("store")
    try:
        with open_stored(settings) as store:
            # A server that takes no writes is opened all the same. This changes nothing, and is refused there.
            store.claim_turn("doctor")
            asyncio.run(_write_soul(store.open_documents().souls))
    except KitError as error:
        return _print(Finding(name="written", state="failed", words=str(error)))
    return _print(Finding(name="written", state="ok", words=settings.store_name))


async def _write_soul(souls: "SoulStore") -> None:
    """Writes a document, and removes it. Raises StoreError."""
    from kit.core.documents.document import Soul

    await souls.put(Soul(id="doctor", tenant_id="doctor", updated_at=0.0))
    await souls.remove("doctor")


def _sandbox() -> "Finding":
    from kit.models.examination import Finding
    from kit.sandbox.boundary import SandboxUnavailable
    from kit.sandbox.probe import find_boundary

    print("sandbox")
    try:
        name = find_boundary().name
        state = "ok"
    except SandboxUnavailable as error:
        name = str(error)
        state = "skipped"
    return _print(Finding(name="scripts", state=state, words=name, needed=False))


def _print_reports(settings: "Settings") -> None:
    """Prints which library could report to somebody, beside what the settings name, and whether it does."""
    from kit.models.direct_call import asks_for_langsmith

    print("reports to others")
    variable = asks_for_langsmith(settings.variables)
    if variable and settings.langsmith:
        langsmith = f"on: {variable} and KIT_LANGSMITH are set; it hears every model call of a turn"
    elif variable:
        langsmith = f"off, though {variable} is set; KIT_LANGSMITH=1 lets it hear"
    else:
        langsmith = "off"
    lines = {"LangSmith": langsmith, "Streamlit": "off (usage statistics, in `kit app`)"}
    switches = {"Opik analytics": "OPIK_ANALYTICS_ENABLE", "Opik Sentry": "OPIK_SENTRY_ENABLE"}
    for name, switch in switches.items():
        is_on = settings.variables.get(switch, "false").lower() not in ("false", "0", "no", "")
        lines[name] = f"on: {switch} is set" if is_on else "off"
    if settings.has_opik:
        lines["Opik"] = "on: the settings name a server; it gets every turn"
    if settings.otlp_endpoint:
        lines["OpenTelemetry"] = f"on: spans go to {settings.otlp_endpoint}"
    if settings.alert_webhook:
        # Its path may hold a token.
        host = urlsplit(settings.alert_webhook).hostname
        lines["Alerts"] = f"on: `{command('monitor')}` posts them to {host}"
    for name, words in lines.items():
        print(f"  {name:16} {words}")


def _print(finding: "Finding") -> "Finding":
    """Prints a finding and returns it."""
    print(f"  {finding.name:16} {finding.state:8} {finding.words}".rstrip(), flush=True)
    return finding
