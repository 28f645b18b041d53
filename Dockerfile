# The image keeps the conventions of RabbitMQ's official one: user rabbitmq (999), its home as the volume, configuration
# in /etc/rabbitmq, RABBITMQ_DEFAULT_USER and the like, rabbitmqctl and the other programs in PATH, logs on stdout.
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/burrowmq \
 && /opt/burrowmq/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY . .
RUN /opt/burrowmq/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && (cd / && /opt/burrowmq/bin/python -c 'import burrowmq.protocol.codec._codec_c, burrowmq.storage.record._record_c, burrowmq.storage.files._sync_c, burrowmq.broker.machine._pools_c, burrowmq.broker.turn._send_c') \
 && /opt/burrowmq/bin/pip uninstall --yes cython setuptools wheel pip

FROM python:3.12-slim
RUN groupadd --gid 999 --system rabbitmq \
 && useradd --uid 999 --system --home-dir /var/lib/rabbitmq --create-home --gid rabbitmq rabbitmq \
 && mkdir -p /etc/rabbitmq/conf.d /var/lib/rabbitmq/data /var/log/rabbitmq \
 && chown -R rabbitmq:rabbitmq /var/lib/rabbitmq /var/log/rabbitmq
COPY --from=build /opt/burrowmq /opt/burrowmq
COPY image/rabbitmq.conf /etc/rabbitmq/rabbitmq.conf
COPY image/10-defaults.conf /etc/rabbitmq/conf.d/10-defaults.conf
COPY image/entrypoint.sh /usr/local/bin/docker-entrypoint.sh
RUN cd /usr/local/bin \
 && ln -s /opt/burrowmq/bin/burrowmq-server burrowmq-server \
 && ln -s /opt/burrowmq/bin/burrowmq-store burrowmq-store \
 && ln -s /opt/burrowmq/bin/burrowctl burrowctl \
 && /opt/burrowmq/bin/burrowctl install-names /usr/local/bin
ENV BURROWMQ_BIND=* \
    BURROWMQ_DATA_DIR=/var/lib/rabbitmq/data \
    RABBITMQ_CONFIG_FILE=/etc/rabbitmq/rabbitmq.conf \
    RABBITMQ_CONFIG_FILES=/etc/rabbitmq/conf.d \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /var/lib/rabbitmq
VOLUME /var/lib/rabbitmq
EXPOSE 5671 5672 15671 15672 15691 15692
STOPSIGNAL SIGTERM
# Healthy once AMQP is accepted; the first hour is for recovery. A check takes some tenths of a second.
HEALTHCHECK --interval=10s --timeout=5s --start-period=1h --retries=3 CMD ["rabbitmq-diagnostics", "-q", "check_running"]
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["rabbitmq-server"]
