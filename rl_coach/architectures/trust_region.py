"""Updates of a policy with a limit on its divergence from the policy that acted (Schulman et al. 2015, "Trust region
policy optimization")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from rl_coach.architectures.update import LossOf, SlopeOf, UpdateRule

DIVERGENCE, IMPROVEMENT, SHARE = "KL Divergence", "Surrogate Improvement", "Trust Region Share"
# squared norm; below this limit, conjugate gradients would divide rounding errors by rounding errors
SMALLEST_RESIDUAL = 1e-10
_TINY = 1e-20  # keeps the result finite if the curvature is 0


def dot(ops: Any, one: list, other: list) -> Any:
    """The inner product of two lists of arrays."""
    return sum(ops.sum(a * b) for a, b in zip(one, other))


def conjugate_gradients(ops: Any, product: Callable[[list], list], gradient: list, iterations: int) -> list:
    """An approximate solution x of F x = g, by the method of Hestenes and Stiefel (1952).

    :param product: computes F v for lists of arrays v; F is symmetric and positive definite
    :param gradient: g
    :param iterations: the largest number of products; with as many as g has elements, the solution is exact except for
        rounding. The iterations stop earlier if g - F x is nearly 0
    """

    def is_left(number: Any, solution: list, residual: list, conjugate: list, square: Any) -> Any:
        return ops.logical_and(number < iterations, square > SMALLEST_RESIDUAL)

    def improve(number: Any, solution: list, residual: list, conjugate: list, square: Any) -> tuple:
        image = product(conjugate)
        length = square / ops.maximum(dot(ops, conjugate, image), _TINY)
        solution = [x + length * p for x, p in zip(solution, conjugate)]
        residual = [r - length * i for r, i in zip(residual, image)]
        new_square = dot(ops, residual, residual)
        # square is not 0 here: is_left would have stopped the loop
        conjugate = [r + new_square / square * p for r, p in zip(residual, conjugate)]
        return number + 1, solution, residual, conjugate, new_square

    start = (ops.convert_to_tensor(0), [ops.zeros_like(g) for g in gradient], list(gradient), list(gradient))
    return ops.while_loop(is_left, improve, (*start, dot(ops, gradient, gradient)))[1]


@dataclass(frozen=True)
class TrustRegion:
    """Moves a policy along the natural gradient of its loss, with a limit on the divergence from the policy that acted
    (Schulman et al. 2015, appendix C). See ``Move``.

    The direction is x = F^-1 g. The Fisher matrix F is the second derivative of the divergence. The first tried step is
    sqrt(2 limit / x F x) x. The step is shortened until the divergence is at most the limit and the loss is smaller
    than before. If no tried step is short enough, the weights do not change.

    :param divergence: a rule with a loss that is the mean divergence of the policy from the policy that acted
    :param limit: delta, the largest divergence of an update, in nats
    :param iterations: number of iterations of conjugate gradients
    :param damping: the identity matrix times this number is added to F. A large number turns x towards g
    :param shortening: the factor from one tried step to the next
    :param attempts: the largest number of tried steps
    """

    divergence: UpdateRule
    limit: float = 0.01
    iterations: int = 10
    damping: float = 0.1
    shortening: float = 0.8
    attempts: int = 10

    signal_names = (DIVERGENCE, IMPROVEMENT, SHARE)

    def __call__(
        self, ops: Any, rule: UpdateRule, weights: list, gradient: list, loss_of: LossOf, slope_of: SlopeOf
    ) -> tuple[list, dict[str, Any]]:
        step = self.largest_step(ops, weights, gradient, slope_of, lambda at: loss_of(self.divergence, at))
        before = loss_of(rule, weights)

        def is_left(number: Any, share: Any, divergence: Any, improvement: Any) -> Any:
            return ops.logical_and(number < self.attempts, share == 0.0)

        def attempt(number: Any, share: Any, divergence: Any, improvement: Any) -> tuple:
            tried = self.shortening ** ops.cast(number, "float32")
            reached = [w - tried * s for w, s in zip(weights, step)]
            found, gained = loss_of(self.divergence, reached), before - loss_of(rule, reached)
            is_good = ops.logical_and(found <= self.limit, gained > 0.0)  # False if one of them is NaN
            chosen = [ops.where(is_good, one, ops.zeros_like(one)) for one in (tried, found, gained)]
            return number + 1, *chosen

        nothing = ops.zeros_like(before)
        start = (ops.convert_to_tensor(0), nothing, nothing, nothing)
        _, share, divergence, improvement = ops.while_loop(is_left, attempt, start)
        # not w - 0 * s, which is NaN if the step is not finite
        moved = [ops.where(share > 0.0, w - share * s, w) for w, s in zip(weights, step)]
        return moved, {DIVERGENCE: divergence, IMPROVEMENT: improvement, SHARE: share}

    def largest_step(
        self, ops: Any, weights: list, gradient: list, slope_of: SlopeOf, divergence: Callable[[list], Any]
    ) -> list:
        """The step sqrt(2 limit / x F x) x, which reaches the limit if the divergence is quadratic.

        :param divergence: a function of weights that returns the divergence of the policy from the policy that acted
        """

        def product(vector: list) -> list:
            # F v is the slope of (the slope of the divergence) times v, so the matrix F is never built (appendix C.1)
            along = slope_of(lambda at: dot(ops, slope_of(divergence, at), vector), weights)
            return [image + self.damping * v for image, v in zip(along, vector)]

        direction = conjugate_gradients(ops, product, gradient, self.iterations)
        curvature = ops.maximum(dot(ops, direction, product(direction)), _TINY)
        length = ops.sqrt(2.0 * self.limit / curvature)
        return [length * x for x in direction]
