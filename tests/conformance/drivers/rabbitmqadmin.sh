#!/bin/bash
# All subcommands of rabbitmqadmin, the script that comes with RabbitMQ: rabbitmqadmin.sh PROGRAM HOST MANAGEMENT_PORT
# Prints `ok NAME` or `FAILED NAME: what it said`. What it needs is made first; everything is deleted at the end.
admin() { "$program" -H "$host" -P "$port" "$@"; }
program=$1 host=$2 port=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# check NAME EXPECTED WORDS...: it ends with 0 and says something that matches.
check() {
    local name=$1 expected=$2 said
    shift 2
    if said=$(admin "$@" 2>&1) && grep -Eq -- "$expected" <<<"$said"; then
        echo "ok $name"
    else
        echo "FAILED $name: $(tr '\n' ' ' <<<"$said" | cut -c1-300)"
    fi
}

# refused NAME EXPECTED WORDS...: it fails and says why.
refused() {
    local name=$1 expected=$2 said
    shift 2
    if said=$(admin "$@" 2>&1) || ! grep -Eq -- "$expected" <<<"$said"; then
        echo "FAILED $name: $(tr '\n' ' ' <<<"$said" | cut -c1-300)"
    else
        echo "ok $name"
    fi
}

check "declare vhost" "vhost declared" declare vhost name=v1
check "declare user" "user declared" declare user name=ann password=ann tags=management
check "declare user, hash" "user declared" declare user name=bob password_hash= tags=
check "declare permission" "permission declared" declare permission vhost=/ user=ann configure='.*' write='.*' read='.*'
check "declare exchange" "exchange declared" declare exchange name=x1 type=topic durable=true 'arguments={"alternate-exchange":"amq.fanout"}'
check "declare queue" "queue declared" declare queue name=q1 durable=true auto_delete=false 'arguments={"x-max-length":100}'
check "declare queue, -V" "queue declared" -V v1 -u guest -p guest declare queue name=q2
check "declare binding" "binding declared" declare binding source=x1 destination=q1 routing_key=a.b 'arguments={"n":1}'
check "declare binding of exchanges" "binding declared" declare binding source=amq.topic destination=x1 destination_type=exchange routing_key='#'
check "declare parameter" "parameter declared" declare parameter component=vhost-limits name=limits 'value={"max-queues":500}'
check "declare policy" "policy declared" declare policy name=p1 pattern='^q' 'definition={"max-length":5000}' priority=1 apply-to=queues
check "declare operator_policy" "operator_policy declared" declare operator_policy name=o1 pattern='^q' 'definition={"max-length":9000}'
check "declare vhost_limit" "vhost_limit declared" declare vhost_limit vhost=v1 name=max-connections value=70
check "publish" "Message published" publish exchange=x1 routing_key=a.b payload=hello 'properties={"delivery_mode":2,"headers":{"h":1}}'
check "publish, not routed" "NOT routed" publish exchange=amq.direct routing_key=nowhere payload=x
echo body | check "publish from standard input" "Message published" publish exchange=amq.default routing_key=q1
check "get, requeued" "hello" get queue=q1 count=1 ackmode=ack_requeue_true
check "get, taken" "aGVsbG8=" get queue=q1 count=1 ackmode=ack_requeue_false encoding=base64
check "get into a file" "" get queue=q1 count=1 payload_file="$folder/payload"
for what in connections channels consumers exchanges queues bindings users vhosts permissions nodes parameters policies \
    operator_policies vhost_limits; do
    check "list $what" "." list $what
done
check "list without columns" '^\| +name +\| +messages +\|$' list queues
check "list, all columns" 'messages_ready="' -f kvp -d 1 list queues
check "list, a list in a cell" "^guest	administrator$" -f tsv list users name tags
check "list, a document in a cell" '[|] \{"max-length": 5000\}' list policies
check "list with columns" "q1 +\| *1" list queues name messages
check "list, tsv" "^q1" -f tsv -q list queues name vhost
check "list, long" "name: q1" -f long list queues
check "list, kvp" 'name="q1"' -f kvp list queues
check "list, bash" "q1" -f bash list queues
check "list, raw_json" '"name": ?"q1"' -f raw_json list queues
check "list, pretty_json" '"name": "q1"' -f pretty_json list queues name
check "list, sorted" "q1" --sort=name --sort-reverse list queues name
check "list of one vhost" "q2" -V v1 list queues name
check "show overview" "cluster_name" show overview
check "purge queue" "queue purged" purge queue name=q1
check "export" "Exported definitions" export "$folder/definitions"
check "export of one vhost" "Exported definitions" -V v1 export "$folder/definitions-v1"
check "import" "Uploaded definitions" import "$folder/definitions"
check "import into one vhost" "Uploaded definitions" -V v1 import "$folder/definitions-v1"
check "help" "subcommand" help subcommands
check "version" "^rabbitmqadmin 3" --version
check "completion" "complete -F _rabbitmqadmin rabbitmqadmin" --bash-completion
check "help config" "rabbitmqadmin.conf" help config
key=$(admin -f tsv -q list bindings source destination properties_key | awk -F'\t' '$1 == "x1" && $2 == "q1" { print $3 }')
check "delete binding" "binding deleted" delete binding source=x1 destination=q1 destination_type=queue properties_key="$key"
refused "a queue that is not there" "Not found" delete queue name=nosuch
refused "a wrong password" "Access refused" -u guest -p wrong list queues
refused "another type" "inequivalent arg" declare exchange name=x1 type=fanout
refused "a connection that is not there" "Not found" close connection name=nosuch
check "delete vhost_limit" "vhost_limit deleted" delete vhost_limit vhost=v1 name=max-connections
check "delete operator_policy" "operator_policy deleted" delete operator_policy name=o1
check "delete policy" "policy deleted" delete policy name=p1
check "delete parameter" "parameter deleted" delete parameter component=vhost-limits name=limits
check "delete permission" "permission deleted" delete permission vhost=/ user=ann
check "delete queue" "queue deleted" delete queue name=q1
check "delete exchange" "exchange deleted" delete exchange name=x1
check "delete user" "user deleted" delete user name=ann
admin delete user name=bob >"$folder/log"
check "delete vhost" "vhost deleted" delete vhost name=v1
