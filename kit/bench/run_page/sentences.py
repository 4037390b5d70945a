"""The words of the page: the verdicts by measure, and how the figures were made, with references."""

from typing import get_args

from kit.bench.grid.comparison import Comparison
from kit.bench.grid.failures import way_name
from kit.bench.run_page.content import RunContent
from kit.bench.statistics.verdict import Verdict
from kit.core.display.count import many

REFERENCES = {
    "wilson": "Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. "
    "Journal of the American Statistical Association 22.",
    "clusters": "Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small "
    "expected number of positive counts estimated from survey data. Survey Methodology 24.",
    "cr2": "Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear "
    "regression with multi-stage samples. Survey Methodology 28.",
    "hall": "Hall, P. (1992). On the removal of skewness by transformation. Journal of the Royal "
    "Statistical Society B 54.",
    "clopper": "Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated "
    "in the case of the binomial. Biometrika 26.",
    "bonett": "Bonett, D. G. and Price, R. M. (2012). Adjusted Wald confidence interval for a difference of "
    "binomial proportions based on paired data. Journal of Educational and Behavioral Statistics 37.",
    "midp": "Fagerland, M. W., Lydersen, S. and Laake, P. (2013). The McNemar test for binary matched-pairs "
    "data: mid-p and asymptotic are better than exact conditional. BMC Medical Research Methodology 13.",
    "fisher": "Fisher, R. A. (1935). The Design of Experiments. Oliver and Boyd.",
    "looks": "Johari, R., Koomen, P., Pekelis, L. and Walsh, D. (2022). Always valid inference: continuous "
    "monitoring of A/B tests. Operations Research 70.",
    "holm": "Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal "
    "of Statistics 6.",
    "schuirmann": "Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power "
    "approach for assessing the equivalence of average bioavailability. Journal of Pharmacokinetics and "
    "Biopharmaceutics 15.",
}
"""Key -> a work that the paragraph on methods names."""


def methods(content: RunContent) -> tuple[str, list[str]]:
    """Returns the paragraph on methods, and the works that it names, in order."""
    run = content.run
    cited: list[str] = []
    sentences = [
        f"{many(content.cases, 'case')} were put to {many(len(content.spends), 'way')}, "
        f"{many(len(content.rows), 'scored turn')} in all. A case is an item: its repeats and turns "
        "are averaged. All intervals are two-sided at 95 %."
    ]
    shares = [summary for summary in content.summaries if summary.estimate.is_share]
    if shares:
        sentences.append("A share has Wilson's interval (Wilson 1927).")
        cited.append("wilson")
    if any(summary.estimate.effective_n < summary.estimate.n for summary in shares):
        sentences.append(
            "Where outcomes come in clusters it is made on the effective sample size (Korn and "
            "Graubard 1998), with the cluster-robust variance CR2 (Bell and McCaffrey 2002)."
        )
        cited += ["clusters", "cr2"]
    if len(shares) < len(content.summaries):
        sentences.append(
            "A mean has Student's interval with its skewness removed by Hall's transformation (Hall 1992)."
        )
        cited.append("hall")
    estimates = [summary.estimate for summary in content.summaries]
    estimates += [comparison.difference for comparison in content.comparisons]
    if any(estimate.may_differ is not None for estimate in estimates):
        sentences.append(
            "Measures, and differences of them, that are the same in every case bound no mean and have no "
            "interval; the share of cases that may differ is bounded exactly (Clopper and Pearson 1934)."
        )
        cited.append("clopper")
    if content.comparisons:
        sentences += _comparison_methods(content, cited)
    clusters = len(set(run.plan.clusters.values()))
    if clusters:
        sentences.append(
            f"{many(len(run.plan.clusters), 'case')} are in {many(clusters, 'cluster')}; tests and "
            "intervals take a cluster for one item."
        )
    if run.failed:
        sentences.append(
            "Cells that infrastructure took are no samples: they are listed and not scored, and where "
            "they are more than 2 % of a way's cells there is no verdict."
        )
    return " ".join(sentences), [REFERENCES[key] for key in dict.fromkeys(cited)]


def _comparison_methods(content: RunContent, cited: list[str]) -> list[str]:
    plan = content.run.plan
    baseline = way_name(content.run.baseline.values())
    sentences = [
        f"Every way was compared with {baseline} (the baseline), paired by case. Of yes and no the "
        "difference has the adjusted Wald interval (Bonett and Price 2012) and the test is McNemar's, "
        "by its mid-p-value (Fagerland, Lydersen and Laake 2013); of other scores, of measures and of "
        "clusters the interval is that of the mean (Hall 1992) and the test flips signs (Fisher 1935).",
    ]
    cited += ["bonett", "midp", "hall", "fisher"]
    if len(content.comparisons) > 1:
        sentences.append(
            f"The {len(content.comparisons)} comparisons were corrected together (Holm 1979), and the "
            "intervals of differences are as wide as that correction asks."
        )
        cited.append("holm")
    if plan.planned is not None:
        sentences.append(
            f"{many(plan.planned, 'play')} of each way were planned beforehand; a look at that number "
            "spends four fifths of the 5 % chance of a false claim, so p-values are multiplied by 1.25."
        )
    if not all(comparison.planned for comparison in content.comparisons):
        sentences.append(
            "Verdicts on another number of plays hold at any look (Johari, Koomen, Pekelis and Walsh 2022)."
        )
        cited.append("looks")
    if plan.margin is not None:
        sentences.append(
            f"Ways are called equivalent where two one-sided tests place the difference within the "
            f"margin that was stated beforehand, {plan.margin} (Schuirmann 1987)."
        )
        cited.append("schuirmann")
    return sentences


def verdicts_by_measure(content: RunContent) -> dict[str, list[Comparison]]:
    """Measure -> each comparison by it; those that tell ways apart come first."""
    order = get_args(Verdict)
    groups: dict[str, list[Comparison]] = {}
    for comparison in sorted(content.comparisons, key=lambda one: order.index(one.verdict)):
        groups.setdefault(comparison.scorer, []).append(comparison)
    return groups
