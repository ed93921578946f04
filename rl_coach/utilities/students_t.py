"""Quantiles of Student's t distribution, for the confidence interval of a mean."""

from __future__ import annotations

# two-sided 95% quantiles for 1, 2, … degrees of freedom; beyond the table the normal quantile is used
_T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL_95 = 1.960


def t_95(freedom: int) -> float:
    """The two-sided 95% quantile. It is 0 for 0 degrees of freedom, because there is no interval.

    :param freedom: degrees of freedom, the number of samples minus one
    """
    if freedom < 1:
        return 0.0
    return _T_95[freedom - 1] if freedom <= len(_T_95) else _NORMAL_95
