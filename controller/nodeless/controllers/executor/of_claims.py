"""Instructions that were decided claim by claim, carried out so that a fault of one stays with it."""

from collections.abc import Mapping

from nodeless.controllers.error_boundary import ErrorBoundary
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.kube.cluster import Cluster
from nodeless.model.instructions import Instruction


async def carry_out_of_claims(
    instructions: Mapping[str, tuple[Instruction, ...]],
    cluster: Cluster,
    executor: InstructionExecutor,
    boundary: ErrorBoundary,
) -> None:
    """Carry out what was decided, claim after claim; claims that are gone or rest are passed over.

    Args:
        instructions: By the claim's name, in order.
        cluster: Has the claims as they are now.
        executor: Carries out.
        boundary: Around each claim.

    Raises:
        ApiError, ApiUnavailable: Not all is done.
    """
    for name, steps in instructions.items():
        claim = cluster.snapshot.claims.get(name)
        if claim is None or boundary.seconds_to_rest(name, claim.resource_version):
            continue
        with boundary.around(name, claim.resource_version):
            await executor.carry_out(steps)
