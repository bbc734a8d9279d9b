"""Consistency checks that fail: told on the node, in the log and in a metric, once in ten minutes each."""

from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import PublishEvent, ReportFailedCheck
from nodeless.nodeclaim.consistency import REASON
from nodeless.operator.logs import logger
from nodeless.operator.metric_types import Count


class FailedChecks:
    """Carries out ReportFailedCheck."""

    def __init__(self, recorder: Recorder, errors: Count) -> None:
        self._recorder = recorder
        self._errors = errors
        self._log = logger("consistency")

    def report(self, failed: ReportFailedCheck) -> None:
        """Tell; a check that was told a short while ago is neither told nor counted again."""
        event = PublishEvent(
            failed.cause, "Node", failed.node, "Warning", REASON, failed.message, uid=failed.uid
        )
        if self._recorder.publish(event):
            self._errors.labels(failed.check).inc()
            self._log.error(f"check failed: {failed.message}", node=failed.node, check=failed.check)
