#!/bin/bash
# Ansible's RabbitMQ modules: each task of ansible_modules.yml as `ok NAME` or `FAILED NAME ...`.
ANSIBLE_NOCOLOR=1 ANSIBLE_LOCALHOST_WARNING=false ANSIBLE_INVENTORY_UNPARSED_WARNING=false ANSIBLE_DEPRECATION_WARNINGS=false \
    ansible-playbook "$(dirname "$0")/ansible_modules.yml" 2>&1 | awk '
    /^TASK \[/ { name = $0; sub(/^TASK \[/, "", name); sub(/\] \**$/, "", name); next }
    /^(changed|ok|fatal|failed): \[localhost\]/ && name != "" {
        wanted = name; sub(/.*, /, "", wanted)
        found = $1; sub(/:/, "", found); if (found == "fatal") found = "failed"
        if (found == wanted) print "ok " name; else print "FAILED " name ": " substr($0, 1, 900)
        fflush()
        name = ""
    }'
