"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, NamedTuple

from llmtrain_helpers.checks import (
    Array,
    Count,
    Exact,
    at_most,
    checked,
    choice,
    finite,
    is_array,
    one,
    refuse,
    single,
)
from llmtrain_helpers.flops import ATTENTION
from llmtrain_helpers.model.layers import Attention, pairs


@checked
def product_flops(
    tokens: Count[Exact | Array], inputs: Count[Exact | Array], outputs: Count[Exact | Array]
) -> Exact | Array:
    """FLOPs of one matrix product: 2 · tokens · inputs · outputs.

    Takes the rows of the left matrix and the sizes of the right one, numbers or arrays.
    Each multiplication and each addition is one. ValueError for anything not whole.

    >>> product_flops(1, 3, 4)
    24
    """
    return 2 * tokens * inputs * outputs


class TokenProducts(NamedTuple):
    """The results of a matrix's three products for one token: two lists and a table."""

    output: list[int]
    passed_on: list[int]
    gradient: list[list[int]]


def token_products(
    weights: Sequence[Sequence[int]], token: Sequence[int], gradient: Sequence[int]
) -> TokenProducts:
    """Compute a token's way through a matrix and back.

    `gradient` is that of the token's output. Forward gives xW, backward W·dy to pass on
    and x ⊗ dy to learn. ValueError for what is no matrix, or does not fit it.

    >>> token_products([[3, 1], [2, 0]], [2, 1], [1, 2])
    TokenProducts(output=[8, 2], passed_on=[5, 2], gradient=[[2, 4], [1, 2]])
    """
    W = [_numbers("weights", row) for row in _as_list("weights", weights)]
    x, dy = _numbers("token", token), _numbers("gradient", gradient)
    if len(W) != len(x):
        refuse("token", token, f"has not a number for each of the {len(W)} rows of weights")
    if any(len(row) != len(dy) for row in W):
        refuse("gradient", gradient, "has not a number for each column of weights")
    output = [sum(w * a for w, a in zip(column, x, strict=True)) for column in zip(*W, strict=True)]
    passed_on = [sum(w * d for w, d in zip(row, dy, strict=True)) for row in W]
    return TokenProducts(output, passed_on, [[a * d for d in dy] for a in x])


class AttentionRow(NamedTuple):
    """The results of a token's query: a score and a share per key, and the mix of the values."""

    scores: list[float]
    shares: list[float]
    mix: list[float]


def attention_row(
    query: Sequence[float], keys: Sequence[Sequence[float]], values: Sequence[Sequence[float]]
) -> AttentionRow:
    """Compute one row of attention: q·k, softmax(q·k / √d), and the mix of the values.

    All vectors of queries and keys have d numbers. ValueError for what is no matrix, or does
    not fit.

    >>> attention_row([1, 0], [[0, 1], [2, 0]], [[1], [3]]).scores
    [0, 2]
    """
    q = _numbers("query", query)
    K = [_numbers("keys", key) for key in _as_list("keys", keys)]
    V = [_numbers("values", value) for value in _as_list("values", values)]
    if any(len(key) != len(q) for key in K):
        refuse("keys", keys, f"has not {len(q)} numbers in each key, as the query")
    if len(V) != len(K) or len({len(value) for value in V}) > 1:
        refuse("values", values, f"has not a row of one length for each of the {len(K)} keys")
    scores = [sum(a * b for a, b in zip(q, key, strict=True)) for key in K]
    most = max(scores)
    raised = [exp((score - most) / sqrt(len(q))) for score in scores]
    shares = [part / sum(raised) for part in raised]
    columns = zip(*V, strict=True)
    mix = [sum(s * x for s, x in zip(shares, column, strict=True)) for column in columns]
    return AttentionRow(scores, shares, mix)


def _as_list(name: str, values: Any) -> list[Any]:
    """Convert a list, a tuple or an array of numbers to a list."""
    if is_array(values):
        values = values.tolist()
    if not isinstance(values, list | tuple) or not values:
        refuse(name, values, "is no list of numbers")
    return [*values]


def _numbers(name: str, values: Any) -> list[Any]:
    return [one(name, value, finite) for value in _as_list(name, values)]


@dataclass(frozen=True)
class AttentionPairs:
    """The pairs of a query and a key that are counted, among all of a sequence.

    `keys` are those of each query, both numbered from 0; `counted` is how many pairs
    that makes, `dense` how many there are in all: s².
    """

    keys: tuple[range, ...]
    counted: int
    dense: int

    @property
    def share(self) -> float:
        """The part of all pairs that is counted."""
        return self.counted / self.dense


def attention_pairs(sequence_length: int, attention: str, window: int = 0) -> AttentionPairs:
    """Count the pairs of tokens that attention combines, as `count_flops` does.

    `attention` is "dense" (all s²) or "causal": a token sees those before it and itself,
    with a `window` of w only the last w of them (0: all). Takes up to 1,024 tokens, for
    what can be shown. ValueError for anything else, and for a window without "causal".

    >>> attention_pairs(4, "causal", window=2)
    AttentionPairs(keys=(range(0, 1), range(0, 2), range(1, 3), range(2, 4)), counted=7, dense=16)
    """
    s, w = single("sequence_length", sequence_length), single("window", window, least=0)
    at_most("sequence_length", s, "what can be shown", 1024)
    causal = choice("attention", attention, ATTENTION) == "causal"
    if w and not causal:
        refuse("window", w, "goes with attention='causal': dense counts all pairs")
    if causal:
        keys = tuple(range(max(i + 1 - w, 0) if w else 0, i + 1) for i in range(s))
    else:
        keys = tuple(range(s) for _ in range(s))
    return AttentionPairs(keys, int(pairs(s, attention, Attention(1, 1, 1, window=w))), s * s)
