"""From pending pods to NodeClaims: batches, passes of the scheduler, nominations."""
