#!/bin/bash
# Debian's nagios-plugins-rabbitmq against one node: nagios_checks.sh HOST MANAGEMENT_PORT NODE URL
# The queue `watched` gets three messages, `held` a consumer (amqp-consume), without which RabbitMQ's node has no socket in use.
# NODE is what stands behind "rabbit@" in the node's name. Prints `ok NAME` or `FAILED NAME ...` for each check.
host=$1 port=$2 node=$3 url=$4
api=http://guest:guest@$host:$port/api

# expect NAME STATUS PATTERN COMMAND...: the status and the line that a monitoring server would get.
expect() {
    local name=$1 status=$2 pattern=$3 said code
    shift 3
    said=$("$@" -H "$host" --port "$port" 2>&1)
    code=$?
    if [[ $code == [$status] ]] && grep -qE "$pattern" <<<"$said"; then
        echo "ok $name"
    else
        echo "FAILED $name: status $code: $(tr '\n' ' ' <<<"$said" | cut -c1-300)"
    fi
}

put() { curl -sf -o /dev/null -X "$1" -H 'content-type: application/json' -d "$3" "$api/$2" || echo "FAILED $1 $2"; }

curl -s -X DELETE "$api/queues/%2F/watched" >/dev/null
put PUT queues/%2F/watched '{"durable":true}'
put PUT users/watcher '{"password":"watcher","tags":"monitoring"}'
put PUT permissions/%2F/watcher '{"configure":"","write":"","read":".*"}'
put PUT users/nobody '{"password":"nobody","tags":""}'
put PUT queues/%2F/held '{"durable":true}'
amqp-consume --url="$url" -q held cat &
consumer=$!
trap 'kill $consumer' EXIT
for _ in 1 2 3; do
    put POST exchanges/%2F/amq.default/publish \
        '{"properties":{},"routing_key":"watched","payload":"m","payload_encoding":"string"}'
done
for _ in $(seq 30); do
    curl -s "$api/overview" | grep -q '"connections":1' && curl -s "$api/queues/%2F/watched" | grep -q '"messages":3' && curl -s "$api/overview" | grep -q '"messages":3' && break
    sleep 1
done

expect aliveness 0 'vhost: /$' check_rabbitmq_aliveness
expect "aliveness of no vhost" 3 'Not found' check_rabbitmq_aliveness --vhost absent
expect "aliveness, wrong password" 3 'Access refused' check_rabbitmq_aliveness -p wrong
expect overview 0 'messages OK \(3\) messages_ready OK \(3\) messages_unacknowledged OK \(0\)' check_rabbitmq_overview
expect "overview, warning" 1 'WARNING.*messages=3;2' check_rabbitmq_overview -w 2,-1,-1
expect "overview, critical" 2 'CRITICAL.*messages_ready CRITICAL \(3\)' check_rabbitmq_overview -c -1,1,-1
expect "overview, by who may only watch" 0 'messages OK' check_rabbitmq_overview -u watcher -p watcher
expect "overview, by who may not" 2 'Access Refused' check_rabbitmq_overview -u nobody -p nobody
expect "overview, wrong password" 2 'Access Refused' check_rabbitmq_overview -p wrong
expect objects 0 'Gathered Object Counts.*vhost=0;.*exchange=6;.*binding=2;.*queue=2;.*channel=0;' check_rabbitmq_objects
expect "objects, by who may only watch" 0 'queue=2;' check_rabbitmq_objects -u watcher -p watcher
expect connections 0 'connections OK \(1\)|OK' check_rabbitmq_connections
expect queue 0 'messages OK \(3\).*consumers OK \(0\)' check_rabbitmq_queue --queue watched
expect "queue without consumers" 2 'consumers CRITICAL \(0\)' check_rabbitmq_queue --queue watched -c -1,-1,-1,1:
expect "queue that is not there" 2 'Not Found' check_rabbitmq_queue --queue absent
expect server 0 'Memory OK .*Process OK .*FD OK .*Sockets' check_rabbitmq_server -n "$node"
expect "server, low limits" 2 'Memory CRITICAL' check_rabbitmq_server -n "$node" -w 0,0,0,0 -c 0,0,0,0
expect "server, by who may only watch" 0 'Memory OK' check_rabbitmq_server -n "$node" -u watcher -p watcher
expect "server of no such name" 23 'Not found|Internal Server Error' check_rabbitmq_server -n absent
expect watermark 0 'mem_alarm disk_free_alarm' check_rabbitmq_watermark -n "$node"
expect partition 0 'No Partitions' check_rabbitmq_partition -n "$node"
expect "shovels, where there are none" 2 'API error: (404 Not Found|empty JSON)' check_rabbitmq_shovels
