#!/bin/bash
# What rabbit-hole's own set-up does by rabbitmqctl: rabbit_hole_setup.sh RABBITMQADMIN HOST MANAGEMENT_PORT
set -e
admin() { "$program" -H "$host" -P "$port" "$@"; }
program=$1 host=$2 port=$3
admin declare user name=policymaker password=policymaker tags=policymaker
admin declare permission vhost=/ user=policymaker configure='.*' write='.*' read='.*'
admin declare vhost name=rabbit/hole
admin declare permission vhost=rabbit/hole user=guest configure='.*' write='.*' read='.*'
curl -fsS -u guest:guest -X PUT -d '{"name":"rabbitmq@localhost"}' "http://$host:$port/api/cluster-name"
