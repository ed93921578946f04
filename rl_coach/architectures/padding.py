"""Padding: rows of weight 0 that fill a batch up to the size of a compiled step."""

from __future__ import annotations

import numpy as np

SMALLEST_BUCKET = 32


def pad(columns: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    """Add rows of zeros until there are ``rows`` rows. The added rows have weight 0."""
    missing = rows - len(columns["weights"])
    if not missing:
        return columns
    return {
        name: np.concatenate([column, np.zeros((missing, *column.shape[1:]), column.dtype)])
        for name, column in columns.items()
    }


def padded(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add rows of weight 0 until the number of rows is a power of two. So only a few batch sizes are compiled."""
    return pad(columns, padded_length(len(columns["weights"])))


def padded_length(rows: int) -> int:
    """The number of rows after ``padded``."""
    return max(SMALLEST_BUCKET, 1 << (rows - 1).bit_length())


def padded_sequences(sequences: list[dict[str, np.ndarray]]) -> tuple[dict[str, np.ndarray], int]:
    """Join sequences to one batch. Rows of weight 0 are added so that all sequences have one length, and sequences of
    weight 0 are added at the end. The length and the number of sequences are powers of two.

    :param sequences: for each sequence, columns [T, ...] by name
    :return: the columns, and the number of rows in each sequence
    """
    longest = max(len(columns["weights"]) for columns in sequences)
    length = 1 << (longest - 1).bit_length()
    equal = [pad(columns, length) for columns in sequences]
    together = {name: np.concatenate([columns[name] for columns in equal]) for name in equal[0]}
    return pad(together, length << (len(sequences) - 1).bit_length()), length
