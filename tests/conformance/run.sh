#!/bin/sh
# Other projects' client suites against fresh nodes of ours: tests/conformance/run.sh [NAME ...]; -h lists the names.
# BURROWMQ_TEST_URL (with BURROWMQ_TEST_MANAGEMENT_PORT and _PROMETHEUS_PORT) names another broker;
# BURROWMQ_SUITE_LOGS a folder that keeps the logs.
cd "$(dirname "$0")/../.." && exec .venv/bin/python -m tests.conformance.client_suites "$@"
