"""Writes data/manga/*.jsonl from data/source/manga.yaml: one invented library, the same bytes on
every run.

Run it as `python data/make_manga.py`. Everything is drawn from one seed; no clock is read. What an
arc hides stands in `hidden` and is never served: a test looks for it in every answer.
"""

import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import yaml

SEED = 20261101
HERE = Path(__file__).parent
TITLES = 320
READERS = {"acme": 60, "globex": 20}
Row = dict[str, Any]


def make_titles(told: Row) -> list[Row]:
    """Titles with arcs, reviews and links; every name once."""
    rng, rows, taken = random.Random(f"{SEED} titles"), list[Row](), set[str]()
    genres = list(told["genres"])
    while len(rows) < TITLES:
        genre = genres[len(rows) % len(genres)]
        parts = told["genres"][genre]
        name = f"{rng.choice(parts['first'])} {rng.choice(parts['second'])}"
        if name in taken:
            name = f"{name} {rng.choice(['Zero', 'After', 'Nights', 'Blue', 'II'])}"
        if name in taken:
            continue
        taken.add(name)
        rows.append(_title(f"mg-{len(rows) + 1:04}", name, genre, parts, told, rng))
    _link(rows, told["links"], rng)
    return rows


def _title(key: str, name: str, genre: str, parts: Row, told: Row, rng: random.Random) -> Row:
    second = rng.choice([other for other in told["genres"] if other != genre])
    lead = rng.choice(parts["lead"])
    volumes = rng.choice([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 27])
    return {
        "id": key,
        "title": name,
        "studio": rng.choice(told["studios"]),
        "year": rng.randint(1988, 2026),
        "genres": [genre, second],
        "words": [*parts["words"], *rng.sample(told["genres"][second]["words"], 1)],
        "volumes": volumes,
        "running": rng.random() < 0.35,
        "premise": f"{lead} {rng.choice(parts['want'])}",
        "arcs": _arcs(lead, volumes, parts, told, rng),
        "reviews": {
            "count": rng.randint(12, 2400),
            "score": rng.randint(52, 97),
            "praise": rng.choice(parts["praise"]),
            "complaint": rng.choice(parts["complaint"]),
        },
        "links": [],
    }


def _arcs(lead: str, volumes: int, parts: Row, told: Row, rng: random.Random) -> list[Row]:
    count = min(len(told["arcs"]), max(1, volumes // 3))
    arcs, chapter = list[Row](), 1
    for name in rng.sample(told["arcs"], count):
        last = chapter + rng.randint(6, 18)
        gist = rng.choice(told["gists"]).format(lead=lead)
        arcs.append(
            {
                "name": name,
                "first": chapter,
                "last": last,
                "gist": gist,
                "hidden": rng.choice(parts["hidden"]),
            }
        )
        chapter = last + 1
    return arcs


def _link(rows: list[Row], ways: list[str], rng: random.Random) -> None:
    for row in rows:
        near = [other for other in rows if other is not row and other["genres"][0] in row["genres"]]
        for other in rng.sample(near, 2):
            same = other["studio"] == row["studio"]
            row["links"].append(
                {"id": other["id"], "how": ways[0] if same else rng.choice(ways[1:])}
            )


def make_readers(titles: list[Row], told: Row) -> list[Row]:
    """What readers like, dislike and have read; they are users of the embedded world."""
    rng, rows = random.Random(f"{SEED} readers"), list[Row]()
    for tenant, count in READERS.items():
        for number in range(1, count + 1):
            likes = rng.sample(list(told["genres"]), 2)
            fond = [row["id"] for row in titles if row["genres"][0] in likes]
            rows.append(
                {
                    "tenant_id": tenant,
                    "user_id": f"u-{number:03}",
                    "likes": likes,
                    "dislikes": rng.choice(
                        [genre for genre in told["genres"] if genre not in likes]
                    ),
                    "read": rng.sample(fond, 6),
                }
            )
    return rows


def write(folder: Path) -> dict[str, int]:
    """Writes the library into `folder`; returns table -> rows."""
    told = yaml.safe_load((HERE / "source" / "manga.yaml").read_text(encoding="utf-8"))
    titles = make_titles(told)
    tables = {"titles": titles, "readers": make_readers(titles, told)}
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for name, rows in tables.items():
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        digest.update(text.encode())
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8", newline="\n")
    counts = {name: len(rows) for name, rows in tables.items()}
    meta = {"seed": SEED, "simulated": True, "rows": counts, "sha256": digest.hexdigest()}
    (folder / "meta.json").write_text(
        json.dumps(meta, indent=2) + "\n", encoding="utf-8", newline="\n"
    )
    return counts


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "manga"
    for table, count in write(target).items():
        print(f"{count:6}  {table}")
