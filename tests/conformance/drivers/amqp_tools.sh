#!/bin/bash
# rabbitmq-c's tools against URL HOST PORT; prints `ok NAME` or `FAILED NAME` a check.
# Negative checks name the answer they want, so that a broker that is not there fails them too.
set -u
url=--url=$1 host=$2 port=$3
queue=suite.tools.$$ scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check() { local name=$1; shift; if "$@" >/dev/null 2>&1; then echo "ok $name"; else echo "FAILED $name"; fi; }
same() { [ "$1" = "$2" ]; }
empty() { amqp-get "$url" -q "$queue" 2>"$scratch/err"; [ $? -eq 2 ] && [ ! -s "$scratch/err" ]; }
large() { amqp-publish "$url" -r "$queue" <"$scratch/large" && amqp-get "$url" -q "$queue" | cmp -s - "$scratch/large"; }
ordered() {
    seq 1 200 | amqp-publish "$url" -r "$queue" -l -p &&
        timeout 30 amqp-consume "$url" -q "$queue" -c 200 -p 10 -- sh -c 'cat; echo' | tr -d '\r' | grep . | cmp -s - <(seq 1 200)
}
routed() {
    (for _ in $(seq 20); do sleep 0.5; amqp-publish "$url" -e amq.topic -r suite.a.b -b routed; done) & local loop=$!
    timeout 20 amqp-consume "$url" -e amq.topic -r 'suite.#' -c 1 cat | grep -q routed; local result=$?
    kill $loop; return $result
}
missing() { amqp-get "$url" -q "$queue" 2>&1 | grep -q '404.*NOT_FOUND'; }
refused() { amqp-publish -s "$host" --port "$port" --username guest --password wrong -r x -b x 2>&1 | grep -q '403.*ACCESS_REFUSED'; }
head -c 3000000 /dev/urandom | base64 >"$scratch/large"
check declare same "$(amqp-declare-queue "$url" -d -q "$queue")" "$queue"
check publish amqp-publish "$url" -r "$queue" -b hello -p -C text/plain
check get same "$(amqp-get "$url" -q "$queue")" hello
check get-from-empty empty
check four-megabytes large
check two-hundred-in-order ordered
check temporary-queue-on-a-topic routed
check delete same "$(amqp-delete-queue "$url" -q "$queue")" 0
check deleted-is-404 missing
check wrong-password refused
check redeclare same "$(amqp-declare-queue "$url" -q "$queue.transient")" "$queue.transient"
amqp-delete-queue "$url" -q "$queue.transient" >/dev/null
