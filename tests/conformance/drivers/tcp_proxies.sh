#!/bin/bash
# HAProxy and nginx in front of one broker: tcp_proxies.sh HOST PORT SCRATCH. Prints `ok NAME` or `FAILED NAME ...` a check.
host=$1 port=$2 scratch=$3
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
front=$(free_port) stats=$(free_port) stream=$(free_port)
started=()
trap 'kill "${started[@]}" 2>/dev/null' EXIT
check() { local name=$1; shift; if "$@" >"$scratch/said" 2>&1; then echo "ok $name"; else echo "FAILED $name: $(tr '\n' ' ' <"$scratch/said" | cut -c1-300)"; fi; }
wait_for() { local end=$((SECONDS + $1)); shift; until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.5; done; }
column() { curl -s "http://127.0.0.1:$stats/;csv" | grep '^amqp,broker,' | cut -d, -f "$1"; }
is_up() { [[ $(column 18) == UP* ]] && [ "$(column 37)" = "$1" ]; }

# Each kind of check that people use: a connection, and the protocol's header with the first octet of connection.start.
haproxy_conf() {
    cat <<X
global
    stats timeout 10s
defaults
    mode tcp
    timeout connect 10s
    timeout client 300s
    timeout server 300s
    timeout check 10s
frontend in
    bind 127.0.0.1:$front
    default_backend amqp
backend amqp
    $1
    server broker $host:$port check inter 500 fall 3 rise 1
frontend stats
    mode http
    bind 127.0.0.1:$stats
    stats enable
    stats uri /
X
}
round_trip() {
    local url=--url=amqp://guest:guest@127.0.0.1:$1/%2F
    amqp-declare-queue "$url" -d -q proxied >/dev/null &&
        seq 1 500 | amqp-publish "$url" -r proxied -l -p &&
        timeout 60 amqp-consume "$url" -q proxied -c 500 -p 50 -- sh -c 'cat; echo' | grep . | cmp - <(seq 1 500) &&
        [ "$(amqp-delete-queue "$url" -q proxied)" = 0 ]
}
large() {
    local url=--url=amqp://guest:guest@127.0.0.1:$1/%2F
    head -c 4000000 /dev/urandom >"$scratch/large"
    amqp-declare-queue "$url" -q proxied >/dev/null && amqp-publish "$url" -r proxied <"$scratch/large" &&
        amqp-get "$url" -q proxied | cmp - "$scratch/large" && amqp-delete-queue "$url" -q proxied >/dev/null
}
with_haproxy() {
    haproxy_conf "$2" >"$scratch/haproxy.cfg"
    haproxy -db -f "$scratch/haproxy.cfg" >"$scratch/haproxy.log" 2>&1 &
    local proxy=$!
    started+=($proxy)
    check "haproxy, $1: up" wait_for 60 is_up "$3"
    check "haproxy, $1: 500 messages in order" round_trip "$front"
    check "haproxy, $1: four megabytes" large "$front"
    check "haproxy, $1: still up" is_up "$3"
    kill $proxy; wait $proxy 2>/dev/null
}
with_haproxy "a check of the connection" "" L4OK
# AMQP 0 0 9 1; then a method frame (1) of channel 0.
with_haproxy "a check of the protocol" 'option tcp-check
    tcp-check connect
    tcp-check send-binary 414d515000000901
    tcp-check expect rbinary ^010000' L7OK
# A version that is not spoken is answered with the one that is.
with_haproxy "a check by a version that is not spoken" 'option tcp-check
    tcp-check connect
    tcp-check send-binary 414d515000ff0000
    tcp-check expect binary 414d515000000901' L7OK

cat >"$scratch/nginx.conf" <<X
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
pid $scratch/nginx.pid;
error_log $scratch/nginx.log;
events {}
stream { server { listen 127.0.0.1:$stream; proxy_pass $host:$port; proxy_timeout 300s; } }
X
nginx -c "$scratch/nginx.conf" >"$scratch/nginx.out" 2>&1 &
proxy=$!
started+=($proxy)
check "nginx: reached" wait_for 60 amqp-declare-queue "--url=amqp://guest:guest@127.0.0.1:$stream/%2F" -d -q proxied
check "nginx: 500 messages in order" round_trip "$stream"
check "nginx: four megabytes" large "$stream"
