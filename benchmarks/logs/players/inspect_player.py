"""Plays the samples with Inspect: `python inspect_player.py FOLDER`."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, solver

from samples import SYSTEMS, TRIES, answer, brevity, exact, questions


@solver
def system(name: str):
    async def solve(state: TaskState, generate: object) -> TaskState:
        text = answer(name, str(state.sample_id), state.epoch, state.target.text)
        state.output = ModelOutput.from_content("mockllm/model", text)
        return state

    return solve


@scorer(metrics=[mean(), stderr()], name="exact")
def exact_match():
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="C" if exact(state.output.completion, target.text) else "I")

    return score


@scorer(metrics=[mean(), stderr()], name="brevity")
def brief():
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=brevity(state.output.completion, target.text))

    return score


def play(name: str, out: Path) -> None:
    samples = [
        Sample(
            id=one.sample, input=one.question, target=one.expected, metadata={"topic": one.topic}
        )
        for one in questions()
    ]
    task = Task(
        name=name,
        dataset=MemoryDataset(samples, name="sums"),
        solver=system(name),
        scorer=[exact_match(), brief()],
        epochs=TRIES,
    )
    with TemporaryDirectory() as folder:
        (log,) = eval(
            task, model="mockllm/model", log_dir=folder, display="none", fail_on_error=False
        )
        log = read_eval_log(log.location)
    # What is taken out is large, and names files of the machine that played it.
    log.eval.revision = None
    for sample in log.samples or ():
        sample.events = []
        sample.attachments = {}
        if sample.error is not None:
            sample.error.traceback = ""
            sample.error.traceback_ansi = ""
    write_eval_log(log, str(out / f"inspect-{name}.eval"))


if __name__ == "__main__":
    for system_name in SYSTEMS:
        play(system_name, Path(sys.argv[1]).resolve())
