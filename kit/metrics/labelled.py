"""What labels say of the turns that have one: the measures of the group Judged by labels."""

from collections import Counter, defaultdict
from statistics import fmean

from kit.metrics.estimate import share
from kit.metrics.sample import Figures, Sample


def routing_accuracy(sample: Sample) -> Figures:
    """Returns for each vertical the share of turns in which it was asked and should have been, of those
    in which it was, or should have been."""
    concerned = Counter[str]()
    hits = Counter[str]()
    for turn, label in sample.labelled_turns:
        if label.agents is None:
            continue
        right = set(label.agents)
        invoked_agents = set(turn.invoked)
        concerned.update(right | invoked_agents)
        hits.update(right & invoked_agents)
    return {vertical: share(hits[vertical], concerned[vertical]) for vertical in sorted(concerned)}


def recall(sample: Sample) -> Figures:
    """Returns the share of a label's entities that crossed to another sub-agent."""
    return {"": sample.recall}


def resolved(sample: Sample) -> Figures:
    """Returns the share of labelled references that were understood."""
    right = 0
    total = 0
    for _, label in sample.labelled_turns:
        if label.resolved is not None:
            right += label.resolved
            total += 1
    return {"": share(right, total)}


def scores(sample: Sample) -> Figures:
    """Returns the mean of the labels' scores, by vertical and quality."""
    by_quality: dict[str, list[float]] = defaultdict(list)
    for _, label in sample.labelled_turns:
        for vertical, scores in label.scores.items():
            for quality, score in scores.items():
                by_quality[f"{vertical}: {quality}"].append(score)
    return {name: fmean(scores) for name, scores in sorted(by_quality.items())}
