"""A token bucket for requests: so many a second in the long run, and a burst after a pause.

The same arithmetic as client-go's limiter: whoever comes takes a token at once, also one that is not there
yet, and waits until it would be; so waiters go in the order in which they came.
"""

import asyncio


class TokenBucket:
    """At most `burst` at once, and `rate` a second beyond."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._counted_at: float | None = None

    def share(self, part: float) -> "TokenBucket":
        """Another bucket with a part (0 to 1) of this one's rate and burst, of one token at least."""
        return TokenBucket(self._rate * part, max(int(self._burst * part), 1))

    async def take(self) -> float:
        """Wait for a turn; gives back the seconds that it took. Who gives up gives the turn back."""
        now = asyncio.get_running_loop().time()
        since = now if self._counted_at is None else self._counted_at
        self._tokens = min(self._tokens + (now - since) * self._rate, float(self._burst)) - 1
        self._counted_at = now
        wait = max(-self._tokens / self._rate, 0.0)
        if wait:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self._tokens += 1
                raise
        return wait
