#!/bin/sh
# Writes the tables of settings, one per line of Cassandra, from the classes of its releases. Needs a JDK (17 or later), Maven and its repository.
# Usage: generate.sh [LINE ...]       (all lines without arguments)
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Releases in ascending order. The last one also gives the libraries.
releases_4_1="4.1.0 4.1.1 4.1.2 4.1.3 4.1.4 4.1.5 4.1.6 4.1.7 4.1.8 4.1.9 4.1.10"
releases_5_0="5.0.0 5.0.1 5.0.2 5.0.3 5.0.4 5.0.5 5.0.6 5.0.7 5.0.8 5.0.9"

generate() {
	line=$1
	shift
	arguments=""
	for release in "$@"; do
		echo "fetch cassandra-all $release" >&2
		mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
			-Dartifact="org.apache.cassandra:cassandra-all:$release" -DoutputDirectory="$work/jars" >&2
		arguments="$arguments $release=$work/jars/cassandra-all-$release.jar"
		last=$release
	done
	mvn -q -B -f export/pom.xml -Dcassandra.version="$last" \
		org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
		-DexcludeArtifactIds=cassandra-all -DoutputDirectory="$work/$line" >&2
	# shellcheck disable=SC2086 # the arguments are words without spaces
	java -cp "$work/$line/*" export/Export.java "$line" $arguments >"$work/$line.json"
	mv "$work/$line.json" "$line.json"
}

for line in ${*:-4.1 5.0}; do
	case $line in
	4.1) generate 4.1 $releases_4_1 ;;
	5.0) generate 5.0 $releases_5_0 ;;
	*) echo "no releases known for line $line" >&2; exit 2 ;;
	esac
done
