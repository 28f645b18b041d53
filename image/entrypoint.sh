#!/bin/sh
# Starts the broker in a container the way RabbitMQ's official image does: refuses the variables that it refuses,
# owns the volume, drops root, logs to standard output.
set -eu

bad=
for name in VM_MEMORY_HIGH_WATERMARK SSL_CACERTFILE SSL_CERTFILE SSL_KEYFILE SSL_DEPTH SSL_VERIFY \
    SSL_FAIL_IF_NO_PEER_CERT MANAGEMENT_SSL_CACERTFILE MANAGEMENT_SSL_CERTFILE MANAGEMENT_SSL_KEYFILE \
    MANAGEMENT_SSL_DEPTH MANAGEMENT_SSL_VERIFY MANAGEMENT_SSL_FAIL_IF_NO_PEER_CERT \
    DEFAULT_PASS_FILE DEFAULT_USER_FILE DEFAULT_VHOST_FILE; do
    eval "value=\${RABBITMQ_$name:-}"
    if [ -n "$value" ]; then
        echo >&2 "error: RABBITMQ_$name is set but deprecated"
        bad=yes
    fi
done
if [ -n "$bad" ]; then
    echo >&2 'error: deprecated environment variables detected'
    echo >&2 'Please use a configuration file instead: mount /etc/rabbitmq/rabbitmq.conf'
    exit 1
fi

case ${1:-} in
    rabbitmq-server | burrowmq-server)
        shift
        set -- burrowmq-server "$@"
        if [ "$(id -u)" = 0 ]; then
            mkdir -p "$BURROWMQ_DATA_DIR"
            find /var/lib/rabbitmq \! -user rabbitmq -exec chown rabbitmq:rabbitmq '{}' +
            set -- setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "$@"
        fi
        exec "$@" 2>&1
        ;;
esac
exec "$@"
