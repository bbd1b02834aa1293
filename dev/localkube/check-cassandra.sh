#!/usr/bin/env bash
# A pod of each Cassandra version on the local cluster, each asked by CQL: shows that nodes, volumes, DNS and images work together.
# Usage: check-cassandra.sh LOCALKUBE VERSION...
set -euo pipefail

localkube=$1
shift
kubectl() { "$localkube" kubectl "$@"; }
namespace=check-cassandra

cleanup() { kubectl delete namespace "$namespace" --ignore-not-found --wait=true >/dev/null; }
trap cleanup EXIT
cleanup
kubectl create namespace "$namespace" >/dev/null

for version in "$@"; do
  name=cassandra-${version//./-}
  kubectl -n "$namespace" apply -f - <<POD >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: $name}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 999, runAsGroup: 999, fsGroup: 999, runAsNonRoot: true}
  containers:
  - name: cassandra
    image: cassandra:$version
    env:
    - {name: MAX_HEAP_SIZE, value: 384M}
    - {name: HEAP_NEWSIZE, value: 96M}
    - {name: JVM_EXTRA_OPTS, value: "-XX:TieredStopAtLevel=1 -Dcassandra.gossip_settle_min_wait_ms=1000"}
    resources: {requests: {cpu: 200m, memory: 768Mi}, limits: {memory: 1Gi}}
    volumeMounts: [{name: data, mountPath: /var/lib/cassandra}]
    # Any poll of a server that has no other way to say it is there: kubelet asks, we wait for its word.
    readinessProbe: {exec: {command: [cqlsh, -e, SELECT now() FROM system.local]}, periodSeconds: 5, timeoutSeconds: 20}
  volumes:
  - name: data
    persistentVolumeClaim: {claimName: $name}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $name}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
POD
done

for version in "$@"; do
  name=cassandra-${version//./-}
  if ! kubectl -n "$namespace" wait --for=condition=Ready "pod/$name" --timeout=600s >/dev/null; then
    kubectl -n "$namespace" describe "pod/$name" | tail -n 30
    kubectl -n "$namespace" logs "$name" --tail=30
    echo "Cassandra $version does not answer" >&2
    exit 1
  fi
  answer=$(kubectl -n "$namespace" exec "$name" -- cqlsh -e "SELECT release_version FROM system.local")
  if ! grep -qF "$version" <<<"$answer"; then
    echo "Cassandra $version answers: $answer" >&2
    exit 1
  fi
  echo "Cassandra $version answers by CQL from a pod in zone $(kubectl get node "$(kubectl -n "$namespace" get pod "$name" -o jsonpath='{.spec.nodeName}')" -o jsonpath='{.metadata.labels.topology\.kubernetes\.io/zone}')"
done
