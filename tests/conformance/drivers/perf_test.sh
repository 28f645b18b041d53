#!/bin/bash
# RabbitMQ's PerfTest (Maven Central) at URL: workloads that must end without an exception and, where
# they consume, receive something. It is load, not conformance: only `lazy-drain` proves a count.
set -u
url=$1 count=${BURROWMQ_LAZY_COUNT:-200000} prefix=suite$$
cat >pom.xml <<'X'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>suite</groupId><artifactId>suite</artifactId><version>1</version><dependencies><dependency>
<groupId>com.rabbitmq</groupId><artifactId>perf-test</artifactId><version>2.22.1</version>
</dependency></dependencies></project>
X
mvn -B -q dependency:copy-dependencies -DoutputDirectory=lib >mvn.out 2>&1 || { cat mvn.out; echo "FAILED download"; exit 1; }
load() {
    local name=$1; shift
    timeout 300 java -cp 'lib/*' com.rabbitmq.perf.PerfTest -h "$url" "$@" >"$name.out" 2>&1
    local status=$? received
    received=$(sed -n 's/.*receiving rate avg: \([0-9]*\).*/\1/p' "$name.out" | tail -n 1)
    if [ $status -ne 0 ] || grep -qE 'Exception|Main thread caught' "$name.out" ||
        { [[ " $* " != *" -y 0 "* ]] && [ "${received:-0}" -eq 0 ]; }; then
        echo "FAILED $name $(grep -m 1 Exception "$name.out")"
    else
        echo "ok $name"
    fi
    grep -E 'rate avg' "$name.out"
}
direct="-e $prefix.direct"
load lazy-fill -y 0 -s 1000 -f persistent -C "$count" $direct -u $prefix.lazy -qa x-queue-mode=lazy -ad false
load lazy-drain -x 0 -y 1 -D "$count" $direct -u $prefix.lazy -p
load auto-ack -x 1 -y 1 -a $direct -u $prefix.a -z 10
load confirms -x 1 -y 1 -f persistent -c 100 -q 100 $direct -u $prefix.b -z 10
load fan-out -x 1 -y 4 -t fanout -e $prefix.fan -q 50 -z 10
load topic -x 2 -y 2 -t topic -e $prefix.topic -k suite.key -q 50 -z 8
load transactions -x 1 -y 1 -m 50 -n 50 -q 500 -r 500 $direct -u $prefix.tx -z 8
load large -x 1 -y 1 -s 200000 -c 20 -q 20 $direct -u $prefix.large -z 8
load priorities -x 1 -y 1 -qa x-max-priority=5 -mp priority=3 $direct -u $prefix.priority -q 50 -z 8
load length-limit -x 1 -y 0 -qa x-max-length=1000 $direct -u $prefix.limit -z 6
load twenty-queues -x 20 -y 20 $direct --queue-pattern "$prefix-%d" --queue-pattern-from 1 --queue-pattern-to 20 -P 1 -z 15
load nack-requeue -x 1 -y 1 -na -q 10 -r 200 $direct -u $prefix.nack -z 6
