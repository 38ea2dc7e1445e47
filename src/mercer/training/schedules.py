"""Learning rates as pure functions of the step: nothing has to be saved to continue a training."""

import math


def warmup_cosine(step: int, total_steps: int, warmup_steps: int, peak: float, final: float) -> float:
    """Return the learning rate of a step: a linear rise to the peak, then half a cosine down to the final rate.

    With T = `total_steps` and w = `warmup_steps`, the rate is peak (t + 1) / w at the steps t < w, and after them
    final + (peak - final) (1 + cos(pi (t - w) / (T - w))) / 2 (Loshchilov and Hutter 2017). It is the peak at t = w,
    and would be the final rate at t = T, the step after the last: a final rate of 0 wastes no step. With final = peak
    it is constant after the warm-up.

    Parameters
    ----------
    step : int
        t, from 0 to T.
    total_steps, warmup_steps : int
    peak, final : float
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    share = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return final + (peak - final) * (1.0 + math.cos(math.pi * share)) / 2.0
