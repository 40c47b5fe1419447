"""Checks of the arguments of source localization."""

import math
from collections.abc import Sequence

from icmape.errors import UserError

MOST_CELLS = 1024  # of a side of the exact posterior's table of pairs of cells


def start_places(
    requested: Sequence[Sequence[int]] | None, grid: int, window: int, agents: int
) -> tuple[tuple[int, int], ...]:
    """Start positions: as given, or in the corners."""
    near, far = min(window // 2, grid - 1), max(grid - 1 - window // 2, 0)
    corners = ((near, near), (near, far), (far, near), (far, far))
    if requested is None:
        if agents > len(corners):
            raise UserError(f"{agents} agents are more than there are corners to start from: give their starts")
        return corners[:agents]
    try:
        starts = tuple((int(row), int(column)) for row, column in requested)
    except (TypeError, ValueError) as error:
        raise UserError(f"starts must be pairs of row and column; given {requested!r}") from error
    if len(starts) != agents:
        raise UserError(f"{agents} agents need as many starts; given {len(starts)}")
    if not all(0 <= row < grid and 0 <= column < grid for row, column in starts):
        raise UserError(f"starts must lie on the {grid}×{grid} grid; given {starts}")
    return starts


def check_sizes(grid: int, window: int, move: int, detectors: int, horizon: int) -> None:
    """Refuse impossible sizes."""
    sizes = {"grid": grid, "window": window, "move": move, "detectors": detectors, "horizon": horizon}
    for name, value in sizes.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"{name} must be a whole number of at least 1; given {value!r}")
    if grid < 2 or grid**2 > MOST_CELLS:
        raise UserError(
            f"a grid needs 2 to {math.isqrt(MOST_CELLS)} cells on a side (the exact posterior holds a table of all "
            f"pairs of cells); given {grid}"
        )
    if window % 2 == 0 or window > grid:
        raise UserError(f"a window has an odd number of cells on a side, at most those of the grid; given {window}")
    if horizon < 2:
        raise UserError(f"a problem needs at least two rounds, one to sample and one to stop; horizon is {horizon}")


def check_distance(grid: int, distance: int, exactly: int | None) -> None:
    """Refuse distances that no two cells have."""
    for name, value in (("distance", distance), ("exact_distance", exactly)):
        if value is not None and not (isinstance(value, int) and 1 <= value <= 2 * (grid - 1)):
            raise UserError(
                f"{name} must be a whole number from 1 to {2 * (grid - 1)}, the longest way on a {grid}×{grid} grid; "
                f"given {value!r}"
            )


def check_prior(
    detection: float, decay: float, noise: float, low: float, high: float, alpha: float | None, beta: float | None
) -> None:
    """Refuse invalid probabilities and priors."""
    if not 0 < detection < 1:
        raise UserError(f"detection is a probability strictly between 0 and 1; given {detection}")
    for name, value in (("decay", decay), ("noise", noise)):
        if not 0 < value < math.inf:
            raise UserError(f"{name} must be positive; given {value}")
    if not 0 <= low < high <= 1:
        raise UserError(f"intensities need 0 <= intensity_low < intensity_high <= 1; given {low} and {high}")
    if (alpha is None) != (beta is None) or any(v is not None and not 0 < v < math.inf for v in (alpha, beta)):
        raise UserError(f"a Beta prior needs two positive parameters; intensity_alpha is {alpha}, _beta is {beta}")
