"""What a unit of each resource is worth: duals of buying resources in bulk.

Problem
-------
A pool sells types t with room a_t[r] at w_t dollars an hour; pods ask for D[r] in total. If nodes
could be bought in fractions and pods were a liquid, the cheapest purchase and its dual are

    min  sum_t w_t z_t                        max  sum_r D[r] y_r
    s.t. sum_t a_t[r] z_t >= D[r]             s.t. sum_r a_t[r] y_r <= w_t   for each t
         z >= 0                                    y >= 0

y_r is the price of one unit of resource r. A node is well bought when the resources that it
uses, at these prices, are worth nearly what it costs. The optimum is also a lower bound on what
the pods can cost.

The dual has few variables (resources) and is solved by HiGHS.
"""

import highspy
import numpy as np
from numpy.typing import NDArray

from nodeless.scheduling.capacity.highs import quiet_solver
from nodeless.scheduling.capacity.price_cube import Prices
from nodeless.scheduling.pods.classes import Amounts, Mask

#: How many times a resource is asked for in `even_resource_prices`.
_MORE = 1.25


def resource_prices(room: Amounts, prices: Prices, usable: Mask, demand: Amounts) -> NDArray[np.float64]:
    """Dollars an hour for one unit of each resource.

    Args:
        room: What pods may use on each type; shape (types, resources).
        prices: Dollars an hour of each type.
        usable: The types that may be bought.
        demand: What the pods ask for in total.

    Returns:
        Shape (resources,); zero where nothing is asked for, or where no usable type has it.
    """
    worth = np.zeros(len(demand))
    asked = np.flatnonzero((demand > 0) & (room[usable] > 0).any(axis=0))
    if not len(asked):
        return worth
    scale = demand[asked].astype(np.float64)
    shares = np.maximum(room[usable][:, asked], 0) / scale
    limits = prices[usable]
    sold = shares.any(axis=1)
    worth[asked] = _duals(shares[sold], limits[sold]) / scale
    return worth


def even_resource_prices(room: Amounts, prices: Prices, usable: Mask, demand: Amounts) -> NDArray[np.float64]:
    """The same, as the mean over demands in which one resource at a time is asked for a little more.

    A resource that is nearly as scarce as another has no price at the optimum. Pods that ask for much of it
    then seem cheap, are left until the end, and find nodes that are dear for what they need.
    """
    demands = [demand]
    for resource in np.flatnonzero(demand > 0):
        more = demand.copy()
        more[resource] = int(more[resource] * _MORE)
        demands.append(more)
    worth: NDArray[np.float64] = np.mean(
        [resource_prices(room, prices, usable, each) for each in demands], axis=0
    )
    return worth


def _duals(shares: NDArray[np.float64], prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Maximise sum(y) subject to shares @ y <= prices, y >= 0."""
    rows, columns = shares.shape
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, rows
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.ones(columns)
    model.col_lower_ = np.zeros(columns)
    model.col_upper_ = np.full(columns, highspy.kHighsInf)
    model.row_lower_ = np.full(rows, -highspy.kHighsInf)
    model.row_upper_ = prices
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.arange(rows + 1) * columns
    model.a_matrix_.index_ = np.tile(np.arange(columns), rows)
    model.a_matrix_.value_ = shares.ravel()
    solver = quiet_solver()
    solver.passModel(model)
    solver.run()
    values: NDArray[np.float64] = np.array(solver.getSolution().col_value, dtype=np.float64)
    return np.maximum(values, 0.0)
