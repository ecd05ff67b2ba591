"""Matrix products whose every number is summed in one fixed order, whatever else is computed beside it.

A library's product adds in an order that depends on how many rows share the call, so that a signal's last digits
would depend on its neighbours. Here each entry is a chain of fused multiply-adds from the first term to the last. Tiles
of rows and columns are computed together for speed only: they share what is loaded, never a sum.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from tocsin.compilation import compiled, inner
from tocsin.forecasting.embedded.vectors import (
    HALVES,
    HAS_WIDE_REGISTERS,
    INDEX,
    LANES,
    MULTIPLIES_BY_LANE,
    READS_HALVES,
    SINGLES,
    consecutive,
    equal,
    fused,
    generated,
    loop,
    place,
    spread,
    stays_one,
    vector_at,
)

Array = NDArray[Any]

_exact = compiled(with_folder=True)
_inner = inner()

#: Matrices are stored in panels with this many columns, each panel contiguous.
PANEL = 2 * LANES
# So many rows and vectors of columns are multiplied together as the registers can hold the sums of. Where a factor can
# be taken from any lane of a register, there is room in them for the next terms of each row, too.
_TILE = 5 if MULTIPLIES_BY_LANE else 6
_VECTORS = 2 if HAS_WIDE_REGISTERS else 1
_TERMS = 4 if MULTIPLIES_BY_LANE else 1
# Heads that share their keys and values are multiplied with them together.
_HEADS = 3


def _load(builder: Any, pointer: Any, number: int, is_half: bool) -> Any:
    """The vector of that number behind a pointer to singles, or to the bits of half-precision numbers."""
    if is_half:
        return builder.fpext(builder.load(vector_at(builder, pointer, number, HALVES), align=2), SINGLES)
    return builder.load(vector_at(builder, pointer, number), align=4)


def _tile(rows: int, vectors: int, *, adds: bool = False) -> Callable[..., Any]:
    """A function that multiplies some rows with `vectors` times `LANES` columns.

    `out[r, c] = sum over k of left[r, k] * right[k, c]`, in the order of k; where it `adds`, the sum begins with what
    `out` holds. Of each array are given the entry where it begins and the distance from row to row, in entries. What is
    on the right may be the bits of half-precision numbers.
    """

    def define(
        typing: Any, left: Any, left_at: Any, left_step: Any, right: Any, right_at: Any, right_step: Any, depth: Any,
        out: Any, out_at: Any, out_step: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            left, left_at, left_step, right, right_at, right_step, depth, out, out_at, out_step = arguments

            def row_of(number: int, kind: Any, array: Any, at: Any, step: Any) -> Any:
                return place(context, builder, kind, array, builder.add(at, builder.mul(step, INDEX(number))))

            left_rows = [row_of(row, signature.args[0], left, left_at, left_step) for row in range(rows)]
            out_rows = [row_of(row, signature.args[7], out, out_at, out_step) for row in range(rows)]
            right_first = place(context, builder, signature.args[3], right, right_at)
            results = [vector_at(builder, row, column) for row in out_rows for column in range(vectors)]

            def add_terms(together: int) -> Callable[[Any, list[Any]], list[Any]]:
                """Add terms to each sum, in their order; the sums are in the order of rows and columns."""

                def add(k: Any, sums: list[Any]) -> list[Any]:
                    numbers = [consecutive(builder, builder.gep(row, [k]), together) for row in left_rows]
                    for term in range(together):
                        right_row = builder.gep(right_first, [builder.mul(builder.add(k, INDEX(term)), right_step)])
                        factors = [_load(builder, right_row, column, is_half) for column in range(vectors)]
                        terms = [(spread(builder, row[term]), factor) for row in numbers for factor in factors]
                        sums = [fused(builder, *term, so_far) for term, so_far in zip(terms, sums, strict=True)]
                    return sums

                return add

            is_half = signature.args[3].dtype == types.uint16
            most = builder.and_(depth, INDEX(-_TERMS))
            sums = [builder.load(result, align=4) if adds else equal(0.0) for result in results]
            sums = loop(builder, INDEX(0), most, _TERMS, sums, add_terms(_TERMS))
            sums = loop(builder, most, depth, 1, sums, add_terms(1))
            for total, result in zip(sums, results, strict=True):
                builder.store(total, result, align=4)
            return context.get_dummy_value()

        entry = types.intp
        return types.void(left, entry, entry, right, entry, entry, entry, out, entry, entry), generate

    return generated(define)


@generated
def _widen(typing: Any, matrix: Any, matrix_at: Any, singles: Any, at: Any) -> Any:
    """Write `LANES` entries of a matrix in single precision."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix, matrix_at, singles, at = arguments
        source = place(context, builder, signature.args[0], matrix, matrix_at)
        target = vector_at(builder, place(context, builder, signature.args[2], singles, at), 0)
        builder.store(_load(builder, source, 0, signature.args[0].dtype == types.uint16), target, align=4)
        return context.get_dummy_value()

    return types.void(matrix, types.intp, singles, types.intp), generate


