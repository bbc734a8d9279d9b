"""The SQS queue that EventBridge fills with warnings about instances: read by long poll, emptied in batches.

A poll waits in a thread of its own that nobody waits for: a process that ends leaves it
behind, and a message that such a poll still receives is seen again by the next reader
after the visibility timeout.
"""

from collections.abc import Sequence
from typing import Any

from nodeless.cloudprovider import CloudError
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.interruption_messages import read_message
from nodeless.cloudprovider.aws.session import AwsSession, invoke
from nodeless.model.interruptions import Interruption

#: SQS's own limits: messages of one answer or one deletion, seconds of a long poll.
BATCH = 10
WAIT_SECONDS = 20
#: Seconds in which a message must be handled before it is given out again.
VISIBILITY_SECONDS = 20
#: One condition, two spellings: the query protocol's and the JSON protocol's.
_NO_QUEUE = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})


class InterruptionQueue:
    """Reads one queue; its address is looked up once and again after it was not found."""

    def __init__(self, session: AwsSession, name: str, wait_seconds: int = WAIT_SECONDS) -> None:
        self._session = session
        self._name = name
        self._wait_seconds = wait_seconds
        self._url = ""

    async def receive(self) -> tuple[Interruption, ...]:
        """The next messages, at most ten; empty when none came within the poll.

        Raises:
            nodeless.cloudprovider.CloudError: The queue is missing, may not be read, or cannot be reached.
        """
        request = {
            "MaxNumberOfMessages": BATCH,
            "VisibilityTimeout": VISIBILITY_SECONDS,
            "WaitTimeSeconds": self._wait_seconds,
        }
        answer = await self._call("receive_message", request, waits=True)
        return tuple(
            read_message(str(message.get("Body", "")), str(message["ReceiptHandle"]))
            for message in answer.get("Messages", ())
        )

    async def delete(self, messages: Sequence[Interruption]) -> int:
        """Delete messages; the number of those that are gone. What remains comes again, and is handled again.

        Raises:
            nodeless.cloudprovider.CloudError: As `receive`.
        """
        deleted = 0
        for start in range(0, len(messages), BATCH):
            entries = [
                {"Id": str(number), "ReceiptHandle": message.handle}
                for number, message in enumerate(messages[start : start + BATCH])
            ]
            answer = await self._call("delete_message_batch", {"Entries": entries})
            deleted += len(answer.get("Successful", ()))
        return deleted

    async def _call(self, method: str, request: dict[str, Any], *, waits: bool = False) -> dict[str, Any]:
        client = self._session.client("sqs")
        run = self._session.run_detached if waits else self._session.run
        try:
            if not self._url:
                self._url = (
                    await self._session.run(
                        lambda: invoke(client, "get_queue_url", {"QueueName": self._name})
                    )
                )["QueueUrl"]
            return await run(lambda: invoke(client, method, {"QueueUrl": self._url, **request}))
        except AwsCallRefused as error:
            if error.code not in _NO_QUEUE:
                raise
            self._url = ""
            raise CloudError(
                f"there is no interruption queue {self._name!r} in {self._session.region}: "
                "nodeless gets no warning of spot interruptions",
                "create the queue (component InterruptionQueue), or clear aws.interruptionQueueName "
                "in ConfigMap karpenter-global-settings",
            ) from error
