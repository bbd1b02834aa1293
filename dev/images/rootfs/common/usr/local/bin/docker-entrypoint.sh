#!/usr/bin/env bash
# Prepares the configuration from CASSANDRA_* variables, as the official image
# does, and runs the given command; anything but `cassandra` runs untouched.
#
#   CASSANDRA_LISTEN_ADDRESS         default auto: the first address of the container
#   CASSANDRA_BROADCAST_ADDRESS      default: the listen address; auto is allowed
#   CASSANDRA_RPC_ADDRESS            default 0.0.0.0
#   CASSANDRA_BROADCAST_RPC_ADDRESS  default: the broadcast address
#   CASSANDRA_SEEDS                  default: the broadcast address
#   CASSANDRA_CLUSTER_NAME, CASSANDRA_NUM_TOKENS, CASSANDRA_ENDPOINT_SNITCH
#   CASSANDRA_DC, CASSANDRA_RACK     for GossipingPropertyFileSnitch
set -e

# Options alone mean options for cassandra.
if [[ $# -eq 0 || $1 == -* ]]; then
    set -- cassandra -f "$@"
fi

if [[ $1 != cassandra ]]; then
    exec "$@"
fi

# Started as root: give the directories to the user cassandra and become it.
if [[ $(id -u) == 0 ]]; then
    find "$CASSANDRA_CONF" /var/lib/cassandra /var/log/cassandra \
        ! -user cassandra -exec chown cassandra '{}' +
    exec setpriv --reuid cassandra --regid cassandra --clear-groups "${BASH_SOURCE[0]}" "$@"
fi

# first_address prints the first IPv4 address that other machines can reach.
first_address() {
    ip -4 -oneline address show | awk '
        $2 == "lo" || $4 ~ /^127\./ || $4 ~ /^169\.254\./ { next }
        { sub(/\/.*/, "", $4); print $4; exit }
    '
}

# edit changes FILE by a sed expression without renaming over it, which would
# fail on a file that is a mount of its own.
edit() {
    local file=$1 expression=$2 changed
    changed=$(sed -r "$expression" "$file")
    printf '%s\n' "$changed" >"$file"
}

# escaped makes a value safe on the right side of a sed substitution.
escaped() {
    printf '%s' "$1" | sed 's/[&/\]/\\&/g'
}

: "${CASSANDRA_RPC_ADDRESS=0.0.0.0}"
: "${CASSANDRA_LISTEN_ADDRESS=auto}"
if [[ $CASSANDRA_LISTEN_ADDRESS == auto ]]; then
    CASSANDRA_LISTEN_ADDRESS=$(first_address)
fi
: "${CASSANDRA_BROADCAST_ADDRESS=$CASSANDRA_LISTEN_ADDRESS}"
if [[ $CASSANDRA_BROADCAST_ADDRESS == auto ]]; then
    CASSANDRA_BROADCAST_ADDRESS=$(first_address)
fi
: "${CASSANDRA_BROADCAST_RPC_ADDRESS:=$CASSANDRA_BROADCAST_ADDRESS}"
: "${CASSANDRA_SEEDS:=$CASSANDRA_BROADCAST_ADDRESS}"

yaml=$CASSANDRA_CONF/cassandra.yaml
edit "$yaml" "s/(- seeds:).*/\1 \"$(escaped "$CASSANDRA_SEEDS")\"/"
for key in broadcast_address broadcast_rpc_address cluster_name endpoint_snitch \
    listen_address num_tokens rpc_address; do
    variable=CASSANDRA_${key^^}
    value=${!variable}
    if [[ -n $value ]]; then
        edit "$yaml" "s/^(# )?($key:).*/\2 $(escaped "$value")/"
    fi
done
for key in dc rack; do
    variable=CASSANDRA_${key^^}
    value=${!variable}
    if [[ -n $value ]]; then
        edit "$CASSANDRA_CONF/cassandra-rackdc.properties" "s/^($key=).*/\1$(escaped "$value")/"
    fi
done

exec "$@"