_many_rows = _tile(_TILE, _VECTORS)
_one_row = _tile(1, PANEL // LANES)
_many_scores = _tile(_HEADS, 1)
_one_score = _tile(1, 1)
_many_sums = _tile(_HEADS, 1, adds=True)
_one_sum = _tile(1, 1, adds=True)


def panels(matrix: NDArray[np.float16], *, halves: bool = READS_HALVES) -> Array:
    """A matrix, `(columns, depth)` as torch keeps it, in panels for `multiply`: as bits, or in single precision."""
    columns, depth = matrix.shape
    count = -(-columns // PANEL)
    padded = np.zeros((count * PANEL, depth), dtype=np.float16)
    padded[:columns] = matrix
    ordered = np.ascontiguousarray(padded.reshape(count, PANEL, depth).transpose(0, 2, 1))
    return ordered.view(np.uint16) if halves else ordered.astype(np.float32)


@_exact
def multiply(rows: Array, count: int, matrices: Array, at: int, out: Array) -> None:
    """Write the first `count` rows times a matrix to `out`, of as many of its panels as `out` has room for.

    `at` is the entry of `matrices` where it begins; it is as deep as the rows are wide.
    """
    stays_one()
    depth, out_step = rows.shape[1], out.shape[1]
    widened = np.empty((depth, PANEL), dtype=np.float32)
    for panel in range(out_step // PANEL):
        first, column = at + panel * depth * PANEL, panel * PANEL
        if count < _TILE:
            # Reading the matrix is what takes the time: it is half as long in half precision.
            for row in range(count):
                _one_row(
                    rows, row * depth, depth, matrices, first, PANEL, depth, out, row * out_step + column, out_step
                )
            continue
        for entry in range(0, depth * PANEL, LANES):
            _widen(matrices, first + entry, widened, entry)
        for part in range(0, PANEL, _VECTORS * LANES):
            row = 0
            while row < count:
                # The last tile reaches back where the rows do not come out even: the same sums once more cost less than
                # single rows.
                row = min(row, count - _TILE)
                there = row * out_step + column + part
                _many_rows(rows, row * depth, depth, widened, part, PANEL, depth, out, there, out_step)
                row += _TILE


@_inner
def compare(
    queries: Array, at: int, heads: int, width: int, keys: Array, keys_at: int, scores: Array, column: int
) -> None:
    """Write the products of `heads` queries, from `queries[at]` on, with one block of keys to `scores[:, column:]`."""
    step = scores.shape[1]
    head = 0
    while head + _HEADS <= heads:
        _many_scores(queries, at + head * width, width, keys, keys_at, LANES, width, scores, head * step + column, step)
        head += _HEADS
    while head < heads:
        _one_score(queries, at + head * width, width, keys, keys_at, LANES, width, scores, head * step + column, step)
        head += 1


@_inner
def gather(
    shares: Array, column: int, heads: int, width: int, values: Array, values_at: int, count: int, out: Array, at: int
) -> None:
    """Add `count` values of one block, each times its share, `shares[head, column:]`, to `out[at:]` of every head."""
    step = shares.shape[1]
    for part in range(0, width, LANES):
        head = 0
        while head + _HEADS <= heads:
            _many_sums(
                shares, head * step + column, step, values, values_at + part, width, count,
                out, at + head * width + part, width,
            )  # fmt: skip
            head += _HEADS
        while head < heads:
            _one_sum(
                shares, head * step + column, step, values, values_at + part, width, count,
                out, at + head * width + part, width,
            )  # fmt: skip
            head += 1
