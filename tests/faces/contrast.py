"""How well colours are told apart, as accessibility guides count it."""

from __future__ import annotations


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def lightness(color: str) -> float:
    """CIE's L*, from 0 for black to 100 for white."""
    return 116 * float(luminance(color) ** (1 / 3)) - 16


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (((x + 0.055) / 1.055) ** 2.4 if x > 0.04 else x / 12.92 for x in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
