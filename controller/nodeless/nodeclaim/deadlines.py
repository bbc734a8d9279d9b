"""How long each part of a claim's life may take, in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The times that end a claim; tests give shorter ones."""

    #: From the claim to its instance.
    launch: float = 5 * 60.0
    #: From the launch to the node.
    registration: float = 15 * 60.0
    #: A registered claim without Node: younger registrations may not have come through every watch yet.
    vanished_grace: float = 30.0
    #: For so long a cloud that refuses a reboot is asked again.
    reboot_request: float = 300.0
    #: From a reboot to the machine's being back.
    reboot: float = 1200.0
    #: Younger instances may have a claim that we do not see yet (Karpenter's AWS collector).
    instance_grace: float = 30.0
    #: Younger claims are not looked for in a list (Karpenter's core collector).
    claim_grace: float = 10.0
    #: That the cloud does not know the instance of a younger claim may come from reads that lag behind the
    #: launch: EC2 promises no bound, and says to retry InvalidInstanceID.NotFound for minutes.
    unknown_grace: float = 5 * 60.0


#: What production goes by.
DEADLINES = Deadlines()
