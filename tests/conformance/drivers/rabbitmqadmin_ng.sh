#!/bin/bash
# The commands of rabbitmqadmin 2 (Rust) that a node of classic queues has: rabbitmqadmin_ng.sh PROGRAM HOST MANAGEMENT_PORT
# Prints `ok NAME` or `FAILED NAME: what it said`. What it needs is made first; everything is deleted at the end.
program=$1 host=$2 port=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
admin() { "$program" --non-interactive --host "$host" --port "$port" "$@"; }

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

check "vhosts declare" "" vhosts declare --name v1 --default-queue-type classic
check "users declare" "" users declare --name ann --password ann --tags management
check "permissions declare" "" --vhost / permissions declare --user ann --configure '.*' --read '.*' --write '.*'
check "exchanges declare" "" exchanges declare --name x1 --type topic --durable true
check "queues declare" "" queues declare --name q1 --type classic --durable true --arguments '{"x-max-length":100}'
check "bindings declare" "" bindings declare --source x1 --destination-type queue --destination q1 --routing-key a.b --arguments '{"n":1}'
check "exchanges bind" "" exchanges bind --source amq.topic --destination-type exchange --destination x1 --routing-key k
check "exchanges unbind" "" exchanges unbind --source amq.topic --destination-type exchange --destination x1 --routing-key k
check "policies declare" "" policies declare --name p1 --pattern '^q' --apply-to queues --priority 1 --definition '{"max-length":5000}'
check "operator_policies declare" "" operator_policies declare --name o1 --pattern '^q' --apply-to queues --priority 1 --definition '{"max-length":9000}'
check "parameters set" "" parameters set --component vhost-limits --name limits --value '{"max-queues":500}'
check "global_parameters set" "" global_parameters set --name g --value '{"a":1}'
check "vhost_limits declare" "" --vhost v1 vhost_limits declare --name max-connections --value 70
check "user_limits declare" "" user_limits declare --user ann --name max-channels --value 70
check "publish message" "" publish message --exchange x1 --routing-key a.b --payload hello --properties '{"delivery_mode":2}'
check "get messages" "hello" get messages --queue q1 --count 1 --ack-mode ack_requeue_true
for what in "nodes list" "users list" "vhosts list" "permissions list" "connections list" "channels list" "queues list" \
    "exchanges list" "bindings list" "list consumers" "parameters list_all" "policies list" "operator_policies list" \
    "vhost_limits list" "user_limits list" "feature_flags list" "deprecated_features list" "deprecated_features list_used" \
    "global_parameters list" "parameters list --component vhost-limits" "parameters list_in --component vhost-limits" \
    "policies list_in" "operator_policies list_in" "show overview" "show churn" "show endpoint" "plugins list_all" \
    "auth_attempts stats --node NODE" "nodes memory_breakdown_in_bytes --node NODE" \
    "nodes memory_breakdown_in_percent --node NODE" "show memory_breakdown_in_bytes --node NODE" \
    "show memory_breakdown_in_percent --node NODE" "health_check local_alarms" "health_check cluster_wide_alarms" \
    "health_check node_is_quorum_critical" "health_check protocol_listener --protocol amqp" \
    "users permissions" "users limits --user ann" "users connections --username ann" \
    "connections list_of_user --username guest" "queues show --name q1" "policies list_matching_object --name q1 --type queues" \
    "operator_policies list_matching_object --name q1 --type queues" "policies list_conflicting" \
    "policies list_conflicting_in" "feature_flags enable --name user_limits" "feature_flags enable_all" "rebalance queues" \
    "passwords salt_and_hash secret"; do
    [ -n "$node" ] || node=$(admin nodes list 2>&1 | grep -oE '[A-Za-z0-9_-]+@[A-Za-z0-9_.-]+' | head -1)
    # shellcheck disable=SC2086
    check "$what" "" ${what//NODE/$node}
done
check "policies patch" "" policies patch --name p1 --definition '{"max-length":4000}'
check "policies update_definition" "" policies update_definition --name p1 --definition-key max-length --new-value 3000
check "policies delete_definition_keys" "" policies delete_definition_keys --name p1 --definition-keys max-length-bytes
check "policies declare_override" "" policies declare_override --name p1 --override-name p2 --definition '{"max-length":7}'
check "policies declare_blanket" "" policies declare_blanket --name p3 --apply-to queues --definition '{"max-length":8}'
check "operator_policies patch" "" operator_policies patch --name o1 --definition '{"max-length":4000}'
check "operator_policies update_definition" "" operator_policies update_definition --name o1 --definition-key max-length --new-value 3000
check "definitions export" "" definitions export --file "$folder/all"
check "definitions export_from_vhost" "" --vhost v1 definitions export_from_vhost --file "$folder/v1"
check "definitions import" "" definitions import --file "$folder/all"
check "definitions import_into_vhost" "" --vhost v1 definitions import_into_vhost --file "$folder/v1"
check "vhosts enable_deletion_protection" "" vhosts enable_deletion_protection --name v1
check "vhosts disable_deletion_protection" "" vhosts disable_deletion_protection --name v1
check "queues purge" "" queues purge --name q1
check "bindings delete" "" bindings delete --source x1 --destination-type queue --destination q1 --routing-key a.b --arguments '{"n":1}'
check "vhost_limits delete" "" --vhost v1 vhost_limits delete --name max-connections
check "user_limits delete" "" user_limits delete --user ann --name max-channels
check "parameters clear" "" parameters clear --component vhost-limits --name limits
check "global_parameters clear" "" global_parameters clear --name g
for name in p1 p2 p3; do check "policies delete $name" "" policies delete --name $name; done
check "operator_policies delete" "" operator_policies delete --name o1
check "queues delete" "" queues delete --name q1
check "exchanges delete" "" exchanges delete --name x1
check "connections close_of_user" "" connections close_of_user --username ann
check "permissions delete" "" permissions delete --user ann
check "users delete" "" users delete --name ann
check "vhosts delete" "" vhosts delete --name v1
