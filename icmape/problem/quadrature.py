"""Quadrature over a Beta density."""

import numpy as np


def gauss_jacobi(count: int, alpha: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1] for a Beta(alpha, beta) density (Golub and Welsch: eigenvalues of the recurrence)."""
    a, b = beta - 1.0, alpha - 1.0  # the classical exponents on [-1, 1]
    n = np.arange(count, dtype=np.float64)
    total = 2 * n + a + b
    with np.errstate(divide="ignore", invalid="ignore"):
        diagonal = np.where(total * (total + 2) == 0, 0.0, (b**2 - a**2) / (total * (total + 2)))
        k, t = n[1:], total[1:]
        square = 4 * k * (k + a) * (k + b) * (k + a + b) / (t**2 * (t + 1) * (t - 1))
    diagonal[0] = (b - a) / (a + b + 2)
    if count > 1:  # the general formula is 0/0 here when a + b = -1
        square[0] = 4 * (1 + a) * (1 + b) / ((a + b + 2) ** 2 * (a + b + 3))
    off = np.sqrt(square)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    return (values + 1) / 2, vectors[0] ** 2
