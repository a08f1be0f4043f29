"""A Gibbs sampler in float64 NumPy: the referee of every claim about uncertainty.

It is slow, has no tables and shares no code with ``hcpf.core.gibbs``. The number of elements is
drawn from masses that are summed up to 80, and the shape of the activities' prior from a grid.
"""

import numpy as np
from scipy import special

COUNTS = np.arange(1.0, 81.0)
SHAPES = np.exp(np.linspace(np.log(0.05), np.log(200.0), 600))
SHAPE_DECAY = 0.1


class Referee:
    """A chain over all unknowns of a small model.

    ``marks`` are the pairs that take part; ``values`` has NaN where a pair is missing.
    ``exposure`` multiplies the rates, one number per pair.
    ``priors`` is (shape, activity shape, activity mean) of each axis; learned if ``learn_priors``.
    """

    def __init__(
        self, values, element, n_components, priors, *, marks=None, exposure=None, hurdle=False,
        learn_priors=False, seed=0,
    ):  # fmt: skip
        self.rng = np.random.default_rng(seed)
        self.values, self.element, self.hurdle = values, element, hurdle
        self.marks = np.ones(values.shape, bool) if marks is None else marks
        self.exposure = np.ones(values.shape) if exposure is None else exposure
        self.learn_priors, self.priors = learn_priors, [list(one) for one in priors]
        self.factors, self.activity = [], []
        self._density = self._log_density()
        for rows, (shape, _, mean) in zip(values.shape, self.priors, strict=True):
            self.activity.append(np.full(rows, mean))
            self.factors.append(self.rng.gamma(shape + 0.5, 1.0 / mean, (rows, n_components)))

    @property
    def rates(self):
        return self.exposure * (self.factors[0] @ self.factors[1].T)

    def make_pass(self):
        counts = self._draw_counts()
        for axis in (0, 1):
            self._draw_axis(axis, counts)
            if self.learn_priors:
                self._draw_prior(axis)

    def run(self, burn_in, passes):
        """Return the rates of all pairs after each pass."""
        for _ in range(burn_in):
            self.make_pass()
        out = np.empty((passes, *self.values.shape))
        for draw in out:
            self.make_pass()
            draw[:] = self.rates
        return out

    def _draw_counts(self):
        """Return z, users x items x components."""
        users, items = self.factors
        shares = self.exposure[:, :, None] * users[:, None, :] * items[None, :, :]
        z = np.zeros(shares.shape)
        u, i = np.nonzero(np.isfinite(self.values) & self.marks)
        rate = shares[u, i].sum(axis=1)
        log_mass = np.log(rate)[:, None] * COUNTS - special.gammaln(COUNTS + 1.0) + self._density
        mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
        upto = np.cumsum(mass, axis=1)
        level = self.rng.random(len(rate)) * upto[:, -1]
        counts = 1 + np.sum(upto < level[:, None], axis=1)
        z[u, i] = self.rng.multinomial(counts, shares[u, i] / rate[:, None])
        return z

    def _log_density(self):
        """Return log p(y | n) of every entry and n; 0 in a hurdle model."""
        y = self.values[np.isfinite(self.values) & self.marks][:, None] + 0.0 * COUNTS
        if self.hurdle:
            return np.zeros_like(y)
        low, high = self.element.n_range(y)
        possible = (low <= COUNTS) & (high >= COUNTS)
        density = self.element.log_density_unchecked(y, np.where(possible, COUNTS, low))
        return np.where(possible, density, -np.inf)

    def _draw_axis(self, axis, counts):
        (shape, activity_shape, mean), others = self.priors[axis], self.factors[1 - axis]
        marks = self.marks * self.exposure
        marks = marks if axis == 0 else marks.T
        rate = self.activity[axis][:, None] + marks @ others
        shapes = shape + counts.sum(axis=1 - axis)
        self.factors[axis] = np.maximum(self.rng.gamma(shapes, 1.0 / rate), 1e-200)
        total = activity_shape / mean + self.factors[axis].sum(axis=1)
        size = activity_shape + shape * others.shape[1]
        self.activity[axis] = self.rng.gamma(size, 1.0 / total)

    def _draw_prior(self, axis):
        activity = self.activity[axis]
        shape = self.rng.choice(SHAPES, p=shape_masses(activity))
        rate = self.rng.gamma(len(activity) * shape, 1.0 / activity.sum())
        self.priors[axis][1:] = [shape, shape / rate]


def shape_masses(activity):
    """The posterior of the activities' shape on the grid, uniform in log apart from the decay."""
    n = len(activity)
    log_mass = special.gammaln(n * SHAPES) - n * special.gammaln(SHAPES)
    log_mass += SHAPES * (np.log(activity).sum() - n * np.log(activity.sum()))
    log_mass -= SHAPE_DECAY * SHAPES
    mass = np.exp(log_mass - log_mass.max())
    return mass / mass.sum()
