"""The labs of the articles, run on a running environment: each an end-to-end test and a chapter of the demo.

- `cluster_view`: nodes and pods at one moment, with prices
- `timeline`: when what happened, from the controller's log
- `run`: what a lab may do, what it promised, what it found
- `introducing_karpenter`, `nodeless_series`, `fewest_nodes`, `lowest_price`: the labs of the articles
- `helm_chart`: the controller as the Helm charts install it
"""

from localenv.labs.fewest_nodes import FewestNodes
from localenv.labs.helm_chart import HelmChart
from localenv.labs.introducing_karpenter import IntroducingKarpenter
from localenv.labs.lowest_price import LargeAndUp, LowestPrice
from localenv.labs.nodeless_series import NodelessSeries
from localenv.labs.run import SETTINGS, Lab, LabResult, run_lab

LABS: tuple[type[Lab], ...] = (
    IntroducingKarpenter,
    NodelessSeries,
    FewestNodes,
    LargeAndUp,
    LowestPrice,
    HelmChart,
)

__all__ = ["LABS", "SETTINGS", "Lab", "LabResult", "run_lab"]
