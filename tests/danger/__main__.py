"""`python -m tests.danger [--list] FILE...`: of how many lines of a file the consumer deck hears danger.

With `--list` each line stands there too, after the kind of danger that was heard, or a dash.
"""

import sys
from pathlib import Path

from kit.compose.deck import load_deck
from kit.settings import HOME


def main(names: list[str], *, lists: bool) -> None:
    dangers = load_deck(HOME / "cards" / "consumer").dangers.values()
    for name in names:
        messages = Path(name).read_text(encoding="utf-8").splitlines()
        caught = 0
        for message in messages:
            kinds = [danger.finder.kind_of(message) for danger in dangers]
            heard = next(filter(None, kinds), None)
            if heard is not None:
                caught += 1
            if lists:
                print(f"{heard or '-':10}  {message}")
        print(f"{name}: danger heard in {caught} of {len(messages)}")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main([name for name in arguments if name != "--list"], lists="--list" in arguments)
