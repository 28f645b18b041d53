#!/bin/bash
# syslog-ng's amqp destination and collectd's amqp plugin on one broker: log_shippers.sh URL HOST PORT SCRATCH
# Prints `ok NAME` or `FAILED NAME` a check. Both run in the foreground of a scratch folder and are ended by their ids.
url=--url=$1 host=$2 port=$3 scratch=$4
started=()
trap 'kill "${started[@]}" 2>/dev/null' EXIT
check() { local name=$1; shift; if "$@"; then echo "ok $name"; else echo "FAILED $name"; fi; }
# wait_for SECONDS COMMAND...
wait_for() { local end=$((SECONDS + $1)); shift; until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.5; done; }
is_durable() { amqp-declare-queue "$url" -d -q "$1" >/dev/null; }
consume() { timeout 90 amqp-consume "$url" "$@" -- sh -c 'cat; echo' 2>>"$scratch/consume.log"; }

# -- syslog-ng: an exchange that it declares, persistent messages, a routing key and headers made of the line -------------
mkdir -p "$scratch/syslog"
cat >"$scratch/syslog.conf" <<X
@version: 3.38
source lines { file("$scratch/syslog/in.log" follow-freq(0.2) flags(no-parse)); };
destination broker {
    amqp(host("$host") port($port) vhost("/") username("guest") password("guest") auth-method("plain")
         exchange("shipped") exchange-type("topic") exchange-declare(yes) persistent(yes) heartbeat(10)
         routing-key("log.syslog") body("\$MESSAGE") value-pairs(pair("text" "\$MESSAGE") pair("kind" "test")));
};
log { source(lines); destination(broker); };
X
(timeout 60 amqp-consume "$url" -e shipped -r x -c 1 cat >/dev/null 2>&1)
: >"$scratch/syslog/in.log"
syslog-ng -F -e -f "$scratch/syslog.conf" -R "$scratch/syslog/persist" -p "$scratch/syslog/pid" -c "$scratch/syslog/ctl" \
    >"$scratch/syslog/out" 2>&1 &
started+=($!)
shipper=$!
# Its consumer can bind as soon as the exchange is there: syslog-ng declares it when the first line comes.
echo first >>"$scratch/syslog/in.log"
consume -e shipped -r 'log.#' -c 200 -p 20 >"$scratch/syslog/got" &
consumer=$!
wait_for 60 grep -q . "$scratch/syslog/out"
for try in $(seq 60); do
    echo "try $try" >>"$scratch/syslog/in.log"
    sleep 0.5
    grep -q try "$scratch/syslog/got" && break
    kill -0 $consumer 2>/dev/null || { consume -e shipped -r 'log.#' -c 200 -p 20 >"$scratch/syslog/got" & consumer=$!; }
done
check "syslog-ng declares its exchange and ships a line" grep -q '^try' "$scratch/syslog/got"
seq -f 'line %g' 1 300 >>"$scratch/syslog/in.log"
wait_for 90 grep -q 'line 150$' "$scratch/syslog/got"
check "syslog-ng's lines come in order" cmp -s <(grep -o '^line .*' "$scratch/syslog/got" | head -n 150) <(seq -f 'line %g' 1 150)
kill $consumer 2>/dev/null
kill $shipper && wait $shipper
check "syslog-ng ends cleanly" [ $? -eq 0 ]

# -- collectd: one that publishes figures as commands, one that subscribes; JSON and lines for Graphite beside it --------
collectd_conf() {
    printf 'Hostname "shipped"\nInterval 1\nBaseDir "%s"\nPIDFile "%s/pid"\nTypesDB "/usr/share/collectd/types.db"\n' "$1" "$1"
    printf 'LoadPlugin logfile\n<Plugin logfile>\nLogLevel "info"\nFile "%s/log"\n</Plugin>\nLoadPlugin amqp\n' "$1"
}
mkdir -p "$scratch/from" "$scratch/to"
{
    collectd_conf "$scratch/from"
    cat <<X
LoadPlugin uptime
LoadPlugin load
<Plugin amqp>
<Publish "commands">
Host "$host"
Port "$port"
VHost "/"
User "guest"
Password "guest"
Exchange "figures"
RoutingKey "collectd"
Persistent true
Format "Command"
</Publish>
<Publish "json">
Host "$host"
Port "$port"
VHost "/"
User "guest"
Password "guest"
Exchange "amq.topic"
RoutingKey "collectd.json"
Format "JSON"
</Publish>
<Publish "graphite">
Host "$host"
Port "$port"
VHost "/"
User "guest"
Password "guest"
Exchange "amq.topic"
RoutingKey "collectd.graphite"
Format "Graphite"
</Publish>
</Plugin>
X
} >"$scratch/from.conf"
{
    collectd_conf "$scratch/to"
    cat <<X
<Plugin amqp>
<Subscribe "commands">
Host "$host"
Port "$port"
VHost "/"
User "guest"
Password "guest"
Exchange "figures"
ExchangeType "fanout"
Queue "collected"
QueueDurable true
QueueAutoDelete false
</Subscribe>
</Plugin>
X
} >"$scratch/to.conf"
for which in to from; do
    collectd -f -C "$scratch/$which.conf" >"$scratch/$which/out" 2>&1 &
    started+=($!)
    # What is published to an exchange that is not there ends the channel, which the plugin does not notice.
    wait_for 60 grep -qs "Successfully created exchange" "$scratch/to/log"
    sleep 2
done
check "collectd subscribes and takes what another publishes" wait_for 60 grep -qs 'value has been dispatched' "$scratch/to/out"
check "collectd publishes JSON" grep -q '"plugin":"' <(consume -e amq.topic -r collectd.json -c 2)
check "collectd publishes for Graphite" grep -qE '^(collectd\.)?shipped' <(consume -e amq.topic -r collectd.graphite -c 2)
check "collectd's queue is durable" is_durable collected
for pid in "${started[@]:1}"; do kill "$pid"; wait "$pid"; check "collectd ends cleanly" [ $? -eq 0 ]; done
