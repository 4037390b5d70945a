"""Plays a system through scenarios and judges each play; the system runs in its own environment."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kit.conformance.child import Receipts
from kit.conformance.endpoint import Play, serve_models
from kit.conformance.judge import Evidence, Judgement, judge
from kit.conformance.scenario import BY_ID, COMPOSERS, Composer
from kit.conformance.stage import PATIENCE, Job
from kit.core.errors import KitError

HOME = Path(__file__).resolve().parents[2]
"""What a stage needs on its path: the folder that holds this package."""
EXCERPT = 400
"""Characters of a text that a result keeps."""


class StageError(KitError):
    """The system could not be played at all."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One play and its verdict."""

    scenario: str
    composer: Composer
    best: bool
    judgement: Judgement
    evidence: Evidence

    def as_json(self) -> dict[str, Any]:
        """What is stored of it: enough to contest the verdict."""
        evidence = self.evidence
        return {
            "scenario": self.scenario,
            "composer": self.composer,
            "best": self.best,
            "verdict": self.judgement.verdict,
            "answers": self.judgement.answers,
            "word": self.judgement.word,
            "text": evidence.text[:EXCERPT],
            "error": evidence.error,
            "seconds": round(evidence.seconds, 1),
            "model_calls": len(evidence.call_times),
        }


@dataclass(frozen=True, slots=True)
class Result:
    """One system through all its plays."""

    about: Mapping[str, Any]
    """What its adapter says of itself (`stage.about`)."""
    cells: tuple[Cell, ...]

    def as_json(self) -> dict[str, Any]:
        return {**self.about, "cells": [cell.as_json() for cell in self.cells]}


def play_system(
    reference: str,
    scenarios: Sequence[str] = tuple(BY_ID),
    composers: Sequence[Composer] = tuple(COMPOSERS),
    configurations: Sequence[bool] = (False, True),
    python: str = sys.executable,
    patience: float = PATIENCE,
) -> Result:
    """Plays `file.py:NAME` through scenarios with each composer, in each configuration (True: the best one).

    `python` is the interpreter that has the system's packages, `patience` how many seconds a user
    waits. Raises StageError where the system cannot be imported.
    """
    file = reference.rpartition(":")[0]
    if not file:
        raise StageError(f"{reference!r} names no file; write ./file.py:NAME")
    if not Path(file).is_file():
        raise StageError(f"there is no file {file}; write ./file.py:NAME with one that is there")
    with tempfile.TemporaryDirectory(prefix="conformance-") as place, serve_models() as endpoint:
        folder = Path(place)
        plays: list[tuple[Job, Play]] = []
        for best in configurations:
            for composer in composers:
                for scenario in scenarios:
                    name = f"play{len(plays):03}"
                    play = Play(BY_ID[scenario], composer)
                    (folder / name).mkdir()
                    url = endpoint.add(name, play)
                    job = Job(scenario, best, url, str(folder / name), patience)
                    plays.append((job, play))
        _run_stage(python, reference, folder, [job for job, _ in plays])
        about = json.loads((folder / "about.json").read_text())
        return Result(about, tuple([_cell(job, play) for job, play in plays]))


def _run_stage(python: str, reference: str, folder: Path, jobs: Sequence[Job]) -> None:
    file = folder / "jobs.json"
    file.write_text(json.dumps([asdict(job) for job in jobs]))
    command = [python, "-W", "ignore", "-m", "kit.conformance.stage", str(file), reference]
    result = subprocess.run(command, env=_variables(), capture_output=True, text=True, check=False)
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["it gave no word of why"]
        raise StageError(f"{reference} cannot be played: {lines[-1]}")


def _variables() -> dict[str, str]:
    """What a stage sees of the environment: no key is among it, and no address of a collector."""
    variables: dict[str, str] = {}
    for name in ("PATH", "HOME", "LANG", "TMPDIR"):
        if name in os.environ:
            variables[name] = os.environ[name]
    return variables | {
        "PYTHONPATH": str(HOME),
        "PYTHONHASHSEED": "0",
        "OTEL_SDK_DISABLED": "true",
        "LANGSMITH_TRACING": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
    }


def _cell(job: Job, play: Play) -> Cell:
    folder = Path(job.folder)
    ending = Evidence("", "the process ended without an answer")
    if (folder / "ending.json").exists():
        ending = Evidence(**json.loads((folder / "ending.json").read_text()))
    evidence = replace(
        ending,
        receipts=Receipts(folder / "receipts.jsonl").read(),
        tools_called=play.tools_called,
        refusals=play.refusals,
        call_times=play.times,
    )
    return Cell(job.scenario, play.composer, job.best, judge(play.scenario, evidence), evidence)
