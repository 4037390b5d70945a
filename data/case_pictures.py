"""The pictures of data/cases/pictures, drawn: a till receipt and a product, each a PNG that says what it shows."""

import zlib
from collections.abc import Sequence
from typing import Literal

from kit.core.picture import Picture

Kind = Literal["receipt", "product"]
SHOWS: dict[Kind, str] = {
    "receipt": "a till receipt from a grocery store",
    "product": "a box of tea, a product on a store shelf",
}
"""What each file says of itself."""
_SCALE = 6
_INK, _PAPER, _SHELF, _BOX = (30, 30, 30), (250, 250, 246), (150, 120, 90), (46, 125, 80)
_GLYPHS = {
    "A": "757555",
    "C": "744447",
    "E": "747447",
    "I": "722227",
    "K": "556655",
    "L": "444447",
    "M": "577555",
    "O": "755557",
    "P": "757444",
    "R": "757655",
    "T": "722222",
    "0": "755557",
    "1": "262227",
    "2": "717447",
    "3": "717117",
    "4": "557111",
    "6": "747557",
    ".": "000002",
}
"""Rows of three dots a character, each row an octal digit."""
_LINES = {
    "receipt": ("RECEIPT", "", "TEA    2.40", "MILK   1.20", "", "TOTAL  3.60"),
    "product": ("", "", "   TEA", "", "", ""),
}
Color = tuple[int, int, int]


def draw_picture(kind: Kind) -> Picture:
    """Draws the picture of a kind; the same bytes on every run."""
    dots = _page(_LINES[kind])
    back, paper = (_PAPER, _PAPER) if kind == "receipt" else (_SHELF, _BOX)
    rows = [_row(dots, y, back, paper) for y in range(len(dots))]
    pixels = b"".join(
        (b"\0" + b"".join(bytes(color) * _SCALE for color in row)) * _SCALE for row in rows
    )
    width, height = len(rows[0]) * _SCALE, len(rows) * _SCALE
    size = width.to_bytes(4) + height.to_bytes(4) + bytes((8, 2, 0, 0, 0))
    description = b"Description\0" + SHOWS[kind].encode("latin-1")
    chunks = (
        (b"IHDR", size),
        (b"tEXt", description),
        (b"IDAT", zlib.compress(pixels)),
        (b"IEND", b""),
    )
    return Picture.of(
        b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks), f"{kind}.png"
    )


def _page(lines: Sequence[str]) -> list[list[bool]]:
    """Returns characters as dots, with room around them."""
    rows: list[list[bool]] = []
    for line in lines:
        cells = [_GLYPHS.get(character, "000000") for character in line.ljust(11)]
        for y in range(6):
            bits = "".join(f"{int(cell[y], 8):03b}0" for cell in cells)
            rows.append([bit == "1" for bit in f"000{bits}00"])
        rows += [[False] * 49] * 2
    return [[False] * 49, [False] * 49, *rows]


def _row(dots: Sequence[Sequence[bool]], y: int, back: Color, paper: Color) -> list[Color]:
    """Returns the colors of one row: ink on paper, the paper in the middle of what is behind it."""
    inside = 4 <= y < len(dots) - 4
    return [
        _INK if on else paper if inside and 5 <= x < 44 else back for x, on in enumerate(dots[y])
    ]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)
