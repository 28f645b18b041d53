#!/bin/sh
# Other projects' client suites against fresh nodes of ours: tests/conformance/run.sh [NAME ...]
# NAME: py-amqp kombu aiormq aio-pika celery amqplib amqp-tools perf-test lapin amqp091-go
#       rabbitmqadmin own-rabbitmqadmin rabbitmqadmin-ng rabbit-hole flower terraform keda datadog
#       spring-boot
# BURROWMQ_TEST_URL (with BURROWMQ_TEST_MANAGEMENT_PORT and _PROMETHEUS_PORT) names another broker,
# BURROWMQ_TEST_CTL what stands for its rabbitmqctl; BURROWMQ_SUITE_LOGS a folder that keeps the logs.
cd "$(dirname "$0")/../.." && exec .venv/bin/python -m tests.conformance.client_suites "$@"
