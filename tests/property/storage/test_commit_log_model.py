"""Any sequence of calls, kills and power cuts of the file system with a commit log (`commit_log_model`)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.property.storage.commit_log_model import (
    CommitLogModel,
)

TestCommitLogModel = CommitLogModel.TestCase
TestCommitLogModel.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
