"""Matrix products with the same digits on every processor.

`@` is BLAS's, which on each kind of processor adds up in another order, and rounds between a product and a
sum or does not. Of two fillings that are as good, the last digit decides which is taken: the same snapshot
had plans on different machines whose prices differed by 2 %.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def matmul(left: NDArray[Any], right: NDArray[Any]) -> Any:
    """What `left @ right` is, for arrays of one or two dimensions."""
    return np.einsum("...i,i->..." if right.ndim == 1 else "...i,ij->...j", left, right)
