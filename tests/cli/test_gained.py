"""Who gained which tool between two revisions of the cards, and whether the gain stands behind a flag."""

import os
import subprocess
from pathlib import Path

import pytest

from kit.cli import main

CARD = "id: shop\ndescription: Sells.\nmodel: offline\ntools: [find{more}]\n{grants}"


def commit(repo: Path, day: str, more: str = "", grants: str = "", flags: str = "") -> None:
    (repo / "cards/demo").mkdir(parents=True, exist_ok=True)
    (repo / "cards/settings").mkdir(exist_ok=True)
    (repo / "cards/demo/shop.yaml").write_text(CARD.format(more=more, grants=grants))
    (repo / "cards/demo/deck.yaml").write_text("orchestrator: shop\nrequired_blocks: []\n")
    (repo / "cards/settings/default.yaml").write_text(f"flags: {{{flags}}}\n")
    when = {"GIT_AUTHOR_DATE": f"{day}T12:00:00Z", "GIT_COMMITTER_DATE": f"{day}T12:00:00Z"}
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        [*who, "commit", "-q", "--allow-empty", "-m", "cards"],
    ):
        subprocess.run(
            ["git", "-C", str(repo), *arguments],
            check=True,
            env={**os.environ, **when},
            capture_output=True,
        )


GRANT = "tool_grants:\n  refund: {since: 2026-10-20, flag: refunds}\n"


@pytest.mark.req("SO-11", "SO-19")
@pytest.mark.parametrize(
    ("day", "grants", "flags", "code", "said"),
    [
        ("2026-10-20", GRANT, "refunds: false", 0, "since 2026-10-20, flag refunds"),
        ("2026-10-20", "", "", 1, "not gated: no grant"),
        ("2026-11-02", GRANT, "refunds: true", 1, "on by default"),
        ("2026-11-03", GRANT, "refunds: true", 0, "1 tool gained, 0 of them not gated"),
        ("2026-10-20", "tool_grants:\n  refund: {since: 2026-10-20}\n", "", 1, "no flag"),
    ],
)
def test_a_gained_tool_is_named_and_is_gated_by_a_date_and_a_flag_that_is_off_for_two_weeks(
    day: str,
    grants: str,
    flags: str,
    code: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    commit(tmp_path, "2026-10-01")
    commit(tmp_path, day, ", refund", grants, flags)
    assert (
        main(["cards", "gained", "HEAD~1", "HEAD", "--deck", str(tmp_path / "cards/demo")]) == code
    )
    out = capsys.readouterr().out
    assert "shop" in out and "+ refund" in out and said in out
    assert "+ find" not in out


def test_a_new_agent_needs_no_grant_for_the_tools_it_comes_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    commit(tmp_path, "2026-10-01")
    (tmp_path / "cards/demo/play.yaml").write_text(
        "id: play\ndescription: Games.\nmodel: offline\ntools: [scores]\n"
    )
    commit(tmp_path, "2026-10-02", ", refund")
    assert main(["cards", "gained", "HEAD~1", "HEAD", "--deck", str(tmp_path / "cards/demo")]) == 1
    new, old, counted = capsys.readouterr().out.splitlines()
    assert (
        new.split() == ["play", "+", "scores", "with", "a", "new", "agent"]
        and "shop" in old
        and "not gated" in old
    )
    assert counted == "demo, HEAD~1 to HEAD: 2 tools gained, 1 of them not gated"


def test_outside_a_checkout_or_with_an_unknown_revision_one_sentence_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["cards", "gained", "a", "b", "--deck", str(tmp_path)]) == 2
    assert "in no git checkout" in capsys.readouterr().err
    commit(tmp_path, "2026-10-01")
    assert main(["cards", "gained", "nowhere", "HEAD", "--deck", str(tmp_path / "cards/demo")]) == 2
    assert "check both revisions" in capsys.readouterr().err
